"""Times that are finer than a millisecond, or numbers in the unit of their schema, in the transforms of times."""

from typing import Any

import pytest

from s3lake.records.schema.connect_schema import Schema
from s3lake_tests.records.transform.kit import (
    Message,
    chain,
    described,
    headers_after,
    refusal_described,
    run,
    smt,
    struct,
)

AT_US = 1_578_223_264_123_456  # 2020-01-05T11:21:04.123456Z
AT_NS = 1_578_223_264_123_456_789
OF_DAY_US = 40_864_123_456
DEBEZIUM = "io.debezium.time."
MILLISECONDS = "yyyy-MM-dd HH:mm:ss.SSS"


def of_debezium(kind: str, type: str = "int64") -> dict[str, Any]:
    return struct({"field": "a", "type": type, "name": DEBEZIUM + kind, "version": 1})


def convert(target: str, **options: str) -> Any:
    named = {name.replace("_", "."): option for name, option in options.items()}
    return smt("TimestampConverter$Value", {"field": "a", "target.type": target, **named})


def as_number(schema: dict[str, Any], value: int, *steps: Any) -> tuple[str, int]:
    """The type of the field `a` after the steps with `times: exact`, and the number that its column has."""
    done = run(chain(*steps, value="connect_json", exact=True), Message({"schema": schema, "payload": {"a": value}}))
    assert done.refused == {}
    schemas = done.columns["value"].schemas
    assert schemas is not None
    (one,), (array,) = schemas.distinct, schemas.arrays
    assert isinstance(one, Schema)
    (number,) = array.field(0).cast("int64").to_pylist()
    return str(one.type.fields["a"]), number  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "value", "target", "options", "expected"),
    [
        ("MicroTimestamp", AT_US, "Timestamp", {}, ("timestamp_us", AT_US)),
        ("NanoTimestamp", AT_NS, "Timestamp", {}, ("timestamp_ns", AT_NS)),
        ("MicroTime", OF_DAY_US, "Timestamp", {}, ("timestamp_us", OF_DAY_US)),
        ("MicroTimestamp", AT_US, "Time", {}, ("time_us", OF_DAY_US)),
        ("NanoTimestamp", AT_NS - 789, "Time", {}, ("time_us", OF_DAY_US)),
        ("MicroTime", OF_DAY_US, "Time", {}, ("time_us", OF_DAY_US)),
        ("MicroTimestamp", AT_US, "unix", {"unix_precision": "microseconds"}, ("int64", AT_US)),
        ("NanoTimestamp", AT_NS, "unix", {"unix_precision": "nanoseconds"}, ("int64", AT_NS)),
        ("MicroTime", OF_DAY_US, "unix", {"unix_precision": "microseconds"}, ("int64", OF_DAY_US)),
        ("MicroTimestamp", AT_US, "unix", {"unix_precision": "nanoseconds"}, ("int64", AT_US * 1000)),
        ("MicroTimestamp", AT_US, "unix", {"unix_precision": "milliseconds"}, ("int64", AT_US // 1000)),
        ("MicroTimestamp", -1, "unix", {"unix_precision": "microseconds"}, ("int64", -1)),
    ],
)
def test_timestamp_converter_keeps_the_digits_of_exact_times(
    kind: str, value: int, target: str, options: dict[str, str], expected: tuple[str, int]
) -> None:
    assert as_number(of_debezium(kind), value, convert(target, **options)) == expected


@pytest.mark.parametrize(
    ("precision", "value", "expected"),
    [
        ("microseconds", AT_US, ("timestamp_us", AT_US)),
        ("nanoseconds", AT_NS, ("timestamp_ns", AT_NS)),
        ("microseconds", -1, ("timestamp_us", -1)),
    ],
)
def test_timestamp_converter_keeps_the_digits_of_numbers_with_exact_times(
    precision: str, value: int, expected: tuple[str, int]
) -> None:
    schema = struct({"field": "a", "type": "int64"})
    assert as_number(schema, value, convert("Timestamp", unix_precision=precision)) == expected


def test_timestamp_converter_cuts_numbers_to_the_millisecond_without_exact_times_and_reports_it() -> None:
    step = convert("Timestamp", unix_precision="microseconds")
    done = described(struct({"field": "a", "type": "int64"}), [{"a": AT_US}], step)
    assert (done.types, done.rows[0]["a"].microsecond) == ({"a": "timestamp!"}, 123_000)
    (notice,) = chain(step, value="connect_json").notices
    assert "what is below the millisecond is cut, as in Kafka Connect; converter.times: exact keeps it" in notice
    assert chain(step, value="connect_json", exact=True).notices == ()


@pytest.mark.parametrize(
    ("kind", "value", "target", "options", "reason"),
    [
        ("MicroTimestamp", AT_US, "unix", {}, "digits below the millisecond: set unix.precision"),
        ("NanoTimestamp", AT_NS, "Time", {}, "digits below the microsecond, which a time of day does not hold"),
        (
            "MicroTimestamp",
            AT_US,
            "string",
            {"format": "yyyy-MM-dd HH:mm:ss.SSSSSS"},
            "digits below the millisecond, which format cannot print: S is milliseconds",
        ),
    ],
)
def test_digits_that_a_target_cannot_hold_refuse_the_record(
    kind: str, value: int, target: str, options: dict[str, str], reason: str
) -> None:
    assert reason in refusal_described(of_debezium(kind), {"a": value}, convert(target, **options), exact=True)


def test_a_format_to_the_millisecond_prints_what_it_asks_for() -> None:
    done = described(of_debezium("MicroTimestamp"), [{"a": AT_US}], convert("string", format=MILLISECONDS), exact=True)
    assert done.rows == [{"a": "2020-01-05 11:21:04.123"}]


def test_a_format_with_six_letters_of_milliseconds_has_a_notice() -> None:
    (notice,) = chain(convert("string", format="ss.SSSSSS")).notices
    assert "SSSSSS is milliseconds with zeros before them" in notice


@pytest.mark.parametrize(
    ("kind", "type", "value", "options", "reason"),
    [
        (
            "MicroTimestamp",
            "int64",
            AT_US,
            {},
            "is a number of microseconds by its schema, and unix.precision is milliseconds. "
            "Set unix.precision: microseconds, or converter.times: exact",
        ),
        ("NanoTimestamp", "int64", AT_NS, {"unix_precision": "seconds"}, "Set unix.precision: nanoseconds"),
        ("MicroTime", "int64", OF_DAY_US, {}, "Set unix.precision: microseconds"),
        ("Date", "int32", 18_266, {}, "is a number of days by its schema"),
        ("Timestamp", "int64", AT_US // 1000, {"unix_precision": "seconds"}, "Set unix.precision: milliseconds"),
    ],
)
def test_a_number_is_not_read_in_another_unit_than_its_schema_has(
    kind: str, type: str, value: int, options: dict[str, str], reason: str
) -> None:
    assert reason in refusal_described(of_debezium(kind, type), {"a": value}, convert("Timestamp", **options))
    header = {"header.name": "h", "field": "a", "target.type": "unix"}
    lenses = smt(
        "io.lenses.connect.smt.header.TimestampConverter",
        header | {name.replace("_", "."): option for name, option in options.items()},
    )
    assert reason in refusal_described(of_debezium(kind, type), {"a": value}, lenses)


def test_a_number_in_the_unit_of_its_schema_is_read() -> None:
    done = described(of_debezium("MicroTimestamp"), [{"a": AT_US}], convert("Date", unix_precision="microseconds"))
    assert str(done.rows[0]["a"]) == "2020-01-05"


def test_a_nested_number_is_not_read_in_another_unit_than_its_schema_has() -> None:
    inner = {**of_debezium("MicroTimestamp"), "field": "in"}
    header = {"header.name": "h", "field": "in.a", "target.type": "unix"}
    step = smt("io.lenses.connect.smt.header.TimestampConverter", header)
    assert "microseconds by its schema" in refusal_described(struct(inner), {"in": {"a": AT_US}}, step)


def test_json_before_sql_does_not_cut_exact_times() -> None:
    message = Message({"schema": of_debezium("MicroTimestamp"), "payload": {"a": AT_US}})
    before_sql = {"value": "connect_json", "exact": True, "keeps_schemas": False}
    done = run(chain(convert("Timestamp"), **before_sql), message)
    assert "digits below the millisecond, which JSON's times do not hold" in done.refused[0]
    done = run(chain(convert("unix", unix_precision="microseconds"), **before_sql), message)
    assert done.batch.column("value").to_pylist() == [b'{"a":%d}' % AT_US]


def test_json_before_sql_does_not_read_a_number_in_another_unit_than_its_schema_has() -> None:
    message = Message({"schema": of_debezium("MicroTimestamp"), "payload": {"a": AT_US}})
    done = run(chain(convert("Timestamp"), value="connect_json", keeps_schemas=False), message)
    assert "microseconds by its schema" in done.refused[0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"target.type": "unix", "unix.precision": "nanoseconds"}, b"1578223264123456789"),
        ({"target.type": "unix", "unix.precision": "microseconds"}, b"1578223264123456"),
        ({"target.type": "string", "format.to.pattern": "ss.SSSSSSSSS"}, b"04.123456789"),
        ({"target.type": "string", "format.to.pattern": "ss.SSSSSS"}, b"04.123456"),
        ({"target.type": "string", "format.to.pattern": "ss.SSS"}, b"04.123"),
        (
            {
                "target.type": "unix",
                "unix.precision": "nanoseconds",
                "rolling.window.type": "seconds",
                "rolling.window.size": "1",
            },
            b"1578223264000000000",
        ),
    ],
)
def test_lenses_converter_writes_digits_below_the_millisecond(options: dict[str, str], expected: bytes) -> None:
    text = {"field": "a", "format.from.pattern": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS", "header.name": "h"}
    step = smt("io.lenses.connect.smt.header.TimestampConverter", text | options)
    assert headers_after(Message({"a": "2020-01-05T11:21:04.123456789"}), step) == [("h", expected)]
    done = run(
        chain(
            smt("io.lenses.connect.smt.header.TimestampConverter", {"field": "a", "header.name": "h"} | options),
            value="connect_json",
            exact=True,
        ),
        Message({"schema": of_debezium("NanoTimestamp"), "payload": {"a": AT_NS}}),
    )
    ((header,),) = done.batch.column("headers").to_pylist()
    assert header["value"] == expected


def test_lenses_parts_of_a_field_have_digits_below_the_millisecond() -> None:
    options = {"field": "a", "unix.precision": "microseconds", "second.format": "ss.SSSSSS"}
    step = smt("io.lenses.connect.smt.header.InsertFieldTimestampHeaders", options)
    assert dict(headers_after(Message({"a": AT_US}), step))["second"] == b"04.123456"
