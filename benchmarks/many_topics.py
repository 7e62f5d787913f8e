"""What many topics cost: `many_topics.py BOOTSTRAP HOUR TOPICS RECORDS ENDPOINT BUCKET [QUIET]`.

Makes the topics with so many records each, loads the code location, and does in one process what Dagster's daemon does:
the sink's sensor ticks, and what it asks for is run, until it asks for nothing more. Prints a JSON line for the
location, each tick, each run, and a last tick that has nothing to look at; see `land.told`. The keys of S3 are AWS_*
variables.

With QUIET the clock then goes on by so many hours, in which no topic gets a record: a tick each 30 seconds of that
clock, and the runs that the ticks request. Of each step it prints the CPU seconds of this process, the requests to S3
by operation and kind of document, and the events that Dagster has stored.
"""

import http.client
import json
import re
import sys
import tempfile
import time
from collections import Counter

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
_TICK_MS = 30_000
_KINDS = {
    r"/topic\.json": "topic.json",
    r"/schema\.json": "schema.json",
    r"/\.probe/": "probe",
    r"/\d{4}-\d\d-\d\dT\d\d\.json": "tile",
    r"/\d{4}-\d\d-\d\dT\d\d/\w+\.json": "manifest",
}


class Costs:
    """What this process uses from step to step: its CPU, its requests to S3, and the events of its instance."""

    def __init__(self, endpoint: str) -> None:
        self.requests: Counter[str] = Counter()
        self.events = 0
        self._cpu_s, self._endpoint = time.process_time(), endpoint.partition("://")[2]
        send = http.client.HTTPConnection.putrequest

        def count(
            connection: http.client.HTTPConnection,
            method: str,
            url: str,
            skip_host: bool = False,
            skip_accept_encoding: bool = False,
        ) -> None:
            if f"{connection.host}:{connection.port}" == self._endpoint:
                kind = next((kind for pattern, kind in _KINDS.items() if re.search(pattern, url)), "other")
                self.requests[f"{method} {kind}"] += 1
            send(connection, method, url, skip_host, skip_accept_encoding)

        http.client.HTTPConnection.putrequest = count  # type: ignore[assignment, method-assign]

    def report(self, did: str, began: float, **more: str) -> None:
        """Say what a step has cost."""
        seconds, cpu_s = time.perf_counter() - began, time.process_time()
        found = {"cpu_s": round(cpu_s - self._cpu_s, 3), "requests": dict(self.requests), "events": self.events, **more}
        told(did=did, seconds=seconds, **found)
        self.requests.clear()
        self.events, self._cpu_s = 0, time.process_time()


class Clock:
    """The clock of s3lake, which the benchmark moves."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """Return the time as epoch milliseconds."""
        return int(time.time() * 1000) + self.ahead_ms


def main(servers: str, hour: str, count: int, records: int, endpoint: str, bucket: str, quiet: int = 0) -> None:
    """Measures each step."""
    clock = Clock()
    hours.now_ms = clock.now_ms
    filled(servers, hour, [f"many-{number:04}" for number in range(count)], records)
    config = Config.model_validate(
        {
            "kafka": {"bootstrap_servers": servers},
            "s3": {"endpoint_url": endpoint},
            "sinks": [{"name": "many", "topics_regex": "many-.*", "bucket": bucket, "start": hour}],
        }
    )
    costs, began = Costs(endpoint), time.perf_counter()
    costs.report("start", began)
    began = time.perf_counter()
    definitions = build_definitions(config)
    definitions.get_repository_def()
    costs.report("code location", began)
    with tempfile.TemporaryDirectory() as home, dg.DagsterInstance.local_temp(home) as instance:
        daemon = Daemon(definitions, instance, costs)
        landed = daemon.land_all()
        if landed != count * records:
            raise SystemExit(f"{landed} of {count * records} records landed: nothing was measured")
        if quiet:
            clock.ahead_ms = hours.end_ms(hours.key_of_ms(hours.now_ms())) - int(time.time() * 1000)
        for _ in range(quiet * hours.HOUR_MS // _TICK_MS):
            daemon.tick_and_land(hours.key_of_ms(hours.now_ms()))
            clock.ahead_ms += _TICK_MS


class Daemon:
    """What Dagster's daemon does for the sink."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance, costs: Costs) -> None:
        self._definitions, self._instance, self._costs = definitions, instance, costs
        self._sensor = definitions.resolve_sensor_def("sink_many")
        self._cursor: str | None = None

    def land_all(self) -> int:
        """Ticks and runs until the last ticks request nothing; records that were landed."""
        landed = idle = 0
        while idle < _QUIET_TICKS:
            began = time.perf_counter()
            requests = self._tick()
            idle = 0 if requests else idle + 1
            self._costs.report("idle tick" if idle == _QUIET_TICKS else "tick", began)
            for request in requests:
                began = time.perf_counter()
                landed += self._run(request)
                self._costs.report("run", began)
        return landed

    def tick_and_land(self, hour: str) -> None:
        """One tick at a time of `hour`, and what it requests."""
        began = time.perf_counter()
        requests = self._tick()
        self._costs.report("quiet tick", began, hour=hour)
        for request in requests:
            began = time.perf_counter()
            self._run(request)
            self._costs.report("quiet run", began, hour=hour)

    def _tick(self) -> list[dg.RunRequest]:
        with dg.build_sensor_context(
            instance=self._instance,
            definitions=self._definitions,
            resources=dict(self._definitions.resources or {}),
            cursor=self._cursor,
        ) as context:
            result = self._sensor.evaluate_tick(context)
        self._cursor = result.cursor
        for event in result.asset_events:
            self._instance.report_runless_asset_event(event)
        self._costs.events += len(result.asset_events)
        return list(result.run_requests or [])

    def _run(self, request: dg.RunRequest) -> int:
        """Run what was requested, in this process; records that it has landed."""
        assert request.job_name is not None
        job = self._definitions.resolve_job_def(request.job_name)
        result = job.execute_in_process(run_config=request.run_config, tags=request.tags, instance=self._instance)
        self._costs.events += len(self._instance.all_logs(result.run_id))
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
    main(*sys.argv[1:3], *map(int, sys.argv[3:5]), *sys.argv[5:7], *map(int, sys.argv[7:8]))  # type: ignore[arg-type]
