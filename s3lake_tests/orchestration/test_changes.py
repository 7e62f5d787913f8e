"""Jobs that change what has landed: they do it, and tell the assets, sealed hours with the reason."""

import dagster as dg
import pytest

from s3lake.orchestration import changes, checks
from s3lake.orchestration.build import build_definitions
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
    return build_definitions(Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,)), resources=STAND_INS)


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
