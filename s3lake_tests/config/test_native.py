"""The native YAML configuration: what it gives, and the message of each mistake."""

import re
from typing import Any

import pytest
from hypothesis import given

from s3lake.config.native import load_text, write_native
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.kit.cost import count_calls
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.lake.verify.sinks import sinks

KAFKA, SINK = bases.KAFKA, bases.SINK
GOOD = KAFKA + SINK


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        load_text(text, "s3lake.yaml")
    return str(refused.value).split("\n")


def error(text: str) -> str:
    (one,) = errors(text)
    return one


# What it gives


@pytest.mark.parametrize(
    ("more", "path", "value"),
    [
        pytest.param("", "topics", ("events",), id="four fields make a sink"),
        pytest.param("", "start", "2026-11-20T00", id="a date is text"),
        pytest.param("from: earliest", "from_", "earliest", id="from"),
        *(
            pytest.param(f"exactly_once: {word}", "exactly_once", value, id=f"YAML's old word {word}")
            for word, value in (("true", True), ("no", False), ("off", False), ("yes", True))
        ),
        pytest.param("layout: {padding: {char: 0}}", "layout.padding.char", "0", id="text needs no quotes"),
    ],
)
def test_a_setting_is_read_as_the_model_wants_it(more: str, path: str, value: object) -> None:
    assert bases.values(bases.native(f"{GOOD}    {more}\n"), path) == {path: value}


@pytest.mark.parametrize(
    "topic", ["on", "off", "yes", "no", "2026-11-20", "0x10", "1_000", "123", "1.10", "true", "0o7"]
)
def test_a_topic_called_like_something_else_is_that_topic(topic: str) -> None:
    assert load_text(GOOD.replace("[events]", f"[{topic}]"), "s3lake.yaml").sinks[0].topics == (topic,)


def test_properties_are_the_text_that_is_written() -> None:
    text = "kafka:\n  bootstrap_servers: a:1\n  properties: {a: 45000, b: true, c: 1.10, d: on}\n" + SINK
    assert load_text(text, "s3lake.yaml").kafka.properties == {"a": "45000", "b": "true", "c": "1.10", "d": "on"}


def test_a_mapping_can_be_merged_into_another() -> None:
    text = (
        GOOD.replace("  - name", "  - &first\n    name")
        + "    flush: {count: 7}\n  - {<<: *first, name: clicks, topics: [clicks]}\n"
    )
    clicks = load_text(text, "s3lake.yaml").sink("clicks")
    assert (clicks.topics, clicks.bucket, clicks.flush.count) == (("clicks",), "lake", 7)


# The environment


@pytest.mark.parametrize(
    ("line", "variables", "path", "value"),
    [
        pytest.param("prefix: my-${P}-1", {"P": "pond"}, "prefix", "my-pond-1", id="part of a text"),
        pytest.param("hours_per_run: 7${P}", {"P": "1"}, "hours_per_run", 71, id="typed as if it was written"),
        pytest.param("hours_per_run: ${P}", {"P": "null"}, "hours_per_run", None, id="null"),
        pytest.param('flush: {count: "${P}"}', {"P": "7"}, "flush.count", 7, id="a number in quotes"),
        pytest.param("prefix: ${P:-raw}", {}, "prefix", "raw", id="a default if it is not set"),
        pytest.param("prefix: ${P:-raw}", {"P": ""}, "prefix", "raw", id="a default if it is empty"),
        pytest.param("prefix: ${P}", {"P": "a: [b]"}, "prefix", "a: [b]", id="never read as structure"),
        pytest.param("prefix: ${P}", {"P": "${HOME}"}, "prefix", "${HOME}", id="not replaced again"),
        pytest.param("prefix: $${P}", {"P": "x"}, "prefix", "${P}", id="two dollars are one"),
    ],
)
def test_a_variable_is_replaced_by_its_value(line: str, variables: dict[str, str], path: str, value: object) -> None:
    assert bases.values(bases.native(f"{GOOD}    {line}\n", variables), path) == {path: value}


def test_a_secret_of_digits_is_text() -> None:
    text = GOOD + "    forwards: [{to: stdout, options: {a: 01, token: 01}}]\n"
    assert bases.native(text).config.sinks[0].forwards[0].options == {"a": 1, "token": "01"}


# Messages: broken/native.txt has one for each mistake


def test_all_mistakes_are_reported_at_once_in_the_files_order() -> None:
    messages = errors(
        "kafka: {bootstrap_servers: localhost}\n"
        "sinks:\n"
        "  - nme: x\n"
        "    topics: [a b]\n"
        "    bucket: ${NO_SUCH_THING}\n"
        "    bucket: twice\n"
        "    flush: {count: 0, size: big}\n"
        "    format: {type: orc}\n"
    )
    assert [re.sub(r"^s3lake.yaml:(\d+:\d+): ([^:]*):.*", r"\1 \2", line) for line in messages] == [
        "1:28 kafka.bootstrap_servers",
        "3:5 sinks[0].name",
        "3:5 sinks[0].nme",
        "3:5 sinks[0].start",
        "4:14 sinks[0].topics[0]",
        "5:13 sinks[0].bucket",
        "6:5 sinks[0].bucket",
        "7:20 sinks[0].flush.count",
        "7:29 sinks[0].flush.size",
        "8:20 sinks[0].format.type",
    ]


def test_a_mistake_in_an_anchor_is_reported_once() -> None:
    text = (
        GOOD.replace("  - name", "  - &first\n    name") + "    flsh: {}\n  - {<<: *first, name: clicks, prefix: b}\n"
    )
    assert len(errors(text)) == 1


# Texts that are not a configuration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((empty, "1:1: the file is empty; a mapping is needed with kafka, s") for empty in ("", "\n\n", "# remark\n")),
        ("- a\n", "1:1: the file holds a list; a mapping is needed"),
        ("a\n", "1:1: the file holds text; a mapping is needed"),
        ("null\n", "1:1: the file holds null; a mapping is needed"),
        ("kafka: [\n", "2:1: not YAML: "),
        ("kafka:\n\tbootstrap_servers: a:1\n", "2:1: not YAML: "),
        ("a: 1\n---\nb: 2\n", "3:1: a second document begins"),
        ("a: \x01\n", "1:4: the character U+0001 is not allowed"),
        ("a: *b\n", "1:4: an alias without its anchor"),
        ("[" * 1000, "1:1: nested too deeply"),
        ("kafka: &a {b: *a}\n", "1:1: nested too deeply"),
        ("a: !!python/object/apply:os.mkdir ['x']\n", "1:4: a: a tag is not supported"),
    ],
)
def test_a_text_that_is_not_a_configuration_is_refused_with_its_place(text: str, message: str) -> None:
    assert f"s3lake.yaml:{message}" in "\n".join(errors(text))


# Aliases that would never end

LETTERS = list(zip("abcdefghi", "bcdefghij", strict=True))


def grown(first: str, next: str) -> str:
    return first + "".join(next.format(one=one, before=before) for before, one in LETTERS)


@pytest.mark.parametrize(
    "text",
    [
        grown("a: &a [x]\n", "{one}: &{one} [" + ",".join(["*{before}"] * 9) + "]\n"),
        grown("a: &a {x: 1}\n", "{one}: &{one} {{<<: [" + ",".join(["*{before}"] * 9) + "], {one}1: *{before}}}\n"),
        "a: &a {"
        + ", ".join(f"k{n}: 1" for n in range(1000))
        + "}\nb:\n"
        + "  - {<<: ["
        + ",".join(["*a"] * 50)
        + "]}\n" * 20,
    ],
    ids=["lists", "merges", "merges of one"],
)
def test_aliases_that_grow_without_end_are_refused(text: str) -> None:
    def refuse() -> None:
        with pytest.raises(ConfigurationError, match=r"^f:.*"):
            load_text(KAFKA + text, "f")

    count_calls(refuse, most=2_000_000)  # to the end they would be 9 ** 26


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        KAFKA + "s3: {credentials: hunter2}\n" + SINK,
        KAFKA + "s3: {credentials: *hunter2}\n" + SINK,
        KAFKA + "s3: {credentials: !hunter2 x}\n" + SINK,
        KAFKA + "s3: {endpoint_url: 'https://me:hunter2@s3'}\n" + SINK,
        "kafka: {bootstrap_servers: 'me:hunter2@s3:9092'}\n" + SINK,
        GOOD + "    secret: hunter2\n",
        GOOD.replace("lake", "${DB_PASSWORD}/lake"),
        GOOD.replace("2026-11-20T00", "${DB_PASSWORD}"),
        GOOD + "    flush: {count: '${DB_PASSWORD}'}\n",
    ],
)
def test_no_error_holds_a_secret(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hunter2")
    with pytest.raises(ConfigurationError) as refused:
        load_text(text, "s3lake.yaml")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_value_from_the_environment_is_shown_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNT", "abc")
    assert "'abc' (from ${COUNT}) is not allowed" in error(GOOD + '    flush: {count: "${COUNT}"}\n')


# A configuration that is written again


@given(sink=sinks())
def test_the_written_text_loads_as_the_same_configuration(sink: dict[str, Any]) -> None:
    config = make_config(make_sink(**sink))
    assert load_text(write_native(config)[0], "s3lake.yaml") == config


def test_variables_come_from_the_environment_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET", "of-the-process")
    text = GOOD.replace("lake", "${BUCKET}")
    assert bases.native(text, {"BUCKET": "given"}).config.sinks[0].bucket == "given"
    assert load_text(text, "s3lake.yaml").sinks[0].bucket == "of-the-process"
