"""Sink assets, materialised by Dagster on real parts."""

from typing import Any

import dagster as dg
import pytest

from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.translator import sealed_key
from s3lake_tests.kit.lake import Lake, at, values
from s3lake_tests.orchestration.unstaged_runs import materialisations

NINE, TEN = "2026-01-05T09", "2026-01-05T10"


class RunsOfOneTopic:
    """Runs of one sink of one topic, with ten records in an hour and five in the next, in one Dagster instance."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake, settings: str) -> None:
        self.instance, self.topic = instance, lake.filled(values(10), at(NINE, 5))
        lake.produce(self.topic, values(5), at(TEN, 5))
        config = lake.config(f"name: events, topics: ['{self.topic}'], {settings}")
        self.definitions = build_definitions(config.model_copy(update={"examples": True}))

    def land(self, first: str, last: str, *, rewrite: bool = False) -> bool:
        """Run these hours, as a backfill or the UI does; return whether that succeeded."""
        job = self.definitions.resolve_job_def("land_events")
        ops = {job.nodes_in_topological_order[0].name: {"config": {"rewrite": rewrite}}}
        return job.execute_in_process(
            tags=dagster_names.range_tags(first, last), run_config={"ops": ops}, instance=self.instance
        ).success


@pytest.mark.slow("a case more of an asset on real parts")
def test_the_example_downstream_counts_exactly_what_was_landed(lake: Lake, instance: dg.DagsterInstance) -> None:
    runs = RunsOfOneTopic(instance, lake, "format: {type: parquet}")
    assert runs.land(NINE, TEN)
    result = runs.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(["example", "events", f"{runs.topic}_by_type"])],
        tags=dagster_names.range_tags(NINE, TEN),
        instance=instance,
    )
    found = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    assert {one.partition: one.metadata["records"].value for one in found} == {NINE: 10, TEN: 5}
    tables: list[Any] = [one.metadata["by_type"] for one in found]
    assert [{one.data["type"]: one.data["records"] for one in table.records} for table in tables] == [
        {"t0": 4, "t1": 3, "t2": 3},
        {"t0": 2, "t1": 2, "t2": 1},
    ]


def test_an_hour_is_announced_once_by_its_run_else_by_the_sensor_and_again_when_it_is_rewritten(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    runs = RunsOfOneTopic(instance, lake, f"sealed: {{marker: objects}}, start: {NINE}")
    key = sealed_key("events", runs.topic)

    def announced() -> list[tuple[str | None, object, object]]:
        found = materialisations(instance, key)
        return [(one.partition, one.metadata["reason"].value, one.metadata["dagster/row_count"].value) for one in found]

    assert runs.land(NINE, TEN)
    assert announced() == [(NINE, "landed", 10), (TEN, "landed", 5)]
    markers = [key for key in lake.objects() if key.endswith("_objects.json")]
    assert markers == [f"{runs.topic}/date=2026-01-05/hour={hour}/_objects.json" for hour in ("09", "10")]
    assert lake.verify(lake.target(runs.topic, f"start: {NINE}")).differences == ()

    instance.wipe_assets([key])  # as if the run had been killed between its last commit and the announcement
    sensor = runs.definitions.get_repository_def().get_sensor_def(f"kafka_{runs.topic}".replace("-", "_"))
    cursor = None
    for _ in range(2):
        with dg.build_sensor_context(instance=instance, definitions=runs.definitions, cursor=cursor) as context:
            result = sensor.evaluate_tick(context)
        cursor = result.cursor
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
    assert announced() == [(NINE, "landed", 10), (TEN, "landed", 5)]

    assert runs.land(TEN, TEN, rewrite=True)
    assert announced()[2:] == [(TEN, "rewrite", 5)]
