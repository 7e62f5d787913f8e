"""The guides by the letter: the files and commands of a page, in its order, on a real Kafka and S3.

Replaced are addresses, the hour from which on, and what is done elsewhere: the connector that ran before has left what
`preview` shows, and an hour is materialised by the code location's job instead of by a click.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from confluent_kafka import Consumer, TopicPartition

from s3lake import definitions, hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake_tests.docs.code_blocks import CodeBlock, find_blocks, read_title
from s3lake_tests.kit.console import script
from s3lake_tests.kit.lake import Lake
from s3lake_tests.land.adopt.buckets import lock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow("each guide as it is written, from its first command to its last")

IGGY = re.compile(r"(IGGY_CONNECTORS_IGGY_\w+=\S+ ?)+")
"""Where Iggy is, which is in no package registry: its page runs over streams that are mirrored in Kafka."""
START = re.compile(r'(start: |start = "|START=|--from )(2026-11-\d\dT\d\d|\$\(date -u \+%Y-%m-%dT00\))')
LOCK = ".indexes/orders-lake/.locks/Topic(orders)/0.lock"
DEAD_LETTERS = "orders-dead-letters"


@dataclass
class Guide:
    """A page that is followed in an empty directory, and what each command printed."""

    page: str
    lake: Lake
    record: dict[str, Any]
    start: str
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    printed: dict[str, str] = field(default_factory=dict)

    def follow(self) -> None:
        """Do the steps of the page, from the top to the end."""
        for block in find_blocks("yaml", "json", "properties", "toml", "console", "text"):
            if block.document == self.page:
                (self._commands if block.language == "console" else self._shown)(block)

    def _shown(self, block: CodeBlock) -> None:
        text, path = self._own(block.text), Path(read_title(block).split('"')[0].split(",")[0])
        if block.language == "text":
            assert list(self.printed.values())[-1] == text
        elif not path.exists():
            path.write_text(text)
        elif "at its end" in block.title:
            path.write_text(path.read_text() + text)
        elif "iggy" not in self.page:  # which shows what streams of Iggy's own come to
            assert path.read_text() == text

    def _own(self, text: str) -> str:
        """With a reader's own addresses, hour and, in the name of an object, day."""
        text = IGGY.sub("S3LAKE_BOOTSTRAP_SERVERS=kafka:9092 ", text)
        text = text.replace("kafka:9092", self.lake.kafka.bootstrap_servers)
        text = text.replace("/2026-11-22/", f"/{hours.key_of_ms(hours.now_ms())[:10]}/")
        return START.sub(rf"\g<1>{self.start}", text)

    def _commands(self, block: CodeBlock) -> None:
        for line in self._own(block.text).splitlines():
            program, *words = shlex.split(line.removeprefix("$ "), comments=True)
            match program:
                case "export":
                    for name, _, value in (word.partition("=") for word in words):
                        self.monkeypatch.setenv(name, value)
                case "dagster":
                    self.materialise()
                case "s3lake":
                    self.run(" ".join(words))
                case _:
                    assert program == "pip"  # what is tested is installed

    def run(self, command: str) -> str:
        """What a command of s3lake prints, which is fine."""
        command, _, path = command.partition(" > ")
        if command.startswith("adopt") and not command.endswith("--yes"):
            self.stop_the_connector()
        outcome = script(self.monkeypatch, self.capsys)(*command.split())
        assert outcome.code == 0, f"s3lake {command}: {outcome}"
        if path:
            Path(path).write_text(outcome.out)
        noticed = outcome.err if command.startswith("check") else ""
        self.printed[command] = outcome.out + noticed
        return outcome.out

    def produce(self, stamp_ms: int) -> None:
        """Three records like the page's own, of this time."""
        value = json.dumps(self.record["value"]).encode()
        self.lake.produce(self.record["topic"], [value] * 3, stamp_ms)

    def materialise(self) -> None:
        """The hour under way, to which records have come, by the job of the code location that `dagster dev` loads."""
        now = hours.now_ms()
        self.produce(now)
        [job] = [job for job in definitions.defs().get_repository_def().get_all_jobs() if job.name.startswith("land_")]
        with dg.DagsterInstance.ephemeral() as instance:
            assert job.execute_in_process(instance=instance, partition_key=hours.key_of_ms(now)).success

    def stop_the_connector(self) -> None:
        """It has landed the page's record, and what it leaves shows it."""
        [path] = [path for path in Path("objects").rglob("*") if path.is_file()]
        self.lake.store.put(path.relative_to("objects").as_posix(), path.read_bytes())
        if "lenses" in self.page:
            self.lake.store.put(LOCK, json.dumps(lock(0)).encode())
        servers = self.lake.kafka.bootstrap_servers
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "connect-orders-lake"})
        consumer.commit(offsets=[TopicPartition(self.record["topic"], 0, 1)], asynchronous=False)
        consumer.close()


@pytest.fixture
def guide(
    request: pytest.FixtureRequest,
    kafka: EmbeddedKafka,
    s3_server: EmbeddedS3,
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Guide]:
    """A page, with the topic and the bucket that it names; nothing is left of them."""
    lake, page = Lake(kafka, s3_server, lambda: spark, "lake"), f"docs/{request.param}.md"
    [shown] = [
        block.text for block in find_blocks("json") if block.document == page and read_title(block) == "records.jsonl"
    ]
    record = json.loads(shown)
    lake.topic(1, record["topic"])
    lake.topic(1, DEAD_LETTERS)  # a connector has made it, on as many brokers as it had
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", kafka.bootstrap_servers)
    store = {
        "AWS_ENDPOINT_URL_S3": s3_server.endpoint_url,
        "AWS_ACCESS_KEY_ID": s3_server.access_key_id,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_access_key,
    }
    for name, value in store.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)  # its JVM was started before
    yield Guide(page, lake, record, hours.key_of_ms(hours.now_ms()), monkeypatch, capsys)
    lake.delete(record["topic"])
    lake.delete(DEAD_LETTERS)
    for key in lake.store.list(""):
        lake.client.delete_object(Bucket="lake", Key=key)
    lake.client.delete_bucket(Bucket="lake")


@pytest.mark.parametrize("guide", ["first-sink"], indirect=True)
def test_the_first_sink_lands_every_hour_and_goes_on_in_dagster(guide: Guide) -> None:
    present = guide.start
    guide.start, before = hours.shift(present, -2), hours.shift(present, -1)
    for hour in (guide.start, before):
        guide.produce(hours.start_ms(hour))
    guide.follow()
    checked, connected, previewed, landed, verified = guide.printed.values()
    assert re.search(r"sinks\.0\.bucket +lake +s3lake\.yaml:\d+:\d+ sinks\[0\]\.bucket", checked)
    assert connected.count(": ok\n") == 5
    assert Path("objects", previewed.split()[0]).is_file()
    assert [line.split(" = ")[0] for line in landed.splitlines()][:2] == [
        f"first orders {guide.start}: 3 offsets",
        f"first orders {before}: 3 offsets",
    ]
    assert "compared 9 records of Kafka: 9 landed" in verified
    guide.produce(hours.now_ms())
    assert guide.start not in guide.run("land s3lake.yaml"), "only what is new is landed"
    assert re.search(rf"{guide.start} +sealed +3 +3 +1 ", guide.run("index show s3lake.yaml"))
    assert "compared 12 records of Kafka: 12 landed" in guide.run("verify s3lake.yaml --allow-open")


@pytest.mark.parametrize(
    "guide", ["migrate/confluent", "migrate/lenses", "migrate/aiven", "migrate/iggy"], indirect=True
)
def test_the_page_of_a_connector_leads_from_its_file_to_an_hour_without_gap_and_duplicate(guide: Guide) -> None:
    value = json.dumps(guide.record["value"]).encode()
    guide.lake.produce(guide.record["topic"], [value], guide.record["timestamp"])  # which the connector has landed
    guide.follow()
    checked, _, connected, policy, *adopted, verified, _ = guide.printed.values()
    file = next(iter(guide.printed)).removeprefix("check ")
    assert re.search(rf"sinks\.0\.bucket +lake +{file}:\d+:\d+ ", checked)
    assert re.search(rf"notice: {file}:\d+:\d+: ", checked)
    assert connected.count(": ok\n") == 5 + ("dead letter topic" in connected)
    assert json.loads(policy)["Statement"][0]["Resource"] == "arn:aws:s3:::lake"
    for done, text in zip(["would be adopted", "adopted"], adopted, strict="iggy" not in guide.page):
        assert f"{done} in hour" in text
        assert ": topic-partition 0 at 1 (" in text
    assert "compared 3 records of Kafka: 3 landed" in verified
    assert re.search(r"T\d\d +\w+ +3 +3 +1 ", guide.run(f"index show {file}"))


@pytest.mark.parametrize("guide", ["your-connector"], indirect=True)
def test_the_page_of_the_path_lands_what_came_after_the_connector(guide: Guide) -> None:
    value = json.dumps(guide.record["value"]).encode()
    guide.lake.produce(guide.record["topic"], [value], guide.record["timestamp"])  # which the connector has landed
    guide.produce(hours.now_ms())
    guide.follow()
    checked, connected, previewed, would_adopt, adopted, landed, verified = guide.printed.values()
    assert re.search(r"sinks\.0\.bucket +lake +connector\.json:\d+:\d+ ", checked)
    assert connected.count(": ok\n") == 5
    assert previewed.startswith("raw/orders/partition=0/orders+0+0000000000.json ")
    assert "would be adopted in hour" in would_adopt
    assert ": topic-partition 0 at 1 (" in adopted
    assert f"orders-lake orders {guide.start}: 3 offsets = 3 rows" in landed
    assert "compared 3 records of Kafka: 3 landed" in verified
