"""The embedded S3 servers speak S3 with the demo's credentials and leave nothing behind."""

import socket
from pathlib import Path

import psutil
import pytest

from s3lake.demo import process
from s3lake.demo.process import free_ports
from s3lake.errors import StoreUnavailableError
from s3lake_tests.kit.s3 import GO_PROGRAMS, Server, find_program, start_s3

needs_versitygw, needs_minio = (
    pytest.mark.skipif(find_program(name) is None, reason=f"{name} is missing: go install {module}")
    for name, module in GO_PROGRAMS.items()
)
slow = pytest.mark.slow("starts another server than the tests use; moto is always tried")
SERVERS = [
    pytest.param("moto", marks=pytest.mark.s3),
    pytest.param("versitygw", marks=[pytest.mark.s3, needs_versitygw, slow]),
    pytest.param("minio", marks=[pytest.mark.s3, needs_minio, slow]),
]


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_leaves_no_process_port_or_file(name: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with start_s3(name) as server:
        guard = psutil.Process(server.pid)
        (child,) = guard.children()
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    assert not guard.is_running()
    assert not child.is_running()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(server.endpoint_url.rpartition(":")[2]))) != 0


@pytest.mark.parametrize("name", SERVERS)
def test_a_port_taken_meanwhile_is_replaced(name: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    (free,) = free_ports(1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        choices = iter([[listener.getsockname()[1]], [free]])
        monkeypatch.setattr(process, "free_ports", lambda _count: next(choices))
        with start_s3(name) as server:
            assert server.endpoint_url == f"http://127.0.0.1:{free}"


def test_a_server_that_does_not_start_reports_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "versitygw"
    binary.write_text("#!/bin/sh\necho no luck today; exit 7\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StoreUnavailableError, match=r"ended with exit code 7\. The end of its log:\nno luck today"):
        start_s3("versitygw")
