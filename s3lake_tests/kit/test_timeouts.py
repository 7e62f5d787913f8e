"""A test that takes too long is reported, also in the middle of a search of Hypothesis."""

import subprocess
import sys
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S

SEARCH = """\
import time
from hypothesis import given, settings, strategies as st

@settings(deadline=None)
@given(st.integers())
def test_it(number):
    time.sleep(0.01)
"""


@pytest.mark.long
def test_a_property_that_takes_too_long_is_a_timeout_and_not_a_flaky_strategy(tmp_path: Path) -> None:
    (tmp_path / "test_search.py").write_text(SEARCH)
    options = ["-p", "s3lake_tests.conftest", "-n", "0", "--timeout", "0.2", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-p", "no:cacheprovider", *options, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "a timeout: test_search.py::test_it has taken more than 0.2 s" in ran.stdout
    assert "laky" not in ran.stdout
