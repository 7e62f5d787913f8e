"""Preloaded processes of locations that cannot be copied, without Dagster's servers."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.code_pointer import FileCodePointer
from dagster._core.origin import RepositoryPythonOrigin
from dagster._core.test_utils import instance_for_test
from dagster._serdes import serialize_value

from s3lake.orchestration.preload.preloaded_process import PreloadedProcess, PreloadError
from s3lake.orchestration.preload.private_run_launchers import Code, write_instance
from s3lake_tests.orchestration.preload.site import write_location

pytestmark = pytest.mark.long


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCATION_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with instance_for_test() as instance:
        yield instance


def code(home: Path, python: str = sys.executable) -> Code:
    origin = RepositoryPythonOrigin(python, FileCodePointer(str(home / "location.py"), "defs", str(home)))
    return Code("here", "server", True, python, str(home), serialize_value(origin))


def test_location_that_starts_a_thread_is_not_copied(home: Path, instance: dg.DagsterInstance) -> None:
    write_location(home, "thread")
    with pytest.raises(PreloadError, match="started threads when it was loaded: left-behind"):
        PreloadedProcess(code(home), write_instance(instance))


def test_location_that_has_a_connection_is_not_copied(home: Path, instance: dg.DagsterInstance) -> None:
    write_location(home, "connection")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (home / "port").write_text(str(listener.getsockname()[1]))
        with pytest.raises(PreloadError, match="has 1 open connections after it was loaded"):
            PreloadedProcess(code(home), write_instance(instance))


def test_python_that_is_missing_or_ends_is_named(home: Path, instance: dg.DagsterInstance) -> None:
    with pytest.raises(PreloadError, match="/missing/python could not be started"):
        PreloadedProcess(code(home, "/missing/python"), write_instance(instance))
    with pytest.raises(PreloadError, match="ended with exit code 1 before it was ready"):
        PreloadedProcess(code(home, "/bin/false"), write_instance(instance))
