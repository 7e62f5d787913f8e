"""Every implementation of the store contract, each with a place of its own for every test."""

import uuid
from collections.abc import Iterator

import pytest

from s3lake.demo.s3 import MINIO, EmbeddedS3, minio_binary, versitygw_binary
from s3lake.store import Store
from s3lake.store.connection import S3Connection
from s3lake.store.memory import MemoryStore
from s3lake.store.s3 import S3Store
from s3lake_tests.server_of_tests import RUNS_ALREADY, started
from s3lake_tests.store.scripted import Scripted, ok, serving

BUCKET = "contract"


def connection_to(server: EmbeddedS3) -> S3Connection:
    return S3Connection(
        endpoint_url=server.endpoint_url,
        region=server.region,
        access_key_id=server.access_key_id,
        secret_access_key=server.secret_access_key,
        ca_file=str(server.ca_file) if server.ca_file else None,
    )


def _served(server: EmbeddedS3) -> Iterator[EmbeddedS3]:
    with server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def moto() -> Iterator[EmbeddedS3]:
    yield from _served(EmbeddedS3.start("moto"))


@pytest.fixture(scope="session")
def versitygw() -> Iterator[EmbeddedS3]:
    if versitygw_binary() is None:
        pytest.skip("versitygw is not installed: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    yield from _served(EmbeddedS3.start("versitygw"))


@pytest.fixture(scope="session")
def minio() -> Iterator[EmbeddedS3]:
    if minio_binary() is None:
        pytest.skip(f"MinIO is not installed: go install {MINIO}")
    yield from _served(EmbeddedS3.start("minio"))


@pytest.fixture(scope="session")
def named() -> Iterator[EmbeddedS3]:
    yield from _served(started())


_SERVERS = [
    pytest.param(server, marks=pytest.mark.s3)
    for server in ("moto", "versitygw", "minio", *(["named"] if RUNS_ALREADY else []))
]


@pytest.fixture(params=["memory", *_SERVERS])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return S3Store(connection_to(request.getfixturevalue(request.param)), BUCKET)


@pytest.fixture(params=_SERVERS)
def s3_store(request: pytest.FixtureRequest) -> S3Store:
    return S3Store(connection_to(request.getfixturevalue(request.param)), BUCKET)


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4()}/"


@pytest.fixture(scope="module")
def listening() -> Iterator[Scripted]:
    """One for all tests of a module, because a client for another address takes a while to make."""
    with serving() as scripted:
        yield scripted


@pytest.fixture
def server(listening: Scripted) -> Scripted:
    listening.script = [ok()]
    for seen in (listening.asked, listening.headers, listening.bodies):
        seen.clear()
    return listening
