"""What topics without a record cost an hour: `python -m benchmarks.quiet_topics --topics 500 --hours 2`.

Starts Kafka and an S3 server, lets `many_topics.py` land the topics, and then lets hours pass in which no topic gets a
record. Prints a JSON line for each such hour: CPU seconds, requests and Dagster's events of the runs and of the
sensor's ticks, and the requests for each topic. `--compare COMMIT` does the same with that commit's code, in turns.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime, timezone
from typing import Any

from benchmarks.sink import HERE, bucket, states
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka


def main() -> None:
    """Measure each state in turns."""
    options = parse_arguments()
    with states(options.compare) as scripts:
        for turn in range(options.rounds):
            for state, script in list(scripts.items())[:: -1 if turn % 2 else 1]:
                for found in measure_hours(str(script.parents[1]), options):
                    print(json.dumps({"state": state, **found}), flush=True)


def measure_hours(home: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what each quiet hour costs with the code in `home`."""
    start = hours.shift(hours.key(datetime.now(timezone.utc)), -1)
    place = argparse.Namespace(endpoint=options.endpoint, server=options.server)
    with EmbeddedKafka.start() as kafka, bucket(place) as lake:
        sizes = [start, str(options.topics), str(options.records)]
        arguments = [kafka.bootstrap_servers, *sizes, lake.endpoint_url, lake.name, str(options.hours)]
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "many_topics.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **lake.environment, "PYTHONPATH": home},
            cwd=home,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        steps: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for line in process.stdout:
            if line.startswith("{"):
                told = json.loads(line)
                steps[told.get("hour", ""), told["did"]].append(told)
                process.stdin.write("\n")
                process.stdin.flush()
        if process.wait():
            raise SystemExit("landing failed")
    passed = sorted({hour for hour, _ in steps if hour})
    return [sum_hour(hour, steps[hour, "quiet run"], steps[hour, "quiet tick"], options) for hour in passed]


def sum_hour(
    hour: str, runs: list[dict[str, Any]], ticks: list[dict[str, Any]], options: argparse.Namespace
) -> dict[str, Any]:
    """Return what an hour cost."""
    found: dict[str, Any] = {"hour": hour, "topics": options.topics, "load": round(os.getloadavg()[0], 1)}
    for name, steps in (("run", runs), ("ticks", ticks)):
        requests = sum((Counter(step["requests"]) for step in steps), Counter[str]())
        found |= {
            f"{name}_count": len(steps),
            f"{name}_seconds": round(sum(step["seconds"] for step in steps), 1),
            f"{name}_cpu_s": round(sum(step["cpu_s"] for step in steps), 2),
            f"{name}_events_per_topic": round(sum(step["events"] for step in steps) / options.topics, 2),
            f"{name}_requests_per_topic": round(requests.total() / options.topics, 2),
            f"{name}_requests": dict(sorted(requests.items())),
        }
    return found


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=100, help="topics of the sink (default: %(default)s)")
    parser.add_argument("--records", type=int, default=0, help="records before the quiet hours (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=2, help="quiet hours (default: %(default)s)")
    parser.add_argument("--server", choices=("moto", "versitygw"), default="moto", help="of S3 (default: %(default)s)")
    parser.add_argument("--endpoint", help="of an S3 that runs already")
    parser.add_argument("--compare", metavar="COMMIT", help="measure that commit's code too, in turns")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
