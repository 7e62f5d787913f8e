"""The key vectors of Aiven's S3 sink (A1 to A22) and Iggy's (I17, I19) as native templates."""

from typing import Any

import pytest

from s3lake.layout.key import RecordColumns, Span
from s3lake_tests.layout.files import Record, files, ms, rule


def keys_of(
    template: str, topic: str, records: list[Record], count: int = 1_000_000, /, wallclock_ms: int = 0, **changes: Any
) -> list[str]:
    layout = {"template": template, "missing": "null", "extension": "", **changes.pop("layout", {})}
    return files(rule(wallclock_ms=wallclock_ms, topics=(topic,), layout=layout, **changes), *records, count=count)


DEFAULT = "{topic}-{partition}-{offset}"
PREFIX_MODE = "{topic}-{partition}-{offset:020}"


def at(partition: int, *offsets: int) -> list[Record]:
    return [Record(offset, partition=partition) for offset in offsets]


@pytest.mark.parametrize("extension", ["", ".gz", ".snappy", ".zst"])
@pytest.mark.parametrize("offset", [0, 100, 200])
def test_a1_a2_prefix_mode(extension: str, offset: int) -> None:
    made = keys_of("aiven--" + PREFIX_MODE, "test-topic", at(0, offset), layout={"extension": extension})
    assert made == [f"aiven--test-topic-0-{offset:020}{extension}"]


def test_a4_a_prefix_with_the_time_of_writing() -> None:
    clock = {"time": {"source": "wallclock", "timezone": "Europe/Berlin"}}
    made = keys_of(
        "{time:yyyy}/{time:MM}/{time:dd}/" + PREFIX_MODE,
        "t",
        at(0, 0),
        layout=clock,
        wallclock_ms=ms(2024, 1, 14, 23, 30),
    )
    assert made == ["2024/01/15/t-0-00000000000000000000"]


@pytest.mark.parametrize(("topic", "partition", "offset"), [("topic0", 0, 10), ("topic0", 1, 20), ("topic1", 0, 30)])
def test_a5_prefix_mode_of_several_topic_partitions(topic: str, partition: int, offset: int) -> None:
    made = keys_of("prefix-" + PREFIX_MODE, topic, at(partition, offset))
    assert made == [f"prefix-{topic}-{partition}-{offset:020}"]


@pytest.mark.parametrize(
    ("topic", "records", "count", "expected"),
    [
        pytest.param("topic0", at(0, 10), 9, ["topic0-0-10"], id="A8"),
        pytest.param("topic0", [*at(0, 0, 1, 2), *at(1, 10, 11)], 9, ["topic0-0-0", "topic0-1-10"], id="A10"),
        pytest.param("topic1", at(1, 1000, 1001), 9, ["topic1-1-1000"], id="A10, topic1"),
        pytest.param("topic0", at(0, *range(6)), 2, ["topic0-0-0", "topic0-0-2", "topic0-0-4"], id="A11"),
        pytest.param("topic0", at(1, *range(10, 14)), 2, ["topic0-1-10", "topic0-1-12"], id="A11, partition 1"),
        pytest.param("t", [*at(0, 0, 1, 2), *at(1, 0)], 1, ["t-0-0", "t-0-1", "t-0-2", "t-1-0"], id="A19"),
    ],
)
def test_the_default_template(topic: str, records: list[Record], count: int, expected: list[str]) -> None:
    assert keys_of(DEFAULT, topic, records, count) == expected


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "expected"),
    [("topic0", 0, 4, "topic0-0000000000-4"), ("topic1", 1, 1000, "topic1-0000000001-1000")],
)
def test_a13_padding(topic: str, partition: int, offset: int, expected: str) -> None:
    assert keys_of("{topic}-{partition:010}-{offset}", topic, at(partition, offset)) == [expected]


def test_a14_dates_of_records() -> None:
    # compatibility.md: the offset is the file's own first one; Aiven prints the first since its last flush, 2000.
    days = [ms(2021, 10, 27), ms(2021, 10, 28), ms(2021, 10, 29), ms(2021, 10, 29, 5)]
    records = [Record(2000 + n, timestamp=day, partition=1) for n, day in enumerate(days)]
    assert keys_of(DEFAULT + "-{time:yyyy}{time:MM}{time:dd}", "topic2", records) == [
        "topic2-1-2000-20211027",
        "topic2-1-2001-20211028",
        "topic2-1-2002-20211029",
    ]


def test_a16_a22_a_new_schema_begins_a_file_with_its_own_offset() -> None:
    # Staging keeps one open file per schema; each is named after the first record that it holds.
    keys = rule(topics=("topic1",), layout={"template": DEFAULT, "extension": ""})
    group = keys.fixed_group(0)
    assert group is not None
    made = [keys.key(group, Span(first, first, 0, 0, 1)) for first in (1000, 1002, 1003)]
    assert made == ["topic1-0-1000", "topic1-0-1002", "topic1-0-1003"]


def test_a17_the_last_record_of_a_key() -> None:
    layout = {"template": "{key}", "missing": "null", "extension": ""}
    keys = rule(topics=("topic0",), layout=layout, exactly_once=False)
    assert keys.replaces
    records = [Record(n, key=key) for n, key in enumerate([b"a", b"b", None, b"a", b"b", None])]
    assert files(keys, *records) == ["a", "b", "null"]
    one, other = (keys.groups(partition, RecordColumns(keys=[b"a"]), 1) for partition in (0, 1))
    assert one == other, "over all topic-partitions"


def test_the_last_record_of_a_key_and_topic_partition() -> None:
    layout = {"template": "{key}-{topic}-{partition}", "extension": ""}
    keys = rule(topics=("topic0",), layout=layout, exactly_once=False)
    assert keys.replaces
    assert files(keys, Record(0, key=b"a"), Record(1, key=b"a"), Record(5, key=b"a", partition=1)) == [
        "a-topic0-0",
        "a-topic0-1",
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy_framed", "zstd"])
def test_a20_a_template_of_ones_own_has_no_extension(codec: str) -> None:
    template = "p/" + DEFAULT + "-{time:yyyy}-{time:MM}-{time:dd}"
    clock = {"time": {"source": "wallclock"}}
    made = keys_of(template, "t", at(0, 0), layout=clock, format={"codec": codec}, wallclock_ms=ms(2024, 1, 2, 3))
    assert made == ["p/t-0-0-2024-01-02"]


def test_the_documents_date_in_the_prefix() -> None:
    clock = {"time": {"source": "wallclock"}, "extension": ".gz"}
    template = "{time:yyyy-MM-dd}/" + PREFIX_MODE
    made = keys_of(template, "source_topic", at(0, 0), layout=clock, wallclock_ms=ms(2024, 1, 2, 3))
    assert made == ["2024-01-02/source_topic-0-00000000000000000000.gz"]


def test_the_documents_example() -> None:
    made = keys_of("example-s3-sink/" + PREFIX_MODE, "source_topic", at(0, 0), layout={"extension": ".gz"})
    assert made == ["example-s3-sink/source_topic-0-00000000000000000000.gz"]


# Iggy

NAME = "{partition:05}-{offset:020}-{last_offset:020}"


@pytest.mark.parametrize(
    ("template", "prefix", "extension", "first", "last", "expected"),
    [
        pytest.param(
            "app_logs/{topic}/{time:yyyy-MM-dd}/{time:HH}/" + NAME,
            "iggy/raw",
            ".jsonl",
            0,
            99,
            "iggy/raw/app_logs/api_requests/2024-03-16/14/00001-00000000000000000000-00000000000000000099.jsonl",
            id="I17",
        ),
        pytest.param(
            "app_logs/{topic}/" + NAME,
            "",
            ".bin",
            0,
            9,
            "app_logs/api_requests/00001-00000000000000000000-00000000000000000009.bin",
            id="I19, no prefix",
        ),
        pytest.param(
            "app_logs/" + NAME,
            "",
            ".jsonl",
            0,
            9,
            "app_logs/00001-00000000000000000000-00000000000000000009.jsonl",
            id="I19, no topic",
        ),
        pytest.param(
            "{topic}/" + NAME,
            "data/",
            ".jsonl",
            5,
            10,
            "data/api_requests/00001-00000000000000000005-00000000000000000010.jsonl",
            id="I19, trailing slash",
        ),
    ],
)
def test_iggys_path_template(template: str, prefix: str, extension: str, first: int, last: int, expected: str) -> None:
    layout = {"template": template, "extension": extension}
    keys = rule(topics=("api_requests",), prefix=prefix, layout=layout)
    records = [Record(offset, timestamp=1_710_597_600_000, partition=1) for offset in (first, last)]
    assert keys.deferred
    assert files(keys, *records) == [expected]
