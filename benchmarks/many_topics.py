"""What many topics cost: `many_topics.py BOOTSTRAP HOUR TOPICS RECORDS ENDPOINT BUCKET`, keys of S3 as AWS_* variables.

Makes the topics with so many records each, loads the code location, and does in one process what Dagster's daemon does:
the sink's sensor ticks, and what it asks for is run, until it asks for nothing more. Prints a JSON line for the
location, each tick, each run, and a last tick that has nothing to look at; see `land.told`.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator

import dagster as dg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.land import told
from s3lake import hours
from s3lake.config.model import Config
from s3lake.orchestration.build import build_definitions

_AT_ONCE = 100
_QUIET_TICKS = 6
"""More than it takes to look again at what a thousand topics have landed."""


def main(servers: str, hour: str, count: int, records: int, endpoint: str, bucket: str) -> None:
    """Measures each step."""
    filled(servers, hour, [f"many-{number:04}" for number in range(count)], records)
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
    definitions.get_repository_def()
    told(did="code location", seconds=time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as home, dg.DagsterInstance.local_temp(home) as instance:
        landed = sum(run(definitions, instance, request) for request in asked(definitions, instance))
    if landed != count * records:
        raise SystemExit(f"{landed} of {count * records} records landed: nothing was measured")


def asked(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Iterator[dg.RunRequest]:
    """The runs that the sensor asks for, each to be run before the next tick; the last ticks ask for none."""
    sensor, cursor, quiet = definitions.resolve_sensor_def("sink_many"), None, 0
    while quiet < _QUIET_TICKS:
        began = time.perf_counter()
        with dg.build_sensor_context(
            instance=instance, definitions=definitions, resources=dict(definitions.resources or {}), cursor=cursor
        ) as context:
            result = sensor.evaluate_tick(context)
        requests, cursor = result.run_requests or [], result.cursor
        quiet = 0 if requests else quiet + 1
        told(did="idle tick" if quiet == _QUIET_TICKS else "tick", seconds=time.perf_counter() - began)
        yield from requests


def run(definitions: dg.Definitions, instance: dg.DagsterInstance, request: dg.RunRequest) -> int:
    """Runs what was asked for, in this process; records that it has landed."""
    assert request.job_name is not None
    began, job = time.perf_counter(), definitions.resolve_job_def(request.job_name)
    result = job.execute_in_process(run_config=request.run_config, tags=request.tags, instance=instance)
    told(did="run", seconds=time.perf_counter() - began)
    return sum(
        int(str(materialised.metadata["dagster/row_count"].value))
        for event in result.get_asset_materialization_events()
        if "sealed_after_s" not in (materialised := event.step_materialization_data.materialization).metadata
    )


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
