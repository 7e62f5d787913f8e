"""Sink assets, materialised by Dagster on real parts."""

import uuid
from collections.abc import Mapping
from typing import Any

import dagster as dg
import pytest

from s3lake.orchestration.build import build_definitions
from s3lake_tests.lake import Lake, at, values

NINE, TEN, ELEVEN = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11"
FIRST, LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


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
        tags = {FIRST: first, LAST: last} if last else {"dagster/partition": first}
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


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    return [
        str(event.event_specific_data.user_failure_data or event.event_specific_data.error.cause)  # type: ignore[union-attr]
        for event in result.all_events
        if event.is_step_failure
    ]


def offsets(metadata: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Topic-partition, start, landed, end and lag, a row each."""
    return [tuple(row.data.values()) for row in metadata["offsets"].records]


def retried(result: dg.ExecuteInProcessResult) -> int:
    return sum(event.event_type_value == "STEP_UP_FOR_RETRY" for event in result.all_events)


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

    def test_the_checks_are_made_in_the_same_run(self, lake: Lake, instance: dg.DagsterInstance) -> None:
        topic = lake.filled([*values(10), b"{ broken"], at(TEN, 5))
        runs = Runs(instance, lake, topic, "errors: {tolerance: all}")
        evaluations = runs.land(TEN).get_asset_check_evaluations()
        found = {one.check_name: one.passed for one in evaluations}
        assert found == {"offsets_contiguous": True, "rows_equal_offsets": True, "lag": True, "dead_letters": False}
        assert {one.partition for one in evaluations} == {TEN}
        (letters,) = [one.metadata["files"].value for one in evaluations if one.check_name == "dead_letters"]
        assert letters == [f"s3://{lake.bucket}/{key}" for key in lake.objects() if "_dead_letters" in key]


class TestRangeOfHours:
    @pytest.fixture
    def runs(self, lake: Lake, instance: dg.DagsterInstance) -> Runs:
        topic = lake.topic()
        for number, hour in enumerate((NINE, TEN, ELEVEN), 1):
            lake.produce(topic, values(10 * number), at(hour, 5))
        return Runs(instance, lake, topic, "flush: {count: 10}")

    def test_rewrite_lands_them_once_more_in_place_of_what_was_landed(self, runs: Runs, lake: Lake) -> None:
        runs.land(NINE, ELEVEN)
        before = lake.objects()
        result = runs.land(TEN, ELEVEN, rewrite=True)
        assert result.success
        assert [one["dagster/row_count"] for one in runs.metadata(result).values()] == [20, 30]
        assert len(set(lake.objects()) & set(before)) == 1
        assert len(lake.objects()) == len(before)

    @pytest.mark.slow("a case more of an asset on real parts")
    def test_what_a_sensor_asks_for_is_what_a_job_takes(self, runs: Runs) -> None:
        sensor = runs.definitions.get_repository_def().get_sensor_def(f"kafka_{runs.topic}".replace("-", "_"))
        with dg.build_sensor_context(
            instance=runs.instance,
            definitions=runs.definitions,
        ) as context:
            (request,) = sensor.evaluate_tick(context).run_requests or ()
        assert request.job_name == "land_events"
        result = runs.definitions.resolve_job_def("land_events").execute_in_process(
            tags=request.tags, asset_selection=list(request.asset_selection or ()), instance=runs.instance
        )
        assert [one["dagster/row_count"] for one in runs.metadata(result).values()][:4] == [0, 10, 20, 30]
        assert len(result.get_asset_check_evaluations()) == 4 * len(runs.metadata(result))

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
            tags={FIRST: NINE, LAST: TEN},
            instance=runs.instance,
        )
        found = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
        assert {one.partition: one.metadata["records"].value for one in found} == {NINE: 10, TEN: 5}
        tables: list[Any] = [one.metadata["by_type"] for one in found]
        assert [{one.data["type"]: one.data["records"] for one in table.records} for table in tables] == [
            {"t0": 4, "t1": 3, "t2": 3},
            {"t0": 2, "t1": 2, "t2": 1},
        ]


class TestErrors:
    def test_that_cannot_pass_fail_it_at_once(self, lake: Lake, instance: dg.DagsterInstance) -> None:
        topic = lake.filled([*values(3), b"{ broken"], at(TEN, 5))
        runs = Runs(instance, lake, topic)
        result = runs.land(TEN)
        assert not result.success
        assert retried(result) == 0
        (failure,) = failures(result)
        assert "RecordError" in failure
        assert "partition 0, offset 3, stage convert" in failure
        assert lake.objects() == []


@pytest.mark.slow("a case more of an asset on real parts")
class TestStandIns:
    """Whatever has the same attributes can stand in for `spark` and `s3`."""

    # Dagster uses its own deprecated attribute where a configurable resource is nested in another.
    @pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning")
    def test_a_lazy_pyspark_resource_and_an_s3_resource(self, lake: Lake, instance: dg.DagsterInstance) -> None:
        from dagster_aws.s3 import S3Resource
        from dagster_pyspark import LazyPySparkResource

        topic = lake.topic()
        for hour in (NINE, TEN):
            lake.produce(topic, values(10), at(hour, 5))
        session = lake.session()
        s3 = S3Resource(
            endpoint_url=lake.s3.endpoint_url,
            region_name=lake.s3.region,
            aws_access_key_id=lake.s3.access_key_id,
            aws_secret_access_key=lake.s3.secret_access_key,
        )
        runs = Runs(
            instance,
            lake,
            topic,
            "format: {type: parquet}",
            s3=s3,
            spark=LazyPySparkResource(spark_config={"spark.app.name": session.sparkContext.appName}),
        )
        result = runs.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            asset_selection=[runs.key, dg.AssetKey(["example", "events", f"{topic}_by_type"])],
            tags={FIRST: NINE, LAST: TEN},
            instance=runs.instance,
            raise_on_error=False,
        )
        assert result.success, failures(result)
        assert [one["dagster/row_count"] for one in runs.metadata(result).values()] == [10, 10]


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
