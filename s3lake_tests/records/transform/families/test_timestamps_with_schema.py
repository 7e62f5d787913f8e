"""TimestampConverter of values with a schema."""

from datetime import date, datetime, time, timezone
from typing import Any

import pytest

from s3lake_tests.records.transform.kit import CLOCK, described, field, refusal_described, smt, struct

AT = datetime(2020, 1, 5, 11, 21, 4, 123_000, timezone.utc)
TEXT = {"format": "yyyy-MM-dd HH:mm:ss"}


@pytest.mark.parametrize(
    ("source", "value", "target", "options", "type", "expected"),
    [
        (field("a", "int64"), CLOCK, "Timestamp", {}, "timestamp!", AT),
        (
            field("a", "int64"),
            CLOCK // 1000,
            "Timestamp",
            {"unix.precision": "seconds"},
            "timestamp!",
            AT.replace(microsecond=0),
        ),
        (field("a", "int64", optional=True), None, "Timestamp", {}, "timestamp", None),
        (field("a", "string"), "2020-01-05 11:21:04", "Timestamp", TEXT, "timestamp!", AT.replace(microsecond=0)),
        (field("a", "int64", "Timestamp"), CLOCK, "Date", {}, "date!", date(2020, 1, 5)),
        (field("a", "int64", "Timestamp"), CLOCK, "Time", {}, "time!", time(11, 21, 4, 123_000)),
        (field("a", "int64", "Timestamp"), CLOCK, "unix", {}, "int64!", CLOCK),
        (field("a", "int64", "Timestamp"), CLOCK, "string", TEXT, "string!", "2020-01-05 11:21:04"),
        (field("a", "int32", "Date"), 18_266, "unix", {"unix.precision": "seconds"}, "int64!", 18_266 * 86_400),
    ],
)
def test_a_field_gets_the_type_of_its_target(
    source: dict[str, Any], value: Any, target: str, options: dict[str, str], type: str, expected: Any
) -> None:
    convert = smt("TimestampConverter$Value", {"field": "a", "target.type": target, **options})
    done = described(struct(source), [{"a": value}], convert)
    assert (done.types, done.rows) == ({"a": type}, [{"a": expected}])


def test_a_field_that_the_schema_lacks_is_not_added() -> None:
    convert = smt("TimestampConverter$Value", {"field": "b", "target.type": "Timestamp"})
    assert described(struct(field("a", "int32")), [{"a": 1}], convert).types == {"a": "int32!"}


def test_a_field_of_another_type_refuses_the_record() -> None:
    convert = smt("TimestampConverter$Value", {"field": "a", "target.type": "Timestamp"})
    reason = refusal_described(struct(field("a", "double")), {"a": 1.5}, convert)
    assert "field 'a' is double by its schema: a timestamp is an integer, a text, a date or a time" in reason
