"""Options of the trials that pytest runs."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=20, help="how many runs the trial `kill` kills, 20 at most")
