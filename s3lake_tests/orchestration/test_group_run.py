"""Runs of many topics on real parts: one job, events on each topic's asset, and failures that stay with their topic."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.jobs import GroupConfig, parse_group
from s3lake.orchestration.runs import group_config
from s3lake.orchestration.translator import hourly, sealed_key, sink_key
from s3lake_tests.kit.lake import START, Lake, at, values
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.orchestration.unstaged_runs import materialisations
from s3lake_tests.orchestration.world import catalog

pytestmark = pytest.mark.timeout(1800)
THIS_HOUR = hours.key_of_ms(hours.now_ms())


class SessionResource:
    """The session of the tests as a resource."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    @property
    def spark_session(self) -> Any:
        return self._lake.session()


class Fleet:
    """Topics of one sink, and runs of many of them in one instance."""

    def __init__(self, lake: Lake, instance: dg.DagsterInstance, count: int, start: str = START) -> None:
        self.lake, self.instance = lake, instance
        self.prefix = f"f{uuid.uuid4().hex[:8]}"
        self.topics = [lake.topic(name=f"{self.prefix}-{number:02}") for number in range(count)]
        settings = f"topics_regex: '{self.prefix}-.*', start: {start}, errors: {{retry_interval: 0}}"
        self.config = lake.config(f"name: events, {settings}")
        self.sink = self.config.sink("events")
        self.definitions = build_definitions(self.config, resources={"spark": SessionResource(lake)})
        self.job = self.definitions.resolve_job_def("land_together_events")

    def produce(self) -> None:
        """Produce 80 records of an hour to each topic."""
        for topic in self.topics:
            self.lake.produce(topic, values(80), at(START, 5))

    def land(self, span: str = START) -> dg.ExecuteInProcessResult:
        return self.job.execute_in_process(
            run_config=group_config(catalog(self.sink, *self.topics), self.sink, {span: self.topics}),
            instance=self.instance,
            raise_on_error=False,
        )

    def land_alone(self, topic: str) -> dg.ExecuteInProcessResult:
        """Land a topic by its asset, as the sensor requests it after it failed in a run of several."""
        return self.definitions.resolve_job_def("land_events").execute_in_process(
            instance=self.instance,
            asset_selection=[self.key(topic)],
            tags={**dagster_names.range_tags(START, START), dagster_names.SINK: "events", dagster_names.TOPIC: topic},
            raise_on_error=False,
        )

    def key(self, topic: str) -> dg.AssetKey:
        return sink_key(self.sink, topic)

    def materialised(self, key: dg.AssetKey) -> list[tuple[str | None, Any]]:
        """Hours and their rows."""
        return [
            (one.partition, one.metadata["dagster/row_count"].value) for one in materialisations(self.instance, key)
        ]

    def failed(self, topic: str) -> set[str]:
        """Hours that Dagster shows as failed."""
        partitions = hourly(self.sink)
        cached = get_and_update_asset_status_cache_value(self.instance, self.key(topic), partitions)
        assert cached is not None
        return set(cached.deserialize_failed_partition_subsets(partitions).get_partition_keys())

    def target(self, topic: str) -> Any:
        return self.lake.target(topic, "", at("2026-01-06T00"))

    def assert_landed(self, topic: str, records: int) -> None:
        report = self.lake.verify(self.target(topic))
        assert (report.differences, report.landed) == ((), records)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    with dg.DagsterInstance.ephemeral(str(tmp_path)) as made:
        yield made


@pytest.mark.parametrize(
    ("span", "topic", "why"),
    [
        (f"{START}..{START}", "payments", "sink events does not read topic payments"),
        ("2026-11-20T06..2026-11-20T05", "orders", "hours: .*: 2026-11-20T06 is later than 2026-11-20T05"),
        ("2026-11-20", "orders", "hours: 2026-11-20: '2026-11-20' is not an hour"),
    ],
)
def test_a_config_written_by_hand_is_refused_if_it_lands_nothing_of_the_sink(span: str, topic: str, why: str) -> None:
    with pytest.raises(dg.Failure, match=why):
        parse_group(GroupConfig(hours={span: [topic]}), make_sink(name="events", topics=["orders"]))


def test_twenty_topics_are_one_job_of_spark_and_a_materialisation_each(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    fleet = Fleet(lake, instance, 20)
    fleet.produce()
    tracker = lake.session().sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    assert fleet.land().success
    assert len(set(tracker.getJobIdsForGroup(None)) - before) == 1
    for topic in fleet.topics:
        assert fleet.materialised(fleet.key(topic)) == [(START, 80)]
        tile = fleet.target(topic).index.tile(START)
        assert tile is not None
        assert len(tile[0].commits) == 1
    fleet.assert_landed(fleet.topics[0], 80)


def test_a_topic_whose_record_is_refused_fails_no_other_and_its_own_hour_when_it_is_landed_alone(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    fleet = Fleet(lake, instance, 20)
    fleet.produce()
    poisoned = fleet.topics[4]
    lake.produce(poisoned, [b"{"], at(START, 6))
    result = fleet.land()
    assert not result.success
    assert f"1 of 20 topics failed, the others are landed: {poisoned}" in str(result.all_events)
    assert fleet.materialised(fleet.key(poisoned)) == []
    for topic in fleet.topics:
        if topic != poisoned:
            assert fleet.materialised(fleet.key(topic)) == [(START, 80)]
    assert instance.get_runs(limit=1)[0].tags[dagster_names.FAILED] == poisoned
    assert not fleet.land_alone(poisoned).success
    assert fleet.failed(poisoned) == {START}
    assert fleet.failed(fleet.topics[0]) == set()


@pytest.mark.slow("a case more of a run with many topics")
def test_a_topic_that_matches_since_the_location_was_loaded_is_landed_too(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    fleet = Fleet(lake, instance, 1)
    new = lake.topic(name=f"{fleet.prefix}-new")
    fleet.topics.append(new)
    fleet.produce()
    result = fleet.land()
    assert result.success
    assert fleet.materialised(fleet.key(new)) == [(START, 80)]
    logs = [one.user_message for one in instance.all_logs(result.run_id)]
    assert any(line.startswith(f"{new}: matches topics_regex since the code location was loaded") for line in logs)
    again = build_definitions(fleet.config).resolve_asset_graph()
    assert fleet.key(new) in again.get_all_asset_keys()


class TestHourWithoutARecord:
    """A run of the hour before this one and of this one, and then of this one and the next."""

    @pytest.fixture
    def fleet(self, kafka: EmbeddedKafka, s3_server: EmbeddedS3, instance: dg.DagsterInstance) -> Fleet:
        fleet = Fleet(Lake(kafka, s3_server), instance, 3, start=hours.shift(THIS_HOUR, -1))
        assert fleet.land(f"{fleet.sink.start}..{THIS_HOUR}").success
        return fleet

    def test_an_hour_is_three_events_of_each_topic(self, fleet: Fleet) -> None:
        result = fleet.land(f"{THIS_HOUR}..{hours.shift(THIS_HOUR, 1)}")
        for topic in fleet.topics:
            key, sealed = fleet.key(topic), sealed_key(fleet.sink, topic)
            events = [event for event in result.get_asset_materialization_events() if event.asset_key in (key, sealed)]
            assert [(event.asset_key, event.partition) for event in events] == [(key, THIS_HOUR), (sealed, THIS_HOUR)]
            checks = [each for each in result.get_asset_check_evaluations() if each.asset_key == key]
            assert [(each.check_name, each.partition, each.passed) for each in checks] == [
                ("offsets_contiguous", THIS_HOUR, True)
            ]
            (newest,) = fleet.instance.fetch_materializations(key, limit=1).records
            checked = checks[0].target_materialization_data
            assert checked is not None
            assert checked.storage_id == newest.storage_id
            assert materialisations(fleet.instance, sealed)[-1].metadata["sealed_up_to"].value == THIS_HOUR

    def test_a_record_that_arrives_late_is_landed_by_the_next_run(self, lake: Lake, fleet: Fleet) -> None:
        following = hours.shift(THIS_HOUR, 1)
        assert fleet.land(f"{THIS_HOUR}..{following}").success
        fleet.lake.produce(fleet.topics[0], values(3), at(THIS_HOUR, 5))
        fleet.lake.session = lake.session
        assert fleet.land(f"{THIS_HOUR}..{following}").success
        assert fleet.materialised(fleet.key(fleet.topics[0]))[-1] == (following, 3)
        assert fleet.materialised(fleet.key(fleet.topics[1]))[-1] == (following, 0)
