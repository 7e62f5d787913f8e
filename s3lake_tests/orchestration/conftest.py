"""What tests of the definitions share."""

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.storage.event_log import in_memory as event_log
from dagster._core.storage.runs import in_memory as runs


@pytest.fixture(scope="session", autouse=True)
def _unstamped() -> Iterator[None]:
    """Stamping a database in memory with its revision takes three quarters of the time of making an instance."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (event_log, runs):
            patch.setattr(module, "stamp_alembic_rev", lambda *_: None)
        yield


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance
