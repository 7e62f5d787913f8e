"""Sink assets, materialised by Dagster on real parts."""

import uuid
from collections.abc import Mapping
from typing import Any

import dagster as dg
import pytest

from s3lake.orchestration import names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.translator import sealed_key
from s3lake_tests.kit.lake import Lake, at, values
from s3lake_tests.orchestration.unstaged_runs import materialisations

NINE, TEN, ELEVEN = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11"


class Runs:
    """Runs of one sink of one topic, in one Dagster instance."""

    def __init__(
        self, instance: dg.DagsterInstance, lake: Lake, topic: str, settings: str = "", **resources: Any
    ) -> None:
        self.topic = topic
        config = lake.config(f"name: events, topics: ['{topic}']{', ' if settings else ''}{settings}")
        self.definitions = build_definitions(config.model_copy(update={"examples": True}), resources=resources)
        self.job = self.definitions.resolve_job_def("land_events")
        self.key = dg.AssetKey(["s3", "events", topic])
        self.instance = instance

    def land(self, first: str, last: str | None = None, *, rewrite: bool = False) -> dg.ExecuteInProcessResult:
        """Run these hours, as a backfill or the UI does."""
        tags = names.range_tags(first, last) if last else {"dagster/partition": first}
        op = self.job.nodes_in_topological_order[0].name
        return self.job.execute_in_process(
            tags=tags,
            run_config={"ops": {op: {"config": {"rewrite": True}}}} if rewrite else {},
            instance=self.instance,
            raise_on_error=False,
        )

    def metadata(self, result: dg.ExecuteInProcessResult) -> dict[str, Mapping[str, Any]]:
        """Metadata of the sink's materialisations, by hour."""
        found = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
        return {
            str(one.partition): {name: value.value for name, value in one.metadata.items()}
            for one in found
            if one.asset_key == self.key
        }

    def log(self, result: dg.ExecuteInProcessResult) -> str:
        """Everything that the run left in the event log."""
        records = self.instance.get_records_for_run(result.run_id).records
        return "\n".join(dg.serialize_value(record.event_log_entry) for record in records)


def offsets(metadata: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Topic-partition, start, landed, end and lag, a row each."""
    return [tuple(row.data.values()) for row in metadata["offsets"].records]


def state(lake: Lake) -> list[tuple[str, str, Any, int]]:
    """Every object of the bucket, when it was written, and its size."""
    found = lake.client.list_objects_v2(Bucket=lake.bucket).get("Contents", ())
    return [(one["Key"], one["ETag"], one["LastModified"], one["Size"]) for one in found]


class TestOneHour:
    def test_its_materialisation_says_what_was_landed(self, lake: Lake, instance: dg.DagsterInstance) -> None:
        topic = lake.topic(partitions=2)
        records = [*values(40), b"{ broken", None]
        lake.produce(topic, records, [at(NINE, 30), *[at(TEN, 5)] * 41], 0)
        lake.produce(topic, values(10), at(TEN, 5), 1)
        settings = "format: {type: parquet}, flush: {count: 20}, errors: {tolerance: all}, from: earliest, prefix: raw"
        runs = Runs(instance, lake, topic, f"{settings}, start: {TEN}")
        result = runs.land(TEN)
        assert result.success
        (found,) = runs.metadata(result).values()
        numbers = {name: value for name, value in found.items() if type(value) in (int, float)}
        assert numbers.pop("dagster/size_bytes") == sum(
            one[3] for one in state(lake) if not one[0].startswith(".indexes/")
        )
        freshness = {name for name in numbers if name.startswith("freshness_")}
        assert {name: numbers[name] for name in numbers.keys() - freshness} == {
            "dagster/row_count": 50,
            "files": 3,
            "dead_letters": 1,
            "late": 1,
        }
        assert [tuple(line.data.values()) for line in found["records"].records] == [
            ("landed offsets", 52),
            ("rows", 50),
            ("dead letters", 1),
            ("skipped nulls", 1),
        ]
        assert (found["complete"], found["commits"]) == (True, "1, 1 of them new")
        assert offsets(found) == [(f"{topic}-0", 0, 42, 42, 0), (f"{topic}-1", 0, 10, 10, 0)]
        columns = {column.name: column.type for column in found["dagster/column_schema"].columns}
        assert columns == {"id": "int64", "type": "string"}
        assert found["dagster/uri"] == f"s3://{lake.bucket}/raw/{topic}/date=2026-01-05/hour=10/"
        objects = [(line.data["object"], line.data["rows"]) for line in found["newest_objects"].records]
        directory = found["dagster/uri"].removeprefix(f"s3://{lake.bucket}/")
        landed = [one[0].removeprefix(directory) for one in state(lake) if one[0].startswith(f"raw/{topic}/")]
        assert sorted(key for key, _ in objects) == sorted(landed)
        assert sum(rows for _, rows in objects) == 50


class TestRangeOfHours:
    @pytest.fixture
    def runs(self, lake: Lake, instance: dg.DagsterInstance) -> Runs:
        topic = lake.topic()
        for number, hour in enumerate((NINE, TEN, ELEVEN), 1):
            lake.produce(topic, values(10 * number), at(hour, 5))
        return Runs(instance, lake, topic, "flush: {count: 10}")

    @pytest.mark.slow("a case more of an asset on real parts")
    def test_the_example_downstream_counts_exactly_what_was_landed(
        self, lake: Lake, instance: dg.DagsterInstance
    ) -> None:
        topic = lake.filled(values(10), at(NINE, 5))
        lake.produce(topic, values(5), at(TEN, 5))
        runs = Runs(instance, lake, topic, "format: {type: parquet}")
        runs.land(NINE, TEN)
        result = runs.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            asset_selection=[dg.AssetKey(["example", "events", f"{topic}_by_type"])],
            tags=names.range_tags(NINE, TEN),
            instance=runs.instance,
        )
        found = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
        assert {one.partition: one.metadata["records"].value for one in found} == {NINE: 10, TEN: 5}
        tables: list[Any] = [one.metadata["by_type"] for one in found]
        assert [{one.data["type"]: one.data["records"] for one in table.records} for table in tables] == [
            {"t0": 4, "t1": 3, "t2": 3},
            {"t0": 2, "t1": 2, "t2": 1},
        ]


class TestSecrets:
    def test_are_in_no_event_no_metadata_and_no_log(
        self, lake: Lake, instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str]
    ) -> None:
        topic = lake.filled([*values(3), b"{ broken"], at(TEN, 5))
        runs = Runs(instance, lake, topic)
        missing = Runs(instance, lake, topic, "prefix: other")
        lake.bucket = f"gone-{uuid.uuid4()}"
        gone = Runs(instance, lake, topic)
        said = [each.log(each.land(TEN)) for each in (runs, missing, gone)]
        out, err = capfd.readouterr()
        assert "NoSuchBucket" in said[2]
        assert lake.s3.secret_access_key not in "".join([*said, out, err])


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
    assert lake.verify(lake.target(topic, f"start: {NINE}")).differences == ()

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
