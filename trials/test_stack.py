"""The whole stack without a container engine: the commands, files and variables of compose.yaml as processes here."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.process import GuardedProcess, free_ports, spawn
from s3lake_tests.docker.compose import DOCKER, OURS, find_mounted_files, interpolate, read_dotenv
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import fill
from s3lake_tests.kit.processes import MARK, kill_all
from s3lake_tests.kit.s3 import find_program
from s3lake_tests.records.schema.registry import apicurio

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_program("versitygw") is None, reason="the stack's store, versitygw, is missing"),
    pytest.mark.skipif(shutil.which("initdb") is None, reason="the stack's database, Postgres, is not installed"),
]
START = hours.shift(hours.key_of_ms(hours.now_ms()), -1)
TEXT = interpolate(
    (DOCKER / "compose.yaml").read_text("utf-8"), {**read_dotenv(DOCKER / ".env.example"), "S3LAKE_START": START}
)
SERVICES = yaml.safe_load(TEXT)["services"]


class Stack:
    """The services on ports of this machine; what compose.yaml says of containers is said of these instead."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, mark: str) -> None:
        self.home = home
        self.ports = dict(zip(("s3", "postgres", "spark", "code", "webserver", "metrics"), free_ports(6), strict=True))
        self._mark = mark
        port = self.ports
        self._places = {
            "http://s3:7070": f"http://127.0.0.1:{port['s3']}",
            "127.0.0.1:7070": f"127.0.0.1:{port['s3']}",
            ":7070": f"127.0.0.1:{port['s3']}",
            "kafka:9092": kafka.bootstrap_servers,
            "sc://spark:15002": f"sc://127.0.0.1:{port['spark']}",
            "sc://127.0.0.1:15002": f"sc://127.0.0.1:{port['spark']}",
            "host: code, port: 4000": f"host: 127.0.0.1, port: {port['code']}",
            "0.0.0.0:9108": f"127.0.0.1:{port['metrics']}",
            "127.0.0.1:9108": f"127.0.0.1:{port['metrics']}",
            "127.0.0.1:3000": f"127.0.0.1:{port['webserver']}",
            "port: 5432": f"port: {port['postgres']}",
            "/opt/dagster": str(home / "dagster"),
            "0.0.0.0": "127.0.0.1",
        }
        self._own_ports = {"spark": "15002", "code": "4000", "webserver": "3000"}

    def here(self, text: str) -> str:
        """A text of the stack with what stands in its place on this machine."""
        for there, here in self._places.items():
            if text == there or len(there) > 5:
                text = text.replace(there, here)
        return text

    def command(self, service: str, words: Sequence[str]) -> list[str]:
        """A command of a service: its programs are this installation's."""
        program, *arguments = [self.here(word) for word in words]
        beside = Path(sys.executable).with_name(program)
        own = self._own_ports.get(service)
        arguments = [str(self.ports[service]) if word == own else word for word in arguments]
        return [str(beside) if beside.exists() else program, *arguments]

    def environment(self, service: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "S3LAKE_", "DAGSTER_"))
        }
        kept |= {name: value for name, value in os.environ.items() if name in ("S3LAKE_CACHE", "S3LAKE_IVY_SETTINGS")}
        said = {name: self.here(str(value)) for name, value in SERVICES[service]["environment"].items()}
        said |= {"DAGSTER_PG_HOST": "127.0.0.1"} if "DAGSTER_PG_HOST" in said else {}
        said["S3LAKE_SINKS_EVENTS_FLUSH_INTERVAL"] = "5s"  # the stack's own is five minutes
        image = {"DAGSTER_HOME": str(self.home / "dagster"), "DAGSTER_DISABLE_TELEMETRY": "yes", MARK: self._mark}
        return {**kept, **said, **image}

    def mount(self) -> None:
        """Every file that a container of ours is given."""
        for service in OURS:
            for target, source in find_mounted_files(service).items():
                path = Path(self.here(target))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.here(Path(source).read_text("utf-8")), encoding="utf-8")

    def start(self, service: str) -> GuardedProcess:
        """Start a service, and wait until its own health check passes."""
        log = self.home / f"{service}.log"
        process = spawn(self.command(service, SERVICES[service]["command"]), log, self.environment(service))
        check = self.command(service, SERVICES[service]["healthcheck"]["test"][1:])
        environment = self.environment(service)

        def is_healthy() -> bool:
            done = subprocess.run(check, env=environment, capture_output=True, timeout=PATIENCE_S, check=False)
            return done.returncode == 0

        return _up(process, is_healthy)

    def once(self, service: str) -> str:
        """Run a service that ends; what it printed."""
        command, environment = self.command(service, SERVICES[service]["command"]), self.environment(service)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        return done.stdout

    def store(self) -> GuardedProcess:
        """The S3 store, over a directory in the place of its volume."""
        (self.home / "data").mkdir()
        words = [self.here(word) if word != "/data" else str(self.home / "data") for word in SERVICES["s3"]["command"]]
        said = SERVICES["s3"]["environment"]
        process = spawn([str(find_program("versitygw")), *words], self.home / "s3.log", {**os.environ, **said})
        address = self.here(SERVICES["s3"]["healthcheck"]["test"][-1])
        return _up(process, lambda: _answers(address))

    def database(self, home: Path) -> GuardedProcess:
        """Postgres with the user, the password and the database of the stack."""
        said: Mapping[str, str] = SERVICES["postgres"]["environment"]
        as_user: list[str] = []
        (home / "password").write_text(said["POSTGRES_PASSWORD"])
        if os.getuid() == 0:  # which Postgres refuses to run as
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            for path in (home, home / "password"):
                shutil.chown(path, "postgres")
        files, user = str(home / "data"), said["POSTGRES_USER"]
        make = ["initdb", "-D", files, "-U", user, "--auth=scram-sha-256", f"--pwfile={home / 'password'}"]
        subprocess.run([*as_user, *make], check=True, capture_output=True, timeout=PATIENCE_S)
        listen = ["-p", str(self.ports["postgres"]), "-c", "listen_addresses=127.0.0.1", "-k", str(home)]
        process = spawn([*as_user, "postgres", "-D", files, *listen], self.home / "postgres.log")
        keys = {
            "host": "127.0.0.1",
            "port": self.ports["postgres"],
            "user": user,
            "password": said["POSTGRES_PASSWORD"],
        }

        def has_made_it() -> bool:
            import psycopg2

            try:
                connection = psycopg2.connect(dbname="postgres", **keys)
            except psycopg2.OperationalError:
                return False
            connection.autocommit = True
            connection.cursor().execute(f"CREATE DATABASE {said['POSTGRES_DB']}")
            connection.close()
            return True

        return _up(process, has_made_it)


def _up(process: GuardedProcess, answers: Callable[[], bool]) -> GuardedProcess:
    """The process, once it answers; else it is ended, and its log told."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not answers():
            assert process.running, f"it ended:\n{process.log()}"
            assert time.monotonic() < deadline, f"a timeout: it is not healthy within {PATIENCE_S} s:\n{process.log()}"
            time.sleep(0.5)
    except BaseException:
        process.stop()
        raise
    return process


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture
def stack(tmp_path: Path, kafka: EmbeddedKafka) -> Iterator[Stack]:
    """All of it, started in the order of `depends_on`, each when those before it are healthy."""
    mark = str(uuid.uuid4())
    made = Stack(tmp_path, kafka, mark)
    made.mount()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic("events", 4, 1)])["events"].result()
    outside = Path(tempfile.mkdtemp(prefix="s3lake-postgres-"))  # the test's own directories are closed to its user
    try:
        with ExitStack() as running:
            running.enter_context(made.database(outside))
            running.enter_context(made.store())
            assert made.once("buckets") == "bucket lake is there\nbucket logs is there\n"
            for service in ("spark", "code", "webserver", "daemon", "metrics"):
                running.enter_context(made.start(service))
            yield made
    finally:
        kill_all(mark)
        admin.delete_topics(["events"])["events"].result()
        shutil.rmtree(outside)


def test_records_written_into_the_topic_land_and_are_counted_by_the_query_of_the_header(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    import duckdb
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    fill(producer, "events", [b'{"id": %d, "type": "click"}' % number for number in range(1, 1001)], hours.now_ms(), 0)
    [shown] = re.findall(r"SELECT type, .* GROUP BY type", TEXT)
    query = shown.replace("s3://", f"{stack.home}/data/")
    deadline = time.monotonic() + 2 * PATIENCE_S
    rows: list[tuple[str, int]] = []
    while rows != [("click", 1000)]:
        log = (stack.home / "daemon.log").read_text()[-6000:]
        assert time.monotonic() < deadline, f"a timeout: not landed within {2 * PATIENCE_S} s:\n{log}"
        time.sleep(2)
        try:
            rows = duckdb.sql(query).fetchall()
        except duckdb.IOException:  # there is no file yet
            rows = []
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.ports['metrics']}/metrics", timeout=PATIENCE_S) as answer:
        assert b's3lake_lag_records{sink="events",topic="events"}' in answer.read()


def test_registry_keeps_its_schemas_in_the_broker(kafka: EmbeddedKafka) -> None:
    said = {name: str(value) for name, value in SERVICES["registry"]["environment"].items()}
    said["APICURIO_KAFKASQL_BOOTSTRAP_SERVERS"] = kafka.bootstrap_servers
    with apicurio.running(said) as registry:
        known = registry.register("events-value", '{"type": "string"}')
    with apicurio.running(said) as registry:
        assert registry.register("events-value", '{"type": "string"}') == known
