"""Code that others wrote, kept in the cache."""

from pathlib import Path

import pytest

from s3lake_tests.kit.oracles import kept

pytestmark = pytest.mark.long


def test_a_folder_that_another_process_kept_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path))

    def change(files: Path) -> Path:
        (other := tmp_path / "of-both").mkdir()
        (other / "first").touch()
        files.mkdir(exist_ok=True)
        return files

    assert [path.name for path in kept("of-both", change=change).iterdir()] == ["first"]
