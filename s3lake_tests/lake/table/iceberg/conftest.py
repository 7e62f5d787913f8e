"""What tests of tables share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake_tests.lake.table.iceberg.shelf import Shelf


@pytest.fixture
def make(s3_server: EmbeddedS3, tmp_path: Path) -> Callable[..., Shelf]:
    def shelf(**changes: Any) -> Shelf:
        return Shelf(s3_server, tmp_path, changes)

    return shelf


@pytest.fixture
def shelf(make: Callable[..., Shelf]) -> Shelf:
    return make()
