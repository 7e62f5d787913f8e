"""`make test` runs all of its parts, and its exit code is that of all of them. The tools are scripts of the test."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S

ROOT = Path(__file__).parents[1]
PYTHON = """\
#!/bin/sh
case "$*" in
*"not (real or long or slow)"*) echo fast; exit $FAST;;
*"(real or long) and not slow"*) echo real; exit $REAL;;
*"-m slow"*) echo slow; exit 0;;
esac
"""
SOURCES = (
    ".ci/venv",
    "pyproject.toml",
    "constraints.txt",
    "hatch_build.py",
    "s3lake/source/kafka/columns.c",
    "s3lake/records/convert/read/json_check.c",
    "s3lake/records/convert/read/json_columns.c",
    "s3lake/records/convert/read/json_tokens.h",
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A Makefile whose environment is installed already."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for path in (*SOURCES, ".venv/bin/python", ".venv/.installed"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(PYTHON)
        (tmp_path / path).chmod(0o755)
    os.utime(tmp_path / ".venv/.installed", (2**31, 2**31))
    return tmp_path


@pytest.fixture
def bare(clone: Path) -> Path:
    """A Makefile whose environment is not installed; `.ci/venv` only prints what it is to install."""
    (clone / ".venv/.installed").unlink()
    (clone / ".ci/venv").write_text('#!/bin/sh\necho "installs $1"\n')
    for program in ("python", "s3lake"):
        (clone / ".venv/bin" / program).write_text(PYTHON)
        (clone / ".venv/bin" / program).chmod(0o755)
    return clone


def run_make(clone: Path, target: str, fast: int, real: int) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "FAST": str(fast), "REAL": str(real)}
    return subprocess.run(
        ["make", "--silent", target],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("fast", "real", "failed"),
    [(0, 0, ""), (1, 0, "failed: test-fast\n"), (0, 1, "failed: test-real\n"), (1, 1, "failed: test-fast test-real\n")],
)
def test_the_second_part_runs_whatever_came_of_the_first_and_the_exit_code_is_of_both(
    clone: Path, fast: int, real: int, failed: str
) -> None:
    ran = run_make(clone, "test", fast, real)
    assert ran.stdout == "fast\nreal\n"
    assert (ran.returncode != 0) is bool(failed)
    assert failed in ran.stderr


@pytest.mark.long
def test_all_parts_run_after_a_failure_too(clone: Path) -> None:
    ran = run_make(clone, "test-all", 1, 0)
    assert (ran.stdout, ran.returncode) == ("fast\nreal\nslow\n", 2)


@pytest.mark.long
def test_the_fast_part_runs_alone(clone: Path) -> None:
    assert run_make(clone, "test-fast", 0, 1).stdout == "fast\n"


@pytest.mark.long
def test_the_demo_installs_what_it_needs_and_the_tests_add_the_rest(bare: Path) -> None:
    assert [run_make(bare, "demo", 0, 0).stdout for _ in range(2)] == ["installs demo\n", ""]
    assert run_make(bare, "test-fast", 0, 0).stdout == "installs dev\nfast\n"


@pytest.mark.long
def test_the_environment_of_the_tests_serves_the_demo_too(bare: Path) -> None:
    assert run_make(bare, "test-fast", 0, 0).stdout == "installs dev\nfast\n"
    assert run_make(bare, "demo", 0, 0).stdout == ""
