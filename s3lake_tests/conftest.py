"""What every test may ask for: a real broker, an S3 server, a Spark session, and an environment without the developer's
own settings.
"""

import atexit
import gc
import os
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.s3 import EmbeddedS3
from s3lake.sink import Spark
from s3lake_tests.server_of_tests import started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake_tests.lake import Lake
    from s3lake_tests.schema.registry.server import SchemaRegistry

# Where jars come from and are kept is the machine's business, and resolving them anew takes a minute.
_KEPT = {"S3LAKE_CACHE", "S3LAKE_IVY_SETTINGS"}


SPARK_MASTER = os.environ.get("SPARK_MASTER_OF_TESTS", "local[2]")
"""Where the suites run that ask for `spark`: `test_spark_connect.py` runs them once more behind a server."""


EXAMPLES = int(os.environ.get("S3LAKE_EXAMPLES", "1"))
"""How many times as many examples Hypothesis tries; read now, for the tests do not see S3LAKE_ variables."""

# No deadline: how long an example takes is the machine's business, and its load's.
settings.register_profile(
    "suite",
    max_examples=25 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where pictures of the UI go."""
    parser.addoption("--pictures", type=Path, metavar="DIR", help="take pictures of Dagster's UI into this directory")


def pytest_configure(config: pytest.Config) -> None:
    """PySpark leaves the sockets of its collect() to the garbage collector, which may come in anybody's test."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: while a worker waits for a silence, a pause, a process, another one works."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that may take long come first: begun last, one would let the other workers wait for it."""
    allowed: dict[Path, float] = {}
    for item in items:
        timeout = item.get_closest_marker("timeout")
        allowed[item.path] = max(allowed.get(item.path, 0), timeout.args[0] if timeout else 0)
    items.sort(key=lambda item: allowed[item.path], reverse=True)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any], dict[str, Any]]:
    """What a worker tells of a test is told thrice, a third of it its names and marks, which nobody reads."""
    data = yield
    data["keywords"] = {}
    return data


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live until the end: walking a million objects again and again took a fifth of a run's CPU.

    What a test leaves behind is looked for once in a while: with Python's own thresholds that was a fifteenth of it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # What is held to the very end DuckDB calls leaked: what is frozen, and all that Hypothesis's callback can see.
        atexit.register(gc.unfreeze)
        atexit.register(gc.callbacks.clear)
        gc.set_threshold(50_000, 10, 10)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> Iterator[None]:
    """Session-wide, so that servers and sessions started by other fixtures see it too."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if (name.startswith(("AWS_", "S3LAKE_")) or name == "DAGSTER_HOME") and name not in _KEPT:
                environment.delenv(name)
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        # The developer's files count as much as the variables.
        environment.setenv("AWS_CONFIG_FILE", os.devnull)
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files, which takes a megabyte."""
    with _mounted(tmp_path / "full", "size=1m", monkeypatch) as directory:
        yield directory


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files, which can only be read."""
    with _mounted(tmp_path / "closed", "ro", monkeypatch) as directory:
        yield directory


@contextmanager
def _mounted(directory: Path, option: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", option, "s3lake", directory]
    if (
        not hasattr(os, "geteuid")
        or os.geteuid()
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system of a test's own takes root")
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """One broker for the whole session: name topics so that tests do not meet."""
    with EmbeddedKafka.start() as broker:
        yield broker


@pytest.fixture(scope="session")
def s3_server() -> Iterator[EmbeddedS3]:
    """One server for the whole session: name buckets so that tests do not meet."""
    with started() as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One session for all: its JVM takes ten seconds to start, and its first job three more."""
    from s3lake.land.spark import session

    made = session(Spark(master=SPARK_MASTER, conf={"spark.sql.shuffle.partitions": "1"}))
    yield made
    made.stop()


@pytest.fixture
def lake(kafka: EmbeddedKafka, s3_server: EmbeddedS3, spark: "SparkSession") -> "Lake":
    """A bucket of the test's own, topics of its own, and the session."""
    from s3lake_tests.lake import Lake  # all of landing, which few tests need

    return Lake(kafka, s3_server, lambda: spark)


@pytest.fixture(scope="module")
def registry() -> Iterator["SchemaRegistry"]:
    """A Schema Registry for a module's tests: schemas of all of them have their own ids."""
    from s3lake_tests.schema.registry.server import serving

    with serving() as registry:
        yield registry
