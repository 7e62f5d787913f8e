"""Reading back through the IO manager: exactly what was committed, as a Spark DataFrame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow
import pytest

import s3lake
from s3lake import hours
from s3lake.config.model import Config, Sink
from s3lake.errors import RecordError
from s3lake.land.hour.landing import land
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.io_manager import SinkIOManager
from s3lake_tests.conftest import slow_after
from s3lake_tests.kit.lake import Lake, at, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NINE, TEN, ELEVEN = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11"
AFTER = at("2026-01-06T01")


def manager_of(config: Config, sink: Sink) -> SinkIOManager:
    return SinkIOManager(Catalog(config.model_copy(update={"sinks": (sink,)})), sink)


def read(lake: Lake, topic: str, settings: str, wanted: Sequence[str] | None, **metadata: object) -> "DataFrame":
    """What a downstream asset whose input has these metadata gets for these hours (None: it has no partitions)."""
    sink = lake.sink(topic, settings)
    config = lake.config("name: a, topics: [a]")
    manager = manager_of(config, sink)
    partitions = dg.HourlyPartitionsDefinition(sink.start, fmt=hours.FORMAT, end_offset=1)
    where: dict[str, Any] = {}
    if wanted is not None:
        where = {
            "asset_partitions_def": partitions,
            "asset_partition_key_range": dg.PartitionKeyRange(wanted[0], wanted[-1]),
        }
    key = dg.AssetKey(["s3", "events", topic])
    with dg.build_input_context(asset_key=key, definition_metadata=metadata, **where) as context:
        return manager.load_input(context)


def ids(frame: "DataFrame") -> list[int]:
    return sorted(row["id"] for row in frame.collect())


class TestHours:
    SETTINGS = "format: {type: parquet}, flush: {count: 7}"

    @pytest.fixture
    def topic(self, lake: Lake) -> str:
        topic = lake.topic(partitions=2)
        for number, hour in enumerate((NINE, TEN, ELEVEN)):
            lake.produce(topic, values(10, first=20 * number), at(hour, 5), 0)
            lake.produce(topic, values(10, first=20 * number + 10), at(hour, 5), 1)
        land(lake.target(topic, self.SETTINGS, AFTER), [NINE, TEN, ELEVEN])
        return topic

    def test_a_partition_of_another_zone_gets_all_hours_that_overlap_it(self, lake: Lake, topic: str) -> None:
        seen: list[int] = []
        config = lake.config(f"name: events, topics: ['{topic}'], {self.SETTINGS}")

        @dg.asset(
            ins={"records": dg.AssetIn(["s3", "events", topic], partition_mapping=s3lake.OverlappingHours())},
            partitions_def=dg.TimeWindowPartitionsDefinition(  # from 09:30 to 11:30 in UTC
                "2026-01-05T15", "%Y-%m-%dT%H", cron_schedule="0 15,17 * * *", timezone="Asia/Kolkata"
            ),
        )
        def downstream(records: pyarrow.Table) -> None:
            seen.extend(sorted(records["id"].to_pylist()))

        definitions = dg.Definitions.merge(build_definitions(config), dg.Definitions(assets=[downstream]))
        job = definitions.resolve_implicit_global_asset_job_def()
        with dg.DagsterInstance.ephemeral() as instance:
            result = job.execute_in_process(
                instance=instance, asset_selection=[downstream.key], partition_key="2026-01-05T15"
            )
        assert result.success
        assert seen == list(range(60))

    @pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
    def test_an_input_annotated_as_a_dict_gets_one_frame_an_hour(self, lake: Lake, topic: str) -> None:
        seen: dict[str, list[int]] = {}
        config = lake.config(f"name: events, topics: ['{topic}'], {self.SETTINGS}")

        @dg.asset(
            ins={"records": dg.AssetIn(["s3", "events", topic], input_manager_key="s3lake_events_io_manager")},
            partitions_def=dg.HourlyPartitionsDefinition(config.sinks[0].start, fmt=hours.FORMAT, end_offset=1),
            backfill_policy=dg.BackfillPolicy.single_run(),
        )
        def downstream(records: dict[str, Any]) -> dg.MaterializeResult[None]:
            seen.update({hour: ids(frame) for hour, frame in records.items()})
            return dg.MaterializeResult()

        definitions = dg.Definitions.merge(build_definitions(config), dg.Definitions(assets=[downstream]))
        job = definitions.resolve_implicit_global_asset_job_def()
        with dg.DagsterInstance.ephemeral() as instance:
            job.execute_in_process(
                asset_selection=[downstream.key], tags=dagster_names.range_tags(NINE, TEN), instance=instance
            )
            assert seen == {NINE: list(range(20)), TEN: list(range(20, 40))}
            refused = job.execute_in_process(
                asset_selection=[downstream.key],
                tags=dagster_names.range_tags("2026-01-05T08", NINE),
                instance=instance,
                raise_on_error=False,
            )
            assert not refused.success


@pytest.mark.parametrize(
    "settings",
    slow_after(
        2,
        "another format through Spark",
        [
            pytest.param("format: {type: json}", id="json"),
            pytest.param("format: {type: parquet, codec: snappy}, converter: {value: bytes}", id="parquet of bytes"),
            pytest.param("format: {type: text, codec: gzip}, converter: {value: bytes}", id="text gzip, bytes"),
        ],
    ),
)
def test_formats_without_columns_have_one_value_a_record(settings: str, lake: Lake) -> None:
    topic = lake.topic()
    records = values(3000)
    lake.produce(topic, records, at(TEN, 5))
    land(lake.target(topic, settings, AFTER), [TEN])
    frame = read(lake, topic, settings, [TEN])
    assert frame.columns == ["value"]
    found = [row["value"] for row in frame.collect()]
    assert sorted(one.encode() if isinstance(one, str) else bytes(one) for one in found) == sorted(records)


class TestIncompleteHours:
    """Of four hours one was never landed, one is complete, one is landed in part, and one is under way."""

    SETTINGS = "format: {type: parquet}, batch_records: 10"
    EIGHT = "2026-01-05T08"

    @pytest.fixture
    def topic(self, lake: Lake) -> str:
        topic = lake.filled(values(30), at(NINE, 5))
        lake.produce(topic, [*values(20, first=30), b"{ broken", *values(9, first=50)], at(TEN, 5))
        lake.produce(topic, values(5, first=59), at(ELEVEN, 5))
        target = lake.target(topic, self.SETTINGS, AFTER)
        land(target, [NINE])
        with pytest.raises(RecordError):  # the third micro-batch's
            land(target, [TEN])
        land(lake.target(topic, self.SETTINGS, at(ELEVEN, 30)), [ELEVEN])
        return topic

    def test_are_refused_by_name_with_what_is_missing_of_each(self, lake: Lake, topic: str) -> None:
        with pytest.raises(dg.Failure) as refused:
            read(lake, topic, self.SETTINGS, [self.EIGHT, ELEVEN])
        message = str(refused.value.description)
        assert f"topic {topic} in sink events: 3 of 4 hours are not complete" in message
        assert f"{self.EIGHT} never landed; {TEN} lacks 10 of 30 offsets; {ELEVEN} is still open, 5 offsets" in message
        assert 'metadata={"allow_incomplete": True}' in message
        assert refused.value.allow_retries is False

    @pytest.mark.slow("a case more of reading through Spark")
    def test_are_read_as_far_as_they_are_landed_when_the_input_allows_it(self, lake: Lake, topic: str) -> None:
        frame = read(lake, topic, self.SETTINGS, [self.EIGHT, ELEVEN], allow_incomplete=True)
        assert ids(frame) == [*range(50), *range(59, 64)]

    @pytest.mark.slow("a case more of reading through Spark")
    def test_an_hour_that_was_never_landed_is_empty_with_the_sinks_columns(self, lake: Lake, topic: str) -> None:
        frame = read(lake, topic, self.SETTINGS, [self.EIGHT], allow_incomplete=True)
        assert (frame.columns, frame.collect()) == (["id", "type"], [])
        assert read(lake, "never", self.SETTINGS, [TEN], allow_incomplete=True).collect() == []

    @pytest.mark.slow("a case more of reading through Spark")
    def test_allow_incomplete_of_an_input_is_true_or_false(self, lake: Lake, topic: str) -> None:
        with pytest.raises(dg.Failure, match="allow_incomplete of an input is 'yes': write True or False"):
            read(lake, topic, self.SETTINGS, [NINE], allow_incomplete="yes")
        with pytest.raises(dg.Failure, match="not complete"):
            read(lake, topic, self.SETTINGS, [TEN], allow_incomplete=False)


@pytest.mark.slow("a case more of reading through Spark")
def test_files_of_a_narrower_schema_are_read_with_all_columns(lake: Lake) -> None:
    """Fields that came later are null in older files; integers up to 2^53 become doubles where doubles came later."""
    topic, settings = lake.topic(), "format: {type: parquet}"
    older = [
        b'{"n": 1, "in": {"a": 1}, "many": [{"x": 1}, null], "big": 9007199254740992}',
        b'{"n": null, "many": null}',
    ]
    newer = [b'{"n": 1.5, "in": {"a": 2.5, "b": "B"}, "many": [{"x": 2, "y": [true]}], "new": "N", "big": 0.5}']
    lake.produce(topic, older, at(NINE, 5))
    land(lake.target(topic, settings, at(NINE, 30)), [NINE])
    lake.produce(topic, newer, at(TEN, 5))
    land(lake.target(topic, settings, AFTER), [NINE, TEN])
    frame = read(lake, topic, settings, [NINE, TEN])
    assert dict(frame.dtypes) == {
        "n": "double",
        "in": "struct<a:double,b:string>",
        "many": "array<struct<x:bigint,y:array<boolean>>>",
        "big": "double",
        "new": "string",
    }
    rows = {row["n"]: row.asDict(recursive=True) for row in frame.collect()}
    assert rows[1.0] == {
        "n": 1.0,
        "in": {"a": 1.0, "b": None},
        "many": [{"x": 1, "y": None}, None],
        "big": 9007199254740992.0,
        "new": None,
    }
    assert rows[None] == {"n": None, "in": None, "many": None, "big": None, "new": None}
    assert rows[1.5]["in"] == {"a": 2.5, "b": "B"}
    assert rows[1.5]["new"] == "N"


@pytest.mark.slow("a case more of reading through Spark")
def test_hours_of_two_formats_are_read_apart_and_refused_together(lake: Lake) -> None:
    topic = lake.filled(values(3), at(NINE, 5))
    land(lake.target(topic, "format: {type: json}", AFTER), [NINE])
    lake.produce(topic, values(2), at(TEN, 5))
    land(lake.target(topic, "format: {type: parquet}", AFTER), [TEN])
    assert read(lake, topic, "format: {type: parquet}", [NINE]).count() == 3
    with pytest.raises(dg.Failure, match=r"was landed as parquet with .* and .* as json with .* read them apart"):
        read(lake, topic, "format: {type: parquet}", [NINE, TEN])
