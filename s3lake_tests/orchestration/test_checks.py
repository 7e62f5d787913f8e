"""What the four checks say of each hour of an index, without Spark."""

import functools
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import dagster as dg
import msgspec
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionResolvedStatus

from s3lake import hours
from s3lake.commit.documents import File, Manifest, Read, TopicHead
from s3lake.commit.index import TopicIndex
from s3lake.land import opening
from s3lake.orchestration import names
from s3lake.orchestration.assets import define_assets, land
from s3lake.orchestration.build import define_resources
from s3lake.orchestration.checks import NAMES
from s3lake.orchestration.translator import hourly, sink_key
from s3lake.plan.tile import Span, Tile
from s3lake.source import opening as sources
from s3lake.store.memory import MemoryStore
from s3lake_tests.kit import indexes
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.orchestration.world import STAND_INS, FakeKafka, catalog

NINE, TEN, ELEVEN, NOON = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
SINK = make_sink(start=NINE, flush={"interval": "10m"}, errors={"retry_interval": 0})
KEY = sink_key(SINK, "orders")
RANGE = names.range_tags(TEN, ELEVEN)


@functools.cache
def job() -> dg.JobDefinition:
    """All checks of the sink, which no test changes."""
    ours = catalog(SINK, resources=STAND_INS)
    definitions = dg.Definitions(
        assets=define_assets(ours, SINK, land),
        jobs=[dg.define_asset_job("checks", selection=dg.AssetSelection.checks_for_assets(KEY))],
        resources=define_resources(ours),
    )
    return definitions.resolve_job_def("checks")


class World:
    """An index of three hours of ten records each, one commit an hour, all as it should be."""

    def __init__(self) -> None:
        self.store = MemoryStore("lake")
        self.kafka = FakeKafka({"orders": {0: 30}}, since={0: 30})
        self.index = TopicIndex(self.store, ".indexes/events", "orders")
        for number, hour in enumerate((NINE, TEN, ELEVEN)):
            self.tile(hour, 10 * number, 10 * number + 10)
            self.commit(hour, 10 * number, 10 * number + 10)

    def tile(self, hour: str, start: int, end: int | None, committed: int | None = None, **more: Any) -> None:
        done = committed if committed is not None else end or start
        tile = Tile(hour, {0: Span(start, done, end)}, commits=("c",) if done > start else ())
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

    def check(self, name: str, hour: str = TEN, tags: Mapping[str, str] | None = None) -> dg.AssetCheckEvaluation:
        """What a check says of an hour, in a run of that hour unless tags say otherwise."""
        result = self.run({"dagster/partition": hour} if tags is None else tags)
        assert result.success
        found = result.get_asset_check_evaluations()
        (evaluation,) = [one for one in found if (one.check_name, one.partition) == (name, hour)]
        return evaluation


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(opening, "open_stores", lambda *_, **__: lambda _: made.store)
    monkeypatch.setattr(sources, "open_source", lambda *_: made.kafka)
    return made


def said(evaluation: dg.AssetCheckEvaluation, name: str) -> Any:
    return evaluation.metadata[name].value


@pytest.mark.parametrize(
    ("tags", "looked_at"),
    [({}, [NINE, TEN, ELEVEN]), (RANGE, [TEN, ELEVEN]), ({"dagster/partition": TEN}, [TEN])],
    ids=["all hours", "a range", "an hour"],
)
def test_every_check_passes_of_each_hour_of_the_run_where_everything_is_as_it_should_be(
    tags: dict[str, str], looked_at: list[str], world: World
) -> None:
    evaluations = world.run(tags).get_asset_check_evaluations()
    assert [(one.partition, one.check_name, one.passed) for one in evaluations] == [
        (hour, name, True) for hour in looked_at for name in sorted(NAMES)
    ]


def test_all_pass_where_there_is_nothing_to_land(world: World) -> None:
    world.store.objects.clear()
    world.kafka.logs["orders"], world.kafka.since = {0: 0}, {0: 0}
    evaluations = world.run({"dagster/partition": TEN}).get_asset_check_evaluations()
    assert {one.check_name: one.passed for one in evaluations} == dict.fromkeys(NAMES, True)


class TestOffsetsContiguous:
    def check(self, world: World, hour: str = TEN) -> dg.AssetCheckEvaluation:
        return world.check("offsets_contiguous", hour)

    @pytest.mark.parametrize(("start", "gap"), [(11, 1), (9, -1)], ids=["a gap", "an overlap"])
    def test_hours_that_do_not_share_their_edge(self, start: int, gap: int, world: World) -> None:
        world.tile(TEN, start, 20)
        for hour in (NINE, TEN):
            found = self.check(world, hour)
            assert not found.passed
            assert found.severity is dg.AssetCheckSeverity.ERROR
            assert said(found, "wrong_edges") == {f"{NINE} to {TEN}": {"0": gap}}
        assert self.check(world, ELEVEN).passed

    @pytest.mark.parametrize(
        "more", [{"committed": 15}, {"pending": "d"}, {"garbage": ("d",)}], ids=["not landed", "pending", "garbage"]
    )
    def test_a_closed_hour_that_is_not_complete(self, more: dict[str, Any], world: World) -> None:
        world.tile(TEN, 10, 20, **more)
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.ERROR
        assert said(found, "complete") is False
        assert self.check(world, NINE).passed

    def test_an_hour_without_a_tile_that_has_records_is_a_warning(self, world: World) -> None:
        world.forget(TEN)
        world.kafka.logs["orders"], world.kafka.starts = {0: 20}, {TEN: 10}
        world.store.delete(world.index.tile_key(TEN))
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.WARN
        assert (said(found, "landed"), said(found, "offsets_not_landed")) == (False, 10)

    def test_a_record_that_is_stamped_far_ahead_is_a_warning(self, world: World) -> None:
        world.tile(TEN, 10, 20, stamped_ahead={0: (20, 7_226_582_400_000)})
        found = world.check("offsets_contiguous")
        assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert "offset 20 of partition 0 is stamped 2199-01-01T00:00:00Z" in found.metadata["stamped_ahead"].text

    def test_hours_that_nobody_asked_for_are_no_fault_of_those_beside_them(self, world: World) -> None:
        world.forget(TEN)
        assert self.check(world, NINE).passed
        assert self.check(world, ELEVEN).passed

    def test_an_overlap_is_one_across_hours_that_nobody_asked_for_too(self, world: World) -> None:
        world.forget(TEN)
        world.tile(ELEVEN, 5, 30)
        assert not self.check(world, ELEVEN).passed

    def test_the_offsets_of_a_topic_that_was_created_again_begin_anew(self, world: World) -> None:
        world.tile(NOON, 0, 5, since=NOON)
        world.commit(NOON, 0, 5)
        assert self.check(world, NOON).passed


class TestRowsEqualOffsets:
    def check(self, world: World) -> dg.AssetCheckEvaluation:
        return world.check("rows_equal_offsets")

    def test_markers_and_aborted_records_have_offsets_and_no_row(self, world: World) -> None:
        world.commit(TEN, 10, 20, read=7, landed=7)
        found = self.check(world)
        assert found.passed
        assert said(found, "offsets") == 10
        assert said(found, "records") == 7
        assert said(found, "offsets_without_record") == 3

    def test_a_record_that_is_nowhere_is_an_error(self, world: World) -> None:
        world.commit(TEN, 10, 20, landed=9)
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.ERROR
        assert world.check("rows_equal_offsets", NINE).passed


class TestLag:
    """Waits for twice the flush interval of ten minutes."""

    @pytest.fixture(autouse=True)
    def _open_hour(self, world: World) -> None:
        world.tile(NOON, 30, None, committed=34)
        world.kafka.logs["orders"] = {0: 40, 1: 2}

    def check(self, world: World, minutes_ago: float | None = None) -> dg.AssetCheckEvaluation:
        created_ms = 0 if minutes_ago is None else int(time.time() * 1000) - int(minutes_ago * 60_000)
        world.commit(NOON, 30, 34, created_ms=created_ms)
        return world.check("lag", NOON)

    def test_a_young_backlog_is_fine(self, world: World) -> None:
        world.kafka.since = {0: 34, 1: 0}
        found = self.check(world)
        assert found.passed
        assert said(found, "lag") == 8
        assert said(found, "lag_by_topic_partition") == {"0": 6, "1": 2}

    def test_an_old_one_is_a_warning(self, world: World) -> None:
        world.kafka.since = {0: 34, 1: 1}
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.WARN

    def test_records_from_the_past_are_not_late_just_after_a_landing(self, world: World) -> None:
        world.kafka.since = {0: 40, 1: 2}
        assert self.check(world, minutes_ago=19).passed
        assert not self.check(world, minutes_ago=21).passed

    def test_an_hour_that_nobody_lands_is_a_warning(self, world: World) -> None:
        world.store.objects.clear()
        world.kafka.starts, world.kafka.since = {NOON: 30}, {0: 40}
        found = world.check("lag", NOON)
        assert not found.passed
        assert said(found, "lag") == 10

    def test_records_of_later_hours_make_no_hour_late(self, world: World) -> None:
        world.kafka.since = {0: 40, 1: 2}
        assert world.check("lag", TEN).passed


class TestDeadLetters:
    def test_say_how_many_and_where(self, world: World) -> None:
        world.commit(TEN, 10, 20, landed=8, dead=2)
        found = world.check("dead_letters")
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.WARN
        assert said(found, "dead_letters") == 2
        assert said(found, "files") == ["s3://lake/d"]
        assert world.check("dead_letters", NINE).passed


class TestOutages:
    def test_of_a_moment_are_tried_again(self, world: World) -> None:
        world.tile(NOON, 30, None)
        world.kafka.outages = 2
        result = world.run({"dagster/partition": NOON})
        assert result.success
        assert len(result.get_asset_check_evaluations()) == len(NAMES)

    def test_of_an_index_that_cannot_be_read_are_not(self, world: World) -> None:
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
        self, world: World, instance: dg.DagsterInstance
    ) -> None:
        world.commit(TEN, 10, 20, landed=8, dead=2)
        self.materialise(instance, NINE, TEN)
        world.run(names.range_tags(NINE, TEN), instance)
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

    def test_hours_of_a_range_are_not_left_as_planned(self, world: World, instance: dg.DagsterInstance) -> None:
        self.materialise(instance, TEN, ELEVEN)
        world.run(RANGE, instance)
        for status in set(AssetCheckExecutionResolvedStatus) - {AssetCheckExecutionResolvedStatus.SUCCEEDED}:
            assert self.hours(instance, "lag", status) == set()
