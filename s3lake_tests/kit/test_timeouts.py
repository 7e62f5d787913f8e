"""A test that takes too long is reported, wherever it is at that moment, and the next one runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from s3lake_tests.kit.cost import PATIENCE_S

IN_THE_TEST = """
@settings(deadline=None)
@given(st.integers())
def test_it(number):
    time.sleep(0.01)
"""
WHILE_VALUES_ARE_DRAWN = """
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_it(data):
    for _ in range(3):
        data.draw(st.booleans())
        time.sleep(0.02)
"""
IN_A_FIXTURE = """
@pytest.fixture
def slow():
    time.sleep(10)

def test_it(slow):
    pass
"""
AFTER_THE_TEST = """
@pytest.fixture
def slow():
    yield
    time.sleep(10)

def test_it(slow):
    pass
"""
PROGRAM = """\
import time
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
{}
def test_next():
    pass
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "tests",
    [
        pytest.param(IN_THE_TEST, id="in the test"),
        pytest.param(WHILE_VALUES_ARE_DRAWN, id="while values are drawn"),
        pytest.param(IN_A_FIXTURE, id="in a fixture"),
        pytest.param(AFTER_THE_TEST, id="after the test"),
    ],
)
def test_a_test_that_takes_too_long_is_a_timeout_and_the_next_one_runs(tmp_path: Path, tests: str) -> None:
    (tmp_path / "test_search.py").write_text(PROGRAM.format(tests))
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
    assert "test_search.py::test_next" not in ran.stdout
    assert "1 passed" in ran.stdout or "2 passed" in ran.stdout
