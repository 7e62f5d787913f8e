"""The demo: real Kafka, a real S3 API and the Dagster definitions, from nothing to verified files."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg

from s3lake import hours
from s3lake.demo import events
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.process import GuardedProcess, free_ports, spawn
from s3lake.demo.s3 import EmbeddedS3
from s3lake.dialects import native
from s3lake.orchestration import names
from s3lake.orchestration.build import build_definitions
from s3lake.sink import Config

BUCKET = "lake"
SINK = "events"
TOPICS = ("orders", "clicks")

_CONFIG = """\
kafka:
  bootstrap_servers: {kafka}
s3:
  endpoint_url: {endpoint}
  credentials: {{access_key_id: {access_key_id}, secret_access_key: {secret_access_key}}}
examples: true
sinks:
  - name: {sink}
    topics: [{topics}]
    bucket: {bucket}
    prefix: raw
    start: {start}
    format: {{type: parquet, codec: zstd}}
    flush: {{interval: 1m}}
    close_grace: 1m
    errors: {{tolerance: all}}
"""

_INSTANCE = """\
telemetry: {enabled: false}
nux: {enabled: false}
run_queue: {dequeue_interval_seconds: 1}
concurrency:
  runs: {max_concurrent_runs: 1}
  pools: {default_limit: 1, granularity: run}
code_servers: {local_startup_timeout: 180}
"""

_WORKSPACE = """\
load_from:
  - python_module: {module_name: s3lake.definitions, location_name: s3lake}
"""


@dataclass(frozen=True)
class Stage:
    """What the demo runs on.

    Attributes:
        home: holds the configuration, Dagster's state and Kafka's log.
        config_path: the native configuration of the demo.
        hours: the closed hours that events were produced for, and the open one.
    """

    kafka: EmbeddedKafka
    s3: EmbeddedS3
    home: Path
    config_path: Path
    config: Config
    hours: list[str]
    produced: events.Produced


@contextmanager
def stage(records: int, keep: Path | None, progress: Callable[[int], None]) -> Iterator[Stage]:
    """Start Kafka and S3 and produce `records` events; everything started ends with the block, or with this process.

    Args:
        records: committed records over both topics.
        keep: a directory for Kafka's data, the configuration and Dagster's state, kept; else a temporary one.
        progress: called with the number of records produced so far.
    """
    with ExitStack() as stack:
        if keep is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3lake-demo-")))
        else:
            home = keep.resolve()
            home.mkdir(parents=True, exist_ok=True)
        kafka = stack.enter_context(EmbeddedKafka.start(home / "kafka" if keep else None))
        s3 = stack.enter_context(EmbeddedS3.start())
        s3.create_bucket(BUCKET)
        now = datetime.now(timezone.utc)
        produced = events.produce_demo(kafka.bootstrap_servers, records, now, topics=TOPICS, progress=progress)
        start = hours.shift(hours.key(now), -events.CLOSED_HOURS)
        config_path = home / "s3lake.yaml"
        config_path.write_text(_config(kafka, s3, start))
        (home / "dagster.yaml").write_text(_INSTANCE)
        (home / "workspace.yaml").write_text(_WORKSPACE)
        # The clock may have turned while producing; transactions are stamped with the real present.
        wanted = list(hours.span(start, hours.key(datetime.now(timezone.utc))))
        yield Stage(kafka, s3, home, config_path, native.load(config_path), wanted, produced)
        if keep is not None:
            _download(s3, home / "s3")


def backfill(demo: Stage) -> None:
    """Land all hours of both topics through the Dagster definitions, in this process, recorded in the demo's instance.

    Raises:
        DagsterError: as Dagster reports a step that failed.
    """
    definitions = build_definitions(demo.config)
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:
        job.execute_in_process(
            asset_selection=[key for sink in demo.config.sinks for t in sink.topics for key in _assets(sink.name, t)],
            tags={names.RANGE_START: demo.hours[0], names.RANGE_END: demo.hours[-1]},
            run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
            instance=instance,
        )


@contextmanager
def served(demo: Stage) -> Iterator[tuple[GuardedProcess, str]]:
    """Dagster's UI and daemon over the demo, sensors on: the process and the URL."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(demo.home / "workspace.yaml")]
    command += ["-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(demo.home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "S3LAKE_CONFIG": str(demo.config_path),
        "S3LAKE_SENSORS": "running",
    }
    with spawn(command, demo.home / "dagster.log", env=environment) as process:
        yield process, f"http://127.0.0.1:{port}"


def addresses(demo: Stage, url: str) -> dict[str, str]:
    """Where everything is, for people and scripts."""
    return {
        "kafka": demo.kafka.bootstrap_servers,
        "s3": f"{demo.s3.endpoint_url} {BUCKET}",
        "config": str(demo.config_path),
        "ui": url,
    }


def trickle_until_interrupted(demo: Stage, process: GuardedProcess) -> None:
    """Keep producing a few events a second until SIGINT or SIGTERM, or until the UI's process ends."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    producer = threading.Thread(
        target=events.trickle, args=(demo.kafka.bootstrap_servers, stop), kwargs={"topics": TOPICS}, daemon=True
    )
    producer.start()
    while not stop.wait(0.5) and process.running:
        pass
    stop.set()
    producer.join(timeout=10)


def _assets(sink: str, topic: str) -> list[dg.AssetKey]:
    return [dg.AssetKey(["s3", sink, topic]), dg.AssetKey(["example", sink, topic, "events_by_type"])]


def _config(kafka: EmbeddedKafka, s3: EmbeddedS3, start: str) -> str:
    return _CONFIG.format(
        kafka=kafka.bootstrap_servers,
        endpoint=s3.endpoint_url,
        access_key_id=s3.access_key_id,
        secret_access_key=s3.secret_access_key,
        sink=SINK,
        topics=", ".join(TOPICS),
        bucket=BUCKET,
        start=start,
    )


def _download(s3: EmbeddedS3, directory: Path) -> None:
    """The embedded S3 forgets with its process: keep a copy of every object, index included."""
    from s3lake.store.s3 import S3Connection, S3Store

    shutil.rmtree(directory, ignore_errors=True)
    connection = S3Connection(s3.endpoint_url, s3.region, True, 10, s3.access_key_id, s3.secret_access_key)
    store = S3Store(connection, BUCKET)
    for key in store.list(""):
        found = store.get(key)
        if found is not None:
            path = directory / BUCKET / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found.body)
