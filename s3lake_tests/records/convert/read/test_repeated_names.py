"""Objects of JSON with two members of one name: which values have them, by C and by Python."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.convert.read.json_check import CompiledFind
from s3lake.records.convert.read.value_checks import find_repeated_names
from s3lake_tests.records.convert.read.conftest import compile_c

WIDE = 600
"""More names than json_check.c compares."""


@pytest.fixture(scope="module")
def compiled_names(tmp_path_factory: pytest.TempPathFactory) -> CompiledFind:
    library = tmp_path_factory.mktemp("names") / "libjson_check.so"
    compile_c(Path("s3lake/records/convert/read/json_check.c"), library)
    return CompiledFind(library, "find_doubtful_names")


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def make_wide_object(repeated: bool) -> bytes:
    members = [f'"field{number % (WIDE - 1) if repeated else number}":{number}' for number in range(WIDE)]
    return f"{{{','.join(members)}}}".encode()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b'{"a":1,"a":2}', "a"),
        (b'{"a" : 1 , "a" : 2}', "a"),
        (b'{"a":{"b":1,"b":1}}', "b"),
        (b'[{"x":null,"x":null}]', "x"),
        (b'{"":1,"":2}', ""),
        ('{"größe":1,"größe":2}'.encode(), "größe"),
        (b'{"a":1,"\\u0061":2}', "a"),
        (b'{"a":{"c":1},"b":2,"a":3}', "a"),
        (b"[" * 100 + b'{"a":1,"a":2}' + b"]" * 100, "a"),
        (make_wide_object(repeated=True), "field0"),
    ],
)
def test_a_repeated_name_is_found_and_named(value: bytes, name: str) -> None:
    assert find_repeated_names(binary(b"{}", value)) == {
        1: f"an object has the name {name!r} twice: only one of its values could land"
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        b'{"a":{"a":{"a":1}},"b":{"a":1}}',
        b'[{"a":1},{"a":2}]',
        b'{"a":"\\"a\\":","b":"a","c":["a","a"]}',
        b'{"\\u0061":1,"b":2}',
        b'{"a":1e999999999,"b":-0}',
        b'{"a":' + b"9" * 5000 + b"}",
        make_wide_object(repeated=False),
        b"{",
        b'{"a":1,"a"',
    ],
)
def test_names_that_are_not_repeated_are_not_found(value: bytes | None) -> None:
    assert find_repeated_names(binary(value)) == {}


def test_ordinary_objects_are_passed_without_python(compiled_names: CompiledFind) -> None:
    assert list(compiled_names(binary(b'{"a":{"a":1},"b":[{"a":"x:"},{"a":2}],"c":"a"}', b'"a"', b"[1]", None))) == []


NAMES = st.sampled_from(["a", "b", "ab", "", "é", "\\u0061", "a\\n"])
JSON = st.recursive(
    st.sampled_from(["1", '"a"', '"a\\":"', "null", "-1.5e3"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(NAMES, inner), max_size=4).map(
            lambda members: "{" + ",".join(f'"{name}" :{value}' for name, value in members) + "}"
        )
    ),
    max_leaves=10,
)


def has_repeated_names(text: str) -> bool:
    counts: list[bool] = []
    json.loads(text, object_pairs_hook=lambda members: counts.append(len(members) != len(dict(members))))
    return any(counts)


@given(texts=st.lists(JSON, min_size=1, max_size=20))
def test_c_leaves_all_values_with_repeated_names_to_python(compiled_names: CompiledFind, texts: list[str]) -> None:
    values = binary(*(text.encode() for text in texts))
    expected = {row for row, text in enumerate(texts) if has_repeated_names(text)}
    assert expected <= set(compiled_names(values))
    assert set(find_repeated_names(values)) == expected


def test_c_reads_no_byte_behind_a_value_that_is_cut_anywhere(compiled_names: CompiledFind) -> None:
    text = b'{"a":[1,{"b":"\\u00e9","b":2}],"a":"x"}'
    parts = [text[:at] for at in range(len(text) + 1)] + [text[at:] for at in range(len(text) + 1)]
    random.Random(1).shuffle(parts)
    assert len(list(compiled_names(binary(*parts)))) <= len(parts)
