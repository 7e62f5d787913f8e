"""The gate: each value is judged on its own, and lines stay lines."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.convert.read import json_check
from s3lake.records.convert.read.value_checks import check_json, check_utf8, replace_line_breaks


@pytest.fixture(autouse=True, scope="module", params=["json_check.c", "msgspec"])
def find(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check with the library, and as without a compiler."""
    is_compiled = request.param == "json_check.c"
    find = request.getfixturevalue("compiled_find") if is_compiled else json_check.find_all_rows
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_check, "choose_find", lambda: find)
        yield


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@pytest.mark.parametrize(
    "value",
    [
        b"{}",
        b"[]",
        b"null",
        b"true",
        b"1",
        b"-0.5e-3",
        b'""',
        b'"\\ud83d\\ude00"',
        b' \t\r\n{"a": [1, {"b": null}]}\n ',
        '{"größe":"日本"}'.encode(),
        b'{"a":1,"a":2}',
        b"123456789012345678901234567890",
        b"1e999",
        b'{"a":' * 300 + b"1" + b"}" * 300,
    ],
)
def test_one_json_value_passes(value: bytes) -> None:
    assert check_json(binary(value)) == {}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "empty value: expected JSON, or null for no value; for texts use the converter string"),
        (b" \n\t", "empty value: expected JSON, or null for no value; for texts use the converter string"),
        (b'{"a":1}{"b":2}', "trailing characters"),
        (b"1 2", "trailing characters"),
        (b'{"a":1}\x00', "trailing characters"),
        (b'{"a":1', "truncated"),
        (b'{"a":1,}', "malformed"),
        (b"{'a':1}", "malformed"),
        (b"NaN", "malformed"),
        (b"-Infinity", "malformed"),
        (b"01", "malformed"),
        (b"1.", "malformed"),
        (b"nul", "truncated"),
        (b"// note\n1", "malformed"),
        (b'{"a":"x\ny"}', "invalid character"),
        (b'{"a":"x\x01y"}', "invalid character"),
        (b'"\\x"', "invalid escape"),
        (b'"\\ude00\\ud83d"', "surrogate"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (b'{"a":"\xff"}', "not UTF-8: byte 6 is 0xff"),
        (b'"\xed\xa0\x80"', "not UTF-8: byte 1 is 0xed"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":"\\ud800"}', "the surrogate '\\ud800' alone"),
        (b'"\\\\ud800 \\ud83d\\ude00 \\uDC00"', "surrogate"),
    ],
)
def test_bytes_that_are_not_exactly_one_json_value_are_refused_with_a_reason(value: bytes, why: str) -> None:
    assert why in check_json(binary(value))[0]


NO_JSON = [
    (b'\xef\xbb\xbf{"a":1}', "a byte order mark: have the producer leave it out"),
    ('{"a":1}'.encode("utf-16"), "it looks like UTF-16"),
    (b"\x1f\x8b\x08\x00\x00\x00", "it looks like gzip"),
    (b'{"a":NaN}', "NaN is not a value of JSON: have the producer write null or a text"),
    (b"[1,-Infinity]", "-Infinity is not a value of JSON"),
    (b'{"a":"NaN",b":1}', "malformed"),
    (b'\0\0\0\0\1{"a":1}', "a Schema Registry's serializer: set the converter avro, json_schema or protobuf"),
    (b"\0\0\0\0\1\x02\xff\xff", "a Schema Registry's serializer"),
    (b"\3\0" + bytes(16) + b"\xff", "AWS Glue's serializer"),
    (b"\xc3\1" + bytes(8), "Avro's single-object encoding"),
    (b'"\\ud83dx"', "the surrogate '\\ud83d' alone"),
    (b'"x\\udc00"', "the surrogate '\\udc00' alone"),
]


@pytest.mark.parametrize(("value", "why"), NO_JSON)
def test_bytes_of_a_known_kind_are_refused_with_cause_and_remedy(value: bytes, why: str) -> None:
    assert why in check_json(binary(value))[0]


@pytest.mark.parametrize("value", [b'{"a":"NaN"', b'{"a":"\\\\ud800"'])
def test_a_value_that_is_cut_off_is_reported_as_such(value: bytes) -> None:
    assert check_json(binary(value))[0] == "Input data was truncated"


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ([b'{"a":', b"{}}", b'{"b":1}{"c":2}'], [0, 1, 2]),
        ([b'{"a":"}', b'{"b":1}{"c":2}'], [0, 1]),
        ([b'{"a":[{}', b'{"b":1}', b'{"c":1}{"d":2}'], [0, 2]),
        ([b'{"a":1}', None, b'{"a":1}\n{"b":2}', b'{"c":1}'], [2]),
        ([b"1", b"{", b"2", b"\xff", b"", None, b"3 4", b"5"], [1, 3, 4, 6]),
        ([None, b""], [1]),
        ([None, None], []),
        ([], []),
    ],
)
def test_objects_are_judged_each_by_itself(values: list[bytes | None], refused: list[int]) -> None:
    assert sorted(check_json(binary(*values))) == refused


def test_text_is_utf8() -> None:
    assert check_utf8(binary(b"plain", "größe".encode(), None, b"a\xc3")) == {3: "not UTF-8: byte 1 is 0xc3"}


def test_a_slice_is_judged_by_its_own_rows() -> None:
    assert check_json(binary(b"{", b"1", b"{", b"2").slice(1, 2)) == {
        1: check_json(binary(b"{"))[0],
    }


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (b'{\n  "a": 1,\r\n  "b": 2\n}\n', b'{   "a": 1,    "b": 2 } '),
        (b"a\nb", b"a b"),
        (b"a\rb", b"a b"),
        (b'{"a":"x\\ny"}', b'{"a":"x\\ny"}'),
        (b"", b""),
    ],
)
def test_a_raw_newline_becomes_a_space(value: bytes, line: bytes) -> None:
    assert replace_line_breaks(binary(value)).to_pylist() == [line]


def test_a_slice_keeps_its_own_rows_and_nulls_stay_null_next_to_newlines() -> None:
    assert replace_line_breaks(binary(b"x\n", None, b"a\nb", b"c").slice(1)).to_pylist() == [None, b"a b", b"c"]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_json, st.sampled_from([None, 0, 2]))
def test_json_passes_and_means_the_same_on_one_line(value: object, indent: int | None) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=True).encode()
    if b"\\ud" not in data:  # a lone surrogate is not text
        assert check_json(binary(data)) == {}
    (line,) = replace_line_breaks(binary(data)).to_pylist()
    assert not set(line) & set(b"\r\n")
    assert json.loads(line) == json.loads(data)


@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"1", b"{}", b'"x"', b'[1,"a"]']), max_size=10))
def test_accepted_values_are_readable_by_python_too(values: list[bytes]) -> None:
    refused = check_json(binary(*values))
    for row, value in enumerate(values):
        if row not in refused:
            json.loads(value.decode())
