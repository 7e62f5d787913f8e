"""What landing a topic costs: `benchmarks/sink.py --records 5000000 --format json --server versitygw`.

Starts Kafka and S3, produces a topic whose records lie in one closed hour, and lands it twice in one Spark session, by
two sinks: `cold` and `warm`. Prints one JSON line. See README.md for how to read it.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from process_tree import Meter, cpu_seconds

from s3lake import hours
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.s3 import EmbeddedS3

HERE = Path(__file__).parent
TOPIC = "measured"


class Bucket(NamedTuple):
    """Where files go; the keys travel in the environment of whoever lands."""

    endpoint_url: str
    name: str
    environment: dict[str, str]


def main() -> None:
    """Measures, and prints one JSON line."""
    options = parsed()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    with EmbeddedKafka.start() as kafka, bucket(options) as into:
        # In a process of its own: neither its time nor its memory may be found in what is measured.
        produce = [sys.executable, HERE / "records.py", kafka.bootstrap_servers, TOPIC, hour]
        subprocess.run([*produce, str(options.records), str(options.partitions)], check=True)
        kind, _, codec = options.format.partition("+")
        plan = {
            "config": {
                "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
                "s3": {"endpoint_url": into.endpoint_url},
                "spark": {"driver_memory": options.driver_memory, "conf": dict(options.conf)},
                "sinks": [
                    {
                        "name": name,
                        "topics": [TOPIC],
                        "bucket": into.name,
                        "prefix": name,
                        "start": hour,
                        "format": {"type": kind, "codec": codec or (options.codec if kind == "parquet" else "none")},
                        "converter": {"value": "string" if kind == "text" else "json"},
                        "flush": {"count": options.flush_count},
                    }
                    for name in ("cold", *(f"warm{number}" for number in range(options.warm)))
                ],
            },
            "topic": TOPIC,
            "hour": hour,
        }
        print(json.dumps(measured(plan, into.environment, options.records)))


def measured(plan: Mapping[str, Any], environment: Mapping[str, str], records: int) -> dict[str, Any]:
    """Runs `land.py` and watches it from outside; what is printed."""
    land = subprocess.Popen(
        [sys.executable, HERE / "land.py", json.dumps(plan)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert land.stdin is not None
    assert land.stdout is not None
    found: dict[str, Any] = {"format": plan["config"]["sinks"][0]["format"], "records": records}
    before = 0.0
    with Meter(land.pid) as meter:
        for line in land.stdout:
            if not line.startswith("{"):
                continue  # the JVM writes to the same pipe
            said = json.loads(line)
            now = cpu_seconds(land.pid)
            if said["did"] == "start":
                found["startup_cpu_s"] = round(now, 2)
            else:
                if said["rows"] != records:
                    raise SystemExit(f"{said['rows']} of {records} records landed: nothing was measured")
                found[said["did"].rstrip("0123456789")] = {  # of several warm ones the last
                    "records_per_s": round(records / said["seconds"]),
                    "cpu_s_per_million_records": round((now - before) / records * 1e6, 2),
                }
                found |= {name: said[name] for name in ("s3_requests", "requests_per_file", "files", "bytes")}
                print(said["did"], found[said["did"].rstrip("0123456789")], file=sys.stderr)
            before = now
            land.stdin.write("\n")
            land.stdin.flush()
    if land.wait():
        raise SystemExit("landing failed")
    return found | {"peak_rss_bytes": meter.peak_rss, "peak_pss_bytes": meter.peak_pss}


@contextlib.contextmanager
def bucket(options: argparse.Namespace) -> Iterator[Bucket]:
    """An empty bucket, gone afterwards."""
    name = f"s3lake-benchmark-{uuid.uuid4().hex[:8]}"
    if not options.endpoint:
        with EmbeddedS3.start(options.server) as s3:
            s3.create_bucket(name)
            keys = {"AWS_ACCESS_KEY_ID": s3.access_key_id, "AWS_SECRET_ACCESS_KEY": s3.secret_access_key}
            yield Bucket(s3.endpoint_url, name, keys)
        return
    import boto3

    made = boto3.resource("s3", endpoint_url=options.endpoint).create_bucket(Bucket=name)
    try:
        yield Bucket(options.endpoint, name, {})
    finally:
        made.objects.all().delete()
        made.delete()


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000, help="of about 200 bytes (default: %(default)s)")
    parser.add_argument("--format", choices=("json", "json+gzip", "parquet", "text"), default="json")
    parser.add_argument("--codec", choices=("none", "gzip", "snappy", "zstd"), default="snappy", help="of Parquet")
    parser.add_argument("--partitions", type=int, default=4, help="of the topic (default: %(default)s)")
    parser.add_argument("--flush-count", type=int, default=50_000, help="records per file (default: %(default)s)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--endpoint", metavar="URL", help="an S3 API that runs already; keys as AWS_* variables")
    where.add_argument("--server", choices=("moto", "versitygw"), default="moto", help="which S3 server to start")
    parser.add_argument("--warm", type=int, default=1, help="warm landings; the last one counts (default: %(default)s)")
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--conf", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="for Spark")
    return parser.parse_args()


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


if __name__ == "__main__":
    # Large temporary files (versitygw's objects, Kafka's log) belong where TMPDIR says; say where that is.
    print(f"keeping topic and objects below {tempfile.gettempdir()}", file=sys.stderr)
    main()
