"""Landing with a table, on real parts: what a run commits, merges and rewrites is in the table when it ends."""

from pathlib import Path
from typing import Any

from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.lake import START, Lake, at, values

AFTER = at("2026-01-06T00")


def target_of(lake: Lake, topic: str, home: Path, now_ms: int) -> TopicSink:
    catalog = f"{{type: sql, uri: 'sqlite:///{home}/catalog.db'}}"
    table = f"table: {{name: 'lake.{{topic}}', catalog: {catalog}, partition: [hour, type]}}"
    return lake.target(topic, f"format: {{type: parquet}}, layout: {{partition_by: [type]}}, {table}", now_ms)


def ids(made: TopicSink) -> list[Any]:
    """What the table holds, in order."""
    assert made.table is not None
    table = made.table.load()
    assert table is not None
    return sorted(row["id"] for row in table.scan().to_arrow().to_pylist())


def test_each_commit_a_merge_and_a_rewrite_are_in_the_table_when_the_run_ends(lake: Lake, tmp_path: Path) -> None:
    topic = lake.topic()
    for number in range(3):
        lake.produce(topic, values(100, first=100 * number), at(START, 5 + number))
        made = target_of(lake, topic, tmp_path, at(START, 6 + number))
        land(made, [START])
        assert ids(made) == list(range(100 * (number + 1)))
    merged = target_of(lake, topic, tmp_path, AFTER)
    (landed,) = land(merged, [START])
    assert (len(landed.tile.commits), ids(merged)) == (1, list(range(300)))
    rewrite(target_of(lake, topic, tmp_path, AFTER), START)
    assert ids(merged) == list(range(300))
    assert merged.table is not None
    assert list(merged.table.find_differences()) == []
