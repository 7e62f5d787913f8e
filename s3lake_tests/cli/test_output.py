"""What is shown while a command works: a bar on a terminal, lines elsewhere, nothing with `--json`."""

import io

import pytest
from rich.console import Console

from s3lake.cli import output
from s3lake.cli.output import ProgressLine


def test_a_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_text(False, "${file:a:b} [b] 12:100:00")
    output.print_table(("key",), [["12:100:00"]])
    assert capsys.readouterr().out.split("\n")[::2] == ["${file:a:b} [b] 12:100:00", "12:100:00"]


def test_progress_is_a_line_for_the_begin_and_the_end_of_quick_work(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        progress = ProgressLine("land orders: offsets", quiet=quiet)
        for done in (0, 1, 2, 5, 5):
            progress(done, 5)
    assert capsys.readouterr().err.splitlines() == ["land orders: offsets: 0 of 5", "land orders: offsets: 5 of 5"]


def test_progress_is_a_bar_on_a_terminal_and_is_erased_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(output, "err", Console(file=terminal, force_terminal=True, width=100))
    for quiet in (False, True):
        progress = ProgressLine("land orders: offsets", quiet=quiet)
        progress(1, 2)
        progress(2)
    assert terminal.getvalue() == f"\r\x1b[2K{'━' * 15}{'─' * 15} land orders: offsets: 1 of 2\r\x1b[2K"
