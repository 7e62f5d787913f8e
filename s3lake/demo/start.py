"""The servers, the configuration and the events of a demo."""

import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config, Credentials, Sink, Table
from s3lake.config.model.converter import Converter
from s3lake.demo import events
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import BUSY, GuardedProcess, Service, free_port, free_ports, spawn
from s3lake.errors import ConfigurationError, SparkUnavailableError
from s3lake.land.spark.class_archive import WRITING_S
from s3lake.land.spark.starting import tell_start
from s3lake.records.layout.pieces import FieldElement, TimeElement

BUCKET = "lake"
SINK = "events"
TOPICS = ("orders", "clicks")
_SPARK_START_S = 180.0
# It stops Python workers and deletes temporary files, and the first one of a machine writes its archive of classes.
_SPARK_END_S = WRITING_S + 20.0

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
run_launcher: {module: s3lake, class: PreloadedRunLauncher}
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


class EmbeddedSpark(Service):
    """Warm Spark sessions on this machine: `s3lake spark`, restarted on the same port if it crashes."""

    def __init__(self, command: list[str | Path], log: Path, port: int) -> None:
        self._command, self._log, self._port = command, log, port
        self._process = self._start_process()

    @classmethod
    def start(cls, config: Path, master: str, log: Path) -> "EmbeddedSpark":
        """Start the server for a configuration and a master, with its output in `log`; `ready` waits for it."""
        (port,) = free_ports(1)
        program = [sys.executable, "-m", "s3lake"]
        return cls([*program, "spark", config, "--master", master, "--port", str(port)], log, port)

    @property
    def address(self) -> str:
        """The value of `spark.master`."""
        return f"sc://127.0.0.1:{self._port}"

    def ready(self) -> None:
        """Wait until it serves. Raise SparkUnavailableError if it does not start; the message ends with its log."""
        deadline = time.monotonic() + _SPARK_START_S
        while free_port(self._port):
            if not self._process.running:
                raise SparkUnavailableError(f"{self.address} has ended. {self._process.end_of_log()}")
            if time.monotonic() > deadline:
                raise SparkUnavailableError(
                    f"{self.address} did not serve within {_SPARK_START_S:.0f} s. {BUSY} {self._process.end_of_log()}"
                )
            time.sleep(0.05)

    def keep(self) -> None:
        """Restart it if it has ended."""
        if not self._process.running:
            self._process.stop()
            self._process = self._start_process()

    def _start_process(self) -> GuardedProcess:
        return spawn(self._command, self._log, grace_s=_SPARK_END_S)


@dataclass(frozen=True)
class Demo:
    """The servers, the configuration and the events of a demo.

    Attributes:
        home: the directory of the configuration, Dagster's state and Kafka's log.
        config_path: the native configuration of the demo.
        hours: the closed hours that events were produced for, and the open one.
        topics: the names of the topics of orders and clicks.
        fields: fields that events have in addition, because the configuration names them.
        produced: the events of each topic, by its name.
        spark: the server of warm sessions; None if the session is this process's own.
    """

    kafka: EmbeddedKafka
    s3: EmbeddedS3
    home: Path
    config_path: Path
    config: Config
    hours: list[str]
    topics: tuple[str, str]
    fields: events.Fields
    produced: dict[str, events.Produced]
    spark: EmbeddedSpark | None

    @property
    def total(self) -> events.Produced:
        """The records of both topics."""
        return events.Produced.total(self.produced)

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the servers, and the file of the configuration."""
        spark = {} if self.spark is None else {"spark": self.spark.address}
        buckets = sorted({sink.bucket for sink in self.config.sinks})
        return {**_list_servers(self.kafka, self.s3, buckets), **spark, "config": str(self.config_path)}


@contextmanager
def start_demo(
    records: int,
    keep: Path | None,
    progress: Callable[[int], None],
    own: Config | None = None,
    *,
    warm: bool = False,
    tables: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Demo]:
    """Start Kafka and S3 and produce `records` events; the servers end with the block, or with this process.

    Args:
        records: committed records over both topics.
        keep: a directory that keeps Kafka's data, the configuration and Dagster's state; None for a temporary one.
        progress: called with the number of records produced so far.
        own: a configuration whose sinks are used instead of the demo's, on the demo's Kafka and S3.
        warm: start a Spark Connect server too, and land through it, unless `own` names one.
        tables: give each sink that can have one an Iceberg table.
        tell: called with what starts, and with each address as soon as there is one.
    """
    with ExitStack() as stack:
        if keep is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3lake-demo-")))
        else:
            home = keep.resolve()
            home.mkdir(parents=True, exist_ok=True)
        with tell_start(tell, "Kafka"):
            kafka = stack.enter_context(EmbeddedKafka.start(home / "kafka" if keep else None))
        with tell_start(tell, "S3"):
            s3 = stack.enter_context(EmbeddedS3.start())
        now = datetime.now(timezone.utc)
        start = hours.shift(hours.key(now), -events.CLOSED_HOURS)
        config_path = home / "s3lake.yaml"
        config = native.load_text(_write_default(kafka, s3, start), str(config_path))
        topics, fields = TOPICS, events.NO_FIELDS
        if own is not None:
            config = _adapt(own, config)
            topics, fields = _choose_topics(config), find_named_fields(config.sinks)
        if tables:
            config = _add_tables(config, home)
        config_path.write_text(_to_yaml(config))
        spark = None
        if warm and not config.spark.master.startswith("sc://"):
            spark = stack.enter_context(EmbeddedSpark.start(config_path, config.spark.master, home / "spark.log"))
        buckets = sorted({sink.bucket for sink in config.sinks})
        for bucket in buckets:
            s3.create_bucket(bucket)
        for name, address in {**_list_servers(kafka, s3, buckets), "config": config_path}.items():
            tell(f"{name}: {address}")
        produced = events.produce_demo(
            kafka.bootstrap_servers, records, now, topics=topics, fields=fields, progress=progress
        )
        if spark is not None:
            with tell_start(tell):
                spark.ready()
            tell(f"spark: {spark.address}")
            config = config.model_copy(update={"spark": config.spark.model_copy(update={"master": spark.address})})
            config_path.write_text(_to_yaml(config))
        (home / "dagster.yaml").write_text(_INSTANCE)
        (home / "workspace.yaml").write_text(_WORKSPACE)
        # An hour may have ended while producing; transactions have the real present time.
        span = list(hours.span(start, hours.key(datetime.now(timezone.utc))))
        yield Demo(kafka, s3, home, config_path, config, span, topics, fields, produced, spark)
        if keep is not None:
            _download(s3, home / "s3", {sink.bucket for sink in config.sinks})


def _list_servers(kafka: EmbeddedKafka, s3: EmbeddedS3, buckets: Sequence[str]) -> dict[str, str]:
    return {
        "kafka": kafka.bootstrap_servers,
        "s3": " ".join([s3.endpoint_url, *buckets]),
        "s3 credentials": f"{s3.access_key_id} {s3.secret_access_key}",
    }


def stop_on_signal() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set from now on."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def find_named_fields(sinks: Iterable[Sink]) -> events.Fields:
    """Return the fields of the value that object keys and transforms need, and whether each is a time."""
    fields: dict[tuple[str, ...], bool] = {}
    for sink in sinks:
        for piece in sink.layout.pieces:
            if isinstance(piece, FieldElement) or (isinstance(piece, TimeElement) and piece.clock == "field"):
                fields[piece.path] = isinstance(piece, TimeElement)
        for transform in sink.transforms:
            named = [transform.options.get("field", ()), transform.options.get("fields", ())]
            names = chain.from_iterable(one.split(",") if isinstance(one, str) else one for one in named)
            for name in (name.strip() for name in names if isinstance(name, str)):
                path = tuple(name.removeprefix("_value.").split("."))
                if not transform.type.endswith("$Key") and not path[0].startswith("_"):
                    fields[path] = fields.get(path, False) or "Timestamp" in transform.type
    return fields


def _adapt(own: Config, demo: Config) -> Config:
    """Return a configuration on the demo's Kafka and S3, from its first hour, that tolerates its malformed events.

    Other servers are not in the demo: there are no forwards, tables and registries, and values are JSON.
    """
    sinks = tuple(
        sink.model_copy(
            update={
                "s3": None,
                "start": demo.sinks[0].start,
                "close_grace": demo.sinks[0].close_grace,
                "errors": sink.errors.model_copy(update={"tolerance": "all"}),
                "converter": sink.converter if sink.converter.registry is None else Converter(),
                "forwards": (),
                "table": None,
            }
        )
        for sink in own.sinks
    )
    return own.model_copy(update={"kafka": demo.kafka, "source": None, "s3": demo.s3, "sinks": sinks})


def _choose_topics(config: Config) -> tuple[str, str]:
    """Return the first two topics of the sinks, for orders and for clicks."""
    listed = list(dict.fromkeys(chain.from_iterable(sink.topics for sink in config.sinks)))
    matched = [topic for topic in TOPICS if topic not in listed and any(sink.reads(topic) for sink in config.sinks)]
    topics = [*listed, *matched]
    if not topics:
        expressions = ", ".join(str(sink.topics_regex) for sink in config.sinks)
        raise ConfigurationError(f"no sink reads a topic of the demo: {expressions} matches neither of {TOPICS}")
    return (topics[0], topics[1]) if len(topics) > 1 else (topics[0], f"{topics[0]}-clicks")


def _add_tables(config: Config, home: Path) -> Config:
    """Give each sink that can have one a table in a catalog of SQLite.

    Raises:
        ConfigurationError: no sink can have a table.
    """
    table = Table(name="{sink}.{topic}", catalog={"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}"})
    sinks = tuple(
        sink.model_copy(update={"table": table}) if sink.format.type == "parquet" else sink for sink in config.sinks
    )
    if not any(sink.table for sink in sinks):
        raise ConfigurationError("--table: no sink of this configuration writes parquet, so none can have a table")
    return config.model_copy(update={"sinks": sinks})


def _to_yaml(config: Config) -> str:
    """Write the configuration for processes that the demo starts, with the key of the demo's S3: it is not secret."""
    text, variables = native.write_native(config)
    credentials = config.s3.credentials
    assert isinstance(credentials, Credentials), "the demo's own"
    for variable, place in variables.items():
        if place == "s3.credentials.secret_access_key":
            text = text.replace(f"${{{variable}}}", credentials.secret_access_key.get_secret_value())
    return text


def _write_default(kafka: EmbeddedKafka, s3: EmbeddedS3, start: str) -> str:
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
    """Copy every object, index included: the embedded S3 keeps nothing when it ends."""
    from s3lake.index.store.s3_connection import S3Connection
    from s3lake.index.store.s3_store import S3Store

    shutil.rmtree(directory, ignore_errors=True)
    connection = S3Connection(s3.endpoint_url, s3.region, True, 10, s3.access_key_id, s3.secret_access_key)
    for bucket in buckets:
        store = S3Store(connection, bucket)
        for key in store.list(""):
            stored = store.get(key)
            if stored is not None:
                path = directory / bucket / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(stored.body)
