"""Jobs that change what has landed: they do it, and tell the assets, sealed hours with the reason."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from s3lake.errors import DataLossError
from s3lake.land.change import restore as restoring
from s3lake.orchestration import changes, checks
from s3lake.orchestration.alive import alive
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.each_topic import each_topic
from s3lake.orchestration.jobs import job_of
from s3lake.orchestration.resources import KafkaResource
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake.sink import Config, Kafka, Sink
from s3lake_tests.land.replay.lake import GOOD, Lake
from s3lake_tests.orchestration.unstaged_runs import STAND_INS, materialisations
from s3lake_tests.verify.world import HOUR, TOPIC


def lake() -> Lake:
    lake = Lake()
    for number in range(3):
        lake.land(GOOD % number)
    lake.write_index()
    return lake


def definitions(sink: Sink) -> dg.Definitions:
    config = Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,))
    return build_definitions(config, resources={**STAND_INS, "kafka": KafkaResource(Kafka(bootstrap_servers="a:1"))})


def test_hours_are_compacted_and_then_expire_and_each_is_a_sealed_event_with_its_reason(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = lake()
    monkeypatch.setattr(changes, "looking", lambda *_, **__: landed.landing())
    monkeypatch.setattr(checks, "looking", lambda *_, **__: landed.landing())
    landed.mended(retention="1h")
    made = definitions(landed.sink)
    ran = made.resolve_job_def("compact_events").execute_in_process(instance=instance, partition_key=HOUR)
    assert ran.success
    assert landed.verified().clean
    assert [len(one.files) for one in landed.commits] == [1]
    assert made.resolve_job_def("retention_events").execute_in_process(instance=instance).success
    assert [one.files for one in landed.commits] == [()]
    rows = [one.metadata["dagster/row_count"].value for one in materialisations(instance, sink_key("events", TOPIC))]
    assert rows == [3, 0]
    sealed = materialisations(instance, sealed_key("events", TOPIC))
    assert [(one.partition, one.metadata["reason"].value) for one in sealed] == [(HOUR, "landed"), (HOUR, "retention")]
    assert sealed[1].metadata["erased"].value == 3


def test_a_sink_that_keeps_its_hours_for_ever_has_no_job_and_no_schedule_for_it() -> None:
    for retention in (None, "30d"):
        made = definitions(
            Sink.model_validate(
                {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": HOUR, "retention": retention}
            )
        )
        jobs = [job.name for job in made.resolve_all_job_defs()]
        assert ("compact_events" in jobs, "retention_events" in jobs) == (True, retention is not None)
        schedules = [schedule.name for schedule in made.schedules or ()]
        assert ("daily_retention_events" in schedules) is (retention is not None)


def ran(
    landed: Lake, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch, job: str, op: str, **config: object
) -> dg.ExecuteInProcessResult:
    """A run of a job of the sink's."""
    for module in (changes, checks):
        patch.setattr(module, "looking", lambda *_, **__: landed.landing())
    made = definitions(landed.sink).resolve_job_def(f"{job}_events")
    return made.execute_in_process(
        instance=instance, run_config={"ops": {f"{op}_events": {"config": config}}}, raise_on_error=False
    )


def said(instance: dg.DagsterInstance, run: dg.ExecuteInProcessResult) -> list[str]:
    return [entry.user_message for entry in instance.all_logs(run.run_id) if entry.dagster_event is None]


def test_rows_are_erased_once_it_is_said_so_and_before_only_looked_for(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = lake()
    before = dict(landed.store.objects)
    where = "value ->> 'id' = '1'"
    looked = ran(landed, instance, monkeypatch, "erase", "take_out_rows", where=where)
    assert (looked.success, landed.store.objects) == (True, before)
    told = said(instance, looked)
    assert any(f"{HOUR}: 1 records" in line for line in told)
    assert any("confirmed: true" in line for line in told)
    assert materialisations(instance, sink_key("events", TOPIC)) == []
    assert ran(landed, instance, monkeypatch, "erase", "take_out_rows", where=where, confirmed=True).success
    assert not any(b'"id":1}' in body for body in landed.bodies().values())
    (event,) = materialisations(instance, sink_key("events", TOPIC))
    assert event.metadata["dagster/row_count"].value == 2
    (sealed,) = materialisations(instance, sealed_key("events", TOPIC))
    assert sealed.metadata["erased"].value == 1


def test_hours_are_written_anew_once_it_is_said_so(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = lake()
    landed.mended(layout={}, format={"type": "parquet"})
    assert ran(landed, instance, monkeypatch, "reformat", "write_anew", first="2026-11-20T06", confirmed=True).success
    assert ran(landed, instance, monkeypatch, "reformat", "write_anew").success
    assert {one.format for one in landed.commits} == {"json"}
    assert ran(landed, instance, monkeypatch, "reformat", "write_anew", confirmed=True, topics=[TOPIC]).success
    assert {one.format for one in landed.commits} == {"parquet"}
    assert landed.verified().clean
    assert [one.partition for one in materialisations(instance, sealed_key("events", TOPIC))] == [HOUR]


def test_what_cannot_be_asked_fails_the_run_with_the_reason(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = lake()
    hours = {"topic": TOPIC, "first": HOUR, "last": HOUR}
    for job, op, config, why in [
        ("erase", "take_out_rows", {"where": "nobody = 1", "confirmed": True}, "it names none of its columns"),
        ("reformat", "write_anew", {"topics": ["other"]}, "is no topic of sink events"),
        ("restore", "produce", {**hours, "into": TOPIC}, "would land the records once more"),
        ("restore", "produce", {**hours, "into": "new", "without": ["value"]}, "it takes key, headers, timestamp"),
        ("restore", "produce", {**hours, "into": "new"}, "its envelope does not hold"),
    ]:
        run = ran(landed, instance, monkeypatch, job, op, **config)
        (failure,) = run.get_step_failure_events()
        assert why in str(failure.event_specific_data), job


def test_a_restoration_says_what_it_would_do_until_it_is_told_to(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = Lake(envelope={"style": "record"})
    landed.land(GOOD % 1, GOOD % 2, b"no JSON")
    landed.write_index()
    restored: list[tuple[str, int]] = []

    def restore(wanted: Any, servers: str, _: object, advance: Callable[[int], None]) -> object:
        advance(wanted.planned.records)
        restored.append((servers, wanted.planned.records))
        return wanted.planned

    monkeypatch.setattr(restoring, "restore", restore)
    config = {"topic": TOPIC, "first": HOUR, "last": HOUR, "into": "again"}
    looked = ran(landed, instance, monkeypatch, "restore", "produce", **config)
    assert (looked.success, restored) == (True, [])
    assert any("0 of 3 records in 2 files are in topic again" in line for line in said(instance, looked))
    done = ran(landed, instance, monkeypatch, "restore", "produce", **config, confirmed=True)
    assert (done.success, restored) == (True, [("a:1", 3)])
    assert any("3 of 3 records are in topic again" in line for line in said(instance, done))


def test_a_topic_that_fails_is_what_the_step_fails_with() -> None:
    @dg.op
    def change(context: dg.OpExecutionContext) -> None:
        def work(_: str) -> None:
            raise DataLossError("objects of orders are gone")

        with alive(context):
            each_topic(context, ["orders"], work, allow_retries=False)

    result = job_of(change, name="change", description="").execute_in_process(raise_on_error=False)
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert failure.step_failure_data.user_failure_data.description == "objects of orders are gone"
