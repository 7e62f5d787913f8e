"""When an hour is announced as sealed: by the run that landed and checked it, or by the sensor that came after it."""

import dataclasses
import json
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from s3lake import hours
from s3lake.index.plan import sealed as plan_sealed
from s3lake.land.hour.landing import rewrite
from s3lake.orchestration import dagster_names, sealed_hours
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.due_hours import TopicView
from s3lake.orchestration.runs import SinkRuns, group_config, group_job_name, group_tags
from s3lake.orchestration.sensor_memory import RouteMemory
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, Filed, UnstagedTopic
from s3lake_tests.orchestration.unstaged_runs import OneTopic, materialisations
from s3lake_tests.orchestration.world import STAND_INS, catalog

FOURTH = hours.shift(THIRD, 1)
LONG_AFTER_MS = 100 * 365 * 86_400_000
"""So long after a landing that no sensor looks again at what it wrote."""


@pytest.fixture
def runs(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> OneTopic:
    monkeypatch.setattr(UnstagedTopic, "lands", Filed)
    return OneTopic(instance, monkeypatch)


def events(runs: OneTopic) -> list[dg.AssetMaterialization]:
    """Every announcement there is, in order."""
    return materialisations(runs.instance, sealed_key(runs.sink, TOPIC))


def announced(runs: OneTopic) -> list[tuple[str | None, Any]]:
    """Hours and reasons of the announcements."""
    return [(one.partition, one.metadata["reason"].value) for one in events(runs)]


def tick(runs: OneTopic, known: list[hours.Range] | None = None, later_ms: int = 0) -> list[hours.Range]:
    """What a sensor's tick does that has looked at every hour, and what it remembers."""
    target, ours = runs.world.target(), catalog(runs.sink)
    head, tiles = target.index.head(), list(target.index.tiles())
    assert head is not None
    complete = hours.ranges(tile.hour for tile in tiles if tile.complete)
    memory = RouteMemory(announced=known or [], complete=complete)
    found = sealed_hours.unannounced_hours(
        runs.instance,
        ours,
        TopicView(target, *head, tiles, {}, memory, target.clock() + later_ms),
        is_running=lambda: SinkRuns(runs.instance, ours, runs.sink, hours.now_ms(), TOPIC).run_of(TOPIC) is not None,
    )
    for event in found:
        runs.instance.report_runless_asset_event(event)
    return memory.announced


def forget(runs: OneTopic) -> None:
    """As if every run had crashed between its last commit and the announcement."""
    runs.instance.wipe_assets([sealed_key(runs.sink, TOPIC)])


class TestRun:
    def test_announces_each_hour_that_it_landed_as_a_whole_once(self, runs: OneTopic) -> None:
        for _ in range(2):
            runs.again()
            runs.land()
        assert announced(runs) == [(FIRST, "landed"), (SECOND, "landed"), (THIRD, "landed")]

    def test_has_the_contents_of_the_hour(self, runs: OneTopic) -> None:
        runs.land(FIRST, SECOND)
        metadata = {name: value.value for name, value in events(runs)[1].metadata.items()}
        numbers = {name: metadata[name] for name in ("dagster/row_count", "dagster/size_bytes", "files")}
        assert numbers == {"dagster/row_count": 10, "dagster/size_bytes": 10, "files": 1}
        (row,) = metadata["offsets"].records
        assert row.data == {"topic-partition": "orders-0", "start": 10, "landed": 20, "end": 20, "lag": 0}
        assert metadata["sealed_after_s"] == (600 - 120) * 60
        assert metadata["sealed_up_to"] == SECOND

    def test_announces_no_hour_that_is_landed_in_part(self, runs: OneTopic) -> None:
        runs.targets[TOPIC] = dataclasses.replace(runs.targets[TOPIC], clock=lambda: hours.start_ms(SECOND) + 60_000)
        runs.land(FIRST, SECOND)
        assert len(runs.hours()[TOPIC]) == 2
        assert announced(runs) == [(FIRST, "landed")]

    def test_announces_a_rewritten_hour_again_with_the_reason(self, runs: OneTopic) -> None:
        runs.land()
        rewrite(runs.again(), SECOND)
        runs.land()
        assert announced(runs)[3:] == [(SECOND, "rewrite")]
        versions = [
            one.tags and one.tags[dagster_names.DATA_VERSION] for one in events(runs) if one.partition == SECOND
        ]
        assert len(set(versions)) == 2

    def test_an_hour_that_is_rewritten_before_its_announcement_is_announced_as_landed(self, runs: OneTopic) -> None:
        runs.land()
        forget(runs)
        rewrite(runs.again(), SECOND)
        runs.land(SECOND, SECOND)
        assert announced(runs) == [(SECOND, "landed")]

    def test_an_hour_that_a_check_fails_on_is_not_sealed_until_it_is_fine_again(
        self, runs: OneTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        explained = plan_sealed.is_explained
        with monkeypatch.context() as patch:
            patch.setattr(plan_sealed, "is_explained", lambda tile, sums: tile.hour != SECOND and explained(tile, sums))
            runs.land()
            assert announced(runs) == [(FIRST, "landed"), (THIRD, "landed")]
        runs.again()
        runs.land()
        assert announced(runs)[2:] == [(SECOND, "landed")]


class TestMarker:
    @pytest.fixture
    def runs(self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> OneTopic:
        monkeypatch.setattr(UnstagedTopic, "lands", Filed)
        return OneTopic(instance, monkeypatch, sealed={"marker": "objects"})

    def marker(self, runs: OneTopic) -> tuple[bytes, str]:
        body, head = runs.world.store.objects[f"{TOPIC}/date=2026-11-20/hour=01/_objects.json"]
        return body, head.metadata["s3lake-sealed"]

    def test_is_there_once_the_hour_is_announced(self, runs: OneTopic) -> None:
        runs.land(FIRST, SECOND)
        (event,) = [one for one in events(runs) if one.partition == SECOND]
        assert event.metadata["marker"].value == f"s3://lake/{TOPIC}/date=2026-11-20/hour=01/_objects.json"
        body, content = self.marker(runs)
        assert [one["rows"] for one in json.loads(body)["objects"]] == [10]
        assert event.tags is not None
        assert content == event.tags[dagster_names.DATA_VERSION]

    def test_an_object_of_another_program_in_its_place_fails_the_check_s_step_and_nothing_is_announced(
        self, runs: OneTopic
    ) -> None:
        runs.world.store.put(f"{TOPIC}/date=2026-11-20/hour=01/_objects.json", b"theirs")
        assert not runs.land().success
        assert announced(runs) == []

    def test_cleaning_leaves_it(self, runs: OneTopic) -> None:
        runs.land()
        before = dict(runs.world.store.objects)
        target = dataclasses.replace(runs.world.target(), clock=lambda: hours.start_ms(FIRST) + 40 * 86_400_000)
        assert target.clean() == []
        assert {key for key in before if "_objects" in key} == {
            key for key in runs.world.store.objects if "_objects" in key
        }


class TestSensor:
    def test_announces_what_a_run_died_before_once(self, runs: OneTopic) -> None:
        runs.land()
        forget(runs)
        known = tick(runs)
        known = tick(runs, known)
        tick(runs, known)
        assert announced(runs) == [(FIRST, "landed"), (SECOND, "landed"), (THIRD, "landed")]

    @pytest.mark.parametrize("together", [False, True])
    def test_leaves_all_hours_to_a_run_that_lands_the_topic(self, together: bool, runs: OneTopic) -> None:
        runs.land()
        forget(runs)
        sink, ours, started = runs.sink, catalog(runs.sink), dg.DagsterRunStatus.STARTED
        if together:
            run = create_run_for_test(
                runs.instance,
                job_name=group_job_name(ours, sink),
                run_config=group_config(ours, sink, {f"{THIRD}..{FOURTH}": [TOPIC]}),
                tags=group_tags(ours, sink, [TOPIC]),
                status=started,
            )
        else:
            selection = frozenset([sink_key(sink, TOPIC)])
            run = create_run_for_test(runs.instance, status=started, asset_selection=selection)
        tick(runs)
        assert announced(runs) == []
        runs.instance.delete_run(run.run_id)
        tick(runs)
        assert len(announced(runs)) == 3

    def test_finds_a_rewrite_that_no_run_of_dagster_made(self, runs: OneTopic) -> None:
        runs.land()
        known = tick(runs)
        rewrite(runs.again(), SECOND)
        tick(runs, known)
        assert announced(runs)[3:] == [(SECOND, "rewrite")]

    def test_remembers_only_what_is_in_the_event_log(self, runs: OneTopic) -> None:
        runs.land()
        assert tick(runs) == [(FIRST, THIRD)]
        forget(runs)
        assert tick(runs) == []

    def test_asks_the_event_log_nothing_when_all_is_announced(
        self, runs: OneTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs.land()
        known = tick(runs)
        monkeypatch.setattr(sealed_hours, "announced_contents", lambda *_: pytest.fail("it was asked"))
        tick(runs, known, later_ms=LONG_AFTER_MS)


def test_a_quiet_hour_is_sealed_too(runs: OneTopic) -> None:
    runs.land(FIRST, FOURTH)
    assert announced(runs)[3:] == [(FOURTH, "landed")]
    assert events(runs)[3].metadata["dagster/row_count"].value == 0


def test_checks_alone_announce_too(runs: OneTopic) -> None:
    runs.land()
    forget(runs)
    look = dg.define_asset_job("look", selection=dg.AssetSelection.checks_for_assets(sink_key(runs.sink, TOPIC)))
    definitions = dg.Definitions.merge(build_definitions(runs.config, resources=STAND_INS), dg.Definitions(jobs=[look]))
    job = definitions.resolve_job_def("look")
    assert job.execute_in_process(tags={"dagster/partition": SECOND}, instance=runs.instance).success
    assert announced(runs) == [(SECOND, "landed")]
