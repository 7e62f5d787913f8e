"""Cast of values with a schema."""

from typing import Any

import pytest

from s3lake.records.transform.families.casts import cast_value
from s3lake.records.transform.step.record_values import MicroTime, MicroTimestamp, NanoTimestamp
from s3lake_tests.records.transform.kit import CLOCK, described, field, refusal_described, smt, struct

DECIMAL = field("a", "bytes", "Decimal", parameters={"scale": "2"})


def cast(source: dict[str, Any], value: Any, to: str) -> tuple[str, Any]:
    """The type of field `a` after its cast, and its value."""
    done = described(struct(source), [{"a": value}], smt("Cast$Value", {"spec": f"a:{to}"}))
    assert isinstance(done.types, dict)
    return done.types["a"], done.rows[0]["a"]


@pytest.mark.parametrize(
    ("source", "value", "to", "type", "expected"),
    [
        (field("a", "int32"), 7, "int64", "int64!", 7),
        (field("a", "int64", optional=True), 7, "int8", "int32", 7),
        (field("a", "int64", optional=True), None, "int8", "int32", None),
        (field("a", "int32"), 7, "float32", "float!", 7.0),
        (field("a", "double"), 2.9, "int32", "int32!", 2),
        (field("a", "double"), 0.1, "string", "string!", "0.1"),
        (field("a", "float"), 0.1, "string", "string!", "0.1"),
        (field("a", "float"), 0.5, "float64", "double!", 0.5),
        (field("a", "boolean"), True, "string", "string!", "true"),
        (field("a", "boolean"), True, "int32", "int32!", 1),
        (field("a", "string"), "1.5", "float64", "double!", 1.5),
        (field("a", "string"), "TRUE", "boolean", "bool!", True),
        (field("a", "bytes"), "AP8=", "string", "string!", "AP8="),
        (field("a", "int64", "Timestamp"), CLOCK, "string", "string!", "2020-01-05T11:21:04.123Z"),
        (field("a", "int32", "Date"), 18_266, "string", "string!", "2020-01-05"),
        (field("a", "int32", "Date"), 18_266, "int64", "int64!", 18_266),
        (DECIMAL, 12.3, "string", "string!", "12.30"),
        (DECIMAL, 12.3, "float64", "double!", 12.3),
        (DECIMAL, 12.3, "int32", "int32!", 12),
    ],
)
def test_a_field_gets_the_type_of_its_cast(
    source: dict[str, Any], value: Any, to: str, type: str, expected: Any
) -> None:
    assert cast(source, value, to) == (type, expected)


def test_a_float_becomes_the_double_that_it_is() -> None:
    assert cast(field("a", "float"), 0.1, "float64") == ("double!", 0.10000000149011612)


@pytest.mark.parametrize(
    ("source", "value", "to", "reason"),
    [
        (field("a", "int32"), 300, "int8", "field 'a' is 300 (a number), which int8 cannot hold"),
        (field("a", "double"), 1e300, "float32", "which float32 cannot hold"),
        (field("a", "string"), "x", "int32", "which int32 cannot hold"),
        (struct(field("b", "int32"), field="a"), {"b": 1}, "int32", "is struct<b: int32> by its schema, which cannot"),
    ],
)
def test_a_cast_that_would_lose_something_refuses_the_record(
    source: dict[str, Any], value: Any, to: str, reason: str
) -> None:
    assert reason in refusal_described(struct(source), {"a": value}, smt("Cast$Value", {"spec": f"a:{to}"}))


def test_a_field_that_the_schema_lacks_is_not_added() -> None:
    done = described(struct(field("a", "int32")), [{"a": 1}], smt("Cast$Value", {"spec": "b:string"}))
    assert done.types == {"a": "int32!"}


def test_the_whole_value_gets_the_type_of_its_cast() -> None:
    done = described({"type": "int64"}, [1, 2], smt("Cast$Value", {"spec": "string"}))
    assert (done.types, done.rows) == ("string", ["1", "2"])


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (MicroTimestamp(CLOCK * 1000 + 456), "2020-01-05T11:21:04.123456Z"),
        (MicroTimestamp(5), "1970-01-01T00:00:00.000005Z"),
        (MicroTimestamp(-1), "1969-12-31T23:59:59.999999Z"),
        (NanoTimestamp(CLOCK * 1_000_000 + 456_789), "2020-01-05T11:21:04.123456789Z"),
        (MicroTime(40_864_123_456), "11:21:04.123456Z"),
    ],
)
def test_a_time_that_is_finer_than_a_millisecond_keeps_all_its_digits(instant: Any, text: str) -> None:
    assert cast_value(instant, "string", "field 'a'") == text
