"""What a landing of few records costs: `python -m benchmarks.small --compare e6f7cdf --rounds 2`.

Starts Kafka, versitygw and a Spark Connect server, lands topics of some sizes with `s3lake land`, each command a
process of its own, and then again when there is nothing to land. The first two commands are not counted: the server's
JIT compiler and the trial of the bucket make them dearer. Prints a JSON line for each command: CPU seconds of the
command and of the server with its Python workers, and requests to S3. `--compare COMMIT` does the same with that
commit's code, in turns.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from benchmarks import records
from benchmarks.process_tree import Meter
from benchmarks.sink import Bucket, bucket, states
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.process import free_ports

PROGRAM = (sys.executable, "-c", "from s3lake.cli import main; main()")


def main() -> None:
    """Measure each state in turns."""
    options = parse_arguments()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    topics = {f"of-{count}-{number}": count for number, count in enumerate((options.sizes[0], *options.sizes))}
    with EmbeddedKafka.start() as kafka, states(options.compare) as scripts:
        for topic, count in topics.items():
            records.main(kafka.bootstrap_servers, topic, hour, count, 1, 0, 0, 0)
        for _ in range(options.rounds):
            for state, script in scripts.items():
                measure_state(state, script.parents[1], kafka.bootstrap_servers, topics, hour)


def measure_state(state: str, home: Path, servers: str, topics: dict[str, int], hour: str) -> None:
    """Land each topic twice with the code in `home`, and print what the commands after the first two cost."""
    with tempfile.TemporaryDirectory(prefix="s3lake-small-") as scratch:
        log, config = Path(scratch) / "requests.log", Path(scratch) / "small.yaml"
        (port,) = free_ports(1)
        with bucket(argparse.Namespace(endpoint=None, server="versitygw"), log) as lake:
            config.write_text(yaml.safe_dump(to_document(lake, servers, list(topics), hour, port)))
            environment = {**os.environ, **lake.environment, "PYTHONPATH": str(home)}
            with run_spark(config, port, environment, home) as server, Meter(server) as meter:
                for number, topic in enumerate(topics):
                    land = [*PROGRAM, "land", str(config), "--topic", topic, "--from", hour, "--to", hour]
                    for count in (topics[topic], 0):
                        served, asked, before = meter.cpu_seconds, count_lines(log), os.times()
                        subprocess.run(land, env=environment, cwd=home, check=True, stdout=subprocess.DEVNULL)
                        found = {
                            "command_cpu_s": round(sum(os.times()[2:4]) - sum(before[2:4]), 2),
                            "server_cpu_s": round(meter.cpu_seconds - served, 2),
                            "s3_requests": count_lines(log) - asked,
                            "load": round(os.getloadavg()[0], 1),
                        }
                        if number:
                            print(json.dumps({"state": state, "records": count, **found}), flush=True)


@contextlib.contextmanager
def run_spark(config: Path, port: int, environment: Mapping[str, str], home: Path) -> Iterator[int]:
    """Run a Spark Connect server with the code in `home`, and yield its process id when it serves."""
    command = [*PROGRAM, "spark", str(config), "--master", "local[2]", "--port", str(port)]
    server = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        check = [*PROGRAM, "spark", "--check", f"127.0.0.1:{port}"]
        while subprocess.run(check, env=environment, cwd=home, capture_output=True).returncode:
            if server.poll() is not None:
                raise SystemExit("the Spark Connect server did not start")
        yield server.pid
    finally:
        server.terminate()
        server.wait()


def count_lines(log: Path) -> int:
    """Count the requests that the S3 server has logged."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def to_document(lake: Bucket, servers: str, topics: Sequence[str], hour: str, port: int) -> dict[str, Any]:
    """Build the configuration of one sink of JSON lines for all topics."""
    return {
        "kafka": {"bootstrap_servers": servers},
        "s3": {"endpoint_url": lake.endpoint_url},
        "spark": {"master": f"sc://127.0.0.1:{port}"},
        "sinks": [{"name": "small", "topics": topics, "bucket": lake.name, "start": hour, "format": {"type": "json"}}],
    }


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 20_000, 200_000], help="records of a topic")
    parser.add_argument("--compare", metavar="COMMIT", help="measure that commit's code too, in turns")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
