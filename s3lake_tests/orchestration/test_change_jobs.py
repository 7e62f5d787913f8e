"""Jobs that change what has landed: they report, and with `confirmed` they do it and store the events of the hours."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from s3lake.config.model import Sink
from s3lake.errors import DataLossError
from s3lake.land.change import restore as restoring
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.translator import dead_letters_key, sealed_key, sink_key
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.refused import GOOD, MENDED, LakeWithRefusals
from s3lake_tests.orchestration.unstaged_runs import materialisations
from s3lake_tests.orchestration.world import STAND_INS

LANDED, SEALED = sink_key("events", TOPIC), sealed_key("events", TOPIC)


def lake() -> LakeWithRefusals:
    lake = LakeWithRefusals()
    for number in range(3):
        lake.land(GOOD % number)
    return lake


def definitions(*sinks: Sink) -> dg.Definitions:
    return build_definitions(make_config(*sinks), resources=STAND_INS)


class Jobs:
    """The jobs of a configuration of one sink, over its lake."""

    def __init__(self, lake: LakeWithRefusals, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.lake, self.instance = lake, instance
        patch.setattr(open_topic_sink, "open_topic_sink", lambda *_, **__: self.lake.target())

    def run(self, job: str, **config: Any) -> dg.ExecuteInProcessResult:
        config = {name.rstrip("_"): value for name, value in config.items()}
        made = definitions(self.lake.sink).resolve_job_def(f"s3lake_{job}")
        ops = {"ops": {f"s3lake_{job}_op": {"config": config}}}
        return made.execute_in_process(ops, instance=self.instance, raise_on_error=False)

    def log(self, run: dg.ExecuteInProcessResult) -> str:
        entries = self.instance.all_logs(run.run_id)
        return "\n".join(entry.user_message for entry in entries if entry.dagster_event is None)

    def events(self, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
        return materialisations(self.instance, key)

    def rows(self) -> list[Any]:
        return [event.metadata["dagster/row_count"].value for event in self.events(LANDED)]

    def reasons(self) -> list[Any]:
        return [event.metadata["reason"].value for event in self.events(SEALED)]


@pytest.fixture
def jobs(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    return Jobs(lake(), instance, monkeypatch)


class TestEachJob:
    """A sink of three files of one row; the job changes it only if its config confirms it."""

    @pytest.mark.parametrize(
        ("job", "config", "settings", "rows"),
        [
            ("compact", {}, {}, 3),
            ("erase", {"where": "value ->> 'id' = '1'"}, {}, 2),
            ("reformat", {}, {"layout": {}, "format": {"type": "parquet"}}, 3),
            ("retention", {}, {"retention": "1h"}, 0),
        ],
    )
    def test_changes_hours_only_when_confirmed_and_stores_their_events(
        self, job: str, config: dict[str, Any], settings: dict[str, Any], rows: int, jobs: Jobs
    ) -> None:
        jobs.lake.mended(**settings)
        before = dict(jobs.lake.store.objects)
        reported = jobs.run(job, **config)
        assert reported.success
        assert jobs.lake.store.objects == before
        assert HOUR in jobs.log(reported)
        assert "launch it again with confirmed: true" in jobs.log(reported)
        assert jobs.rows() == []
        done = jobs.run(job, **config, sink="events", topics=[TOPIC], confirmed=True)
        assert done.success, jobs.log(done)
        assert jobs.rows() == [rows]
        assert [event.partition for event in jobs.events(SEALED)] == [HOUR]
        assert jobs.lake.verified().clean

    def test_does_nothing_to_hours_outside_from_and_to(self, jobs: Jobs) -> None:
        assert jobs.run("compact", from_="2026-11-20T06", confirmed=True).success
        assert jobs.run("compact", to="2026-11-20T04", confirmed=True).success
        assert len(jobs.lake.commits) == 3
        assert jobs.run("compact", from_=HOUR, to=HOUR, confirmed=True).success
        assert [len(commit.files) for commit in jobs.lake.commits] == [1]

    def test_stores_a_sealed_event_with_the_reason(self, jobs: Jobs) -> None:
        jobs.lake.mended(retention="1h")
        assert jobs.run("compact", confirmed=True).success
        assert jobs.run("retention", confirmed=True).success
        assert jobs.reasons() == ["landed", "retention"]

    @pytest.mark.parametrize(
        ("job", "config", "why"),
        [
            ("erase", {"where": "absent = 1", "confirmed": True}, "it names none of its columns"),
            ("reformat", {"topics": ["other"]}, f"topics: 'other' is not a topic of a sink; expected one of {TOPIC}"),
            (
                "compact",
                {"sink": "other"},
                "sink: 'other' is not a sink that compact can change; expected one of",
            ),
            ("compact", {"from": "20.11.2026"}, "from, to: '20.11.2026' is not an hour: write it as YYYY-MM-DDTHH"),
            ("erase", {"where": "true", "to": "2026-11-20"}, "from, to: '2026-11-20' is not an hour"),
            ("compact", {"from": "2026-11-20T06", "to": HOUR}, f"from, to: 2026-11-20T06 is later than {HOUR}"),
            ("restore", {"into": TOPIC}, "would land the records again"),
            ("restore", {"into": "new", "without": ["value"]}, "it takes key, headers, timestamp"),
            ("restore", {"into": "new"}, "its envelope does not hold"),
        ],
    )
    def test_fails_with_the_reason_if_it_cannot_do_what_its_config_asks(
        self, job: str, config: dict[str, Any], why: str, jobs: Jobs
    ) -> None:
        if job == "restore":
            config = {"sink": "events", "topic": TOPIC, "from": HOUR, "to": HOUR, **config}
        (failure,) = jobs.run(job, **config).get_step_failure_events()
        assert why in str(failure.event_specific_data)

    def test_fails_with_the_error_of_the_first_topic_and_works_on_the_others(
        self, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topics: list[str] = []

        def clean(*_: Any, **__: Any) -> list[Any]:
            topics.append("cleaned")
            if len(topics) == 1:
                raise DataLossError("objects are missing")
            return []

        target = jobs.lake.target()
        monkeypatch.setattr(type(target), "clean", clean)
        sinks = [jobs.lake.sink, jobs.lake.sink.model_copy(update={"name": "copy", "prefix": "copy"})]
        run = (
            definitions(*sinks)
            .resolve_job_def("s3lake_clean")
            .execute_in_process(instance=jobs.instance, raise_on_error=False)
        )
        (failure,) = run.get_step_failure_events()
        assert failure.step_failure_data.user_failure_data.description == "objects are missing"
        assert len(topics) == 2


def test_a_restoration_produces_records_only_when_confirmed(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = LakeWithRefusals(envelope={"style": "record"}).land(GOOD % 1, GOOD % 2, b"no JSON")
    jobs, restored = Jobs(landed, instance, monkeypatch), list[tuple[str, int]]()

    def restore(restoration: Any, servers: str, _: object, advance: Callable[[int], None]) -> object:
        advance(restoration.planned.records)
        restored.append((servers, restoration.planned.records))
        return restoration.planned

    monkeypatch.setattr(restoring, "restore_records", restore)
    config = {"sink": "events", "topic": TOPIC, "from": HOUR, "to": HOUR, "into": "again"}
    reported = jobs.run("restore", **config)
    assert (reported.success, restored) == (True, [])
    assert "0 of 3 records in 2 files are in topic again" in jobs.log(reported)
    done = jobs.run("restore", **config, confirmed=True)
    assert (done.success, restored) == (True, [("a:1", 3)])
    assert "3 of 3 records are in topic again" in jobs.log(done)


class TestReplay:
    @pytest.fixture
    def jobs(self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Jobs:
        return Jobs(LakeWithRefusals().landed(7, 4), instance, monkeypatch)

    def test_lands_dead_letters_only_when_confirmed_and_stores_the_events(self, jobs: Jobs) -> None:
        jobs.lake.mended(**MENDED)
        before = dict(jobs.lake.store.objects)
        assert jobs.run("replay").success
        assert jobs.lake.store.objects == before
        assert jobs.run("replay", confirmed=True, from_=HOUR, to=HOUR, topics=[TOPIC]).success
        assert jobs.lake.verified().clean
        (event,) = jobs.events(dead_letters_key("events", TOPIC))
        assert (event.partition, event.metadata["dead_letters"].value, event.metadata["replayed"].value) == (HOUR, 2, 3)
        assert jobs.rows() == [9]
        assert [event.partition for event in jobs.events(SEALED)] == [HOUR]


@pytest.mark.parametrize(
    ("settings", "jobs"),
    [
        ({}, {"clean", "compact", "reformat", "erase", "restore"}),
        ({"retention": "30d"}, {"clean", "compact", "reformat", "erase", "restore", "retention"}),
        ({"errors": {"tolerance": "all"}}, {"clean", "compact", "reformat", "erase", "restore", "replay"}),
        ({"exactly_once": False}, {"clean"}),
    ],
)
def test_a_configuration_has_one_job_for_each_change_that_a_sink_of_it_allows(
    settings: dict[str, Any], jobs: set[str]
) -> None:
    made = definitions(*(make_sink(name=name, prefix=name, **settings) for name in ("events", "copy")))
    assert {job.name for job in made.resolve_all_job_defs()} - {"__ASSET_JOB"} == {
        *("land_events", "land_copy"),
        *(f"s3lake_{job}" for job in jobs),
    }
    assert ("s3lake_daily_retention" in {schedule.name for schedule in made.schedules or ()}) is (
        "retention" in settings
    )
