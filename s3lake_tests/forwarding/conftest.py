from collections.abc import Iterator
from pathlib import Path

import pytest

from s3lake_tests.forwarding.landed import Land, landing


@pytest.fixture
def land(tmp_path: Path) -> Iterator[Land]:
    """Lands an hour of records with these ids into a bucket."""
    with landing(tmp_path) as landed:
        yield landed
