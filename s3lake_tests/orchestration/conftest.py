"""What tests of the definitions share."""

from collections.abc import Iterator

import dagster as dg
import pytest

from s3lake_tests.orchestration import instances


@pytest.fixture(scope="session", autouse=True)
def _in_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        instances.in_memory(patch)
        yield


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance
