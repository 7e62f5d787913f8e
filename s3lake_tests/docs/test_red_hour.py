"""The recipe for a red hour has a row for everything that an hour can be reported for."""

from typing import get_args

import pytest

from s3lake.lake.verify.differences import DifferenceType
from s3lake.orchestration import hour_checks, sealed_in_time
from s3lake_tests.docs.documents import ROOT

CHECKS = [*hour_checks.NAMES, "table", sealed_in_time.NAME]


@pytest.fixture(scope="module")
def causes() -> list[str]:
    """The first cell of each row of the recipe."""
    text = (ROOT / "docs/red-hour.md").read_text("utf-8").partition("| what is red |")[2]
    return [row.split("|")[1] for row in text.splitlines() if row.startswith("| ")]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_fails_has_a_row(check: str, causes: list[str]) -> None:
    assert any(f"check `{check}`" in cause for cause in causes)


@pytest.mark.parametrize("difference", get_args(DifferenceType))
def test_a_difference_of_verify_has_a_row(difference: str, causes: list[str]) -> None:
    assert any(f"*{difference}*" in cause for cause in causes)
