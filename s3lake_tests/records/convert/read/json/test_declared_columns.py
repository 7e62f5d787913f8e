"""Columns that the user gives: JSON in their types, exactly, or a record error with the reason."""

import base64
import datetime
import json
from decimal import Context, Decimal
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.schema.columns import grammar

UTC = datetime.timezone.utc


def texts(*values: Any) -> pa.BinaryArray:
    return pa.array([one if isinstance(one, bytes) else json.dumps(one).encode() for one in values], pa.binary())


TypeNames = dict[str, str]


def read_objects(
    values: pa.BinaryArray, columns: TypeNames, given: TypeNames | None = None
) -> tuple[pa.RecordBatch | None, TypeNames, Refusals]:
    """With columns as the user writes them."""
    known, pinned = (
        {name: grammar.parse_type(text) for name, text in type_names.items()} for type_names in (columns, given or {})
    )
    batch, united, refused, *_ = object_columns.read_objects(values, known, pinned)
    return batch, {name: str(type) for name, type in united.items()}, refused


def read(kind: str, *values: Any) -> tuple[list[Any], dict[int, str]]:
    """Values of a column `a` of that type, each alone and all together: the same either way."""
    column = {"a": kind}
    lines = [b'{"a":%s}' % (one if isinstance(one, bytes) else json.dumps(one).encode()) for one in values]
    batch, _, refused = read_objects(texts(*lines), {}, column)
    found = [] if batch is None else [row["a"] for row in batch.to_pylist()]
    alone = [read_objects(texts(line), {}, column) for line in lines]
    assert [row for row, (_, _, lost) in enumerate(alone) if lost] == sorted(refused)
    assert [one.to_pylist()[0]["a"] for one, _, _ in alone if one is not None] == found
    return found, refused


def moment(*at: int) -> datetime.datetime:
    return datetime.datetime(*at, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [
        ("timestamp", "2026-11-20T10:00:00Z", moment(2026, 11, 20, 10)),
        ("timestamp", "2026-11-20 10:00:00.5+02:00", moment(2026, 11, 20, 8, 0, 0, 500_000)),
        ("timestamp", "2026-11-20T10:00-0130", moment(2026, 11, 20, 11, 30)),
        ("timestamp", "2026-11-20T10:00:00", moment(2026, 11, 20, 10)),
        ("timestamp", "2026-11-20", moment(2026, 11, 20)),
        ("timestamp", "2026-11-20T10:00:00.123000Z", moment(2026, 11, 20, 10, 0, 0, 123_000)),
        ("timestamp", "1969-12-31T23:59:59.999Z", moment(1969, 12, 31, 23, 59, 59, 999_000)),
        ("timestamp", 1_500, moment(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp", -1, moment(1969, 12, 31, 23, 59, 59, 999_000)),
        ("date", "2026-11-20", datetime.date(2026, 11, 20)),
        ("date", -1, datetime.date(1969, 12, 31)),
        ("time", "10:11:12.013", datetime.time(10, 11, 12, 13_000)),
        ("time", "10:11", datetime.time(10, 11)),
        ("time", 86_399_999, datetime.time(23, 59, 59, 999_000)),
        ("decimal(4,2)", b"1.10", Decimal("1.10")),
        ("decimal(4,2)", "99.99", Decimal("99.99")),
        ("decimal(4,2)", b"12e-1", Decimal("1.20")),
        ("decimal(4,2)", b"1.500", Decimal("1.50")),
        (
            "decimal(38,18)",
            b"12345678901234567890.123456789012345678",
            Decimal("12345678901234567890.123456789012345678"),
        ),
        ("uuid", "12345678-1234-1234-1234-1234567890AB", UUID("12345678-1234-1234-1234-1234567890ab")),
        ("uuid", "123456781234123412341234567890ab", UUID("12345678-1234-1234-1234-1234567890ab")),
        ("binary", "AP8=", b"\x00\xff"),
        ("binary", "", b""),
        ("int32", 2**31 - 1, 2**31 - 1),
        ("int64", -(2**63), -(2**63)),
        ("float", 0.5, 0.5),
        ("double", 1, 1.0),
        ("list<date>", ["2026-11-20", None], [datetime.date(2026, 11, 20), None]),
        ("list<decimal(3,1)>", [1, "2.5"], [Decimal("1.0"), Decimal("2.5")]),
        ("map<string, int64>", {"a-b": 1, "": None}, [("a-b", 1), ("", None)]),
        ("map<string, timestamp>", {"x": 0}, [("x", moment(1970, 1, 1))]),
        ("struct<t: timestamp, n: int32>", {"t": "2026-11-20"}, {"t": moment(2026, 11, 20), "n": None}),
    ],
)
def test_a_value_that_fits_is_read_in_its_type(kind: str, given: Any, found: Any) -> None:
    assert read(kind, given) == ([found], {})
    assert read(kind, None, given, None) == ([None, found, None], {})


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("timestamp_us", "2026-11-20T08:15:00.1234567Z", "does not fit timestamp_us: an ISO 8601 time, to the micro"),
        (
            "timestamp_ns",
            "2300-01-01T00:00:00Z",
            "does not fit timestamp_ns: an ISO 8601 time of the years",
        ),
        ("time_us", 86_400_000_000, "does not fit time_us: an ISO 8601 time, to the microsecond"),
        ("timestamp", "yesterday", "field 'a' does not fit timestamp: an ISO 8601 time"),
        ("timestamp", "2026-02-30", "does not fit timestamp"),
        ("timestamp", "2026-11-20T24:00:00Z", "does not fit timestamp"),
        ("timestamp", "2026-11-20T10:00:00.1234Z", "to the millisecond"),
        ("timestamp", 1.5, "field 'a' does not fit timestamp"),
        ("timestamp", True, "field 'a' does not fit timestamp"),
        ("timestamp", {"x": 1}, "does not fit timestamp"),
        ("date", "2026-11-20T00:00:00", "an ISO 8601 date or days since 1970"),
        ("date", 2**31, "field 'a' does not fit date"),
        ("time", "24:00", "does not fit time"),
        ("time", 86_400_000, "does not fit time"),
        ("time", -1, "does not fit time"),
        (
            "decimal(4,2)",
            100,
            "field 'a' does not fit decimal(4,2): a number of at most 4 digits, 2 of them after",
        ),
        ("decimal(4,2)", b"0.001", "field 'a' does not fit decimal(4,2)"),
        ("decimal(4,2)", "x", "field 'a' does not fit"),
        ("decimal(4,2)", "NaN", "field 'a' does not fit"),
        ("decimal(4,2)", True, "field 'a' does not fit"),
        ("list<decimal(3,1)>", [1, 1000], "field 'a[]' does not fit decimal(3,1)"),
        ("uuid", "12345678-1234-1234-1234-1234567890ag", "does not fit uuid"),
        ("uuid", 1, "field 'a' does not fit uuid"),
        ("binary", "A", "field 'a' does not fit binary: a text in base64 is allowed"),
        ("int32", 2**31, "field 'a' does not fit int32: an integer of 32 bits is allowed"),
        ("int64", b"1.5", "field 'a' does not fit int64"),
        ("float", b"1e300", "field 'a' does not fit float"),
        ("string", 1, "field 'a' does not fit string: a text is allowed"),
        ("bool", 0, "field 'a' does not fit bool: true or false is allowed"),
        ("map<string, int32>", {"k": "x"}, "field 'a[]' does not fit int32"),
        ("map<string, int32>", [1], "field 'a' does not fit map<string, int32>: an object is allowed"),
        ("struct<t: date>", {"t": "x"}, "field 'a.t' does not fit date"),
        ("struct<t: date>", 7, "field 'a' does not fit struct<t: date>"),
        ("list<date>", "2026-11-20", "field 'a' does not fit list<date>: a list is allowed"),
        ("string", ["x" * 200], "field 'a' does not fit string"),
    ],
)
def test_a_value_that_does_not_fit_refuses_its_record_and_no_other(kind: str, given: Any, message: str) -> None:
    found, refused = read(kind, None, given, None)
    assert found == [None, None]
    assert list(refused) == [1]
    assert message in refused[1]


def test_one_column_may_have_both_spellings() -> None:
    found, refused = read("timestamp", "1970-01-01", 1_000, "1970-01-01T00:00:02Z", None)
    assert found == [moment(1970, 1, 1, 0, 0, second) for second in range(3)] + [None]
    assert refused == {}


def test_declared_columns_come_first_in_their_order_though_no_record_has_them() -> None:
    given = {"z": "date", "y": "int32"}
    batch, columns, _ = read_objects(texts({"b": 1, "y": 2, "a": "x"}), {}, given)
    assert batch.schema.names == list(columns) == ["z", "y", "b", "a"]
    assert columns == {"z": "date", "y": "int32", "b": "int64", "a": "string"}


def test_a_given_struct_may_show_more_fields() -> None:
    batch, columns, _ = read_objects(texts({"s": {"a": 1, "b": "x"}}), {}, {"s": "struct<a: int32>"})
    assert columns == {"s": "struct<a: int32, b: string>"}
    assert batch.schema.field("s").type == pa.struct([("a", pa.int32()), ("b", pa.string())])


def test_a_given_integer_never_widens_though_a_found_one_does() -> None:
    batch, columns, refused = read_objects(texts({"a": 1, "b": 1}, {"a": 1.5}, {"b": 1.5}), {}, {"a": "int64"})
    assert columns == {"a": "int64", "b": "double"}
    assert list(refused) == [1]
    assert batch.to_pylist() == [{"a": 1, "b": 1.0}, {"a": None, "b": 1.5}]


def test_recorded_types_that_json_does_not_show_are_pinned_too() -> None:
    batch, columns, refused = read_objects(texts({"t": "1970-01-01"}, {"t": "x"}), {"t": "timestamp"})
    assert (batch.to_pylist(), columns) == ([{"t": moment(1970, 1, 1)}], {"t": "timestamp"})
    assert list(refused) == [1]


def test_a_recorded_column_stays_when_the_user_gives_another_type() -> None:
    # Or every batch would show new columns, and its micro-batch would be read again without end.
    batch, columns, _ = read_objects(texts({"t": 0}), {"t": "int64"}, {"t": "timestamp"})
    assert columns == {"t": "int64"}
    assert batch.schema.field("t").type == pa.timestamp("ms", "UTC")


_scales = st.integers(1, 38).flatmap(lambda precision: st.tuples(st.just(precision), st.integers(0, precision)))
_written = st.builds(
    lambda digits, point, exponent, quoted: (
        (digits[:point] or "0") + (f".{digits[point:]}" if digits[point:] else "") + exponent
        if not quoted
        else f'"{digits[:point] or "0"}{"." + digits[point:] if digits[point:] else ""}{exponent}"'
    ),
    st.integers(0, 10**45).map(str),
    st.integers(1, 46),
    st.sampled_from(["", "", "e-3", "E+4", "e-45", "e30"]),
    st.booleans(),
)


@given(_scales, _written)
@example((38, 30), "44696973661389609")  # of these pyarrow's reader of JSON makes other numbers
@example((38, 10), "3395041146311097234e15")
@example((38, 6), "518751254434690445719159937309626853")
@example((9, 2), "1e-41")
def test_a_decimal_is_exactly_what_is_written_or_refused(digits: tuple[int, int], text: str) -> None:
    precision, scale = digits
    kind = f"decimal({precision},{scale})"
    exact = Decimal(text.strip('"'))
    shifted = exact.scaleb(scale, Context(prec=200))
    fits = shifted == shifted.to_integral_value(context=Context(prec=200)) and abs(shifted) < 10**precision
    for given_type, value, found in (
        (kind, text, exact),
        (f"list<{kind}>", f"[{text}]", [exact]),
        (f"struct<d: {kind}>", '{"d":' + text + "}", {"d": exact}),
    ):
        assert read(given_type, value.encode()) == (([found], {}) if fits else ([], ANY))


_moments = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
_numbers = st.decimals(-(10**7), 10**7, places=3, allow_nan=False)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "t": st.none() | _moments,
                "d": st.none() | _numbers,
                "u": st.none() | st.uuids(),
                "b": st.none() | st.binary(max_size=5),
                "l": st.none() | st.lists(st.none() | st.dates(), max_size=3),
                "s": st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(-(2**31), 2**31 - 1)}),
            }
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["T", " "]),
    st.sampled_from(["", "Z", "+00:00"]),
)
def test_declared_values_written_in_json_are_read_back_exactly(
    rows: list[dict[str, Any]], between: str, zone: str
) -> None:
    def to_json(row: dict[str, Any]) -> bytes:
        members = {
            "t": row["t"] and json.dumps(row["t"].isoformat(between, "milliseconds") + zone),
            "d": row["d"] is not None and format(row["d"], "f"),
            "u": row["u"] and json.dumps(str(row["u"])),
            "b": row["b"] is not None and json.dumps(base64.b64encode(row["b"]).decode()),
            "l": row["l"] is not None and json.dumps([one and one.isoformat() for one in row["l"]]),
            "s": row["s"] is not None and json.dumps(row["s"]),
        }
        return ("{" + ",".join(f'"{name}":{text or "null"}' for name, text in members.items()) + "}").encode()

    given = {
        "t": "timestamp",
        "d": "decimal(11,3)",
        "u": "uuid",
        "b": "binary",
        "l": "list<date>",
        "s": "struct<n: int32>",
    }
    batch, _, refused = read_objects(texts(*map(to_json, rows)), {}, given)
    assert refused == {}
    for found, row in zip(batch.to_pylist(), rows, strict=True):
        assert found == {**row, "t": row["t"] and row["t"].replace(tzinfo=UTC)}
