"""What a run of Dagster costs, by each run launcher: `python -m benchmarks.dagster_run --rounds 5`.

Starts Kafka, versitygw, a Spark Connect server and, for each launcher, an instance with a code server. In each round
each launcher lands a topic of its own by the job of its sink, and then again when there is nothing to land. Prints a
JSON line for each run: CPU seconds of the run's process, of the processes that started it, and of the Spark server. The
first round is not counted: the server's JIT compiler, the trial of the bucket and loading the code make it dearer.
"""

import argparse
import contextlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import psutil
import yaml
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_graphql.test.utils import execute_dagster_graphql

from benchmarks import records
from benchmarks.process_tree import Meter
from benchmarks.sink import bucket
from benchmarks.small import count_lines, run_spark, to_document
from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.process import free_ports

LAUNCHERS = {
    "default": {"module": "dagster", "class": "DefaultRunLauncher"},
    "preloaded": {"module": "s3lake", "class": "PreloadedRunLauncher"},
}
LAUNCH = """
mutation Launch($parameters: ExecutionParams!) {
  launchPipelineExecution(executionParams: $parameters) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message stack }
  }
}
"""


class Cpu(NamedTuple):
    """CPU seconds of ended runs, and of the processes that start runs."""

    runs: float
    servers: float


def main() -> None:
    """Measure the launchers in turns."""
    options = parse_arguments()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    topics = {name: [f"{name}-{number}" for number in range(options.rounds + 1)] for name in LAUNCHERS}
    every = [topic for listed in topics.values() for topic in listed]
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3lake-run-")))
        kafka, log = stack.enter_context(EmbeddedKafka.start()), scratch / "requests.log"
        for topic in every:
            records.main(kafka.bootstrap_servers, topic, hour, options.records, 1, 0, 0, 0)
        lake = stack.enter_context(bucket(argparse.Namespace(endpoint=None, server="versitygw"), log))
        (port,) = free_ports(1)
        config = scratch / "s3lake.yaml"
        config.write_text(yaml.safe_dump(to_document(lake, kafka.bootstrap_servers, every, hour, port)))
        os.environ.update(lake.environment, S3LAKE_CONFIG=str(config), DAGSTER_DISABLE_TELEMETRY="yes")
        spark = stack.enter_context(run_spark(config, port, os.environ, Path.cwd()))
        meter = stack.enter_context(Meter(spark))
        locations = {name: stack.enter_context(serve(scratch / name, name)) for name in LAUNCHERS}
        for number in range(options.rounds + 1):
            for name, location in list(locations.items())[:: 1 if number % 2 else -1]:
                for count in (options.records, 0):
                    served, before, asked = meter.cpu_seconds, measure_cpu(), count_lines(log)
                    run(location, topics[name][number], hour)
                    after = measure_cpu()
                    if number:
                        found = {
                            "run_cpu_s": round(after.runs - before.runs, 2),
                            "servers_cpu_s": round(after.servers - before.servers, 2),
                            "spark_cpu_s": round(meter.cpu_seconds - served, 2),
                            "s3_requests": count_lines(log) - asked,
                            "load": round(os.getloadavg()[0], 1),
                        }
                        print(json.dumps({"launcher": name, "records": count, **found}), flush=True)


@contextlib.contextmanager
def serve(home: Path, name: str) -> Iterator[WorkspaceProcessContext]:
    """Yield an instance with a launcher and the code server of the configuration."""
    home.mkdir()
    direct = {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"}
    settings = {"run_launcher": LAUNCHERS[name], "run_coordinator": direct, "telemetry": {"enabled": False}}
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    target = ModuleTarget("s3lake.definitions", "defs", str(Path.cwd()), "s3lake")
    with dg.DagsterInstance.from_config(str(home)) as instance, WorkspaceProcessContext(instance, target) as location:
        yield location


def run(location: WorkspaceProcessContext, topic: str, hour: str) -> None:
    """Land an hour of a topic in a run, and wait until its process has ended."""
    selector = {
        "repositoryLocationName": "s3lake",
        "repositoryName": "__repository__",
        "pipelineName": "land_small",
        "assetSelection": [{"path": ["s3", "small", topic]}],
    }
    tags = [{"key": f"dagster/asset_partition_range_{end}", "value": hour} for end in ("start", "end")]
    parameters = {"selector": selector, "runConfigData": {}, "mode": "default", "executionMetadata": {"tags": tags}}
    result = execute_dagster_graphql(location.create_request_context(), LAUNCH, {"parameters": parameters})
    launched = result.data["launchPipelineExecution"]
    if launched["__typename"] != "LaunchRunSuccess":
        raise SystemExit(f"the run was not launched: {launched}")
    run_id = launched["run"]["runId"]
    while not (found := require(location.instance.get_run_by_id(run_id))).is_finished:
        time.sleep(0.1)
    if found.status != dg.DagsterRunStatus.SUCCESS:
        raise SystemExit(f"the run failed:\n{describe(location.instance, run_id)}")
    started = re.search(r"Started process for run \(pid: (\d+)\)", describe(location.instance, run_id))
    while started and psutil.pid_exists(int(started[1])):
        time.sleep(0.1)


def require(found: dg.DagsterRun | None) -> dg.DagsterRun:
    """Return the run, which is there."""
    assert found is not None
    return found


def describe(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return the log of a run."""
    return "\n".join(entry.message or entry.user_message for entry in instance.all_logs(run_id))


def measure_cpu() -> Cpu:
    """Measure what this process and its children have used, without the servers of Kafka, S3 and Spark."""
    runs = servers = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            command, times = " ".join(process.cmdline()), process.cpu_times()
            if process.pid == os.getpid():
                servers += times.user + times.system
            elif "dagster api grpc" in command or "preload.server" in command:
                runs += times.children_user + times.children_system
                servers += times.user + times.system
    return Cpu(runs, servers)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000, help="of about 200 bytes (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
