"""Every example of the product documents, by the commands that a reader types: check, preview, land, verify."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.land.preview.record_lines import parse_records
from s3lake.text.quantities import format_count
from s3lake_tests.config.documents import NOON, load
from s3lake_tests.config.examples import EXAMPLES, HOUR, Example, registered
from s3lake_tests.kit.console import script
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow("each example of the documents; the table's keys are previewed by fast tests")]


@pytest.fixture
def environment(
    kafka: EmbeddedKafka, s3_server: EmbeddedS3, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set what a reader sets: Kafka, the S3 server, the start and secrets. The clock shows noon of the examples."""
    monkeypatch.setattr(hours, "time", SimpleNamespace(time=lambda: NOON / 1000))
    key, secret = s3_server.access_key_id, s3_server.secret_access_key
    monkeypatch.setenv("S3LAKE_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("S3LAKE_START", HOUR)
    monkeypatch.setenv("AWS_ACCESS_KEY", key)  # named by Lenses' example
    monkeypatch.setenv("AWS_SECRET_KEY", secret)
    stored = {"aws/access-key": key, "aws/secret-key": secret}  # named by Confluent's
    monkeypatch.setattr("s3lake.config.variables.SecretsManager.read", lambda _, name: stored[name])
    store = {"ENDPOINT_URL_S3": s3_server.endpoint_url, "ACCESS_KEY_ID": key, "SECRET_ACCESS_KEY": secret}
    for name, value in store.items():
        monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setitem(spark.sparkContext.environment, f"AWS_{name}", value)  # its JVM was started before


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_of_the_documents_lands_and_verifies(
    example: Example,
    kafka: EmbeddedKafka,
    s3_server: EmbeddedS3,
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, lines = str(tmp_path / "connector"), tmp_path / "records.jsonl"

    def run(command: str, *options: str) -> str:
        outcome = script(monkeypatch, capsys)(command, file, *options)
        assert outcome.code == 0, f"s3lake {command}: {outcome}"
        return outcome.out

    with registered(example) as (text, records):
        sinks = load(text, AWS_ACCESS_KEY="x", AWS_SECRET_KEY="x").config.sinks
        lake = Lake(kafka, s3_server, lambda: spark, sinks[0].bucket)
        dead_letters = [sink.errors.dead_letter_topic.name for sink in sinks if sink.errors.dead_letter_topic]
        topics = (
            {topic for sink in sinks for topic in sink.topics} | {row["topic"] for row in records} | set(dead_letters)
        )
        for topic in topics:
            lake.topic(1, topic)
        try:
            for record in parse_records(records):
                lake.producer.produce(
                    record.topic, record.value, record.key, 0, timestamp=record.timestamp, headers=list(record.headers)
                )
            assert lake.producer.flush(PATIENCE_S) == 0
            Path(file).write_text(text)
            lines.write_text("".join(json.dumps(row) + "\n" for row in records))
            run("check")
            previewed = [
                json.loads(line)["key"] for line in run("preview", "--records", str(lines), "--json").splitlines()
            ]
            run("land", "--from", HOUR, "--to", HOUR)
            verified = run("verify", "--from", HOUR, "--to", HOUR)
            assert f"compared {format_count(len(records), 'records of Kafka')}: {len(records)} landed" in verified
            index = tuple(f"{sink.index.prefix}/" for sink in sinks)
            landed = [key for key in lake.store.list("") if not key.startswith(index)]
            assert sorted(landed) == sorted(previewed) == sorted(example.keys)
        finally:
            for topic in topics:
                lake.delete(topic)
            for key in lake.store.list(""):
                lake.client.delete_object(Bucket=lake.bucket, Key=key)
            lake.client.delete_bucket(Bucket=lake.bucket)
