"""Lenses' transforms: their documentation's examples, and the vectors of their own tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from s3lake.records.transform.chain.apply import apply_chain
from s3lake_tests.records.transform.kit import CLOCK, Message, batch_of, chain, headers_after, refusal, run, smt

LENSES = "io.lenses.connect.smt.header."


def ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp() * 1000)


def converter(**options: Any) -> Any:
    given = {"header.name": "ts", "target.type": "string", "format.to.pattern": "yyyy-MM-dd-HH"}
    return smt(f"{LENSES}TimestampConverter", given | {name.replace("_", "."): one for name, one in options.items()})


def converted(value: Any, **options: Any) -> bytes | None:
    ((name, text),) = headers_after(Message(value), converter(**options))
    assert name == "ts"
    return text


def wallclock_at(moment: str, options: dict[str, Any], name: str = "InsertWallclock") -> bytes | None:
    links = chain(smt(name, {"header.name": "wallclock", **options}))
    done = apply_chain(links, batch_of([Message(b"not read")]), "t", ms(moment))
    ((header,),) = done.batch.column("headers").to_pylist()
    return header["value"]


def test_the_example_of_rolling_windows_gives_the_headers_of_the_document() -> None:
    wallclock = {"header.name": "wallclock", "value.type": "format", "format": "yyyy-MM-dd-HH"}
    message = Message({"timestamp": 0, "customer_id": 7})
    found = headers_after(message, converter(field="timestamp"), smt(f"{LENSES}InsertWallclock", wallclock))
    assert found == [("ts", b"1970-01-01-00"), ("wallclock", b"2020-01-05-11")]


# TimestampConverter


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("ts", b"2020-01-05-11"),
        ("_value.ts", b"2020-01-05-11"),
        ("_value.a.b", b"2020-01-05-11"),
        ("_key.ts", b"1970-01-01-00"),
        ("_timestamp", b"2020-01-05-12"),
    ],
)
def test_the_timestamp_is_read_from_the_configured_field(field: str, expected: bytes) -> None:
    message = Message({"ts": CLOCK, "a": {"b": CLOCK}}, key={"ts": 0}, timestamp=CLOCK + 3_600_000)
    assert headers_after(message, converter(field=field), key="json") == [("ts", expected)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"target_type": "string", "format_to_pattern": "yyyy-MM-dd HH:mm:ss.SSS"}, b"2020-01-05 11:21:04.123"),
        ({"target_type": "unix"}, b"1578223264123"),
        ({"target_type": "unix", "rolling_window_type": "hours", "rolling_window_size": "1"}, b"1578222000000"),
        ({"target_type": "date"}, b"2020-01-05"),
        ({"target_type": "Time"}, b"11:21:04.123Z"),
        ({"target_type": "timestamp"}, b"2020-01-05T11:21:04.123Z"),
        ({"target_timezone": "Asia/Kolkata", "format_to_pattern": "HH:mm"}, b"16:51"),
        ({"format_to_pattern": "EEEE d. MMMM", "locale": "en"}, b"Sunday 5. January"),
        ({"format_to_pattern": "HH:mm", "rolling_window_type": "minutes", "rolling_window_size": 15}, b"11:15"),
        ({"format_to_pattern": "ss", "rolling_window_type": "seconds", "rolling_window_size": 3}, b"03"),
    ],
)
def test_the_timestamp_is_converted_as_configured(options: dict[str, Any], expected: bytes) -> None:
    assert converted({"t": CLOCK}, field="t", **options) == expected


@pytest.mark.parametrize(
    ("precision", "given"),
    [
        ("seconds", 1_578_223_264),
        ("milliseconds", 1_578_223_264_000),
        ("microseconds", 1_578_223_264_000_001),
        ("nanoseconds", 1_578_223_264_000_000_001),
    ],
)
def test_a_number_is_a_time_in_the_precision_that_is_set(precision: str, given: int) -> None:
    pattern = {"format_to_pattern": "HH:mm:ss", "unix_precision": precision}
    assert converted({"t": given}, field="t", **pattern) == b"11:21:04"
    assert converted({"t": str(given)}, field="t", **pattern) == b"11:21:04"


@pytest.mark.parametrize(
    ("text", "patterns", "expected"),
    [
        ("20200105112104123", "yyyyMMddHHmmssSSS", b"2020-01-05-11"),
        ("2020-01-05 11:21", "yyyyMMddHHmmssSSS,yyyy-MM-dd HH:mm", b"2020-01-05-11"),
        ("2020-01-05", ["yyyy-MM-dd HH:mm", "yyyy-MM-dd"], b"2020-01-05-00"),
        ("2020-01-05T11:21:04+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX", b"2020-01-05-09"),
    ],
)
def test_texts_are_read_by_the_first_pattern_that_matches(text: str, patterns: Any, expected: bytes) -> None:
    assert converted({"t": text}, field="t", format_from_pattern=patterns) == expected


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (None, {"field": "t"}, None),
        ({"other": 1}, {"field": "t"}, None),
        ({"t": None}, {"field": "t"}, None),
        (CLOCK, {}, b"2020-01-05-11"),
        (CLOCK, {"field": "_value"}, b"2020-01-05-11"),
    ],
)
def test_the_whole_value_is_the_timestamp_if_no_field_is_and_null_is_a_header_without_a_value(
    value: Any, options: dict[str, str], expected: bytes | None
) -> None:
    assert converted(value, **options) == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"t": "x"}, "field 't' is 'x' (a text), which matches none of format.from.pattern: yyyy-MM-dd"),
        ({"t": 1.5}, "field 't' is 1.5 (a number); a timestamp is a whole number or a text"),
        ({"t": {}}, "field 't' is an object; a timestamp is a whole number or a text"),
        ([1], "field '' is a list, an object is needed for 't'"),
    ],
)
def test_a_value_that_is_not_a_timestamp_refuses_its_record(value: Any, why: str) -> None:
    reason = refusal(Message(value), converter(field="t", format_from_pattern="yyyy-MM-dd"))
    assert reason == f"transform TimestampConverter: {why}"


def test_the_payload_of_connects_json_is_looked_into_and_left_alone() -> None:
    value = {"schema": {"type": "struct", "fields": [{"field": "t", "type": "int64"}]}, "payload": {"t": 0}}
    done = run(chain(converter(field="t"), value="connect_json"), Message(value))
    assert done.batch.column("headers").to_pylist() == [[{"key": "ts", "value": b"1970-01-01-00"}]]
    assert done.batch.column("value").to_pylist() == batch_of([Message(value)]).column("value").to_pylist()
    assert chain(converter(field="t"), value="connect_json").value_converter == "connect_json"


@pytest.mark.parametrize(
    ("moment", "options", "expected"),
    [
        ("04.123", {"value.type": "epoch"}, b"1578223264123"),
        ("04.123", {"format": "yyyy-MM-dd HH:mm:ss.SSS"}, b"2020-01-05 11:21:04.123"),
        ("04.123", {"format": "yyyy-MM-dd HH:mm:ss.SSS", "timezone": "Asia/Kolkata"}, b"2020-01-05 16:51:04.123"),
        ("04.123", {}, b"2020-01-05T11:21:04.123"),
        ("04", {}, b"2020-01-05T11:21:04"),
        ("04.500", {}, b"2020-01-05T11:21:04.5"),
        ("04", {"format": "HH:mm", "rolling.window.type": "minutes", "rolling.window.size": "15"}, b"11:15"),
    ],
)
def test_insert_wallclock_adds_the_time_as_it_is_asked_for(
    moment: str, options: dict[str, Any], expected: bytes
) -> None:
    assert wallclock_at(f"2020-01-05T11:21:{moment}Z", options) == expected


@pytest.mark.parametrize(
    ("moment", "kind", "size", "expected"),
    [
        ("2020-01-01T01:00:00.999Z", "minutes", 15, "2020-01-01 01:00"),
        ("2020-01-01T01:14:59Z", "minutes", 15, "2020-01-01 01:00"),
        ("2020-01-01T01:15:00Z", "minutes", 15, "2020-01-01 01:15"),
        ("2020-01-01T01:59:59Z", "minutes", 15, "2020-01-01 01:45"),
        ("2020-01-01T01:04:59Z", "minutes", 5, "2020-01-01 01:00"),
        ("2020-01-01T02:00:00Z", "minutes", 5, "2020-01-01 02:00"),
        ("2020-01-01T01:59:59Z", "hours", 1, "2020-01-01 01:00"),
        ("2020-01-01T02:20:01Z", "hours", 3, "2020-01-01 00:00"),
        ("2020-01-01T03:19:59Z", "hours", 3, "2020-01-01 03:00"),
        ("2020-01-01T05:59:59Z", "hours", 3, "2020-01-01 03:00"),
        ("2020-01-01T06:00:00Z", "hours", 3, "2020-01-01 06:00"),
    ],
)
def test_insert_rolling_wallclock_adds_the_beginning_of_the_window(
    moment: str, kind: str, size: int, expected: str
) -> None:
    window = {"rolling.window.type": kind, "rolling.window.size": size}
    name = "InsertRollingWallclock"
    assert wallclock_at(moment, {**window, "format": "yyyy-MM-dd HH:mm"}, name) == expected.encode()
    assert wallclock_at(moment, {**window, "value.type": "epoch"}, name) == str(ms(f"{expected}Z")).encode()


@pytest.mark.parametrize(
    ("part", "expected"),
    [("year", b"2020"), ("MONTH", b"1"), ("day", b"5"), ("hour", b"11"), ("minute", b"21"), ("second", b"4")],
)
def test_insert_wallclock_date_time_part_adds_one_part_of_the_time(part: str, expected: bytes) -> None:
    found = wallclock_at("2020-01-05T11:21:04Z", {"date.time.part": part}, "InsertWallclockDateTimePart")
    assert found == expected


# The seven headers

ALL = {"year": "2020", "month": "01", "day": "05", "hour": "11", "minute": "21", "second": "04", "date": "2020-01-05"}


@pytest.mark.parametrize(
    ("name", "message", "options"),
    [
        ("InsertWallclockHeaders", Message(b"x"), {}),
        ("InsertRecordTimestampHeaders", Message(b"x"), {}),
        ("InsertRecordTimestampHeaders", Message(b"x", timestamp=-1), {}),
        ("InsertFieldTimestampHeaders", Message(b"1578223264123"), {"field": "_value"}),
        ("InsertFieldTimestampHeaders", Message(b"{}", key={"a": {"b": CLOCK}}), {"field": "_key.a.b"}),
        (
            "InsertFieldTimestampHeaders",
            Message({"created_at": "05/01/2020 11:21:04"}),
            {"field": "created_at", "format.from.pattern": "dd/MM/yyyy HH:mm:ss"},
        ),
    ],
)
def test_transforms_of_parts_add_a_header_for_each_part_of_a_time(
    name: str, message: Message, options: dict[str, Any]
) -> None:
    found = headers_after(message, smt(name, {"header.prefix.name": "wallclock_", **options}), key="json")
    assert found == [(f"wallclock_{part}", text.encode()) for part, text in ALL.items()]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("InsertRollingWallclockHeaders", {}),
        ("InsertRollingRecordTimestampHeaders", {"rolling.window.type": "minutes", "rolling.window.size": 15}),
        ("InsertRollingFieldTimestampHeaders", {"field": "t"}),
    ],
)
def test_the_parts_of_a_windows_start(name: str, options: dict[str, Any]) -> None:
    found = dict(headers_after(Message({"t": CLOCK}), smt(name, options)))
    assert found == {part: text.encode() for part, text in (ALL | {"minute": "15", "second": "00"}).items()}


def test_parts_of_a_time_have_the_pattern_zone_and_locale_that_are_set() -> None:
    options = {
        "date.format": "'date='yyyy-dd-MM",
        "hour.format": "HH",
        "timezone": "Asia/Kolkata",
        "month.format": "MMM",
    }
    found = dict(headers_after(Message(b"x"), smt("InsertRecordTimestampHeaders", options | {"locale": "en"})))
    assert (found["date"], found["hour"], found["month"]) == (b"date=2020-05-01", b"16", b"Jan")


@pytest.mark.parametrize("value", [None, {}, {"t": None}])
def test_parts_of_a_field_that_is_not_there_refuse_the_record(value: Any) -> None:
    reason = refusal(Message(value), smt("InsertFieldTimestampHeaders", {"field": "t"}))
    assert reason == "transform InsertFieldTimestampHeaders: the timestamp is null or missing"


def test_rename_header_moves_the_header_to_the_end_under_its_new_name() -> None:
    rename = smt("RenameHeader", {"header.name.old": "a", "header.name.new": "z"})
    message = Message(b"x", headers=(("a", b"1"), ("b", b"2"), ("a", None)))
    assert headers_after(message, rename) == [("b", b"2"), ("z", b"1"), ("z", None)]
