"""Broken configurations, and the whole message of each.

The cases are in `broken/*.txt`: changes of a configuration that loads, and indented the messages. A change is a
setting, `-key` for one that is taken out, or `<` and `>` for a text and what is written in its place.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.connectors.converter_keys import CONVERTER_CLASSES
from s3lake.config.connectors.lenses_kcql import ORDER
from s3lake.config.load import CLASSES
from s3lake.config.model import Sink
from s3lake.config.overrides import fields
from s3lake.errors import ConfigurationError
from s3lake.records.encode.formats import CODECS, FORMATS
from s3lake.records.transform.families.class_names import TRANSFORMS, list_short_names
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads
from s3lake_tests.conftest import LONGEST_ONLY_ID, short_id

WORDS = {
    "{NATIVE}": ", ".join([*fields(Sink), "kafka", "source", "s3", "spark", "run_history", "examples"]),
    "{SINK}": ", ".join(fields(Sink)),
    "{LZO}": CODECS["lzo"].refusal,
    "{CODECS}": ", ".join(CODECS),
    "{FORMATS}": ", ".join(FORMATS),
    "{TEXT_CODECS}": ", ".join(FORMATS["text"].codecs),
    "{AVRO_CODECS}": ", ".join(FORMATS["avro"].codecs),
    "{PARQUET_CODECS}": ", ".join(FORMATS["parquet"].codecs),
    "{CLASSES}": ", ".join(CLASSES),
    "{ORDER}": ORDER,
    "{CONVERTERS}": ", ".join(CONVERTER_CLASSES),
    "{TRANSFORMS}": ", ".join(list_short_names(TRANSFORMS)),
}


def _blocks(name: str) -> Iterator[tuple[list[str], list[str]]]:
    for block in (bases.CASES / f"{name}.txt").read_text("utf-8").strip("\n").split("\n\n"):
        lines = block.split("\n")
        messages = [line.strip() for line in lines if line.startswith("    ")]
        for word, meaning in WORDS.items():
            messages = [line.replace(word, meaning) for line in messages]
        yield [line for line in lines if not line.startswith("    ")], messages


def _cases() -> Iterator[object]:
    for name, base in (("lenses", bases.LENSES), ("confluent", bases.CONFLUENT), ("aiven", bases.AIVEN)):
        for changes, messages in _blocks(name):
            split = [change.partition("=") for change in changes]
            new = {key.removeprefix("-"): None if key.startswith("-") else value for key, _, value in split}
            yield pytest.param(
                bases.properties(base, new), messages, id=short_id(f"{name}: {' '.join(changes)}", LONGEST_ONLY_ID)
            )
    for name, text in (("iggy", bases.IGGY), ("json", bases.JSON), ("native", bases.KAFKA + bases.SINK)):
        for (old, new), messages in _blocks(name):
            before, after = (one[2:].encode().decode("unicode_escape") for one in (old, new))
            assert before in text
            yield pytest.param(text.replace(before, after, 1), messages, id=short_id(f"{name}: {new}", LONGEST_ONLY_ID))


@pytest.mark.parametrize(("text", "messages"), list(_cases()))
def test_a_broken_configuration_is_refused_with_place_key_and_remedy(text: str, messages: list[str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        loads(text, "f", None, {})
    assert str(refused.value).split("\n") == [f"f:{line}" for line in messages]


def test_there_are_enough_of_them() -> None:
    assert len(list(_cases())) >= 300


_TEXTS = "0 -1 true a,b {{topic}} { ' a..b // ${ 10MB null é ² ~"
WORDS_OF_VALUES = ["", *_TEXTS.split()]
KNOWN = sorted(
    {
        change.partition("=")[0]
        for name in ("lenses", "confluent", "aiven")
        for block in _blocks(name)
        for change in block[0]
    }
)


@given(
    st.sampled_from([bases.LENSES, bases.CONFLUENT, bases.AIVEN]),
    st.dictionaries(st.sampled_from(KNOWN), st.sampled_from(WORDS_OF_VALUES), min_size=1, max_size=3),
)
def test_any_value_loads_or_is_refused_with_its_place(base: dict[str, str], changes: dict[str, str]) -> None:
    try:
        loads(bases.properties(base, {**changes}), "f", None, {})
    except ConfigurationError as error:
        messages = str(error).split("\n")
    else:
        return
    assert all(line.startswith("f:") for line in messages)


@given(
    st.sampled_from(range(bases.IGGY.count("\n"))),
    st.sampled_from(
        ["1", "true", '""', '"x"', "[]", '["a"]', "[1]", "{}", "{a = 1}", "[{a = 1}]", "2026-11-20", '"${x}"', "'{'"]
    ),
)
def test_any_value_of_iggys_file_loads_or_is_refused_with_its_place(at: int, value: str) -> None:
    lines = bases.IGGY.split("\n")
    name, equals, _ = lines[at].partition("=")
    lines[at] = f"{name}={value}" if equals else f"{lines[at]}\nmore = {value}"
    try:
        loads("\n".join(lines), "f", None, {})
    except ConfigurationError as error:
        messages = str(error).split("\n")
    else:
        return
    assert all(line.startswith("f:") for line in messages)
