"""What Dagster gets from a configuration."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.repository_definition import RepositoryDefinition

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config
from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.index.store.memory import MemoryStore
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration import dagster_names, sink_topics
from s3lake.orchestration.build import build_definitions
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake_tests.orchestration import instances

EVENTS = "{name: events, topics: [orders], bucket: lake, prefix: raw, start: 2026-01-05T00}"


def config(*sinks: str, examples: bool = False) -> Config:
    lines = [
        "kafka: {bootstrap_servers: '127.0.0.1:1'}",
        "s3: {endpoint_url: http://127.0.0.1:1, credentials: {access_key_id: ID, secret_access_key: SECRET}}",
        f"examples: {str(examples).lower()}",
        "sinks:",
        *(f"  - {sink}" for sink in sinks or (EVENTS,)),
    ]
    return native.load_text("\n".join(lines), "test.yaml")


def repository(*sinks: str, examples: bool = False) -> RepositoryDefinition:
    return build_definitions(config(*sinks, examples=examples)).get_repository_def()


def sink_spec(key: str = "s3/events/orders", *sinks: str) -> dg.AssetSpec:
    asset = dg.AssetKey(key.split("/"))
    return repository(*sinks).assets_defs_by_key[asset].get_asset_spec(asset)


def requests(schedule: dg.ScheduleDefinition, year: int, month: int, day: int, hour: int) -> Sequence[dg.RunRequest]:
    """What a schedule asks for at six minutes past an hour."""
    now = datetime(year, month, day, hour, 6, tzinfo=timezone.utc)
    with instances.in_files() as instance, dg.build_schedule_context(instance, scheduled_execution_time=now) as at:
        return schedule.evaluate_tick(at).run_requests or ()


class TestTopics:
    def test_a_topic_is_an_external_asset(self) -> None:
        node = repository().asset_graph.get(dg.AssetKey(["kafka", "orders"]))
        assert node.is_external
        assert not node.is_materializable
        assert node.kinds == {"kafka"}
        assert node.group_name == "kafka"

    def test_a_topic_of_two_sinks_is_one_asset_with_one_sensor(self) -> None:
        both = repository(EVENTS, "{name: copy, topics: [orders], bucket: lake, prefix: copy, start: 2026-01-05T00}")
        keys = {key.to_user_string() for key in both.asset_graph.get_all_asset_keys()}
        sealed = {"s3/events/orders_sealed", "s3/copy/orders_sealed"}
        assert keys == {"kafka/orders", "s3/events/orders", "s3/copy/orders", *sealed}
        sensors = ["follow_other_zones", "in_time_copy", "in_time_events", "kafka_orders"]
        assert sorted(sensor.name for sensor in both.sensor_defs) == sensors

    def test_a_topic_may_have_every_character_that_kafka_allows(self) -> None:
        built = repository("{name: my-sink, topics: [orders.v1-eu], bucket: lake, start: 2026-01-05T00}")
        assert built.asset_graph.has(dg.AssetKey(["s3", "my-sink", "orders.v1-eu"]))
        assert built.has_sensor_def("kafka_orders_v1_eu")
        assert built.has_job("land_my_sink")
        assert built.has_schedule_def("hourly_my_sink")


class TestSinkAssets:
    def test_lineage_goes_from_kafka_to_the_sink_to_its_sealed_hours_to_the_example(self) -> None:
        graph = repository(
            "{name: events, topics: [orders], bucket: lake, start: 2026-01-05T00, format: {type: parquet}}",
            examples=True,
        ).asset_graph
        landed = graph.get(dg.AssetKey(["s3", "events", "orders"]))
        assert landed.parent_keys == {dg.AssetKey(["kafka", "orders"])}
        example = dg.AssetKey(["example", "events", "orders_by_type"])
        assert landed.child_keys == {dg.AssetKey(["s3", "events", "orders_sealed"]), example}
        assert graph.get(dg.AssetKey(["s3", "events", "orders_sealed"])).child_keys == {example}

    def test_sealed_hours_are_materialised_by_no_other_process_and_are_hours_that_are_over(self) -> None:
        sealed = repository(EVENTS).asset_graph.get(dg.AssetKey(["s3", "events", "orders_sealed"]))
        assert sealed.is_external
        assert not sealed.is_materializable
        with dg.partition_loading_context(hours.parse_hour("2026-01-05T03")):
            assert sealed.partitions_def is not None
            assert list(sealed.partitions_def.get_partition_keys()) == list(
                hours.span("2026-01-05T00", "2026-01-05T02")
            )

    def test_the_example_is_for_files_with_columns_only(self) -> None:
        graph = repository(EVENTS, examples=True).asset_graph
        assert not [key for key in graph.get_all_asset_keys() if key.path[0] == "example"]

    def test_has_the_group_of_its_sink_the_kind_of_its_files_and_the_place_where_it_lands(self) -> None:
        spec = sink_spec("s3/my-sink/orders", EVENTS.replace("name: events", "name: my-sink, format: {type: parquet}"))
        assert (spec.group_name, spec.kinds) == ("my_sink", {"s3", "pyspark", "parquet"})
        place = {name: spec.metadata[name] for name in ("topic", "bucket", "prefix")}
        assert place == {"topic": "orders", "bucket": "lake", "prefix": "raw"}

    def test_each_sink_and_topic_has_a_pool(self) -> None:
        built = repository(EVENTS.replace("[orders]", "[orders, clicks.v1]"))
        pools = {
            pool
            for definition in built.assets_defs_by_key.values()
            if definition.is_materializable
            for pool in definition.node_def.pools
        }
        assert pools == {"s3lake_events_orders", "s3lake_events_clicks_v1"}


class TestPartitions:
    def test_are_the_hours_of_the_index_in_utc_up_to_the_current_one(self) -> None:
        partitions = sink_spec().partitions_def
        assert isinstance(partitions, dg.HourlyPartitionsDefinition)
        assert (partitions.fmt, partitions.timezone) == ("%Y-%m-%dT%H", "UTC")
        now = datetime(2026, 1, 5, 3, 59, 59, tzinfo=timezone.utc)
        assert partitions.get_partition_keys(current_time=now) == list(hours.span("2026-01-05T00", "2026-01-05T03"))
        window = partitions.time_window_for_partition_key("2026-01-05T02")
        assert int(window.start.timestamp() * 1000) == hours.start_ms("2026-01-05T02")
        assert int(window.end.timestamp() * 1000) == hours.end_ms("2026-01-05T02")

    @pytest.mark.parametrize(
        ("setting", "policy"),
        [
            ("", dg.BackfillPolicy.multi_run(24)),
            (", hours_per_run: 6", dg.BackfillPolicy.multi_run(6)),
            (", hours_per_run: null", dg.BackfillPolicy.single_run()),
        ],
    )
    def test_are_landed_by_a_backfill_as_many_a_run_as_the_sink_allows(
        self, setting: str, policy: dg.BackfillPolicy
    ) -> None:
        built = repository(EVENTS.replace("}", f"{setting}}}"))
        assert built.assets_defs_by_key[dg.AssetKey(["s3", "events", "orders"])].backfill_policy == policy


class TestNameClashes:
    """Dagster's names are poorer than Kafka's: two things must not silently become one."""

    CLASHES: Mapping[str, Mapping[str, str]] = {
        "topics of one sink": {"events": "orders.v1, orders_v1"},
        "topics of two sinks": {"events": "orders-v1", "copy": "orders_v1"},
        "sink and topic": {"events": "a_orders", "events_a": "orders"},
        "jobs of two sinks": {"events": "orders", "together_events": "orders"},
    }

    @pytest.mark.parametrize("topics", CLASHES.values(), ids=CLASHES)
    def test_are_refused(self, topics: Mapping[str, str]) -> None:
        sinks = [
            f"{{name: {name}, topics: [{topics[name]}], bucket: lake, prefix: {name}, start: 2026-01-05T00}}"
            for name in topics
        ]
        with pytest.raises(ConfigurationError, match="would both be called"):
            build_definitions(config(*sinks))

    @pytest.mark.parametrize("topic", ["orders_sealed", "orders_dead_letters"])
    def test_a_topic_that_is_called_as_the_asset_next_to_another_is_refused(self, topic: str) -> None:
        sink = EVENTS.replace("[orders]", f"[orders, {topic}]").replace("}", ", errors: {tolerance: all}}")
        with pytest.raises(ConfigurationError, match=f"would both be the asset s3/events/{topic}: have the translator"):
            build_definitions(config(sink))


class TestJobsAndSchedules:
    def test_sinks_of_one_topic_may_differ_in_start_and_backfill_policy(self) -> None:
        built = repository(
            EVENTS,
            "{name: copy, topics: [orders], bucket: lake, prefix: b, start: 2026-01-01T00, hours_per_run: null}",
        )
        landing = {job.name for job in built.get_all_jobs() if job.name.startswith(("land_", "__"))}
        assert landing == {"land_events", "land_copy", "__ASSET_JOB"}

    @pytest.mark.parametrize(
        ("now", "runs"),
        [
            ((2026, 1, 7, 15), [("2026-01-07T14", "2026-01-07T15")]),
            ((2026, 1, 5, 0), [("2026-01-05T00", "2026-01-05T00")]),
            ((2026, 1, 4, 23), []),
        ],
        ids=["two hours", "no earlier than the sink", "before its start"],
    )
    def test_every_hour_the_one_before_and_the_one_under_way_are_one_run(
        self, now: tuple[int, int, int, int], runs: list[tuple[str, str]]
    ) -> None:
        found = requests(repository().get_schedule_def("hourly_events"), *now)
        assert [dagster_names.find_range(one.tags) for one in found] == runs

    @pytest.mark.parametrize(("grace", "cron"), [("5m", "6 * * * *"), ("0s", "1 * * * *"), ("3h", "59 * * * *")])
    def test_ticks_when_the_grace_of_the_hour_before_is_over(self, grace: str, cron: str) -> None:
        schedule = repository(EVENTS.replace("}", f", close_grace: {grace}}}")).get_schedule_def("hourly_events")
        assert schedule.cron_schedule == cron
        assert schedule.execution_timezone == "UTC"

    def test_every_night_every_topic_of_a_sink_is_cleaned(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryStore("lake")
        monkeypatch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: store)
        for topic in ("clicks", "orders"):
            index = TopicIndex(store, ".indexes/events", topic)
            hour = "2026-01-05T00"
            index.create(index.head_key, TopicHead(hours=((hour, hour),)))
            index.create(index.tile_key(hour), Tile(hour, {}))
            index.create(index.manifest_key(hour, "dead"), Manifest("dead", topic, hour, {}, created_ms=1))
        built = repository(EVENTS.replace("[orders]", "[orders, clicks]"))
        schedule = built.get_schedule_def("s3lake_daily_clean")
        assert (schedule.cron_schedule, schedule.execution_timezone) == ("40 3 * * *", "UTC")
        (request,) = requests(schedule, 2026, 1, 7, 0)
        assert built.get_job(schedule.job_name).execute_in_process(request.run_config).success
        assert [key for key in store.objects if "dead" in key] == []


class TestFleets:
    """Above a number of topics a sink has one sensor and one run for all."""

    @staticmethod
    def sink(count: int, more: str = "", name: str = "events") -> str:
        named = ", ".join(f"t{number}" for number in range(count))
        return f"{{name: {name}, topics: [{named}], bucket: lake, prefix: {name}, start: 2026-01-05T00{more}}}"

    def sensors(self, *sinks: str) -> set[str]:
        found = {sensor.name for sensor in repository(*sinks).sensor_defs}
        return {name for name in found if not name.startswith(("in_time_", "follow_other_zones"))}

    def test_are_sinks_of_more_than_ten_topics(self) -> None:
        assert self.sensors(self.sink(10)) == {f"kafka_t{number}" for number in range(10)}
        assert self.sensors(self.sink(11)) == {"sink_events"}

    @pytest.mark.parametrize(("setting", "together"), [("true", True), ("false", False)])
    def test_are_those_of_the_setting(self, setting: str, together: bool) -> None:
        expected = {"sink_events"} if together else {"kafka_t0", "kafka_t1"}
        assert self.sensors(self.sink(2, f", together: {setting}")) == expected

    def test_may_share_topics_with_other_sinks_which_keep_their_sensors(self) -> None:
        both = [self.sink(2, ", together: true"), self.sink(1, name="copy")]
        assert self.sensors(*both) == {"sink_events", "kafka_t0"}
        sensor = repository(*both).get_sensor_def("kafka_t0")
        assert [target.job_name for target in sensor.targets] == ["land_copy"]

    def test_have_a_schedule_that_lands_all_of_them_in_one_run(self) -> None:
        schedule = repository(self.sink(2, ", together: true")).get_schedule_def("hourly_events")
        (request,) = requests(schedule, 2026, 1, 7, 15)
        assert schedule.job_name == "land_together_events"
        config = request.run_config["ops"]["land_together_events_op"]["config"]
        assert config == {"hours": {"2026-01-07T14..2026-01-07T15": ["t0", "t1"]}}


class TestTopicsByExpression:
    SINK = "{name: events, topics_regex: 'shop[.].*', bucket: lake, start: 2026-01-05T00}"

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(sink_topics, "TIMEOUT_S", 0.05)

    @pytest.fixture
    def broker(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What the broker lists."""
        names: list[str] = []
        monkeypatch.setattr(KafkaOffsets, "topics", lambda _: list(names))
        return names

    def topics(self, *sinks: str) -> Mapping[str, list[str]]:
        return sink_topics.find_topics_of_sinks(config(*sinks))

    def test_are_those_that_the_whole_expression_fits(self, broker: list[str]) -> None:
        broker += ["shop.clicks", "shop.orders", "workshop.orders", "shop"]
        assert self.topics(self.SINK) == {"events": ["shop.clicks", "shop.orders"]}

    def test_named_topics_need_no_broker(self, tmp_path: Path) -> None:
        assert self.topics(EVENTS) == {"events": ["orders"]}
        assert list(tmp_path.iterdir()) == []

    def test_topics_are_missing_if_the_first_load_has_no_broker(self, caplog: pytest.LogCaptureFixture) -> None:
        assert self.topics(self.SINK) == {"events": []}
        assert "The topics of its last answer are used" in caplog.text

    def test_are_remembered_while_the_broker_is_down(self) -> None:
        with pytest.MonkeyPatch.context() as up:
            up.setattr(KafkaOffsets, "topics", lambda _: ["shop.orders"])
            assert self.topics(self.SINK) == {"events": ["shop.orders"]}
        assert self.topics(self.SINK) == {"events": ["shop.orders"]}

    def test_a_broker_that_is_down_is_waited_for_once_whatever_the_number_of_sinks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waits: list[KafkaOffsets] = []

        def down(asked: KafkaOffsets) -> list[str]:
            waits.append(asked)
            raise KafkaUnavailableError("away")

        monkeypatch.setattr(KafkaOffsets, "topics", down)
        others = [self.SINK.replace("events", f"s{n}").replace("shop", f"shop{n}") for n in range(8)]
        others = [one.replace("bucket: lake", f"bucket: lake{n}") for n, one in enumerate(others)]
        assert set(self.topics(*others)) == {f"s{n}" for n in range(8)}
        assert len(waits) == 1

    def test_nothing_fits_yet_then_there_is_no_asset_and_no_job(self, broker: list[str]) -> None:
        broker += ["orders"]
        built = build_definitions(config(self.SINK, EVENTS.replace("events", "other"))).get_repository_def()
        keys = {key.to_user_string() for key in built.asset_graph.get_all_asset_keys()}
        assert keys == {"kafka/orders", "s3/other/orders", "s3/other/orders_sealed"}
        assert not built.has_job("land_events")

    @pytest.mark.parametrize("text", ["{", '{"a": {"b": 1}}'])
    def test_a_damaged_memory_is_no_memory(self, text: str, tmp_path: Path, broker: list[str]) -> None:
        home = tmp_path / "home"
        home.mkdir()
        (home / "s3lake_topics.json").write_text(text)
        broker += ["shop.orders"]
        assert self.topics(self.SINK) == {"events": ["shop.orders"]}
        assert [one.name for one in home.iterdir()] == ["s3lake_topics.json"]

    def test_a_memory_that_cannot_be_kept_is_no_error(
        self, tmp_path: Path, broker: list[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "home").write_text("a file where the directory should be")
        broker += ["shop.orders"]
        assert self.topics(self.SINK) == {"events": ["shop.orders"]}
        assert "not remembered" in caplog.text
