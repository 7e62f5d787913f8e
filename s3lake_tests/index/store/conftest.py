"""Every implementation of the store contract, each with a place of its own for every test."""

import uuid
from collections.abc import Iterator

import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.index.store import Store
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.index.store.scripted import Scripted, ok
from s3lake_tests.kit.s3 import connection_to
from s3lake_tests.kit.servers import S3_SERVER_RUNS

BUCKET = f"contract-{uuid.uuid4()}"
"""Of this process alone: workers share servers."""


@pytest.fixture(scope="session")
def moto(moto: EmbeddedS3) -> EmbeddedS3:
    return _with_bucket(moto)


@pytest.fixture(scope="session")
def versitygw(versitygw: EmbeddedS3) -> EmbeddedS3:
    return _with_bucket(versitygw)


@pytest.fixture(scope="session")
def minio(minio: EmbeddedS3) -> EmbeddedS3:
    return _with_bucket(minio)


@pytest.fixture(scope="session")
def named(s3_server: EmbeddedS3) -> EmbeddedS3:
    return _with_bucket(s3_server)


def _with_bucket(server: EmbeddedS3) -> EmbeddedS3:
    server.create_bucket(BUCKET)
    return server


_OTHERS = pytest.mark.slow("the contract is the same for every store: moto is always tried")
_SERVERS = [
    pytest.param("moto", marks=pytest.mark.s3),
    pytest.param("versitygw", marks=[pytest.mark.s3, _OTHERS]),
    pytest.param("minio", marks=[pytest.mark.s3, _OTHERS]),
    *([pytest.param("named", marks=pytest.mark.s3)] if S3_SERVER_RUNS else []),
]


@pytest.fixture(params=["memory", *_SERVERS])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return _bucket_of(request)


@pytest.fixture(params=_SERVERS)
def s3_store(request: pytest.FixtureRequest) -> S3Store:
    return _bucket_of(request)


def _bucket_of(request: pytest.FixtureRequest) -> S3Store:
    return S3Store(connection_to(request.getfixturevalue(request.param)), BUCKET)


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4()}/"


@pytest.fixture(scope="module")
def listening() -> Iterator[Scripted]:
    """One for all tests of a module, because a client for another address takes a while to make."""
    with Scripted(ok()).running() as scripted:
        yield scripted


@pytest.fixture
def server(listening: Scripted) -> Scripted:
    listening.script = [ok()]
    listening.requests.clear()
    return listening
