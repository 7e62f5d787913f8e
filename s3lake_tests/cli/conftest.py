"""The console script in this process, and a configuration whose Kafka and S3 are down."""

from pathlib import Path

import pytest

from s3lake_tests.kit.console import Run, script
from s3lake_tests.kit.lake import NOBODY


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return script(monkeypatch, capsys)


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """A configuration whose Kafka and S3 are down."""
    path = tmp_path / "s3lake.yaml"
    path.write_text(NOBODY)
    return path
