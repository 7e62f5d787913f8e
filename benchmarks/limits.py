"""How far s3lake goes: each limit at some sizes, so that its growth shows, as rows for the table of `limits.md`.

`make bench BENCH="limits --only messages,hours"` measures these; `--at-most 1000` leaves larger sizes out. Each landing
is a process of its own, cold, behind a broker and an S3 server of this machine.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import boto3

from benchmarks.odd_records import schema
from benchmarks.process_tree import Meter
from benchmarks.sink import HERE, Bucket, bucket, measured, registry
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka

TOPIC = "measured"
TOPICS, ALL_RUNS = (10, 100, 1_000), "topics of a sink: all runs"


@dataclass(frozen=True)
class Topic:
    """What `records.py` or, where `odd` says bytes or schemas, `odd_records.py` fills a topic with."""

    records: int
    partitions: int = 4
    values: int = 0
    odd: tuple[int, int] | None = None
    sink: Mapping[str, Any] = field(default_factory=dict)

    def produce(self, servers: str, hour: str) -> None:
        """In a process of its own: neither its time nor its memory may be found in what is measured."""
        numbers = (self.records, self.partitions, *(self.odd or (self.values, 0, 0, 0)))
        program = HERE / ("odd_records.py" if self.odd else "records.py")
        subprocess.run([sys.executable, program, servers, TOPIC, hour, *map(str, numbers)], check=True)


class Limit(NamedTuple):
    """One thing that grows, and what is made of a size of it."""

    title: str
    sizes: Sequence[int]
    topic: Callable[[int], Topic]


@dataclass(frozen=True)
class Row:
    """What a limit cost at one size.

    Attributes:
        peak_bytes: the largest share of memory that its processes had together.
    """

    title: str
    size: int
    seconds: float
    cpu_s: float
    peak_bytes: float
    requests: int
    index_bytes: float
    files: int = 0


class Cost(NamedTuple):
    """What a step took."""

    seconds: float
    cpu_s: float
    requests: int
    peak_bytes: float


_BYTES = 400_000_000  # of all messages, however large each is
LIMITS = {
    "directories": Limit(
        "output partitions (200,000 records, 4 topic-partitions)",
        (100, 1_000, 10_000),
        lambda size: Topic(200_000, values=size, sink={"layout": {"partition_by": ["shard"]}}),
    ),
    "messages": Limit(
        "MB a message (400 MB in all)",
        (1, 10, 50),
        lambda size: Topic(_BYTES // (size * 1_000_000), odd=(size * 1_000_000, 0)),
    ),
    "partitions": Limit(
        "topic-partitions (200,000 records)", (10, 100, 1_000), lambda size: Topic(200_000, partitions=size)
    ),
    "schemas": Limit(
        "schemas in one topic (200,000 records of Avro to Parquet)",
        (1, 10, 100),
        lambda size: Topic(200_000, odd=(0, size), sink={"format": {"type": "parquet"}}),
    ),
    "records": Limit("records in one hour", (1_000_000, 5_000_000, 20_000_000, 50_000_000), lambda size: Topic(size)),
}


def main() -> None:
    """Measure what is asked for, and print its rows."""
    names = (*LIMITS, "hours", "topics")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, metavar=",".join(names))
    parser.add_argument("--at-least", type=float, default=0, metavar="SIZE")
    parser.add_argument("--at-most", type=float, default=math.inf, metavar="SIZE")
    parser.add_argument("--server", choices=("moto", "versitygw"), default="versitygw")
    options = parser.parse_args()
    smaller: dict[str, Row] = {}
    for name in options.only:
        if name not in names:
            parser.error(f"--only {name}: one of {', '.join(names)}")
        for row in rows(name, options):
            print(to_markdown(row, smaller.get(row.title)), flush=True)
            smaller[row.title] = row


def to_markdown(row: Row, before: Row | None) -> str:
    """Return the row for the table; `before` is the row of the next smaller size, since which costs have grown."""
    growth = ""
    if before is not None:
        parts = [("CPU", row.cpu_s, before.cpu_s), ("memory", row.peak_bytes, before.peak_bytes)]
        parts.append(("requests", row.requests, before.requests))
        growth = f"size x{row.size / before.size:g}: " + ", ".join(
            f"{name} x{now / earlier:.2g}" for name, now, earlier in parts if now and earlier
        )
    load, day = f"{os.getloadavg()[0]:.0f}", f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return (
        f"| {row.title} | {row.size:,} | {_short(row.seconds)} | {_short(row.cpu_s)} | {row.peak_bytes / 1e6:,.1f} "
        f"| {row.requests:,} | {row.files:,} | {row.index_bytes / 1e3:,.1f} | {growth} | {load} | {day} |"
    )


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.4f}"


def rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of one limit."""
    sizes = {"hours": (200, 2_000, 20_000), "topics": TOPICS}.get(name) or LIMITS[name].sizes
    for size in sizes:
        if not options.at_least <= size <= options.at_most:
            continue
        if name == "hours":
            yield from of_history(size)
        elif name == "topics":
            yield from of_topics(size, options)
        else:
            yield of_landing(LIMITS[name].title, size, LIMITS[name].topic(size), options)


def of_landing(title: str, size: int, topic: Topic, options: argparse.Namespace) -> Row:
    """One cold landing of a closed hour."""
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    with EmbeddedKafka.start() as kafka, schemas(topic) as address, bucket(_place(options)) as into:
        topic.produce(kafka.bootstrap_servers, hour)
        converter = {"value": "avro", "registry": {"url": address}} if address else {"value": "json"}
        named = {"name": "cold", "bucket": into.name, "start": hour, "topics": [TOPIC], "converter": converter}
        config = {
            "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
            "s3": {"endpoint_url": into.endpoint_url},
            "sinks": [{**named, **topic.sink}],
        }
        plan = {"config": config, "topic": TOPIC, "hour": hour}
        found = measured(plan, into.environment, topic.records, HERE / "land.py")
        cold = found["cold"]
        return Row(
            title,
            size,
            seconds=cold["seconds"],
            cpu_s=cold["cpu_s"],
            peak_bytes=found["peak_pss_bytes"],
            requests=sum(found["s3_requests"].values()),
            index_bytes=index_bytes(into),
            files=found["files"],
        )


def of_history(size: int) -> Iterator[Row]:
    """What is done with an index of so many hours."""
    command = [sys.executable, str(HERE / "histories.py"), str(size)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        told = json.loads(line)
        yield Row(
            f"hours of an index: {told['did']}",
            size,
            seconds=told["seconds"],
            cpu_s=told["cpu_s"],
            peak_bytes=told["peak_rss_bytes"],
            requests=told["requests"],
            index_bytes=told["index_bytes"],
        )


def of_topics(size: int, options: argparse.Namespace) -> Iterator[Row]:
    """The code location, the sensor and the runs of one sink of so many topics, ten records in each."""
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    with (
        tempfile.NamedTemporaryFile(prefix="s3lake-requests-") as log,
        EmbeddedKafka.start() as kafka,
        bucket(_place(options), Path(log.name) if options.server == "versitygw" else None) as into,
    ):
        arguments = [kafka.bootstrap_servers, hour, str(size), "10", into.endpoint_url, into.name]
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", HERE / "many_topics.py", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **into.environment, "PYTHONPATH": str(HERE.parent)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        steps: dict[str, list[Cost]] = defaultdict(list)
        cpu_s, asked = 0.0, 0
        with Meter(process.pid) as meter:
            for line in process.stdout:
                if not line.startswith("{"):
                    continue  # the JVM writes to the same pipe
                told, now, requests = json.loads(line), meter.cpu_seconds, Path(log.name).read_bytes().count(b"\n")
                steps[told["did"]].append(Cost(told["seconds"], now - cpu_s, requests - asked, meter.peak_pss))
                cpu_s, asked = now, requests
                process.stdin.write("\n")
                process.stdin.flush()
        if process.wait():
            raise SystemExit("landing failed")
        all_runs = [sum(column) for column in list(zip(*steps["run"], strict=True))[:3]]
        for title, (seconds, cpu, count, peak_bytes) in {
            "topics of a sink: code location": steps["code location"][0],
            "topics of a sink: slowest tick": max(steps["tick"]),
            "topics of a sink: idle tick": steps["idle tick"][0],
            "topics of a sink: first run": steps["run"][0],
            ALL_RUNS: (*all_runs, steps["run"][-1].peak_bytes),
        }.items():
            yield Row(
                title,
                size,
                seconds=seconds,
                cpu_s=cpu,
                peak_bytes=peak_bytes,
                requests=int(count),
                index_bytes=index_bytes(into),
            )


def index_bytes(into: Bucket) -> int:
    """Of all documents of the index."""
    keys = into.environment
    client = boto3.client(
        "s3",
        endpoint_url=into.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=keys.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=keys.get("AWS_SECRET_ACCESS_KEY"),
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=into.name, Prefix=".indexes/")
    return sum(one["Size"] for page in pages for one in page.get("Contents", ()))


def schemas(topic: Topic) -> AbstractContextManager[str]:
    """A registry of the schemas that a topic has; no address where it has none."""
    count = topic.odd[1] if topic.odd else 0
    return registry({number: schema(number) for number in range(1, count + 1)}) if count else nullcontext("")


def _place(options: argparse.Namespace) -> argparse.Namespace:
    return argparse.Namespace(endpoint=None, server=options.server)


if __name__ == "__main__":
    main()
