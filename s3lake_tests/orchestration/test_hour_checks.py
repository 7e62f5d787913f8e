"""What the four checks report of each hour of an index, without Spark."""

import functools
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import dagster as dg
import msgspec
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionResolvedStatus

from s3lake import hours
from s3lake.index.commit.documents import File, Manifest, Read, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.stamps import describe_stamps_ahead
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.memory import MemoryStore
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration import dagster_names
from s3lake.orchestration.assets import define_assets, land_asset_hours
from s3lake.orchestration.build import define_resources
from s3lake.orchestration.hour_checks import NAMES
from s3lake.orchestration.translator import hourly, sink_key
from s3lake.source import sources as sources
from s3lake_tests.kit import indexes
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.orchestration.world import STAND_INS, KafkaEnds, catalog

NINE, TEN, ELEVEN, NOON = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
SINK = make_sink(start=NINE, flush={"interval": "10m"}, errors={"retry_interval": 0})
KEY = sink_key(SINK, "orders")
RANGE = dagster_names.range_tags(TEN, ELEVEN)


@functools.cache
def job() -> dg.JobDefinition:
    """All checks of the sink, which no test changes."""
    ours = catalog(SINK, resources=STAND_INS)
    definitions = dg.Definitions(
        assets=define_assets(ours, SINK, land_asset_hours),
        jobs=[dg.define_asset_job("checks", selection=dg.AssetSelection.checks_for_assets(KEY))],
        resources=define_resources(ours),
    )
    return definitions.resolve_job_def("checks")


class CheckedIndex:
    """An index of three hours of ten records each, one commit an hour, all as it should be."""

    def __init__(self) -> None:
        self.store = MemoryStore("lake")
        self.kafka = KafkaEnds({"orders": {0: 30}}, since={0: 30})
        self.index = TopicIndex(self.store, ".indexes/events", "orders")
        for number, hour in enumerate((NINE, TEN, ELEVEN)):
            self.tile(hour, 10 * number, 10 * number + 10)
            self.commit(hour, 10 * number, 10 * number + 10)

    def tile(self, hour: str, start: int, end: int | None, committed: int | None = None, **more: Any) -> None:
        done = committed if committed is not None else end or start
        tile = Tile(hour, {0: TileRange(start, done, end)}, commits=("c",) if done > start else ())
        since = more.pop("since", None)
        indexes.write_tiles(self.index, tile.revise(**more), since=since)

    def commit(self, hour: str, start: int, end: int, **counts: Any) -> None:
        created_ms, expired = counts.pop("created_ms", 0), counts.pop("expired", ())
        read = Read(start, end, **({"read": end - start, "landed": end - start} | counts))
        files = [File("k", "u", (), 0, start, end - 1, read.landed, 100)]
        if read.dead:
            files.append(File("d", "u", (), 0, start, end - 1, read.dead, 100, stream="dead_letters"))
        manifest = Manifest("c", "orders", hour, {0: read}, tuple(files), expired=expired, created_ms=created_ms)
        indexes.write_manifest(self.index, manifest)

    def forget(self, hour: str) -> None:
        """The head no longer names the hour."""
        left = [other for other in (NINE, TEN, ELEVEN) if other != hour]
        self.store.put(self.index.head_key, msgspec.json.encode(TopicHead(hours=tuple(hours.ranges(left)))))

    def run(
        self, tags: Mapping[str, str] = {}, instance: dg.DagsterInstance | None = None
    ) -> dg.ExecuteInProcessResult:
        """All checks, in a run with these tags."""
        with ExitStack() as stack:
            used = instance or stack.enter_context(dg.DagsterInstance.ephemeral())
            return job().execute_in_process(tags=dict(tags), instance=used, raise_on_error=False)

    def open_noon(self, since: dict[int, int], minutes_ago: float | None = None) -> None:
        """Noon is landed in part; records may wait for twice the flush interval of ten minutes."""
        created_ms = 0 if minutes_ago is None else int(time.time() * 1000) - int(minutes_ago * 60_000)
        self.tile(NOON, 30, None, committed=34)
        self.commit(NOON, 30, 34, created_ms=created_ms)
        self.kafka.logs["orders"], self.kafka.since = {0: 40, 1: 2}, since

    def lose(self, hour: str, ends: int) -> None:
        """The hour has ten records in Kafka, whose log ends there, and no tile."""
        self.forget(hour)
        self.store.delete(self.index.tile_key(hour))
        self.kafka.logs["orders"], self.kafka.starts, self.kafka.since = {0: ends}, {hour: ends - 10}, {0: ends}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> CheckedIndex:
    made = CheckedIndex()
    monkeypatch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: made.store)
    monkeypatch.setattr(sources, "open_source", lambda *_: made.kafka)
    return made


@pytest.mark.parametrize(
    ("tags", "looked_at"),
    [({}, [NINE, TEN, ELEVEN]), (RANGE, [TEN, ELEVEN]), ({"dagster/partition": TEN}, [TEN])],
    ids=["all hours", "a range", "an hour"],
)
def test_every_check_passes_of_each_hour_of_the_run_where_everything_is_as_it_should_be(
    tags: dict[str, str], looked_at: list[str], world: CheckedIndex
) -> None:
    evaluations = world.run(tags).get_asset_check_evaluations()
    assert [(one.partition, one.check_name, one.passed) for one in evaluations] == [
        (hour, name, True) for hour in looked_at for name in sorted(NAMES)
    ]


def test_all_checks_pass_if_there_is_nothing_to_land(world: CheckedIndex) -> None:
    world.store.objects.clear()
    world.kafka.logs["orders"], world.kafka.since = {0: 0}, {0: 0}
    evaluations = world.run({"dagster/partition": TEN}).get_asset_check_evaluations()
    assert {one.check_name: one.passed for one in evaluations} == dict.fromkeys(NAMES, True)


OFFSETS, ROWS, LAG, DEAD = NAMES
WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
AHEAD = {0: (20, 7_226_582_400_000)}
Place = tuple[str, str]
STATES: dict[
    str, tuple[Callable[[CheckedIndex], object], dict[Place, dg.AssetCheckSeverity], dict[Place, dict[str, Any]]]
] = {
    "a gap between hours": (
        lambda world: world.tile(TEN, 11, 20),
        {(NINE, OFFSETS): ERROR, (TEN, OFFSETS): ERROR, (TEN, ROWS): ERROR},
        {(hour, OFFSETS): {"wrong_edges": {f"{NINE} to {TEN}": {"0": 1}}} for hour in (NINE, TEN)},
    ),
    "an overlap": (
        lambda world: world.tile(TEN, 9, 20),
        {(NINE, OFFSETS): ERROR, (TEN, OFFSETS): ERROR, (TEN, ROWS): ERROR},
        {(hour, OFFSETS): {"wrong_edges": {f"{NINE} to {TEN}": {"0": -1}}} for hour in (NINE, TEN)},
    ),
    "an overlap across an hour without a tile": (
        lambda world: (world.forget(TEN), world.tile(ELEVEN, 5, 30)),
        {(NINE, OFFSETS): ERROR, (ELEVEN, OFFSETS): ERROR, (ELEVEN, ROWS): ERROR},
        {},
    ),
    "an hour without a tile and without records": (lambda world: world.forget(TEN), {}, {}),
    "an hour without a tile that has records": (
        lambda world: world.lose(TEN, 20),
        {(TEN, OFFSETS): WARN, (TEN, LAG): WARN},
        {(TEN, OFFSETS): {"landed": False, "offsets_not_landed": 10}},
    ),
    "a closed hour that is not landed": (
        lambda world: (world.tile(TEN, 10, 20, committed=15), world.commit(TEN, 10, 15)),
        {(TEN, OFFSETS): ERROR, (TEN, LAG): WARN},
        {(TEN, OFFSETS): {"complete": False}},
    ),
    "a closed hour with a pending commit": (
        *(lambda world: world.tile(TEN, 10, 20, pending="d"), {(TEN, OFFSETS): ERROR}),
        {(TEN, OFFSETS): {"complete": False}},
    ),
    "a closed hour with garbage": (
        *(lambda world: world.tile(TEN, 10, 20, garbage=("d",)), {(TEN, OFFSETS): ERROR}),
        {(TEN, OFFSETS): {"complete": False}},
    ),
    "a record that is stamped far ahead": (
        *(lambda world: world.tile(TEN, 10, 20, stamped_ahead=AHEAD), {(TEN, OFFSETS): WARN}),
        {(TEN, OFFSETS): {"stamped_ahead": "\n".join(describe_stamps_ahead(AHEAD))}},
    ),
    "a topic that was created again": (
        lambda world: (world.tile(NOON, 0, 5, since=NOON), world.commit(NOON, 0, 5)),
        *({}, {}),
    ),
    "markers and aborted records": (
        *(lambda world: world.commit(TEN, 10, 20, read=7, landed=7), {}),
        {(TEN, ROWS): {"offsets": 10, "records": 7, "offsets_without_record": 3}},
    ),
    "a record that is nowhere": (lambda world: world.commit(TEN, 10, 20, landed=9), {(TEN, ROWS): ERROR}, {}),
    "records that have waited for a short time": (
        *(lambda world: world.open_noon({0: 34, 1: 0}), {}),
        {(NOON, LAG): {"lag": 8, "lag_by_topic_partition": {"0": 6, "1": 2}}, (TEN, LAG): {"lag": 0}},
    ),
    "records that have waited for long": (lambda world: world.open_noon({0: 34, 1: 1}), {(NOON, LAG): WARN}, {}),
    "records from the past just after a landing": (lambda world: world.open_noon({0: 40, 1: 2}, 19), {}, {}),
    "records from the past long after it": (
        *(lambda world: world.open_noon({0: 40, 1: 2}, 21), {(NOON, LAG): WARN}, {}),
    ),
    "an hour that no run lands": (
        lambda world: world.lose(NOON, 40),
        {(NOON, OFFSETS): WARN, (NOON, LAG): WARN},
        {(NOON, LAG): {"lag": 10}},
    ),
    "dead letters": (
        *(lambda world: world.commit(TEN, 10, 20, landed=8, dead=2), {(TEN, DEAD): WARN}),
        {(TEN, DEAD): {"dead_letters": 2, "files": ["s3://lake/d"]}},
    ),
}


@pytest.mark.parametrize(("change", "red", "message"), STATES.values(), ids=STATES)
def test_each_check_is_red_of_the_hours_that_it_concerns(
    change: Callable[[CheckedIndex], object],
    red: dict[Place, dg.AssetCheckSeverity],
    message: dict[Place, dict[str, Any]],
    world: CheckedIndex,
) -> None:
    change(world)
    evaluations = world.run(dagster_names.range_tags(NINE, NOON)).get_asset_check_evaluations()
    found = {(str(one.partition), one.check_name): one for one in evaluations}
    assert len(found) == 4 * len(NAMES)
    assert {place: one.severity for place, one in found.items() if not one.passed} == red
    for place, numbers in message.items():
        assert {name: found[place].metadata[name].value for name in numbers} == numbers


SENTENCES: dict[str, tuple[str, Place, str]] = {
    "a gap": (
        "a gap between hours",
        (TEN, OFFSETS),
        f"{NINE} to {TEN}: topic-partition 0 has 1 offset in none of the hours. Run `s3lake verify` of these hours.",
    ),
    "an overlap": (
        "an overlap",
        (NINE, OFFSETS),
        f"{NINE} to {TEN}: topic-partition 0 has 1 offset in both hours. Run `s3lake verify` of these hours.",
    ),
    "an hour that is not landed": (
        "an hour without a tile that has records",
        (TEN, OFFSETS),
        "Kafka has 10 offsets of the hour, and no run has landed them: materialize it.",
    ),
    "a part of an hour": (
        "a closed hour that is not landed",
        (TEN, OFFSETS),
        "The hour is closed, and 5 offsets are not landed: materialize it.",
    ),
    "a commit that is not complete": (
        "a closed hour with a pending commit",
        (TEN, OFFSETS),
        "The hour is closed, and its last commit is not complete: materialize it.",
    ),
    "a stamp ahead": (
        "a record that is stamped far ahead",
        (TEN, OFFSETS),
        "\n".join(describe_stamps_ahead(AHEAD)),
    ),
    "rows": (
        "a record that is nowhere",
        (TEN, ROWS),
        "10 offsets are landed, with 10 records. Of them the files have 9 rows and 0 dead letters; 0 were skipped, "
        "0 filtered. Offsets without a record: 0. That does not add up: run `s3lake verify` of the hour.",
    ),
    "lag": (
        "an hour that no run lands",
        (NOON, LAG),
        "10 records are not landed, and the oldest has waited for more than 20 min, twice flush.interval. "
        "Look at the sensor's last tick and the last run.",
    ),
    "dead letters": (
        "dead letters",
        (TEN, DEAD),
        "2 records are refused, of 10 (20.00%); errors.threshold allows 0. "
        "The asset s3/events/orders_dead_letters has their places.",
    ),
}


@pytest.mark.parametrize(("state", "place", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_a_red_check_shows_the_reason_and_the_remedy(
    state: str, place: Place, sentence: str, world: CheckedIndex
) -> None:
    STATES[state][0](world)
    evaluations = world.run(dagster_names.range_tags(NINE, NOON)).get_asset_check_evaluations()
    found = {(str(one.partition), one.check_name): one for one in evaluations}
    assert found[place].description == sentence
    assert [one.description for one in evaluations if one.passed] == [None] * sum(one.passed for one in evaluations)


class TestOutages:
    def test_an_outage_of_a_moment_is_tried_again(self, world: CheckedIndex) -> None:
        world.tile(NOON, 30, None)
        world.kafka.outages = 2
        result = world.run({"dagster/partition": NOON})
        assert result.success
        assert len(result.get_asset_check_evaluations()) == len(NAMES)

    def test_an_index_that_cannot_be_read_is_not_tried_again(self, world: CheckedIndex) -> None:
        world.store.put(world.index.head_key, b"{ no index")
        result = world.run()
        assert not result.success
        assert [event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"] == []


class TestMemory:
    """What Dagster's own pages of checks and partitions show of them after several runs."""

    def materialise(self, instance: dg.DagsterInstance, *wanted: str) -> None:
        for hour in wanted:
            instance.report_runless_asset_event(dg.AssetMaterialization(KEY, partition=hour))

    def failed(self, instance: dg.DagsterInstance, name: str) -> set[str]:
        """Hours for which the check is red now."""
        return self.hours(instance, name, AssetCheckExecutionResolvedStatus.FAILED)

    def hours(self, instance: dg.DagsterInstance, name: str, status: AssetCheckExecutionResolvedStatus) -> set[str]:
        key, partitions = dg.AssetCheckKey(KEY, name), hourly(SINK)
        state = instance.event_log_storage.get_asset_check_state([(key, partitions)])[key]
        found = state.subsets.get(status)
        return set(found.subset_value.get_partition_keys()) if found else set()

    def test_a_red_hour_stays_red_while_others_are_green_until_it_is_fine(
        self, world: CheckedIndex, instance: dg.DagsterInstance
    ) -> None:
        world.commit(TEN, 10, 20, landed=8, dead=2)
        self.materialise(instance, NINE, TEN)
        world.run(dagster_names.range_tags(NINE, TEN), instance)
        assert self.failed(instance, "dead_letters") == {TEN}

        self.materialise(instance, ELEVEN)
        world.run({"dagster/partition": ELEVEN}, instance)
        green = AssetCheckExecutionResolvedStatus.SUCCEEDED
        assert self.hours(instance, "dead_letters", green) == {NINE, ELEVEN}
        assert self.failed(instance, "dead_letters") == {TEN}

        world.commit(TEN, 10, 20)
        self.materialise(instance, TEN)
        world.run({"dagster/partition": TEN}, instance)
        assert self.failed(instance, "dead_letters") == set()

    def test_hours_of_a_range_are_not_left_as_planned(self, world: CheckedIndex, instance: dg.DagsterInstance) -> None:
        self.materialise(instance, TEN, ELEVEN)
        world.run(RANGE, instance)
        for status in set(AssetCheckExecutionResolvedStatus) - {AssetCheckExecutionResolvedStatus.SUCCEEDED}:
            assert self.hours(instance, "lag", status) == set()
