"""What the process that Spark forks workers from does before it imports anything."""

import sys
from pathlib import Path

import pyspark
import pytest

from s3lake.land.task.worker_daemon import leave_archives

HOME = Path(pyspark.__file__).parent


def test_archives_of_an_installed_pyspark_are_not_imported_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, others = str(HOME / "python" / "lib" / "pyspark.zip"), str(tmp_path / "of_a_user.zip")
    Path(others).touch()
    monkeypatch.setattr(sys, "path", [own, others, *sys.path])
    monkeypatch.setitem(sys.path_importer_cache, own, None)
    leave_archives()
    assert own not in sys.path
    assert own not in sys.path_importer_cache
    assert others in sys.path


def test_archives_are_all_there_is_where_pyspark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    archives = [str(HOME / "python" / "lib" / "pyspark.zip")]
    monkeypatch.setattr(sys, "path", [*archives])
    leave_archives()
    assert sys.path == archives
