"""What the four checks say of an index, without Spark."""

import time
from typing import Any

import dagster as dg
import msgspec
import pytest

from s3lake import hours
from s3lake.commit.index import File, Manifest, Read, TopicHead, TopicIndex
from s3lake.errors import KafkaUnavailableError
from s3lake.kafka.reader import Brokers
from s3lake.orchestration import resources, retries
from s3lake.orchestration.checks import NAMES, sink_checks
from s3lake.orchestration.names import sink_key
from s3lake.plan.tile import Span, Tile
from s3lake.sink import Sink
from s3lake.store.memory import MemoryStore

NINE, TEN, ELEVEN, NOON = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11", "2026-01-05T12"
SINK = Sink.model_validate(
    {"name": "events", "topics": ["orders"], "bucket": "lake", "start": NINE, "flush": {"interval": "10m"}}
)
RANGE = {"dagster/asset_partition_range_start": TEN, "dagster/asset_partition_range_end": ELEVEN}


class FakeKafka:
    """Ends, and the first offset stamped within the last twenty minutes."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {0: 30}
        self.since: dict[int, int] = {0: 30}
        self.down = 0
        self.brokers = Brokers("nowhere:9092")

    @property
    def offsets(self) -> "FakeKafka":
        return self

    def ranges(self, _: str) -> dict[int, tuple[int, int]]:
        if self.down:
            self.down -= 1
            raise KafkaUnavailableError("Kafka did not answer")
        return {partition: (0, end) for partition, end in self.ends.items()}

    def first_since(self, *_: object) -> dict[int, int]:
        return self.since


class World:
    """An index of three hours of ten records each, one commit an hour, all as it should be."""

    def __init__(self) -> None:
        self.store = MemoryStore("lake")
        self.kafka = FakeKafka()
        self.index = TopicIndex(self.store, ".indexes/events", "orders")
        self.existing: list[str] = []
        for number, hour in enumerate((NINE, TEN, ELEVEN)):
            self.tile(hour, 10 * number, 10 * number + 10)
            self.commit(hour, 10 * number, 10 * number + 10)

    def tile(self, hour: str, start: int, end: int | None, committed: int | None = None, **more: Any) -> None:
        done = committed if committed is not None else end or start
        tile = Tile(hour, {0: Span(start, done, end)}, commits=("c",) if done > start else ())
        self.existing = sorted({*self.existing, hour})
        head = TopicHead(hours=tuple(hours.ranges(self.existing)), since=more.pop("since", None))
        self._put(self.index.tile_key(hour), tile.changed(**more))
        self._put(self.index.head_key, head)

    def commit(self, hour: str, start: int, end: int, **counts: Any) -> None:
        created_ms, expired = counts.pop("created_ms", 0), counts.pop("expired", ())
        read = Read(start, end, **({"read": end - start, "landed": end - start} | counts))
        files = (File("k", "u", (), 0, start, end - 1, read.landed + read.dead, 100),)
        self._put(
            self.index.manifest_key(hour, "c"),
            Manifest("c", "orders", hour, {0: read}, files, expired=expired, created_ms=created_ms),
        )

    def forget(self, hour: str) -> None:
        self.existing.remove(hour)
        self._put(self.index.head_key, TopicHead(hours=tuple(hours.ranges(self.existing))))

    def _put(self, key: str, document: msgspec.Struct) -> None:
        self.store.put(key, msgspec.json.encode(document))

    def run(self, tags: dict[str, str] | None = None) -> dg.ExecuteInProcessResult:
        """All checks, in a run with these tags."""
        checks = sink_checks(SINK, "orders")
        definitions = dg.Definitions(
            assets=[dg.AssetSpec(sink_key(SINK, "orders"))],
            asset_checks=[checks],
            jobs=[dg.define_asset_job("checks", selection=dg.AssetSelection.checks(checks))],
            resources={"kafka": self.kafka, "s3": object()},
        )
        job = definitions.resolve_job_def("checks")
        with dg.DagsterInstance.ephemeral() as instance:
            return job.execute_in_process(tags=tags or {}, instance=instance, raise_on_error=False)

    def check(self, name: str, tags: dict[str, str] | None = None) -> dg.AssetCheckEvaluation:
        result = self.run(tags)
        assert result.success
        (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == name]
        return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(resources, "stores", lambda *_, **__: lambda _: made.store)
    monkeypatch.setattr(retries, "PAUSE_S", 0)
    return made


def said(evaluation: dg.AssetCheckEvaluation, name: str) -> Any:
    return evaluation.metadata[name].value


@pytest.mark.parametrize("tags", [None, RANGE, {"dagster/partition": TEN}], ids=["all hours", "a range", "an hour"])
@pytest.mark.parametrize("name", NAMES)
def test_all_pass_where_everything_is_as_it_should_be(name: str, tags: dict[str, str] | None, world: World) -> None:
    assert world.check(name, tags).passed


@pytest.mark.parametrize("name", NAMES)
def test_all_pass_where_nothing_was_landed_of_nothing(name: str, world: World) -> None:
    world.store.objects.clear()
    world.kafka.ends, world.kafka.since = {0: 0}, {0: 0}
    assert world.check(name).passed


class TestOffsetsContiguous:
    def check(self, world: World, tags: dict[str, str] | None = None) -> dg.AssetCheckEvaluation:
        return world.check("offsets_contiguous", tags)

    @pytest.mark.parametrize("start", [11, 9], ids=["a gap", "an overlap"])
    @pytest.mark.parametrize("tags", [None, RANGE, {"dagster/partition": TEN}], ids=["all", "range", "hour"])
    def test_hours_that_do_not_share_their_edge(self, start: int, tags: dict[str, str] | None, world: World) -> None:
        world.tile(TEN, start, 20)
        found = self.check(world, tags)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.ERROR
        assert said(found, "hours_with_wrong_edge") == [NINE]

    def test_a_run_s_own_hours_are_what_it_is_about(self, world: World) -> None:
        world.tile(NOON, 35, None)
        assert self.check(world, {"dagster/partition": TEN}).passed
        assert not self.check(world, {"dagster/partition": ELEVEN}).passed

    @pytest.mark.parametrize(
        "more", [{"committed": 15}, {"pending": "d"}, {"garbage": ("d",)}], ids=["not landed", "pending", "garbage"]
    )
    def test_a_closed_hour_that_is_not_complete(self, more: dict[str, Any], world: World) -> None:
        world.tile(TEN, 10, 20, **more)
        found = self.check(world)
        assert not found.passed
        assert said(found, "incomplete_hours") == [TEN]

    def test_an_hour_left_out_that_has_records_is_a_warning(self, world: World) -> None:
        world.forget(TEN)
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.WARN
        assert said(found, "hours_never_opened") == [f"{TEN} to {TEN}"]
        assert said(found, "offsets_in_hours_never_opened") == 10

    def test_an_hour_left_out_that_has_none_is_not(self, world: World) -> None:
        world.forget(ELEVEN)
        world.tile(NOON, 20, 30)
        world.commit(NOON, 20, 30)
        assert self.check(world).passed

    def test_the_offsets_of_a_topic_that_was_created_again_begin_anew(self, world: World) -> None:
        world.tile(NOON, 0, 5, since=NOON)
        world.commit(NOON, 0, 5)
        assert self.check(world).passed


class TestRowsEqualOffsets:
    def check(self, world: World) -> dg.AssetCheckEvaluation:
        return world.check("rows_equal_offsets")

    def test_markers_and_aborted_records_have_offsets_and_no_row(self, world: World) -> None:
        world.commit(TEN, 10, 20, read=7, landed=7)
        found = self.check(world)
        assert found.passed
        assert said(found, "offsets") == 30
        assert said(found, "records") == 27
        assert said(found, "offsets_without_record") == 3

    def test_nulls_and_dead_letters_are_accounted_for(self, world: World) -> None:
        world.commit(TEN, 10, 20, landed=5, skipped=3, dead=2)
        assert self.check(world).passed

    def test_expired_offsets_are_accounted_for(self, world: World) -> None:
        world.tile(TEN, 10, 20, expired=((0, 10, 14),))
        world.commit(TEN, 10, 20, read=6, landed=6, expired=((0, 10, 14),))
        found = self.check(world)
        assert found.passed
        assert said(found, "offsets_without_record") == 0

    def test_what_was_given_up_with_a_former_topic_is_accounted_for(self, world: World) -> None:
        world.tile(TEN, 10, 25, expired=((0, 20, 25),))
        world.tile(ELEVEN, 25, 30)
        world.commit(ELEVEN, 25, 30)
        assert self.check(world).passed

    def test_a_record_that_is_nowhere_is_an_error(self, world: World) -> None:
        world.commit(TEN, 10, 20, landed=9)
        found = self.check(world)
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.ERROR
        assert said(found, "hours_that_differ") == [TEN]

    def test_a_commit_that_covers_less_than_the_tile_says_is_an_error(self, world: World) -> None:
        world.commit(TEN, 10, 18)
        assert said(self.check(world), "hours_that_differ") == [TEN]


class TestLag:
    """Waits for twice the flush interval of ten minutes."""

    @pytest.fixture(autouse=True)
    def _open_hour(self, world: World) -> None:
        world.tile(NOON, 30, None, committed=34)
        world.kafka.ends = {0: 40, 1: 2}

    def check(self, world: World, minutes_ago: float | None = None) -> dg.AssetCheckEvaluation:
        created_ms = 0 if minutes_ago is None else int(time.time() * 1000) - int(minutes_ago * 60_000)
        world.commit(NOON, 30, 34, created_ms=created_ms)
        return world.check("lag")

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

    def test_a_topic_that_nobody_lands_is_a_warning(self, world: World) -> None:
        world.store.objects.clear()
        world.kafka.since = {0: 40}
        found = world.check("lag")
        assert not found.passed
        assert said(found, "lag") == 42


class TestDeadLetters:
    def test_say_how_many_and_where(self, world: World) -> None:
        world.commit(TEN, 10, 20, landed=8, dead=2)
        found = world.check("dead_letters")
        assert not found.passed
        assert found.severity is dg.AssetCheckSeverity.WARN
        assert said(found, "dead_letters") == 2
        assert said(found, "hours") == {TEN: 2}


class TestOutages:
    def test_of_a_moment_are_tried_again(self, world: World) -> None:
        world.kafka.down = 2
        result = world.run()
        assert result.success
        assert len(result.get_asset_check_evaluations()) == len(NAMES)

    def test_of_an_index_that_cannot_be_read_are_not(self, world: World) -> None:
        world.store.put(world.index.head_key, b"{ no index")
        result = world.run()
        assert not result.success
        assert [event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"] == []
