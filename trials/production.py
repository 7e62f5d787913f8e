"""s3lake as it runs in production, on this machine: a broker, an S3 server, and the services that a supervisor keeps.

The services are those of docker/compose.yaml, as processes: the code server, Dagster's daemon and, where sessions are
warm, the Spark Connect server. The instance is the repository's dagster.yaml in a directory of its own.
"""

import compileall
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil
import yaml
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config, Sink
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import GuardedProcess, free_ports, spawn
from s3lake.index.store import PendingUpload, Store
from s3lake.land.topic.open_topic_sink import open_topic_sink
from s3lake.orchestration.preload import server
from s3lake_tests.kit.s3 import Server, find_program, start_s3

ROOT = Path(__file__).parents[1]
BUCKET, SINK = "lake", "events"
CODE, DAEMON, CONNECT = "code", "daemon", "connect"
_UP_S = 180.0
_TWO_DAYS_MS = 2 * 24 * hours.HOUR_MS
_PYTHON = [sys.executable, "-W", "ignore"]
S3LAKE = ["-m", "s3lake"]
ARROWS_S3 = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
"""For Arrow, which writes a table's metadata: parts with a length, not chunked.

versitygw 1.8.0 with --keep-alive leaves the end of a chunked body unread, and answers 400 to the next request of that
connection; on a busy machine Arrow gets that answer before it sees that the connection is closed.
"""


@dataclass
class Service:
    """A process that a supervisor starts again when it ends.

    Attributes:
        up: whether it answers, by what it has written since its start.
    """

    name: str
    command: Sequence[str | Path]
    environment: Mapping[str, str]
    log: Path
    up: Callable[[str], bool]
    _process: GuardedProcess | None = None
    _written: int = 0

    def start(self) -> None:
        self._written = self.log.stat().st_size if self.log.exists() else 0
        self._process = spawn(self.command, self.log, self.environment)

    def await_up(self) -> None:
        deadline = time.monotonic() + _UP_S
        while not self.up(self.said):
            if not self.running or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} did not come up:\n{self.said[-4000:]}")
            time.sleep(0.2)

    @property
    def said(self) -> str:
        """What it has written since its start."""
        return self.log.read_bytes()[self._written :].decode(errors="replace")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def tree(self) -> list[psutil.Process]:
        """The service and all that it started, without the guard."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()


@dataclass
class Production:
    """All of it; `services` in the order in which they start."""

    home: Path
    kafka: EmbeddedKafka
    s3: EmbeddedS3
    config: Config
    services: dict[str, Service] = field(default_factory=dict)

    @property
    def requests(self) -> Path:
        """The log of the S3 server, where it writes one."""
        return self.home / "requests.log"

    @property
    def topics(self) -> tuple[str, ...]:
        return self.config.sink(SINK).topics

    @property
    def runs(self) -> list[psutil.Process]:
        """Processes of runs, with what they have started.

        The daemon has a preloading process for each code location, which is copied for each run. A run that Dagster's
        own launcher starts is a child of the code server, which starts nothing else but a tracker.
        """
        started = {process for process in self.services[CODE].tree[1:] if not _has_word(process, "resource_tracker")}
        for process in self.services[DAEMON].tree:
            if _has_word(process, server.__name__):
                with contextlib.suppress(psutil.NoSuchProcess):
                    started.update(process.children(recursive=True))
        return list(started)

    def start(self, *names: str) -> None:
        """Start services, all of them where none is named, one after another as each answers."""
        for name in names or tuple(self.services):
            self.services[name].start()
            self.services[name].await_up()

    def stop(self, *names: str) -> None:
        for name in reversed(names or tuple(self.services)):
            self.services[name].stop()

    def verify(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `s3lake verify`, whose last line has its totals as JSON."""
        command = [*_PYTHON, *S3LAKE, "verify", "--json", *words, str(self.home / "s3lake.yaml")]
        environment = self.services[CODE].environment
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def sensors(self, *, on: bool) -> None:
        """What the code server's sensors do that nobody has switched; it has to be started after that."""
        code = self.services[CODE]
        code.environment = {**code.environment, "S3LAKE_SENSORS": "running" if on else "stopped"}


class _LateStore:
    """A store whose uploads began as late as the services' clock said: S3 goes by the world's, which is behind."""

    def __init__(self, store: Store, lead_ms: int) -> None:
        self._store, self._lead_ms = store, lead_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        for one in self._store.list_uploads(prefix):
            yield dataclasses.replace(one, begun_ms=one.begun_ms + self._lead_ms)


def cleaned(sink: Sink, topic: str, config: Config, now: Callable[[], float] = time.time) -> int:
    """What `s3lake clean` finds to do two days from now, when no writer of today can be alive."""
    target, lead_ms = open_topic_sink(config, sink, topic), int((now() - time.time()) * 1000)
    late = dataclasses.replace(
        target,
        stores=lambda bucket: cast("Store", _LateStore(target.stores(bucket), lead_ms)),
        clock=lambda: int(now() * 1000) + _TWO_DAYS_MS,
    )
    return len(late.clean())


def kill(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL, and wait until they are gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)


def _has_word(process: psutil.Process, part: str) -> bool:
    """Return whether a word of a process's command line contains `part`."""
    with contextlib.suppress(psutil.Error):  # it ended just now
        return any(part in word for word in process.cmdline())
    return False


@contextlib.contextmanager
def production(
    home: Path,
    topics: Sequence[str],
    partitions: int,
    sink: Mapping[str, Any],
    *,
    connect: bool,
    clock: Path | None,
    store: Server | None = None,
) -> Iterator[Production]:
    """Kafka and S3 are up, topics and bucket are there; services are made and not started.

    Args:
        home: an empty directory.
        topics: to be made, and landed by one sink.
        partitions: of each topic.
        sink: what the sink says beside its name, bucket and topics.
        connect: through a Spark Connect server, not a session for each run.
        clock: the file of the clock by which the services go; None for the world's.
        store: the S3 server; None for versitygw where it is installed, else moto.
    """
    server: Server = store or ("versitygw" if find_program("versitygw") else "moto")
    log = home / "requests.log" if server == "versitygw" else None
    with EmbeddedKafka.start(home / "kafka") as kafka, start_s3(server, log) as s3:
        s3.create_bucket(BUCKET)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
            made.result()
        code_port, spark_port = free_ports(2)
        written = {
            "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
            "s3": {
                "endpoint_url": s3.endpoint_url,
                "credentials": {"access_key_id": s3.access_key_id, "secret_access_key": s3.secret_access_key},
            },
            "spark": {"master": f"sc://127.0.0.1:{spark_port}" if connect else "local[*]"},
            "sinks": [{"name": SINK, "topics": list(topics), "bucket": BUCKET, **sink}],
        }
        path = home / "s3lake.yaml"
        path.write_text(yaml.safe_dump(written))
        _instance(home, code_port, clock)
        found = Production(home, kafka, s3, native.load_text(path.read_text(), str(path)))
        for service in _services(home, _environment(home, clock), code_port, spark_port if connect else None):
            found.services[service.name] = service
        try:
            yield found
        finally:
            found.stop()


def _instance(home: Path, code_port: int, clock: Path | None) -> None:
    """The repository's own, but for where it keeps things."""
    instance = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    for name in ("storage", "local_artifact_storage", "compute_logs"):
        instance.pop(name)
    if clock:  # the database stamps runs by the world's clock, against which all seem to have waited for hours
        instance["run_monitoring"]["start_timeout_seconds"] = 0
    (home / "dagster.yaml").write_text(yaml.safe_dump(instance))
    server = {"host": "127.0.0.1", "port": code_port, "location_name": "s3lake"}
    (home / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))


def _environment(home: Path, clock: Path | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "S3LAKE_", "DAGSTER_"))}
    kept |= {name: os.environ[name] for name in ("S3LAKE_CACHE", "S3LAKE_IVY_SETTINGS") if name in os.environ}
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    path = [str(ROOT / "trials" / "clock")] if clock else []
    # A copy: whoever changes the tree meanwhile would give runs another code than the Connect server's workers have.
    shutil.copytree(ROOT / "s3lake", home / "code" / "s3lake")
    compileall.compile_dir(home / "code", quiet=1)  # as an installed package is; otherwise each run compiles all of it
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept["PYTHONPATH"] = os.pathsep.join([*path, str(home / "code")])
    kept["PYTHONSAFEPATH"] = "1"
    kept |= {"S3LAKE_BENCHMARK_CLOCK": str(clock)} if clock else {}
    kept |= ARROWS_S3
    return kept | {
        "AWS_EC2_METADATA_DISABLED": "true",
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "DAGSTER_HOME": str(home),
        "PYTHONUNBUFFERED": "1",  # the daemon says that it is up on stdout
        "S3LAKE_CONFIG": str(home / "s3lake.yaml"),
        "S3LAKE_SENSORS": "running",
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
    }


def _services(home: Path, environment: Mapping[str, str], code_port: int, spark_port: int | None) -> Iterator[Service]:
    def service(name: str, up: Callable[[str], bool], command: Sequence[str | Path]) -> Service:
        return Service(name, [*_PYTHON, *command], environment, home / f"{name}.log", up)

    command: list[str | Path]
    if spark_port is not None:
        command = [*S3LAKE, "spark", home / "s3lake.yaml", "--port", str(spark_port)]
        yield service(CONNECT, lambda said: "serves" in said, command)
    command = ["-m", "dagster", "api", "grpc", "--module-name", "s3lake.definitions", "--port", str(code_port)]
    yield service(CODE, lambda said: "Started Dagster" in said, command)
    command = ["-m", "dagster._daemon", "run", "--workspace", home / "workspace.yaml"]
    yield service(DAEMON, lambda said: "daemons" in said, command)
