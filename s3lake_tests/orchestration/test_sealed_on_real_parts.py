"""Sealed hours on a real broker, S3 API and Spark: announced by the run, by the sensor after it, by a rewrite."""

import dagster as dg

from s3lake.orchestration.translator import sealed_key
from s3lake_tests.lake import Lake, at, values
from s3lake_tests.orchestration.test_assets import NINE, TEN, Runs
from s3lake_tests.orchestration.unstaged_runs import materialisations


def test_an_hour_is_announced_once_by_its_run_else_by_the_sensor_and_again_when_it_is_rewritten(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    topic = lake.filled(values(10), at(NINE, 5))
    lake.produce(topic, values(5), at(TEN, 5))
    runs = Runs(instance, lake, topic, f"sealed: {{marker: objects}}, start: {NINE}")
    key = sealed_key("events", topic)

    def announced() -> list[tuple[str | None, object, object]]:
        found = materialisations(instance, key)
        return [(one.partition, one.metadata["reason"].value, one.metadata["dagster/row_count"].value) for one in found]

    assert runs.land(NINE, TEN).success
    assert announced() == [(NINE, "landed", 10), (TEN, "landed", 5)]
    markers = [key for key in lake.objects() if key.endswith("_objects.json")]
    assert markers == [f"{topic}/date=2026-01-05/hour={hour}/_objects.json" for hour in ("09", "10")]
    assert lake.verify(lake.landing(topic, f"start: {NINE}")).differences == ()

    instance.wipe_assets([key])  # as if the run had been killed between its last commit and the announcement
    sensor = runs.definitions.get_repository_def().get_sensor_def(f"kafka_{topic}".replace("-", "_"))
    cursor = None
    for _ in range(2):
        with dg.build_sensor_context(instance=instance, definitions=runs.definitions, cursor=cursor) as context:
            result = sensor.evaluate_tick(context)
        cursor = result.cursor
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
    assert announced() == [(NINE, "landed", 10), (TEN, "landed", 5)]

    assert runs.land(TEN, rewrite=True).success
    assert announced()[2:] == [(TEN, "rewrite", 5)]
