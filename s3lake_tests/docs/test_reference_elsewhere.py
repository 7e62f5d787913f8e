"""`docs/reference.py` describes the code next to it, also in a worktree that has the environment of another one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_pages_describe_the_code_next_to_the_program_which_lists_what_it_wrote(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "s3lake", tmp_path / "s3lake", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "__pycache__"))
    errors = tmp_path / "s3lake" / "config" / "model" / "error_handling.py"
    errors.write_text(errors.read_text().replace("how often a micro-batch is tried again", "HOW OFTEN IN A WORKTREE"))

    def write() -> dict[str, str]:
        program = [sys.executable, "-W", "ignore", "docs/reference.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        lines = subprocess.check_output(program, cwd=tmp_path, env=environment, text=True, timeout=PATIENCE_S)
        return {Path(path).name: message for path, message in (line.split(": ") for line in lines.splitlines())}

    pages = {"settings.md": "written", "commands.md": "as it was", "api.md": "as it was", "keys.md": "as it was"}
    pages["counts.md"] = "as it was"
    assert write() == pages
    assert "HOW OFTEN IN A WORKTREE" in (tmp_path / "docs" / "reference" / "settings.md").read_text()
    assert set(write().values()) == {"as it was"}
