"""`s3lake check`: what it shows of a configuration, and what `--connect` reports of its topics."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from s3lake import hours
from s3lake.cli.connection_checks import check_topics
from s3lake.config import native
from s3lake.errors import ConfigurationError
from s3lake.source.kafka import offsets
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake.source.sources import open_source
from s3lake_tests.conftest import slow_after
from s3lake_tests.kit.console import Run
from s3lake_tests.kit.lake import NOBODY, Lake
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.records.schema.registry.apicurio import Apicurio
from s3lake_tests.records.schema.registry.server import SchemaRegistry

QUICKSTART = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"


class TestCheck:
    def test_shows_each_sink_in_short(self, run: Run, offline: Path) -> None:
        outcome = run("check", offline)
        assert outcome.code == 0
        for line in ("sink events", "topics +orders", "format +json none", "flush +128MiB, at latest after 5m"):
            assert re.search(line, outcome.out), outcome.out
        assert re.search(r"key +orders/date=2026-01-05/hour=00/0-000000000000\.json", outcome.out)

    def test_shows_every_setting_that_was_made_and_where_it_was_read_from(self, run: Run, offline: Path) -> None:
        rows = run("check", offline).out.splitlines()
        (name,) = [row for row in rows if row.startswith("sinks.0.name ")]
        assert re.search(r"events +\S+/s3lake\.yaml:\d+:\d+ sinks\[0\]\.name", name)
        assert not any(row.startswith("sinks.0.flush.size ") for row in rows)

    def test_all_shows_defaults_too(self, run: Run, offline: Path) -> None:
        assert re.search(r"sinks\.0\.flush\.size +128MiB +default", run("check", offline, "--all").out)

    def test_shows_where_the_default_of_a_connector_differs(self, run: Run) -> None:
        quickstart = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"
        outcome = run("check", quickstart)
        assert re.search(r"sinks\.0\.prefix +topics +default", outcome.out), outcome.out

    def test_gives_the_effective_configuration_as_json(self, run: Run, offline: Path) -> None:
        effective, summary = run("check", offline, "--json").rows
        (sink,) = effective["sinks"]
        assert sink["flush"] == {"count": None, "size": "128MiB", "interval": "5m", "span": None, "merge": True}
        assert (sink["from"], sink["index"]) == ("start", {"prefix": ".indexes", "name": None})
        assert (summary["sink"], summary["topics"], summary["bucket"]) == ("events", ["orders"], "lake")

    def test_tables_alone_need_no_kafka(self, run: Run, offline: Path) -> None:
        offline.write_text("sinks: [{name: tables, bucket: lake, start: 2026-01-05T08, format: {type: parquet}}]\n")
        outcome = run("check", offline)
        assert outcome.code == 0, outcome.err
        with pytest.raises(ConfigurationError, match="no sink of the configuration has topics"):
            open_source(native.load_text(offline.read_text(), "f")).offsets.topics()

    def test_a_sink_without_topics_is_a_notice(self, run: Run, offline: Path) -> None:
        offline.write_text(NOBODY.replace("topics: [orders], ", ""))
        outcome = run("check", offline)
        assert "sink events: it has no topics: only tables that assets return land there" in " ".join(
            (outcome.out + outcome.err).split()
        )

    @pytest.mark.parametrize(
        ("pattern", "shown"),
        [
            ("'dt'=YYYY-MM-dd/'hr'=hh", True),
            ("'hour'=YYYY-MM-dd-HH", False),
            ("'dt'=YYYY-MM-dd/'hr'=hh-a", False),
            ("'hh'=YYYY-MM-dd/HH", False),
        ],
    )
    def test_an_hour_of_twelve_without_its_half_of_the_day_is_a_notice(
        self, pattern: str, shown: bool, run: Run, tmp_path: Path
    ) -> None:
        partitioner = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner"
        more = {"partitioner.class": partitioner, "path.format": pattern, "locale": "en-US", "timezone": "UTC"}
        lines = [*QUICKSTART.read_text().splitlines(), *(f"{name}={value}" for name, value in more.items())]
        names = [*more, "partition.duration.ms"]
        path = tmp_path / "sink.properties"
        kept = [line for line in lines[: -len(more)] if line.split("=")[0].strip() not in names]
        path.write_text("\n".join([*kept, *lines[-len(more) :], "partition.duration.ms=3600000"]))
        outcome = run("check", path)
        text = " ".join((outcome.out + outcome.err).split())
        assert outcome.code == 0, text
        assert ("has an hour of twelve and no half of the day (a)" in text) is shown

    @pytest.mark.parametrize(
        ("elements", "shown"),
        [
            ("_date.yyyy-MM-dd, _date.hh", True),
            ("_date.yyyy-MM-dd-KK", True),
            ("_date.yyyy-MM-dd, _date.hh, _date.a", False),
            ("_date.yyyy-MM-dd, _date.HH", False),
        ],
    )
    def test_an_element_with_an_hour_of_twelve_and_no_half_of_the_day_is_a_notice(
        self, elements: str, shown: bool, run: Run, offline: Path
    ) -> None:
        layout = f"layout: {{partition_by: [{elements}]}}"
        offline.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, {layout},"))
        outcome = run("check", offline)
        text = " ".join((outcome.out + outcome.err).split())
        assert outcome.code == 0, text
        assert ("has an hour of twelve and no half of the day (a)" in text) is shown

    def test_columns_of_values_that_bring_a_schema_are_a_notice(self, run: Run, offline: Path) -> None:
        for converter, shown in (("connect_json", True), ("json", False)):
            more = f"format: {{type: parquet}}, converter: {{value: {converter}}}, columns: {{at: timestamp_us}}"
            offline.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, {more},"))
            outcome = run("check", offline)
            text = " ".join((outcome.out + outcome.err).split())
            assert ("columns are for values that come without a schema" in text) is shown

    def test_nulls_that_a_transform_makes_and_the_sink_leaves_out_are_a_notice(self, run: Run, offline: Path) -> None:
        unwrap = "{type: ExtractNewRecordState, options: {delete.tombstone.handling.mode: MODE}}"
        for mode, shown in (("tombstone", True), ("rewrite", False)):
            written = f"bucket: lake, transforms: [{unwrap.replace('MODE', mode)}],"
            offline.write_text(NOBODY.replace("bucket: lake,", written))
            outcome = run("check", offline)
            text = " ".join((outcome.out + outcome.err).split())
            reason = "ExtractNewRecordState makes records without a value, which nulls: skip leaves out"
            assert (reason in text) is shown

    def test_strict_refuses_a_configuration_that_has_notices(self, run: Run, offline: Path) -> None:
        notice = re.search(r"notice: (.+)", run("check", QUICKSTART).out)
        assert notice
        outcome = run("check", QUICKSTART, "--strict")
        assert outcome.code == 2
        assert notice[1] in outcome.err
        assert run("check", offline, "--strict").code == 0
        offline.write_text(NOBODY.replace("bucket: lake,", "bucket: lake, exactly_once: false,"))
        assert run("check", offline, "--strict").code == 2

    def test_names_a_placeholder_and_a_default_of_the_connector_as_what_they_are(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("S3LAKE_START", raising=False)
        shown = run("check", QUICKSTART).out
        assert re.search(r"sinks\.0\.start +\S+ +placeholder: environment variable S3LAKE_START is not set", shown)
        assert re.search(r"sinks\.0\.flush\.interval +1h +default of the connector", shown)
        assert not re.search(r" default$", shown, re.MULTILINE)

    def test_prints_notices_that_other_commands_only_count(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("S3LAKE_START", "2026-11-20T00")
        monkeypatch.setenv("S3LAKE_BOOTSTRAP_SERVERS", "127.0.0.1:1")
        notices = run("check", QUICKSTART).out.count("notice: ")
        outcome = run("iam", QUICKSTART)
        assert f"the configuration has {notices} notices: `s3lake check` prints them" in " ".join(outcome.err.split())
        assert QUICKSTART.name not in outcome.err

    def test_opens_each_destination_that_hours_are_forwarded_to(self, run: Run, offline: Path) -> None:
        forward = "{to: postgres, options: {conninfo: 'host=db password=hunter2-pg', table: 'a;b'}}"
        offline.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, forwards: [{forward}],"))
        outcome = run("check", offline)
        assert outcome.code == 2
        assert "sink events: forwards[0]: table 'a;b'" in outcome.err
        offline.write_text(offline.read_text().replace("a;b", "lake.orders"))
        outcome = run("check", offline)
        assert outcome.code == 0
        assert re.search(r"forwards +postgres", outcome.out)
        assert "hunter2" not in outcome.out + outcome.err

    def test_lists_settings_without_effect_in_one_line_and_with_reasons_on_request(self, run: Run) -> None:
        strimzi = Path(__file__).parents[1] / "config" / "public" / "plugin-version.json"
        short, long = run("check", strimzi).out, run("check", strimzi, "--all").out
        assert "without effect here: tasks.max.enforce, connector.plugin.version (--all shows why)" in short
        assert "s3lake has no plugins" not in short
        assert re.search(r"connector\.plugin\.version +s3lake has no plugins", long)

    def test_connect_reports_what_does_not_answer(
        self, run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hasty = functools.partial(offsets.KafkaSource, timeout_s=0.2)
        monkeypatch.setattr(offsets, "KafkaSource", lambda settings, _: hasty(settings))
        outcome = run("check", offline, "--connect", "--json")
        assert outcome.code == 3
        expected = {row["check"]: row["outcome"] for row in outcome.rows if "check" in row}
        assert list(expected) == [
            "kafka 127.0.0.1:1",
            "topics",
            "bucket lake of sink events",
            "conditional writes in bucket lake of sink events",
            "uploads in bucket lake of sink events",
        ]
        kafka, topics, bucket, *trials = expected.values()
        assert "127.0.0.1:1" in kafka
        assert "127.0.0.1:1" in bucket
        assert {topics, *trials} == {"not tried, because an earlier check failed"}
        assert "hunter2" not in outcome.out

    def test_connect_ends_with_0_if_everything_answers(self, run: Run, lake: Lake, tmp_path: Path) -> None:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}']"))
        outcome = run("check", path, "--connect")
        assert outcome.code == 0
        assert outcome.out.count(": ok\n") == 5
        assert lake.uploads() == []
        assert lake.objects(".indexes") == []

    def test_connect_asks_the_brokers_for_the_dead_letter_topic_and_creates_none(
        self, run: Run, lake: Lake, tmp_path: Path
    ) -> None:
        path, dead = tmp_path / "s3lake.yaml", f"{lake.topic()}-dead"

        def check(factor: int) -> tuple[int, str]:
            dead_letters = (
                f"errors: {{tolerance: all, dead_letter_topic: {{name: {dead}, replication_factor: {factor}}}}}"
            )
            path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}'], {dead_letters}"))
            outcome = run("check", path, "--connect")
            (line,) = [line for line in outcome.out.splitlines() if line.startswith("dead letter topic")]
            return outcome.code, line

        code, line = check(3)
        assert code == 3
        assert "cannot be created: " in line
        assert "set errors.dead_letter_topic.replication_factor to at most the number of brokers" in line
        assert check(1) == (0, f"dead letter topic {dead} of sink events: ok")
        assert check(3)[0] == 3, "the check has not created it"

    def test_connect_tries_the_table_of_a_sink_and_where_it_is_forwarded_to(
        self, run: Run, lake: Lake, tmp_path: Path
    ) -> None:
        path = tmp_path / "s3lake.yaml"
        table = f"table: {{catalog: {{type: sql, uri: 'sqlite:///{tmp_path}/catalog.db'}}, name: lake.events}}"
        forwards = (
            "forwards: [{to: postgres, options: {conninfo: 'postgresql://u:hush@127.0.0.1:1/lake', table: events}}]"
        )
        sink = f"name: events, topics: ['{lake.topic()}'], format: {{type: parquet}}, {table}, {forwards}"
        path.write_text(lake.config_text(sink))
        outcome = run("check", path, "--connect")
        assert outcome.code == 3
        assert "table of sink events: ok\n" in outcome.out
        assert "notice: table lake.events of sink events does not exist yet" in outcome.out
        assert re.search(
            r"forward \S+ of sink events: postgres 127.0.0.1:1/lake table events: .*127\.0\.0\.1", outcome.out
        )
        assert "hush" not in outcome.out

    def test_connect_looks_for_the_subjects_of_each_topic(
        self, run: Run, lake: Lake, registry: SchemaRegistry, tmp_path: Path
    ) -> None:
        path, known, by_record, unknown = tmp_path / "s3lake.yaml", lake.topic(), lake.topic(), lake.topic()
        for subject in (f"{known}-value", f"{by_record}-com.acme.Order"):
            registry.add("string", subject=subject)
        converter = f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}"
        path.write_text(lake.config_text(f"name: events, topics: ['{known}', '{by_record}', '{unknown}'], {converter}"))
        outcome = run("check", path, "--connect")
        assert (outcome.code, f"registry {registry.url} of sink events: ok\n" in outcome.out) == (0, True)
        missing = [topic for topic in (known, by_record, unknown) if f"no subject {topic}-value" in outcome.out]
        assert missing == [unknown]

    def test_connect_reports_a_registry_that_does_not_list_its_subjects(
        self, run: Run, lake: Lake, registry: SchemaRegistry, tmp_path: Path
    ) -> None:
        path = tmp_path / "s3lake.yaml"
        converter = f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}"
        path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}'], {converter}"))
        registry.answers = [(404, b'{"error_code":40403,"message":"Schema 1 not found"}'), (403, b"{}")]
        outcome = run("check", path, "--connect")
        assert (outcome.code, "the registry does not list its subjects" in outcome.out) == (0, True)

    @pytest.mark.slow("a real registry")
    def test_connect_looks_for_subjects_in_a_real_registry_and_registers_none(
        self, run: Run, lake: Lake, apicurio: Apicurio, tmp_path: Path
    ) -> None:
        path, known, unknown = tmp_path / "s3lake.yaml", lake.topic(), lake.topic()
        apicurio.register(f"{known}-value", '{"type": "string"}')
        converter = f"converter: {{value: avro, registry: {{url: '{apicurio.url}'}}}}"
        path.write_text(lake.config_text(f"name: events, topics: ['{known}', '{unknown}'], {converter}"))
        for _ in range(2):  # the second finds nothing that the first has registered
            outcome = run("check", path, "--connect")
            assert (outcome.code, f"no subject {unknown}-value" in outcome.out) == (0, True)
            assert f"no subject {known}-value" not in outcome.out

    @pytest.mark.usefixtures("jvm")
    @pytest.mark.slow("starts Spark")
    def test_connect_runs_a_job_of_spark_if_asked(self, run: Run, lake: Lake, tmp_path: Path) -> None:
        path = tmp_path / "s3lake.yaml"
        text = lake.config_text(f"name: events, topics: ['{lake.topic()}']")
        path.write_text(text)
        outcome = run("check", path, "--connect", "--spark")
        assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "Spark at local[2]: ok")

    def test_connect_reports_a_spark_server_that_does_not_answer(
        self, run: Run, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "s3lake.yaml"
        text = lake.config_text(f"name: events, topics: ['{lake.topic()}']")
        path.write_text(text.replace("local[2]", "sc://127.0.0.1:1"))
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)  # other tests' session
        outcome = run("check", path, "--connect", "--spark")
        assert outcome.code == 3
        assert "Spark at sc://127.0.0.1:1: no Spark Connect server answers at 127.0.0.1:1" in outcome.out

    def test_spark_without_connect_is_refused(self, run: Run, offline: Path) -> None:
        outcome = run("check", offline, "--spark")
        assert (outcome.code, "--spark is an option of --connect: give both" in outcome.err) == (2, True)

    def test_connect_reads_metadata_back_without_exactly_once_too(self, run: Run, lake: Lake, tmp_path: Path) -> None:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}'], exactly_once: false"))
        outcome = run("check", path, "--connect")
        assert (outcome.code, f"metadata in bucket {lake.bucket} of sink events: ok\n" in outcome.out) == (0, True)

    @pytest.mark.parametrize("exactly_once", slow_after(1, "the same request", ["true", "false"]))
    def test_connect_finds_that_the_bucket_does_not_exist(
        self, exactly_once: str, run: Run, lake: Lake, tmp_path: Path
    ) -> None:
        lake.bucket = "missing-with-the-wind"
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: [orders], exactly_once: {exactly_once}"))
        outcome = run("check", path, "--connect")
        assert outcome.code == 3
        assert re.search("bucket missing-with-the-wind of sink events: .*NoSuchBucket", outcome.out)


FIRST = "2026-11-20T05"
NOW_MS = hours.start_ms("2026-11-20T09")
IN_2199_MS = 7_226_582_400_000


@dataclass
class Logs:
    """Topics of one topic-partition each, by the timestamps of their records."""

    stamps: Mapping[str, list[int]]

    def topics(self) -> list[str]:
        return sorted(self.stamps)

    def snapshot(self, topic: str, hour: str) -> TopicOffsets:
        if topic not in self.stamps:
            return TopicOffsets("", {})
        since, after = self._first(topic, hours.start_ms(hour)), self._first(topic, hours.end_ms(hour))
        stamps = self.stamps[topic]
        stamp = stamps[after] if after < len(stamps) else None
        return TopicOffsets("id", {0: LogRange(0, len(stamps), since, after, next_stamp_ms=stamp)})

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        return {0: self._first(topic, epoch_ms)}

    def _first(self, topic: str, epoch_ms: int) -> int:
        stamps = self.stamps[topic]
        return next((at for at, stamp in enumerate(stamps) if stamp >= epoch_ms), len(stamps))


def check(stamps: Mapping[str, list[int]], **settings: Any) -> list[str]:
    """The notices of a sink called events."""
    sink = make_sink(**{"start": FIRST, **settings})
    return check_topics([sink], Logs(stamps), NOW_MS)  # type: ignore[arg-type]


def test_a_topic_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match=r"events: topic 'ordrs' does not exist.*did you mean 'orders'\?"):
        check({"orders": [], "clicks": []}, topics=["ordrs", "clicks"])


IN_SECONDS = [hours.start_ms(FIRST) // 1000] * 100


@pytest.mark.parametrize(
    ("stamps", "settings", "notices"),
    [
        ([hours.start_ms(FIRST), NOW_MS, NOW_MS + 1_800_000], {}, []),
        ([], {"topics": ["ordrs"], "missing_topic": "wait"}, ["topic 'ordrs' does not exist"]),
        ([], {"topics": [], "topics_regex": "clicks-.*"}, ["topics_regex clicks-.* matches no topic yet"]),
        (IN_SECONDS, {}, [f"topic 'orders': 100 offsets are before {FIRST}"]),
        (IN_SECONDS, {"from": "earliest"}, []),
        (
            [NOW_MS, IN_2199_MS, NOW_MS],
            {},
            ["topic 'orders': offset 1 of partition 0 is stamped 2199-01-01T00:00:00Z"],
        ),
    ],
)
def test_topics_that_are_not_as_expected_are_noticed(stamps: list[int], settings: Any, notices: list[str]) -> None:
    found = check({"orders": stamps}, **settings)
    assert [notice[: len("sink events: ") + len(text)] for notice, text in zip(found, notices, strict=True)] == [
        f"sink events: {text}" for text in notices
    ]
