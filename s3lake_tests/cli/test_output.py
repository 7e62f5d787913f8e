"""What is shown while a command works: lines on standard error, nothing with `--json`."""

import pytest

from s3lake.cli.output import Progress


def test_progress_is_a_line_for_the_begin_and_the_end_of_quick_work(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        progress = Progress("land orders: offsets", quiet=quiet)
        for done in (0, 1, 2, 5, 5):
            progress(done, 5)
    assert capsys.readouterr().err.splitlines() == ["land orders: offsets: 0 of 5", "land orders: offsets: 5 of 5"]
