"""A bucket and a consumer group that a connector left, adopted through the command line, and landed on: real parts."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from s3lake import cli, hours
from s3lake.config import load as configuration
from s3lake.land.landing import land
from s3lake_tests.kit.lake import Lake, values

LENSES = """\
connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector
name=demo
topics={topic}
connect.s3.kcql=insert into {bucket}:raw select * from `{topic}` STOREAS `JSON` PROPERTIES('flush.count'=4)
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
key.converter=org.apache.kafka.connect.storage.StringConverter
connect.s3.aws.auth.mode=Credentials
connect.s3.aws.access.key={key}
connect.s3.aws.secret.key={secret}
connect.s3.aws.region={region}
connect.s3.custom.endpoint={endpoint}
bootstrap.servers={servers}
s3lake.layout.connector_names=true
s3lake.start={start}
s3lake.close_grace=0s
"""


def left(lake: Lake, topic: str, committed: int, group: int) -> None:
    """What the connector left of topic-partition 0: a file, its lock and its group's offset."""
    lines = b"".join(value + b"\n" for value in values(committed + 1))
    lake.store.put(f"raw/{topic}/0/{committed:012d}_0_0.json", lines)
    lock = {"owner": "x", "committedOffset": committed, "pendingState": None}
    lake.store.put(f".indexes/demo/.locks/Topic({topic})/0.lock", json.dumps(lock).encode())
    consumer = Consumer({"bootstrap.servers": lake.kafka.bootstrap_servers, "group.id": "connect-demo"})
    consumer.commit(offsets=[TopicPartition(topic, 0, group)], asynchronous=False)
    consumer.close()


@pytest.fixture
def config(lake: Lake, tmp_path: Path) -> Path:
    topic, path = lake.topic(), tmp_path / "connector.properties"
    path.write_text(
        LENSES.format(
            topic=topic,
            bucket=lake.bucket,
            key=lake.s3.access_key_id,
            secret=lake.s3.secret_access_key,
            region=lake.s3.region,
            endpoint=lake.s3.endpoint_url,
            servers=lake.kafka.bootstrap_servers,
            start=hours.key_of_ms(hours.now_ms()),
        )
    )
    return path


def adopt(config: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["s3lake", "adopt", str(config), *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(str(ended.value.code or 0))


@pytest.mark.slow("a case more on real parts; adoption is tried in memory")
def test_the_first_run_goes_on_where_the_connector_stopped(
    lake: Lake, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = configuration.load_configuration(str(config))
    (sink,) = loaded.config.sinks
    (topic,) = sink.topics
    lake.produce(topic, values(10), hours.now_ms())
    left(lake, topic, committed=5, group=6)
    assert adopt(config, monkeypatch) == 0
    assert "would be adopted in hour" in capsys.readouterr().out
    assert list(lake.target(topic).index.tiles()) == []
    assert adopt(config, monkeypatch, "--yes") == 0
    assert "topic-partition 0 at 6 (lock)" in capsys.readouterr().out
    wanted = list(hours.span(sink.start, hours.key_of_ms(hours.now_ms())))  # an hour may end while a test runs
    land(replace(lake.target(topic), sink=sink), wanted)
    objects = {key: lake.store.get(key) for key in lake.objects("raw/")}
    landed = [json.loads(line)["id"] for key in sorted(objects) for line in objects[key].body.splitlines()]  # type: ignore[union-attr]
    assert landed == list(range(10))
    assert adopt(config, monkeypatch) == 2  # once is enough
