"""A topic that a router renames: the path changes, the bookkeeping does not."""

from typing import Any

import pytest

from s3lake.land.given import Record
from s3lake.land.preview import Preview, preview
from s3lake.sink import Sink

REGEX = {
    "type": "org.apache.kafka.connect.transforms.RegexRouter",
    "options": {"regex": "(.*)\\.raw", "replacement": "clean-$1"},
}
BY_DAY = {
    "type": "org.apache.kafka.connect.transforms.TimestampRouter",
    "options": {"topic.format": "${topic}-${timestamp}", "timestamp.format": "yyyyMMdd"},
}
DAY = 86_400_000


def landed(*transforms: Any, **changes: Any) -> Preview:
    sink = Sink(
        **{
            "name": "s",
            "topics": ("orders.raw",),
            "bucket": "lake",
            "start": "2026-11-20T00",
            "transforms": transforms,
            "errors": {"tolerance": "all"},
            **changes,
        }
    )
    records = [Record("orders.raw", 0, 0, 0, b"k", b"1", ()), Record("orders.raw", 0, 1, DAY, b"k", b"{", ())]
    return preview(sink, "orders.raw", [*records, Record("orders.raw", 0, 2, DAY, b"k", b"3", ())])


def keys(found: Preview) -> list[str]:
    return [one.file.key for one in found.objects]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({}, "clean-orders/date=1970-01-01/hour=00/0-000000000000.json"),
        ({"template": None}, "clean-orders/0/000000000000.json"),
        ({"partition_by": ["_partition"]}, "clean-orders/partition=0/clean-orders(0_000000000000).json"),
        ({"template": "x/{topic}+{partition}+{offset}"}, "x/clean-orders+0+0.json"),
    ],
)
def test_the_key_has_the_new_name_and_dead_letters_the_old_one(layout: dict[str, Any], expected: str) -> None:
    assert keys(landed(REGEX, layout=layout))[:2] == ["_dead_letters/s/orders.raw/0/000000000001.json", expected]


def test_a_name_may_depend_on_the_record() -> None:
    assert keys(landed(REGEX, BY_DAY))[1:] == [
        "clean-orders-19700101/date=1970-01-01/hour=00/0-000000000000.json",
        "clean-orders-19700102/date=1970-01-02/hour=00/0-000000000002.json",
    ]


def test_a_transform_that_makes_json_of_keys_makes_their_fields_known() -> None:
    to_key = {"type": "org.apache.kafka.connect.transforms.ValueToKey", "options": {"fields": "id"}}
    sink = Sink(
        name="s",
        topics=("t",),
        bucket="lake",
        start="2026-11-20T00",
        transforms=[to_key],
        layout={"partition_by": ["_key.id"]},
    )
    found = preview(sink, "t", [Record("t", 0, 0, 0, b"k", b'{"id":7}', ())])
    assert keys(found) == ["t/id=7/t(0_000000000000).json"]
