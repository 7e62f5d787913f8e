"""JSON objects to columns: one row per record, never shifted, and every refusal with its record."""

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.convert.read import keys_and_values
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.json.object_blocks import Block
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.schema.columns.types import from_document, to_document
from s3lake_tests.kit.cost import count_calls

Document = dict[str, Any]


def read_objects(values: pa.BinaryArray, columns: Document) -> tuple[pa.RecordBatch | None, Document, Refusals]:
    """With columns as the index writes them."""
    batch, united, refused, *_ = object_columns.read_objects(values, from_document(columns))
    return batch, to_document(united), refused


def binary(*values: Any) -> pa.BinaryArray:
    return pa.array([one if isinstance(one, bytes) else json.dumps(one).encode() for one in values], pa.binary())


def rows(*values: Any, columns: Document | None = None) -> list[dict[str, Any]]:
    batch, _, refused = read_objects(binary(*values), columns or {})
    assert refused == {}
    return batch.to_pylist()  # type: ignore[no-any-return, union-attr]


def test_fields_become_columns() -> None:
    batch, columns, refused = read_objects(binary({"id": 1, "name": "x", "ok": True, "part": 0.5}), {})
    assert columns == {"id": "int64", "name": "string", "ok": "bool", "part": "double"}
    assert batch.to_pylist() == [{"id": 1, "name": "x", "ok": True, "part": 0.5}]
    assert refused == {}


def test_integers_widen_to_doubles() -> None:
    batch, columns, _ = read_objects(binary({"a": 1}, {"a": 2.5}, {"a": 2**70}), {"a": "int64"})
    assert columns == {"a": "double"}
    assert batch.to_pylist() == [{"a": 1.0}, {"a": 2.5}, {"a": float(2**70)}]


def test_nested_objects_and_lists_become_structs_and_lists() -> None:
    batch, columns, _ = read_objects(
        binary({"a": {"b": {"c": 1}}, "l": [[1], [2.5, None]], "s": [{"x": 1}, {"y": "z"}]}), {}
    )
    assert columns == {
        "a": {"struct": {"b": {"struct": {"c": "int64"}}}},
        "l": {"list": {"list": "double"}},
        "s": {"list": {"struct": {"x": "int64", "y": "string"}}},
    }
    assert batch.to_pylist() == [
        {"a": {"b": {"c": 1}}, "l": [[1.0], [2.5, None]], "s": [{"x": 1, "y": None}, {"x": None, "y": "z"}]}
    ]


def test_an_empty_field_gets_no_column() -> None:
    batch, columns, _ = read_objects(binary({"a": 1, "n": None, "l": [], "o": {}, "m": [None]}), {})
    assert columns == {"a": "int64"}
    assert batch.to_pylist() == [{"a": 1}]


def test_objects_that_hold_nothing_are_refused_while_no_column_is_known() -> None:
    batch, columns, refused = read_objects(binary({}, {"a": None}), {})
    assert (batch, columns) == (None, {})
    assert set(refused) == {0, 1}
    assert "no column is known yet" in refused[0]


@pytest.mark.parametrize("value", [b"1", b"-2.5", b"true", b"null", b'"x"', b"[]", b'[{"a":1}]', b"  7 "])
def test_a_value_that_is_not_an_object_is_refused_before_pyarrow_reads_it(value: bytes) -> None:
    batch, _, refused = read_objects(binary(value, {"a": 1}), {})
    assert refused == {
        0: "the value is not a JSON object, which a table needs: use format json, or wrap it by HoistField$Value"
    }
    assert batch.to_pylist() == [{"a": 1}]


KEEP_ONE_TYPE = ": have the producer keep to one type, or use format json, which has no columns"


@pytest.mark.parametrize(
    ("known", "value", "message"),
    [
        ({"a": "int64"}, {"a": "x"}, "field 'a' is string, the sink's files have int64"),
        ({"a": "string"}, {"a": 1}, "field 'a' is int64, the sink's files have string"),
        ({"a": "string"}, {"a": {"b": 1}}, "field 'a' is struct<b: int64>, the sink's files have string"),
        ({"a": "int64"}, {"a": [[], [1]]}, "field 'a' is list<list<int64>>, the sink's files have int64"),
        ({"a": {"struct": {"b": "bool"}}}, {"a": {"b": 0}}, "field 'a.b' is int64, the sink's files have bool"),
        ({"a": {"list": "string"}}, {"a": [1]}, "field 'a[]' is int64, the sink's files have string"),
        ({"a": {"list": "string"}}, {"a": "x"}, "field 'a' is string, the sink's files have list<string>"),
    ],
)
def test_a_conflict_refuses_its_record_and_no_other(known: Document, value: Any, message: str) -> None:
    batch, columns, refused = read_objects(binary({"k": 1}, value, {"k": 2}), known)
    assert refused == {1: message + KEEP_ONE_TYPE}
    assert [row["k"] for row in batch.to_pylist()] == [1, 2]
    assert columns == {**known, "k": "int64"}


def test_within_a_batch_the_first_type_decides() -> None:
    batch, columns, refused = read_objects(binary({"a": 1}, {"a": "x"}, {"a": 2}), {})
    assert (batch.to_pylist(), columns) == ([{"a": 1}, {"a": 2}], {"a": "int64"})
    assert refused == {1: "field 'a' is string, the sink's files have int64" + KEEP_ONE_TYPE}


@pytest.mark.parametrize("known", [{}, {"a": "int64"}])
@pytest.mark.parametrize("value", [b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}'])
def test_a_field_given_twice_refuses_the_record(value: bytes, known: Document) -> None:
    batch, _, refused = read_objects(binary(value, {"a": 3}), known)
    assert batch.to_pylist() == [{"a": 3}]
    assert refused == {0: "an object has the name 'a' twice: only one of its values could land"}


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb"])
def test_a_name_with_a_quote_a_backslash_or_a_control_character_is_refused(name: str) -> None:
    _, columns, refused = read_objects(binary({"k": 1}, {"k": 2, "o": {name: 1}}), {})
    assert columns == {"k": "int64"}
    assert "its name has a quote, a backslash or a control character" in refused[1]


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"9" * 400, b"-" + b"9" * 5000])
def test_a_number_beyond_a_double_is_refused(number: bytes) -> None:
    for value in (b'{"a":%s}', b'{"a":1.5,"o":{"a":[%s]}}'):
        _, _, refused = read_objects(binary({"a": 1.5}, value % number), {})
        assert "number is beyond a double" in refused[1]


READERS = "which Parquet's readers refuse"


@pytest.mark.parametrize("depth", [33, 500, 900])
def test_deep_nesting_is_refused(depth: int) -> None:
    objects = b'{"a":' * depth + b"1" + b"}" * depth
    lists = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    batch, _, refused = read_objects(binary({"k": 1}, objects, lists, {"k": 2}), {})
    remedy = "have the producer flatten it, or use format json, which has no columns"
    assert set(refused) == {1, 2}
    assert all(reason.endswith(f"nests deeper than 32 levels, {READERS}: {remedy}") for reason in refused.values())
    assert batch.to_pylist() == [{"k": 1}, {"k": 2}]


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["2026-11-20", "2026-11-20T00:00:00Z", ""])
)
_fields = st.sampled_from(["a", "b", "c", "a.b", "", "é"])
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_fields, inner, max_size=3), max_leaves=5
)
_objects = st.dictionaries(_fields, _values, max_size=4)
_others = st.one_of(_scalars, st.lists(_scalars, max_size=2))
_known: st.SearchStrategy[Document] = st.dictionaries(
    _fields, st.sampled_from(["int64", "double", "string", {"list": "string"}, {"struct": {"a": "int64"}}])
)


def _same(found: Any, given: Any) -> bool:
    """Whether a column's value is the JSON value that was given; what holds nothing may be null."""
    if found is None:
        return given is None or _empty(given)
    if isinstance(found, dict):
        return all(_same(found[name], given.get(name)) for name in found) and all(
            name in found or _empty(one) for name, one in given.items()
        )
    if isinstance(found, list):
        return len(found) == len(given) and all(_same(one, other) for one, other in zip(found, given, strict=True))
    if isinstance(found, float) and not isinstance(given, bool):
        return found == float(given)
    return type(found) is type(given) and found == given


def _empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_empty, value.values()))
    return value is None or (isinstance(value, list) and all(map(_empty, value)))


@given(st.lists(_objects | _others, min_size=1, max_size=12), _known)
def test_rows_never_shift(values: list[Any], known: Document) -> None:
    batch, columns, refused = read_objects(binary(*values), known)
    kept = [value for row, value in enumerate(values) if row not in refused]
    found = batch.to_pylist() if batch is not None else []
    assert len(found) == len(kept)
    for row, value in zip(found, kept, strict=True):
        assert _same(row, value)
    if batch is not None:
        assert batch.schema.names == list(columns)
        assert list(columns)[: len(known)] == list(known)


@given(st.lists(_objects, min_size=1, max_size=8), _known)
def test_with_the_columns_of_a_batch_it_shows_nothing_new(values: list[Any], known: Document) -> None:
    _, columns, refused = read_objects(binary(*values), known)
    kept = [value for row, value in enumerate(values) if row not in refused]
    if kept:
        _, again, none = read_objects(binary(*kept), columns)
        assert (again, none) == (columns, {})


_numbers = st.fixed_dictionaries({"a": st.sampled_from([1, 0.5, 2**53 + 1, 2**70, None])})


@given(
    st.lists(_objects | _numbers | _others, min_size=1, max_size=4),
    st.lists(_objects | _numbers | _others, min_size=1, max_size=4),
    _known,
    st.booleans(),
)
def test_records_behind_the_first_ones_are_read_as_if_each_were_looked_at(
    first: list[Any], others: list[Any], known: Document, checked: bool
) -> None:
    values = binary(*itertools.islice(itertools.cycle(first), 100), *first, *others)
    found = object_columns.read_objects(values, from_document(known), checked=checked)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Block, "read_at_once", lambda *_, **__: None)
        looked_at = object_columns.read_objects(values, from_document(known), checked=checked)
    assert repr(found.batch and found.batch.to_pylist()) == repr(looked_at.batch and looked_at.batch.to_pylist())
    assert found._replace(batch=None) == looked_at._replace(batch=None)
    assert found.batch is None or found.batch.schema == looked_at.batch.schema  # type: ignore[union-attr]


def test_records_that_fit_what_the_first_ones_show_cost_no_call_each() -> None:
    record = {"a": 1, "b": None, "c": [1.5]}
    few, many = (binary(*[record] * count) for count in (1_000, 10_000))
    read_objects(few, {})
    assert count_calls(lambda: read_objects(many, {})) <= count_calls(lambda: read_objects(few, {})) + 100


# Values that have not passed the gate


_pieces = st.sampled_from(
    [b'{"a":1}', b"{}", b'{"a":', b"{}}", b'{"a":"}', b'"}', b'{"b":[{}', b"]}", b",", b" ", b"\n", b"\0", b"x"]
)
_values = b"""{"a":01} {"a":NaN} {"a":-NaN} {"a":1.5} {"a":1,} {'a':1} {"a":1.} {"a":+1} {"a":1e999} {"a":Infinity}
{"a":"\\x"} {"a":"\\ud800"} {"a":"\\udc00"} {"a":1}/**/ {"a":1}//} {"a":true} {"a":2} {"a":null}
{"a":3,"a":4} {"a":"\xff"} {"a":"\x01"}""".split()
_whole = st.sampled_from(
    [
        *_values,
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"x\ny"}',
        b'{"a":1}\0}',
        b'{"a":"\0"}',
        b'{"a":' * 500 + b"1" + b"}" * 500,
    ]
)


@given(
    st.lists(st.lists(_pieces, max_size=4).map(b"".join) | _whole, max_size=5),
    st.sampled_from(["int64", "string", "timestamp", "double"]),
)
def test_values_that_have_not_passed_the_gate_are_read_and_refused_as_if_they_had(
    values: list[bytes], known: str
) -> None:
    columns = from_document({"a": known})
    lines, refused = keys_and_values.check_json_lines(binary(*values))
    kept = [row for row in range(len(values)) if row not in refused]
    checked = object_columns.read_objects(lines.take(pa.array(kept, pa.int64())), columns)
    found = object_columns.read_objects(binary(*values), columns, checked=False)
    assert found.refused == refused | {kept[row]: reason for row, reason in checked.refused.items()}
    assert (found.columns, found.large) == (checked.columns, checked.large)
    assert (found.batch and found.batch.to_pylist()) == (checked.batch and checked.batch.to_pylist())
