"""The demo: real Kafka, a real S3 API and the Dagster definitions, from nothing to verified files."""

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake import hours
from s3lake.commit.files import files_of
from s3lake.config import native
from s3lake.demo import events
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.process import GuardedProcess, free_port, free_ports, spawn
from s3lake.demo.s3 import EmbeddedS3
from s3lake.demo.spark import EmbeddedSpark
from s3lake.demo.tables import QUERY, counted, with_tables
from s3lake.errors import ConfigurationError
from s3lake.orchestration import names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake.sink import Config, Credentials

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

BUCKET = "lake"
SINK = "events"
TOPICS = ("orders", "clicks")

_UI_PORT = 3000
"""Dagster's own; another where it is taken."""

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
        topics: of orders and of clicks.
        spark: serves warm sessions; None where the session is this process's own.
    """

    kafka: EmbeddedKafka
    s3: EmbeddedS3
    home: Path
    config_path: Path
    config: Config
    hours: list[str]
    topics: tuple[str, str]
    produced: events.Produced
    spark: EmbeddedSpark | None


@contextmanager
def stage(
    records: int,
    keep: Path | None,
    progress: Callable[[int], None],
    given: Config | None = None,
    *,
    warm: bool = False,
    tables: bool = False,
) -> Iterator[Stage]:
    """Start Kafka and S3 and produce `records` events; everything started ends with the block, or with this process.

    Args:
        records: committed records over both topics.
        warm: start a Spark Connect server too, and land through it, unless `given` names one.
        given: a configuration whose sinks take the events, in place of the demo's own; its Kafka, S3 and first hour
            become the demo's.
        tables: give each sink that can have one an Iceberg table.
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
        now = datetime.now(timezone.utc)
        start = hours.shift(hours.key(now), -events.CLOSED_HOURS)
        config_path = home / "s3lake.yaml"
        own = native.loads(_config(kafka, s3, start), str(config_path))
        config = own if given is None else _staged(given, own)
        config = with_tables(config, home) if tables else config
        topics = TOPICS if given is None else _topics(config)
        config_path.write_text(_written(config))
        spark = None
        if warm and not config.spark.master.startswith("sc://"):
            spark = stack.enter_context(EmbeddedSpark.start(config_path, config.spark.master, home / "spark.log"))
        for bucket in sorted({sink.bucket for sink in config.sinks}):
            s3.create_bucket(bucket)
        produced = events.produce_demo(kafka.bootstrap_servers, records, now, topics=topics, progress=progress)
        if spark is not None:
            spark.ready()
            config = config.model_copy(update={"spark": config.spark.model_copy(update={"master": spark.address})})
            config_path.write_text(_written(config))
        (home / "dagster.yaml").write_text(_INSTANCE)
        (home / "workspace.yaml").write_text(_WORKSPACE)
        # The clock may have turned while producing; transactions are stamped with the real present.
        wanted = list(hours.span(start, hours.key(datetime.now(timezone.utc))))
        yield Stage(kafka, s3, home, config_path, config, wanted, topics, produced, spark)
        if keep is not None:
            _download(s3, home / "s3", {sink.bucket for sink in config.sinks})


def backfill(demo: Stage, tell: Callable[[str], None]) -> None:
    """Land all hours of both topics through the Dagster definitions, in this process, recorded in the demo's instance.

    What follows sealed hours is materialised of those that were sealed.

    Args:
        tell: called with what the run logs, while it works.

    Raises:
        DagsterError: as Dagster reports a step that failed.
    """
    definitions, catalogue = build_definitions(demo.config), Catalogue(demo.config)
    job = definitions.resolve_implicit_global_asset_job_def()
    routes = [(sink, topic) for sink in demo.config.sinks for topic in demo.topics if sink.reads(topic)]
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:

        def run(selection: Sequence[dg.AssetKey], first: str, last: str) -> None:
            run_id = str(uuid.uuid4())
            with _followed(instance, run_id, tell):
                job.execute_in_process(
                    run_id=run_id,
                    asset_selection=list(selection),
                    tags={names.RANGE_START: first, names.RANGE_END: last},
                    run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
                    instance=instance,
                )

        run([sink_key(*route) for route in routes], demo.hours[0], demo.hours[-1])
        for route in routes:
            example = catalogue.example_key(*route)
            sealed = sorted(instance.get_materialized_partitions(sealed_key(*route)))
            if definitions.resolve_asset_graph().has(example) and sealed:
                tell(f"{example.to_user_string()}, an example that follows: {len(sealed)} sealed hours")
                run([example], sealed[0], sealed[-1])


@contextmanager
def _followed(instance: dg.DagsterInstance, run_id: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell what a run logs, as its page in the UI would."""
    over = threading.Event()

    def follow() -> None:
        cursor, last = None, False
        while not last:
            last = over.wait(0.5)
            page = instance.get_records_for_run(run_id, cursor=cursor)
            cursor = page.cursor
            for entry in (record.event_log_entry for record in page.records):
                if entry.dagster_event is None and int(entry.level) >= logging.INFO:
                    tell(entry.user_message)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def ui_port() -> int:
    """Where the UI will be; it is told before there is one."""
    return _UI_PORT if free_port(_UI_PORT) else free_ports(1)[0]


@contextmanager
def served(demo: Stage, port: int, *, sensors: bool = True) -> Iterator[tuple[GuardedProcess, str]]:
    """Dagster's UI and daemon over the demo, sensors on or off: the process and the URL."""
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(demo.home / "workspace.yaml")]
    command += ["-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(demo.home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "S3LAKE_CONFIG": str(demo.config_path),
        "S3LAKE_SENSORS": "running" if sensors else "",
    }
    with spawn(command, demo.home / "dagster.log", env=environment) as process:
        yield process, f"http://127.0.0.1:{port}"


def produced_row(demo: Stage) -> dict[str, int]:
    """What was produced, for people and scripts."""
    produced = demo.produced
    return {"committed": produced.committed, "malformed": produced.malformed, "aborted": produced.aborted}


def addresses(demo: Stage, landings: Sequence["Landing"], url: str) -> dict[str, str]:
    """Where everything is, for people and scripts."""
    s3 = demo.s3
    found = {
        "ui": f"{url} (up in about half a minute)",
        "kafka": demo.kafka.bootstrap_servers,
        "s3": " ".join([s3.endpoint_url, *sorted({sink.bucket for sink in demo.config.sinks})]),
        "s3 credentials": f"{s3.access_key_id} {s3.secret_access_key}",
        "spark": demo.config.spark.master,
        "config": str(demo.config_path),
    }
    query = next((query for lander in landings if (query := _query(demo, lander))), None)
    return found if query is None else found | {"look at a directory": query}


def _query(demo: Stage, lander: "Landing") -> str | None:
    """A shell's line that lets DuckDB read the directory of a landed file; None where nothing was landed."""
    files = (file for hour in demo.hours for file in files_of(lander.report(hour).manifests, "data"))
    key = next((file.key for file in files), None)
    if key is None:
        return None
    options = {
        "ENDPOINT": demo.s3.endpoint_url.removeprefix("http://"),
        "KEY_ID": demo.s3.access_key_id,
        "SECRET": demo.s3.secret_access_key,
        "REGION": demo.s3.region,
        "URL_STYLE": "path",
    }
    secret = ", ".join(f"{name} '{value}'" for name, value in options.items())
    path = f"s3://{lander.sink.bucket}/{key.rpartition('/')[0]}/*{lander.sink.format.extension}"
    return f"duckdb -c \"CREATE SECRET (TYPE s3, {secret}, USE_SSL false); SELECT count(*) FROM '{path}'\""


def queried(lander: "Landing", hours: Sequence[str]) -> dict[str, Any] | None:
    """A query of a topic's table, its answer, and what the index calls landed; None where it has none."""
    if lander.table is None:
        return None
    landed = sum(lander.report(hour).sums.landed for hour in hours)
    return {"table": lander.table.name, "query": QUERY, "rows": counted(lander.table), "landed": landed}


def interrupted() -> threading.Event:
    """Set by SIGINT and SIGTERM from now on; asked for before anybody is told how to end the demo."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def trickle(demo: Stage, process: GuardedProcess, stop: threading.Event) -> None:
    """Keep producing a few events a second, and Spark serving, until `stop` is set or the UI's process ends."""
    producer = threading.Thread(
        target=events.trickle, args=(demo.kafka.bootstrap_servers, stop), kwargs={"topics": demo.topics}, daemon=True
    )
    producer.start()
    while not stop.wait(0.5) and process.running:
        if demo.spark is not None:
            demo.spark.keep()
    stop.set()
    producer.join(timeout=10)


def expected(demo: Stage) -> int:
    """How many committed records the sinks should have landed, skipped or refused."""
    return sum(
        produced.committed
        for sink in demo.config.sinks
        for topic, produced in demo.produced.topics.items()
        if sink.reads(topic)
    )


def _staged(given: Config, own: Config) -> Config:
    """Return a configuration on the demo's Kafka and S3, from its first hour, that tolerates its malformed events.

    Servers of forwards and catalogs of tables are not here, so both are left out.
    """
    sinks = tuple(
        sink.model_copy(
            update={
                "s3": None,
                "start": own.sinks[0].start,
                "close_grace": own.sinks[0].close_grace,
                "errors": sink.errors.model_copy(update={"tolerance": "all"}),
                "forwards": (),
                "table": None,
            }
        )
        for sink in given.sinks
    )
    return given.model_copy(update={"kafka": own.kafka, "source": None, "s3": own.s3, "sinks": sinks})


def _topics(config: Config) -> tuple[str, str]:
    """The sinks' first two topics, for orders and for clicks."""
    named = list(dict.fromkeys(chain.from_iterable(sink.topics for sink in config.sinks)))
    other = [topic for topic in TOPICS if topic not in named and any(sink.reads(topic) for sink in config.sinks)]
    found = [*named, *other]
    if not found:
        expressions = ", ".join(str(sink.topics_regex) for sink in config.sinks)
        raise ConfigurationError(f"no sink reads a topic of the demo: {expressions} matches neither of {TOPICS}")
    return (found[0], found[1]) if len(found) > 1 else (found[0], f"{found[0]}-clicks")


def _written(config: Config) -> str:
    """The configuration as a file, for processes that the demo starts; the secret of the demo's own S3 is none."""
    text, variables, _ = native.write_native(config)
    credentials = config.s3.credentials
    assert isinstance(credentials, Credentials), "the demo's own"
    for variable, place in variables.items():
        if place == "s3.credentials.secret_access_key":
            text = text.replace(f"${{{variable}}}", credentials.secret_access_key.get_secret_value())
    return text


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


def _download(s3: EmbeddedS3, directory: Path, buckets: set[str]) -> None:
    """The embedded S3 forgets with its process: keep a copy of every object, index included."""
    from s3lake.store.connection import S3Connection
    from s3lake.store.s3 import S3Store

    shutil.rmtree(directory, ignore_errors=True)
    connection = S3Connection(s3.endpoint_url, s3.region, True, 10, s3.access_key_id, s3.secret_access_key)
    for bucket in buckets:
        store = S3Store(connection, bucket)
        for key in store.list(""):
            found = store.get(key)
            if found is not None:
                path = directory / bucket / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(found.body)
