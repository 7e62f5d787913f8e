"""What many topics cost: `many_topics.py BOOTSTRAP HOUR TOPICS RECORDS ENDPOINT BUCKET`, keys of S3 as AWS_* variables.

Makes the topics with so many records each, loads the code location, lets the sink's sensor tick until it asks for a
run, and lands all topics as that run does. Prints a JSON line for each; see `land.told`.
"""

import functools
import json
import sys
import time

import dagster as dg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from land import told

from s3lake import hours
from s3lake.land import spark
from s3lake.land.fleet import TopicLanding, together
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.resources import S3Resource, landing, source_of
from s3lake.sink import Config

_AT_ONCE = 100


def main(servers: str, hour: str, count: int, records: int, endpoint: str, bucket: str) -> None:
    """Measures each step."""
    topics = [f"many-{number:04}" for number in range(count)]
    filled(servers, hour, topics, records)
    config = Config.model_validate(
        {
            "kafka": {"bootstrap_servers": servers},
            "s3": {"endpoint_url": endpoint},
            "sinks": [{"name": "many", "topics_regex": "many-.*", "bucket": bucket, "start": hour}],
        }
    )
    told(did="start", seconds=0.0)
    began = time.perf_counter()
    definitions = build_definitions(config)
    told(did="code location", seconds=time.perf_counter() - began)
    began, ticks = time.perf_counter(), ticked(definitions)
    told(did="ticks", seconds=time.perf_counter() - began, ticks=ticks)
    parts, began = (source_of(config), S3Resource(config.s3)), time.perf_counter()
    session = functools.partial(spark.session, config.spark)
    landings = [landing(config.sinks[0], topic, *parts, session) for topic in topics]
    fleet = together([TopicLanding(one, functools.partial(one.land, [hour])) for one in landings], session)
    rows = sum(manifest_rows(outcome.result()) for outcome in fleet.outcomes)
    if rows != count * records:
        raise SystemExit(f"{rows} of {count * records} records landed: nothing was measured")
    requests = sum(sum(one.requests.values()) for one in landings)
    told(did="run", seconds=time.perf_counter() - began, requests=requests)


def manifest_rows(landed: list) -> int:  # type: ignore[type-arg]
    """Records of the files of landed hours."""
    return sum(file.records for one in landed for manifest in one.manifests for file in manifest.files)


def ticked(definitions: dg.Definitions) -> int:
    """How many ticks it takes until a run is asked for."""
    (sensor,) = (one for one in definitions.sensors or () if "many" in one.name)
    cursor: str | None = None
    with dg.DagsterInstance.ephemeral() as instance:
        for number in range(1, 1000):
            with dg.build_sensor_context(
                instance=instance, definitions=definitions, resources=dict(definitions.resources or {}), cursor=cursor
            ) as context:
                result = sensor.evaluate_tick(context)
            if result.run_requests:
                return number
            cursor = result.cursor
    raise SystemExit("the sensor asks for no run")


def filled(servers: str, hour: str, topics: list[str], records: int) -> None:
    """Makes and fills the topics."""
    admin, producer = AdminClient({"bootstrap.servers": servers}), Producer({"bootstrap.servers": servers})
    for first in range(0, len(topics), _AT_ONCE):
        some = [NewTopic(topic, num_partitions=1) for topic in topics[first : first + _AT_ONCE]]
        for made in admin.create_topics(some).values():
            made.result()
    for topic in topics:
        for number in range(records):
            producer.produce(topic, json.dumps({"id": number}), timestamp=hours.start_ms(hour) + number)
        producer.poll(0)
    if left := producer.flush(300):
        raise SystemExit(f"Kafka did not take {left} records")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
