"""Every count of records is in each place that has counts, from the task's result to the documentation."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec
import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from s3lake import hours
from s3lake.cli import app
from s3lake.cli.land import describe_hour, format_hour
from s3lake.cli.request import Request
from s3lake.index.commit.documents import Manifest, Read
from s3lake.index.commit.sums import sum_commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.counts import CountDefinition, Counts, define_counts
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.prometheus import Scrape
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake.source.offsets import Lag
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.refused import LakeWithRefusals

COUNTS = define_counts(Counts)
FIRST = 1_001
"""The value of the first count; each further one has the next, so that no two look alike."""
VALUES: dict[str, Any] = {
    field: {"shop.name": FIRST + number} if one.by_field else FIRST + number
    for number, (field, one) in enumerate(COUNTS.items())
}
NUMBERS = {one.name: FIRST + number for number, one in enumerate(COUNTS.values())}

each_count = pytest.mark.parametrize(("field", "definition"), COUNTS.items(), ids=COUNTS)


@pytest.fixture
def sums() -> Sums:
    """The sums of one commit that has a record of everything."""
    return sum_commits([Manifest("c", TOPIC, HOUR, {0: Read(0, 20_000, **VALUES)})])


@pytest.fixture
def hour(sums: Sums) -> LandedHour:
    return LandedHour(Tile(HOUR, {0: TileRange(0, 20_000, 20_000)}, commits=("c",), sums=sums), (), 1)


@pytest.fixture
def lake(hour: LandedHour) -> LakeWithRefusals:
    """A bucket with this hour."""
    lake = LakeWithRefusals().landed(7)
    stored = lake.index.tile(HOUR)
    assert stored is not None
    assert lake.index.swap_tile(stored[0].revise(sums=hour.tile.sums), stored[1])
    return lake


def test_no_two_counts_have_one_name() -> None:
    for names in ([one.name for one in COUNTS.values()], [one.text for one in COUNTS.values()]):
        assert len({*names}) == len(names)


@each_count
def test_a_count_is_in_the_json_of_manifests_and_tiles(field: str, definition: CountDefinition, sums: Sums) -> None:  # noqa: ARG001
    manifest = Manifest("c", TOPIC, HOUR, {0: Read(0, 20_000, **VALUES)})
    assert json.loads(msgspec.json.encode(manifest))["partitions"]["0"][field] == VALUES[field]
    assert json.loads(msgspec.json.encode(Tile(HOUR, {}, sums=sums)))["sums"][field] == VALUES[field]


@each_count
def test_a_count_of_two_commits_is_their_sum(field: str, definition: CountDefinition) -> None:
    manifests = [Manifest(commit, TOPIC, HOUR, {0: Read(0, 20_000, **VALUES)}) for commit in "ab"]
    twice = getattr(sum_commits(manifests), field)
    assert (sum(twice.values()) if definition.by_field else twice) == 2 * NUMBERS[definition.name]


@each_count
def test_a_count_is_in_the_metadata_of_an_hour(field: str, definition: CountDefinition, hour: LandedHour) -> None:  # noqa: ARG001
    metadata = hour_metadata(hour, TopicIndex(MemoryStore("lake"), ".indexes/events", TOPIC))
    if definition.role == "whole":
        return  # its outcomes, and offsets without a record, are the lines of `records`
    assert NUMBERS[definition.name] in set(_list_numbers(metadata))


def _list_numbers(metadata: dict[str, Any]) -> Iterator[float]:
    for value in metadata.values():
        if isinstance(value, dg.TableMetadataValue):
            yield from (cell for record in value.records for cell in record.data.values() if isinstance(cell, int))
        elif isinstance(value, int):
            yield value


class NothingWaits:
    """The offsets of a topic of which everything is landed."""

    def lag(self, *_: Any, **__: Any) -> Lag:
        return Lag(0, 0.0, {0: 20_000})


def landed_target(lake: LakeWithRefusals) -> TopicSink:
    return replace(lake.target(), offsets=NothingWaits(), clock=lambda: hours.end_ms(HOUR))


def test_every_count_is_a_metric(lake: LakeWithRefusals) -> None:
    registry = CollectorRegistry()
    registry.register(Scrape(lambda: [landed_target(lake)]))
    scraped = {
        sample.labels["count"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "s3lake_hour_records" and sample.labels["hour"] == "newest"
    }
    assert scraped == NUMBERS


def test_status_as_json_has_every_count(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([landed_target(lake)]))
    (line,) = CliRunner().invoke(app, ["status", "--json"]).stdout.splitlines()
    assert json.loads(line)["counts"] == {one.name: VALUES[field] for field, one in COUNTS.items()}


def test_status_has_every_count_in_one_line(lake: LakeWithRefusals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([landed_target(lake)]))
    _, line = CliRunner().invoke(app, ["status"]).stdout.splitlines()
    shown = {int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", line)}
    assert {NUMBERS[one.name] for one in COUNTS.values() if one.name not in ("read", "rows")} <= shown


def test_a_landed_hour_is_described_with_every_count(hour: LandedHour) -> None:
    row = describe_hour("events", TOPIC, hour)
    assert {name: row[name] for name in NUMBERS} == {one.name: VALUES[field] for field, one in COUNTS.items()}
    line = format_hour(row)
    assert [one.name for one in COUNTS.values() if f"{NUMBERS[one.name]:,} {one.text}" not in line] == ["read"]


@each_count
def test_a_count_is_in_the_documentation(field: str, definition: CountDefinition) -> None:
    page = (Path(__file__).parents[1] / "docs/reference/counts.md").read_text(encoding="utf-8")
    assert f"| `{definition.name}` | `{field}` | {definition.meaning} |" in page
