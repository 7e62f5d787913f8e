"""Preview: given records through the real stages, without Kafka and S3; and how records are written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError
from s3lake.land.preview import Preview, preview
from s3lake.land.preview.record_lines import read_record_lines
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake_tests.kit.connect_messages import connect_message, struct

MIDNIGHT, ONE = "t/date=1970-01-01/hour=00", "t/date=1970-01-01/hour=01"


def sink(**changes: Any) -> Sink:
    return Sink(**{"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", **changes})


def record(offset: int, value: bytes | None, **changes: Any) -> KafkaRecord:
    fields = {"topic": "t", "partition": 0, "timestamp": 0, "key": None, "headers": (), **changes}
    return KafkaRecord(offset=offset, value=value, **fields)


def bodies(found: Preview) -> dict[str, bytes]:
    return {one.file.key: one.body for one in found.objects}


# What a sink makes of records


def test_records_of_an_hour_are_one_micro_batch_in_the_order_of_offsets() -> None:
    found = preview(sink(), "t", [record(2, b"3"), record(0, b"1"), record(1, b"2")])
    assert bodies(found) == {f"{MIDNIGHT}/0-000000000000.json": b"1\n2\n3\n"}


HOUR_MS = 3_600_000


def test_no_file_spans_two_hours() -> None:
    rows = [record(offset, b"%d" % offset, timestamp=offset * HOUR_MS // 2) for offset in range(4)]
    assert bodies(preview(sink(), "t", rows)) == {
        f"{MIDNIGHT}/0-000000000000.json": b"0\n1\n",
        f"{ONE}/0-000000000002.json": b"2\n3\n",
    }


def test_late_records_are_in_the_hour_that_was_under_way() -> None:
    times = (0, HOUR_MS, 5, -1)
    rows = [record(offset, b"%d" % offset, timestamp=time) for offset, time in enumerate(times)]
    assert bodies(preview(sink(), "t", rows)) == {
        f"{MIDNIGHT}/0-000000000000.json": b"0\n",
        f"{ONE}/0-000000000001.json": b"1\n2\n3\n",
    }


def test_each_topic_partition_has_its_own_edge() -> None:
    rows = [record(7, b"7", timestamp=HOUR_MS), record(3, b"3", partition=1), record(4, b"4", partition=1)]
    assert bodies(preview(sink(), "t", rows)) == {
        f"{ONE}/0-000000000007.json": b"7\n",
        f"{MIDNIGHT}/1-000000000003.json": b"3\n4\n",
    }


YEAR_10000_MS, IN_NANOSECONDS = 253_402_300_800_000, 1_795_342_500_000_000_000


@pytest.mark.parametrize("stamp", [YEAR_10000_MS, IN_NANOSECONDS, 2**63 - 1])
def test_a_record_that_is_stamped_after_all_hours_is_in_the_hour_that_was_under_way(stamp: int) -> None:
    rows = [record(0, b"0", timestamp=HOUR_MS), record(1, b"1", timestamp=stamp), record(2, b"2", timestamp=HOUR_MS)]
    assert bodies(preview(sink(), "t", rows)) == {f"{ONE}/0-000000000000.json": b"0\n1\n2\n"}


STAMPED = {"transforms": ({"type": "InsertField$Value", "options": {"timestamp.field": "at"}},)}
METADATA = {"topic": "t", "partition": 0, "offset": 0, "timestamp": IN_NANOSECONDS}


@pytest.mark.parametrize(
    ("settings", "value", "line"),
    [
        ({"envelope": {"fields": ("metadata",)}}, b"{}", {"metadata": METADATA}),
        (
            {"envelope": {"style": "flat", "fields": ("timestamp",)}},
            b"{}",
            {"timestamp": "+56894109-01-05T08:00:00Z"},
        ),
        ({"envelope": {"style": "flat", "fields": ("timestamp",)}, "format": {"type": "csv"}}, b"{}", IN_NANOSECONDS),
        (STAMPED, b"{}", {"at": IN_NANOSECONDS}),
        (STAMPED | {"converter": {"value": "connect_json"}}, connect_message(struct(), {}), {"at": IN_NANOSECONDS}),
    ],
    ids=["record", "flat", "flat in csv", "transform", "transform of a schema"],
)
def test_a_timestamp_in_nanoseconds_is_landed_as_it_is(settings: dict[str, Any], value: bytes, line: object) -> None:
    (body,) = bodies(preview(sink(**settings), "t", [record(0, value, timestamp=IN_NANOSECONDS)])).values()
    assert json.loads(body) == line


def test_a_dead_letter_has_a_timestamp_in_nanoseconds_as_it_is() -> None:
    rows = [record(0, b"{", timestamp=IN_NANOSECONDS)]
    (dead_letter,) = bodies(preview(sink(errors={"tolerance": "all"}), "t", rows)).values()
    assert json.loads(dead_letter)["timestamp"] == IN_NANOSECONDS


# Records as lines


def lines(path: Path, *rows: object) -> Path:
    path = path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def one(path: Path, **row: object) -> KafkaRecord:
    (found,) = read_record_lines(lines(path, {"topic": "t", **row}))
    return found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("text", b"text"),
        ("é", "é".encode()),
        ("", b""),
        (None, None),
        ({"base64": "AP8="}, b"\x00\xff"),
        ({"base64": ""}, b""),
        ({"a": 1, "b": [True, None]}, b'{"a":1,"b":[true,null]}'),
        ({"base64": "AP8=", "more": 1}, b'{"base64":"AP8=","more":1}'),
        (1.5, b"1.5"),
        ([], b"[]"),
    ],
)
def test_bytes_are_text_base64_null_or_compact_json(tmp_path: Path, written: object, meant: bytes | None) -> None:
    found = one(tmp_path, key=written, value=written, headers={"h": written})
    assert (found.key, found.value, found.headers) == (meant, meant, (("h", meant),))


def test_headers_are_an_object_or_pairs(tmp_path: Path) -> None:
    assert one(tmp_path, headers=[["a", "1"], ["a", None]]).headers == (("a", b"1"), ("a", None))
    assert one(tmp_path, headers={"a": "1", "b": 2}).headers == (("a", b"1"), ("b", b"2"))
    assert one(tmp_path).headers == ()


def test_records_that_are_left_out_follow(tmp_path: Path) -> None:
    rows = [{"topic": "t"}, {"topic": "t"}, {"topic": "t", "offset": 9}, {"topic": "t"}, {"topic": "t", "partition": 1}]
    found = read_record_lines(lines(tmp_path, *rows))
    assert [(row.partition, row.offset, row.timestamp) for row in found] == [
        (0, 0, -1),
        (0, 1, -1),
        (0, 9, -1),
        (0, 10, -1),
        (1, 0, -1),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], "Expected `object`, got `array`; expected an object with topic, partition, offset"),
        ({"value": 1}, "missing required field `topic`"),
        ({"topic": "t", "vlaue": 1}, "unknown field `vlaue`; expected an object with topic, partition"),
        ({"topic": "t", "offset": -1}, r"Expected `int` >= 0 - at `\$\.offset`"),
        ({"topic": "t", "partition": 2**31}, r"Expected `int` <= 2147483647 - at `\$\.partition`"),
        ({"topic": "t", "offset": "1"}, r"Expected `int | null`, got `str` - at `\$\.offset`".replace("|", r"\|")),
        ({"topic": "t", "timestamp": 2**63}, r"Expected `int` <= 9223372036854775807 - at `\$\.timestamp`"),
        ({"topic": "t", "key": {"base64": "?"}}, "base64 '?'"),
        ({"topic": "t", "headers": ["a"]}, r"got `str` - at `\$\.headers\[0\]`"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, row: object, message: str) -> None:
    path = lines(tmp_path, {"topic": "t"}, row)
    with pytest.raises(ConfigurationError, match=rf"records\.jsonl:2: not a record: .*{message}"):
        read_record_lines(path)


def test_a_line_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"topic": "t", "value": ' + "[" * 5000 + "]" * 5000 + "}")
    with pytest.raises(ConfigurationError, match=r"records\.jsonl:1: not a record: nested too deeply"):
        read_record_lines(path)


def test_offsets_are_unique(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r":2: not a record: an earlier record has this topic, partition and offset"
    ):
        read_record_lines(lines(tmp_path, {"topic": "t", "offset": 3}, {"topic": "t", "offset": 3}))
