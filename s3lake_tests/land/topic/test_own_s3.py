"""A sink with its own settings of its bucket: all of it goes there, with its settings of objects."""

from dataclasses import replace

import pytest

from s3lake.config import native
from s3lake.config.model import Config
from s3lake.lake.readback.spark_frame import read_frame
from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.open_topic_sink import open_stores, open_topic_sink, s3_connection
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.lake import START, Lake, at, values


def config_of(lake: Lake, topic: str) -> Config:
    """No server is where the configuration's own `s3` leads."""
    keys = f"access_key_id: {lake.s3.access_key_id}, secret_access_key: {lake.s3.secret_access_key}"
    objects = "tags: {team: data}, offset_tags: required"
    own = f"s3: {{endpoint_url: '{lake.s3.endpoint_url}', credentials: {{{keys}}}, objects: {{{objects}}}}}"
    text = lake.config_text(f"name: events, topics: ['{topic}'], prefix: raw, format: {{type: parquet}}, {own}")
    return native.load_text(
        text.replace(f"endpoint_url: '{lake.s3.endpoint_url}'", "endpoint_url: 'http://127.0.0.1:1'", 1), ""
    )


def target_of(lake: Lake, config: Config, topic: str) -> TopicSink:
    made = open_topic_sink(config, config.sinks[0], topic, spark=lake.session)
    return replace(made, clock=lambda: at("2026-01-06T00"))


@pytest.mark.slow("a case more on real parts; each behaviour of landing stays once")
def test_a_sink_with_its_own_s3_is_landed_rewritten_verified_and_read_there_with_tags(lake: Lake) -> None:
    topic = lake.topic()
    lake.produce(topic, values(10), at(START, 5))
    config = config_of(lake, topic)
    target = target_of(lake, config, topic)
    land(target, [START])
    rewrite(target, START)
    target.clean()
    report = lake.verify(target)
    assert (report.landed, report.differences) == (10, ())
    opened = open_stores(s3_connection(config, config.sinks[0]))
    assert read_frame(lake.session, config.sinks[0], topic, opened, [START]).count() == 10
    keys = [one["Key"] for one in lake.client.list_objects_v2(Bucket=lake.bucket)["Contents"]]
    assert any(key.startswith("raw/") for key in keys)
    for key in keys:
        answer = lake.client.get_object_tagging(Bucket=lake.bucket, Key=key)
        held = {"startOffset": "0", "endOffset": "9", "recordCount": "10"} if key.startswith("raw/") else {}
        assert {tag["Key"]: tag["Value"] for tag in answer["TagSet"]} == {"team": "data", **held}
