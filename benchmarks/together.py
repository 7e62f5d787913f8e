"""What a run of many topics costs: `python -m benchmarks.together --topics 256 --compare 3f638a71 --rounds 2`.

Starts Kafka and versitygw, fills the topics, and lets `many_topics.py` land them in one run of Dagster with a Spark
session of its own. Prints a JSON line for each run: CPU seconds of the run with its JVM and its Python workers, and of
the driver alone, the driver's peak RSS and the number of its threads. `--compare COMMIT` does the same with that
commit's code, in turns.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil

from benchmarks.process_tree import Meter, Watch
from benchmarks.sink import bucket, states
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka


class ThreadCount(Watch):
    """Watches how many threads a process has.

    Attributes:
        most: the largest number so far.
    """

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(0.05)
        self.most, self._process = 0, process

    def look(self) -> None:
        """Look once."""
        try:
            self.most = max(self.most, self._process.num_threads())
        except psutil.Error:
            return


def main() -> None:
    """Measure each state in turns."""
    options = parse_arguments()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    with states(options.compare) as scripts:
        for _ in range(options.rounds):
            for state, script in scripts.items():
                print(json.dumps({"state": state, **measure_run(script.parents[1], hour, options)}), flush=True)


def measure_run(home: Path, hour: str, options: argparse.Namespace) -> dict[str, Any]:
    """Land all topics with the code in `home`, and return what the first run cost."""
    with (
        tempfile.TemporaryDirectory(prefix="s3lake-together-") as scratch,
        EmbeddedKafka.start() as kafka,
        bucket(argparse.Namespace(endpoint=None, server="versitygw"), Path(scratch) / "requests.log") as lake,
    ):
        places = [kafka.bootstrap_servers, hour, str(options.topics), str(options.records)]
        command = [sys.executable, "-W", "ignore", str(home / "benchmarks" / "many_topics.py"), *places]
        environment = {**os.environ, **lake.environment, "PYTHONPATH": str(home)}
        return measure_process([*command, lake.endpoint_url, lake.name], environment, home)


def measure_process(command: list[str], environment: Mapping[str, str], home: Path) -> dict[str, Any]:
    """Run `many_topics.py` of the code in `home`, and return what its first run cost."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=home,  # which comes before everything in the path of Spark's workers
    )
    assert process.stdin is not None
    assert process.stdout is not None
    driver, found = psutil.Process(process.pid), dict[str, Any]()
    tree_s = driver_s = 0.0
    with Meter(process.pid) as meter, ThreadCount(driver) as threads:
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # a line of the run's log
            told, times = json.loads(line), driver.cpu_times()
            tree_now, driver_now = meter.cpu_seconds, times.user + times.system
            if told["did"] == "run" and not found:
                found = {
                    "seconds": round(told["seconds"], 1),
                    "cpu_s": round(tree_now - tree_s, 2),
                    "driver_cpu_s": round(driver_now - driver_s, 2),
                    "driver_peak_rss_mb": round(read_peak_rss(process.pid) / 2**20, 1),
                    "tree_peak_pss_mb": round(meter.peak_pss / 2**20, 1),
                    "driver_threads": threads.most,
                    "load": round(os.getloadavg()[0], 1),
                }
            tree_s, driver_s = tree_now, driver_now
            process.stdin.write("\n")
            process.stdin.flush()
    if process.wait():
        raise SystemExit("landing failed")
    return found


def read_peak_rss(pid: int) -> int:
    """Return the largest resident size that a process ever had, in bytes. Linux only."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=256, help="topics of the sink (default: %(default)s)")
    parser.add_argument("--records", type=int, default=80, help="records of a topic (default: %(default)s)")
    parser.add_argument("--compare", metavar="COMMIT", help="measure that commit's code too, in turns")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
