"""What landing a topic costs: `python -m benchmarks.sink --records 5000000 --format json --server versitygw`.

Starts Kafka and S3, produces a topic whose records lie in one closed hour, and lands it twice in one Spark session, by
two sinks: `cold` and `warm`. Prints one JSON line. See README.md for how to read it.

`--compare COMMIT` lands the same topic with that commit's code too, in turns, and prints a line for each; `--by-hand`
does so with the loop that people write by hand (`by_hand.py`: JSON values to JSON lines or Parquet), `--floor` with the
cheapest loop that can be written (`floor.py`), and compares the rows that each wrote. `--poison N` lands in turns a
sound topic into a sink that tolerates no error, the same into one that does, and one of whose records one of N is
broken.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.process_tree import Meter
from benchmarks.records import SCHEMA
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.records.encode.formats import FORMATS
from s3lake_tests.kit.s3 import start_s3

HERE = Path(__file__).parent
TOPIC, POISONED, SCHEMA_ID = "measured", "poisoned", 7


class Bucket(NamedTuple):
    """Where files go; the keys travel in the environment of whoever lands."""

    endpoint_url: str
    name: str
    environment: dict[str, str]


def main() -> None:
    """Measures, and prints one JSON line a landing process."""
    options = parsed()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    measured_states = states(options.compare, by_hand=options.by_hand, floor=options.floor)
    with EmbeddedKafka.start() as kafka, registry() as address, measured_states as scripts:
        # In a process of its own: neither its time nor its memory may be found in what is measured.
        produce: list[str | Path] = [sys.executable, HERE / "records.py", kafka.bootstrap_servers, TOPIC, hour]
        keyed = int(options.envelope is not None)
        schema_id = SCHEMA_ID if options.value == "avro" else 0
        numbers = [*map(str, (options.records, options.partitions, options.values, keyed, schema_id))]
        subprocess.run([*produce, *numbers, "0"], check=True)
        if options.poison:
            poisoned = [POISONED if one == TOPIC else one for one in produce]
            subprocess.run([*poisoned, *numbers, str(options.poison)], check=True)
        trials = [(TOPIC, "none")] if not options.poison else [(TOPIC, "none"), (TOPIC, "all"), (POISONED, "all")]
        written: set[object] = set()
        for (topic, tolerance), (state, script) in turns(options.rounds, trials, scripts):
            with bucket(options) as into:
                plan = {
                    "config": {
                        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
                        "s3": {"endpoint_url": into.endpoint_url},
                        "spark": {"driver_memory": options.driver_memory, "conf": dict(options.conf)},
                        "sinks": [
                            {
                                "name": name,
                                "bucket": into.name,
                                "prefix": name,
                                "start": hour,
                                **sink(options, address),
                                "topics": [topic],
                                "errors": {"tolerance": tolerance},
                            }
                            for name in ("cold", *(f"warm{number}" for number in range(options.warm)))
                        ],
                    },
                    "topic": topic,
                    "hour": hour,
                    "partitions": options.partitions,
                    "schema": SCHEMA,
                }
                load, _, _ = os.getloadavg()
                dead = -(-options.records // options.poison) if topic == POISONED else 0
                found = measured(plan, into.environment, options.records, script)
                told: dict[str, object] = {"tolerance": tolerance, "dead_letters": dead} if options.poison else {}
                if options.floor:
                    told["rows_digest"] = rows_digest(into, str(plan["config"]["sinks"][-1]["prefix"]), options.format)
                print(json.dumps({"state": state, **told, **found, "load": [load, os.getloadavg()[0]]}), flush=True)
                if len(written := {*written, told.get("rows_digest")}) > 1:
                    raise SystemExit(f"{state} wrote other rows than what was measured before")


def turns(rounds: int, trials: list[tuple[str, str]], scripts: Mapping[str, Path]) -> Iterator[Any]:
    """Every trial by every state, round by round; each second round in the other order."""
    for number in range(rounds):
        order = list(scripts.items())
        yield from product(trials, order[::-1] if number % 2 else order)


def rows_digest(into: Bucket, prefix: str, type: str) -> int:
    """A sum over the rows below a prefix, which is the same for the same rows in any files and any order."""
    import boto3
    import polars

    keys = {
        "aws_access_key_id": into.environment.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": into.environment.get("AWS_SECRET_ACCESS_KEY"),
    }
    bucket = boto3.resource("s3", endpoint_url=into.endpoint_url, **keys).Bucket(into.name)
    total = 0
    for listed in bucket.objects.filter(Prefix=f"{prefix}/{TOPIC}/"):
        body = listed.get()["Body"].read()
        if type == "parquet":
            times = polars.selectors.datetime().cast(polars.Datetime("us"))
            read = polars.read_parquet(io.BytesIO(body)).select(times, ~polars.selectors.datetime())
            rows = read.select(sorted(read.columns)).cast(polars.String)
        else:
            text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
            rows = polars.DataFrame({"line": text.decode().splitlines()})
        total += int(rows.hash_rows().cast(polars.UInt64).cast(polars.Int128).sum())
    return total


@contextlib.contextmanager
def states(compare: str | None, *, by_hand: bool = False, floor: bool = False) -> Iterator[dict[str, Path]]:
    """Yield what lands: this tree's code, loops without it, and a commit's code in a directory of its own."""
    scripts = {"this": HERE / "land.py"} | ({"by hand": HERE / "by_hand.py"} if by_hand else {})
    scripts |= {"floor": HERE / "floor.py"} if floor else {}
    if compare is None:
        yield scripts
        return
    with tempfile.TemporaryDirectory(prefix="s3lake-benchmark-") as scratch:
        there = Path(scratch) / "tree"
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(there), compare], check=True)
        try:
            if (there / "hatch_build.py").exists():  # without its C libraries a commit lands by their fallbacks
                subprocess.run([sys.executable, "hatch_build.py"], cwd=there, check=True)
            yield {**scripts, compare: there / "benchmarks" / "land.py"}
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)


@contextlib.contextmanager
def registry(schemas: Mapping[int, Mapping[str, Any]] = {SCHEMA_ID: SCHEMA}) -> Iterator[str]:
    """The address of a Schema Registry that knows these schemas; a process asks once for each."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.search(r"/schemas/ids/(\d+)", self.path)
            schema_id = int(asked[1]) if asked else next(iter(schemas))
            body = json.dumps({"id": schema_id, "version": 1, "schema": json.dumps(schemas[schema_id])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: stderr is for figures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def sink(options: argparse.Namespace, address: str) -> dict[str, Any]:
    """What the command line says of a sink, but for its name and its place."""
    form = {"type": options.format, "codec": options.codec, "level": options.level}
    converter: dict[str, Any] = {"value": {"text": "string", "bytes": "bytes"}.get(options.format, "json")}
    if options.value != "json":
        converter = {"value": options.value, "registry": {"url": address}}
    made: dict[str, Any] = {
        "format": {name: value for name, value in form.items() if value is not None},
        "converter": converter,
    }
    if options.format != "bytes":  # which counts to one
        made["flush"] = {"count": options.flush_count}
    if options.envelope:
        made["envelope"] = {"style": options.envelope, "fields": options.fields}
    if options.partition_by:
        made["layout"] = {"partition_by": [options.partition_by]}
    return made


def measured(plan: Mapping[str, Any], environment: Mapping[str, str], records: int, script: Path) -> dict[str, Any]:
    """Run a script that lands, and watch it from outside; return what is printed."""
    home = script.parents[1]
    land = subprocess.Popen(
        [sys.executable, script, json.dumps(plan)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "PYTHONPATH": str(home)},
        cwd=home,  # which comes before everything in the path of Spark's workers
    )
    assert land.stdin is not None
    assert land.stdout is not None
    measured_sink = plan["config"]["sinks"][0]
    told = {name: measured_sink[name] for name in ("format", "envelope", "layout") if name in measured_sink}
    found: dict[str, Any] = {**told, "records": records}
    before = 0.0
    with Meter(land.pid) as meter:
        for line in land.stdout:
            if not line.startswith("{"):
                continue  # the JVM writes to the same pipe
            said = json.loads(line)
            now = meter.cpu_seconds
            if said["did"] == "start":
                found["startup_cpu_s"] = round(now, 2)
            else:
                if said["rows"] != records:  # dead letters are records of files too
                    raise SystemExit(f"{said['rows']} of {records} records landed: nothing was measured")
                found[said["did"].rstrip("0123456789")] = {  # of several warm ones the last
                    "seconds": round(said["seconds"], 2),
                    "cpu_s": round(now - before, 2),
                    "records_per_s": round(records / said["seconds"]),
                    "cpu_s_per_million_records": round((now - before) / records * 1e6, 2),
                    "cpu_ms_per_file": round((now - before) / said["files"] * 1e3, 2),
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
def bucket(options: argparse.Namespace, requests: Path | None = None) -> Iterator[Bucket]:
    """An empty bucket, deleted afterwards; a server that is started here writes what it is asked into `requests`."""
    name = f"s3lake-benchmark-{uuid.uuid4().hex[:8]}"
    if not options.endpoint:
        with start_s3(options.server, requests) as s3:
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
    parser.add_argument(
        "--value", choices=("json", "avro"), default="json", help="avro: as a registry's producers write"
    )
    parser.add_argument("--compare", metavar="COMMIT", help="measure that commit's code too, in turns")
    parser.add_argument("--by-hand", action="store_true", help="measure the loop of by_hand.py too, in turns")
    parser.add_argument("--floor", action="store_true", help="measure the loop of floor.py too, and compare the rows")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--format", choices=FORMATS, default="json", help="bytes: one object a record")
    parser.add_argument(
        "--codec", choices=sorted({one for format in FORMATS.values() for one in format.codecs}), help="or its own"
    )
    parser.add_argument("--level", type=int, help="of the codec")
    parser.add_argument(
        "--envelope", choices=("record", "flat", "iggy"), help="records have a key and two headers then"
    )
    parser.add_argument("--fields", type=_names, default=[], metavar="NAME,…", help="of the envelope")
    parser.add_argument("--partition-by", metavar="FIELD", help="an output partition for each value of that field")
    parser.add_argument("--values", type=int, default=0, metavar="N", help="give records a field `shard` of N values")
    parser.add_argument(
        "--poison", type=int, default=0, metavar="N", help="one of N records is broken: land in turns without and with"
    )
    parser.add_argument("--partitions", type=int, default=4, help="of the topic (default: %(default)s)")
    parser.add_argument("--flush-count", type=int, default=50_000, help="records per file (default: %(default)s)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--endpoint", metavar="URL", help="an S3 API that runs already; keys as AWS_* variables")
    where.add_argument("--server", choices=("moto", "versitygw"), default="moto", help="which S3 server to start")
    parser.add_argument("--warm", type=int, default=1, help="warm landings; the last one counts (default: %(default)s)")
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--conf", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="for Spark")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return text.split(",")


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


if __name__ == "__main__":
    # Large temporary files (versitygw's objects, Kafka's log) belong where TMPDIR says; say where that is.
    print(f"keeping topic and objects below {tempfile.gettempdir()}", file=sys.stderr)
    main()
