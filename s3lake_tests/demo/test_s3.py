"""The embedded S3 servers speak S3 with the demo's credentials and leave nothing behind."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from botocore.exceptions import ClientError

from s3lake.demo import process
from s3lake.demo.process import free_ports
from s3lake.demo.s3 import EmbeddedS3
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


def client(server: EmbeddedS3) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint_url,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
    )


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedS3]:
    with start_s3(request.param) as started:
        yield started


def test_an_object_comes_back_from_a_created_bucket(server: EmbeddedS3) -> None:
    server.create_bucket("lake")
    s3 = client(server)
    s3.put_object(Bucket="lake", Key="raw/a.json", Body=b"{}", Metadata={"commit": "c1"})
    answer = s3.get_object(Bucket="lake", Key="raw/a.json")
    assert (answer["Body"].read(), answer["Metadata"]) == (b"{}", {"commit": "c1"})


def test_a_conditional_put_has_one_winner(server: EmbeddedS3) -> None:
    server.create_bucket("lake")
    s3 = client(server)
    s3.put_object(Bucket="lake", Key="tile", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket="lake", Key="tile", Body=b"2", IfNoneMatch="*")


@pytest.mark.parametrize("name", SERVERS)
def test_it_leaves_no_process_port_or_file(name: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.slow("starts another server than the tests use")
@pytest.mark.s3
@needs_versitygw
def test_versitygw_works_where_files_have_no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake_tests.kit.s3._keeps_attributes", lambda _directory: False)
    with start_s3("versitygw") as server:
        server.create_bucket("lake")
        s3 = client(server)
        s3.put_object(Bucket="lake", Key="a", Body=b"1", Metadata={"commit": "c1"})
        assert s3.head_object(Bucket="lake", Key="a")["Metadata"] == {"commit": "c1"}


def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "versitygw"
    binary.write_text("#!/bin/sh\necho no luck today; exit 7\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StoreUnavailableError, match=r"ended with exit code 7\. The end of its log:\nno luck today"):
        start_s3("versitygw")
