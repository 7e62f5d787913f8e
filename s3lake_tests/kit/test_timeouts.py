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
IN_A_SHARED_FIXTURE = """
@pytest.fixture(scope="module")
def slow():
    time.sleep(10)
    yield

@pytest.fixture
def quick():
    pass

@pytest.fixture(params=["slow", "quick"])
def either(request):
    return request.getfixturevalue(request.param)

def test_it(either):
    pass

def test_also(either):
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
    code, output = run_with_a_limit(tmp_path, tests, 0.2)
    assert code == 1, output
    assert "a timeout: test_search.py::test_it has taken more than 0.2 s" in output
    assert "laky" not in output
    assert "test_search.py::test_next" not in output
    assert "1 passed" in output or "2 passed" in output


@pytest.mark.long
def test_tests_that_share_a_fixture_that_took_too_long_are_timeouts_and_others_run(tmp_path: Path) -> None:
    code, output = run_with_a_limit(tmp_path, IN_A_SHARED_FIXTURE, 2)
    assert code == 1
    for test in ("test_it", "test_also"):
        assert f"ERROR test_search.py::{test}[slow] - s3lake_tests.conftest.TestTimeout: " in output
    assert "3 passed, 2 errors" in output


def run_with_a_limit(directory: Path, tests: str, limit_s: float) -> tuple[int, str]:
    """Run tests with a limit for each. Return pytest's exit code and output."""
    (directory / "test_search.py").write_text(PROGRAM.format(tests))
    options = [
        "-p",
        "s3lake_tests.conftest",
        "-n",
        "0",
        "--timeout",
        str(limit_s),
        f"--rootdir={directory}",
        "-c",
        "/dev/null",
    ]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-p", "no:cacheprovider", *options, str(directory)],
        cwd=directory,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr
