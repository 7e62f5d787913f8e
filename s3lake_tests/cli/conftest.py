"""The console script in this process, and a configuration whose Kafka and S3 are down."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from s3lake import cli
from s3lake_tests.lake import NOBODY


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The console script, in this process."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["s3lake", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)

    return run


@pytest.fixture
def nobody(tmp_path: Path) -> Path:
    """A configuration whose Kafka and S3 are down."""
    path = tmp_path / "s3lake.yaml"
    path.write_text(NOBODY)
    return path
