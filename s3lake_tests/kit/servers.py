"""Real servers for tests: each is started once per run, when a test first needs it, and ends with the run.

pytest's controller starts them, and the workers of pytest-xdist ask it for their addresses. Spark is not shared: each
worker has its own session. A test that stops a server, counts its requests or lists its topics starts its own.
"""

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from s3lake.config.model import Spark
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import ConfigurationError
from s3lake.land.spark import jars
from s3lake_tests.kit.s3 import GO_PROGRAMS, find_program, start_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake_tests.kit.lake import Lake
    from s3lake_tests.records.schema.registry.apicurio import Apicurio

MARKERS = {
    "kafka": "kafka",
    "s3_server": "s3",
    "moto": "s3",
    "versitygw": "s3",
    "minio": "s3",
    "spark": "spark",
    "apicurio": "registry",
    "postgres": "postgres",
    "mongodb": "mongodb",
    "jvm": "jvm",
    "browser": "browser",
}
"""The marker that a test gets for each fixture that it uses; a test with any of them is `real` too."""

SPARK_MASTER = os.environ.get("SPARK_MASTER_OF_TESTS", "local[2]")
"""Where the tests run that ask for `spark`: .ci/nightly runs them again behind a Spark Connect server."""

S3_SERVER = os.environ.get("S3_SERVER_OF_TESTS", "moto")
"""What `s3_server` is: a server that `start_s3` starts, or the address of one that has the demo's keys."""

S3_SERVER_RUNS = "://" in S3_SERVER

# Where jars come from and are kept, and what the trial `protocol` asks of the tests that it runs.
_KEPT = {"S3LAKE_CACHE", "S3LAKE_IVY_SETTINGS", "S3LAKE_EXAMPLES", "S3LAKE_COUNT", "S3LAKE_FAILURES"}


class RunningKafka(EmbeddedKafka):
    """A broker that another process started, and stops."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def stop(self) -> None:
        """Do nothing: the broker is shared."""


class RunningS3(EmbeddedS3):
    """An S3 server that another process started, and stops."""

    def __init__(self, endpoint_url: str) -> None:
        self.endpoint_url = endpoint_url

    def stop(self) -> None:
        """Do nothing: the server is shared."""


@contextmanager
def _serve_kafka() -> Iterator[str]:
    # A machine that pauses is not a broker that crashed: after 9 s without a heartbeat it makes no topic for a moment.
    with EmbeddedKafka.start(settings={"broker.session.timeout.ms": "600000"}) as broker:
        yield broker.bootstrap_servers


def _s3(name: Any) -> Callable[[], AbstractContextManager[str]]:
    @contextmanager
    def serve() -> Iterator[str]:
        with start_s3(name) as server:
            yield server.endpoint_url

    return serve


def _serve_postgres() -> AbstractContextManager[str]:
    from s3lake_tests.lake.forwarding import servers

    return servers.serve_postgres()


def _serve_mongodb() -> AbstractContextManager[str]:
    from s3lake_tests.lake.forwarding import servers

    return servers.serve_mongodb()


@contextmanager
def _serve_apicurio() -> Iterator[str]:
    from s3lake_tests.records.schema.registry import apicurio

    with apicurio.running() as registry:
        yield registry.url


_SERVERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "kafka": _serve_kafka,
    "moto": _s3("moto"),
    "versitygw": _s3("versitygw"),
    "minio": _s3("minio"),
    "apicurio": _serve_apicurio,
    "postgres": _serve_postgres,
    "mongodb": _serve_mongodb,
}


class StartedServers:
    """The servers of this run, each started at its first request."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._locks = {name: threading.Lock() for name in _SERVERS}
        self._addresses: dict[str, str | Exception] = {}

    def address_of(self, name: str) -> str:
        """Return the address, or raise again what the first start raised."""
        with self._locks[name]:
            if name not in self._addresses:
                try:
                    self._addresses[name] = self._stack.enter_context(_SERVERS[name]())
                except Exception as error:
                    self._addresses[name] = error
        address = self._addresses[name]
        if isinstance(address, Exception):
            raise address
        return address

    def stop(self) -> None:
        """Stop all of them."""
        self._stack.close()


class ServersOfRun(BaseManager):
    """Lets pytest's workers ask its controller for `servers()`."""


def _offer(servers: StartedServers) -> tuple[Any, bytes]:
    """Answer in threads of this process. Return where, and the key."""
    key = secrets.token_bytes(16)
    ServersOfRun.register("servers", callable=lambda: servers, exposed=["address_of"])
    server = ServersOfRun(("127.0.0.1", 0), key).get_server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.address, key


def _ask(address: Any, key: bytes) -> StartedServers:
    """Return the servers of the controller."""
    ServersOfRun.register("servers")
    controller: Any = ServersOfRun(address, key)
    controller.connect()
    return controller.servers()  # type: ignore[no-any-return]


_servers = pytest.StashKey[StartedServers]()
_door = pytest.StashKey[tuple[Any, bytes]]()


def pytest_configure(config: pytest.Config) -> None:
    """Clear the developer's own settings from the environment, and prepare the servers."""
    environment = pytest.MonkeyPatch()
    config.add_cleanup(environment.undo)
    for name in list(os.environ):
        if (name.startswith(("AWS_", "S3LAKE_")) or name == "DAGSTER_HOME") and name not in _KEPT:
            environment.delenv(name)
    environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # The developer's files count as much as the variables.
    environment.setenv("AWS_CONFIG_FILE", os.devnull)
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)

    if hasattr(config, "workerinput"):
        config.stash[_servers] = _ask(*config.workerinput["servers"])
        return
    started = StartedServers()
    config.add_cleanup(started.stop)
    config.stash[_servers] = started
    config.stash[_door] = _offer(started)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker whom to ask."""
    node.workerinput["servers"] = node.config.stash[_door]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add to each test the markers of the servers that it uses, before `-m` selects by them."""
    for item in items:
        needs = {MARKERS[name] for name in getattr(item, "fixturenames", ()) if name in MARKERS}
        needs |= {mark.name for mark in item.iter_markers() if mark.name in MARKERS.values()}
        for need in sorted(needs | {"real"} if needs else ()):
            item.add_marker(need)


@pytest.fixture(scope="session")
def servers_of_run(request: pytest.FixtureRequest) -> StartedServers:
    """The servers of this run by name."""
    return request.config.stash[_servers]


@pytest.fixture(scope="session")
def jvm() -> Path:
    """Java's program, for tests that start a JVM."""
    try:
        return jars.find_java()
    except ConfigurationError:
        pytest.skip("Java 17 or 21 is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME")


@pytest.fixture(scope="session")
def kafka(jvm: Path, servers_of_run: StartedServers) -> EmbeddedKafka:  # noqa: ARG001 (it needs Java)
    """One broker for all tests: name topics so that tests do not meet."""
    return RunningKafka(servers_of_run.address_of("kafka"))


@pytest.fixture(scope="session")
def s3_server(servers_of_run: StartedServers) -> EmbeddedS3:
    """One server for all tests: name buckets so that tests do not meet."""
    return RunningS3(S3_SERVER if S3_SERVER_RUNS else servers_of_run.address_of(S3_SERVER))


@pytest.fixture(scope="session")
def moto(servers_of_run: StartedServers) -> EmbeddedS3:
    """moto's server, for all tests."""
    return RunningS3(servers_of_run.address_of("moto"))


@pytest.fixture(scope="session")
def versitygw(servers_of_run: StartedServers) -> EmbeddedS3:
    """A versitygw for all tests."""
    if find_program("versitygw") is None:
        pytest.skip("versitygw is missing: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    return RunningS3(servers_of_run.address_of("versitygw"))


@pytest.fixture(scope="session")
def minio(servers_of_run: StartedServers) -> EmbeddedS3:
    """A MinIO for all tests."""
    if find_program("minio") is None:
        pytest.skip(f"MinIO is missing: go install {GO_PROGRAMS['minio']}")
    return RunningS3(servers_of_run.address_of("minio"))


@pytest.fixture(scope="session")
def postgres(servers_of_run: StartedServers) -> str:
    """Return the connection string of a database of the PostgreSQL of all tests."""
    from s3lake_tests.lake.forwarding import servers

    if servers.find_postgres() is None:
        pytest.skip("PostgreSQL is missing: apt-get install postgresql")
    return servers_of_run.address_of("postgres")


@pytest.fixture(scope="session")
def mongodb(servers_of_run: StartedServers) -> str:
    """The address of a FerretDB, which speaks MongoDB's protocol, for all tests."""
    from s3lake_tests.lake.forwarding import servers

    if servers.find_ferretdb() is None:
        pytest.skip("FerretDB is missing: go install . in s3lake_tests/lake/forwarding/ferretdb")
    return servers_of_run.address_of("mongodb")


@pytest.fixture(scope="session")
def apicurio(servers_of_run: StartedServers) -> "Apicurio":
    """An Apicurio Registry for all tests: name subjects so that tests do not meet."""
    from s3lake_tests.records.schema.registry import apicurio

    apicurio.find_java()
    return apicurio.Apicurio(servers_of_run.address_of("apicurio"))


@pytest.fixture(scope="session")
def spark(jvm: Path) -> Iterator["SparkSession"]:  # noqa: ARG001 (it needs Java)
    """One session for all tests of a worker: its JVM takes ten seconds to start, and its first job three more."""
    from s3lake.land.spark import get_session

    made = get_session(Spark(master=SPARK_MASTER, conf={"spark.sql.shuffle.partitions": "1"}))
    yield made
    made.stop()


@pytest.fixture
def lake(kafka: EmbeddedKafka, s3_server: EmbeddedS3, spark: "SparkSession") -> "Lake":
    """A bucket of the test's own, topics of its own, and the session."""
    from s3lake_tests.kit.lake import Lake  # all of landing, which few tests need

    return Lake(kafka, s3_server, lambda: spark)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The machine's Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    return found
