"""What is shown while a command works: a bar or a name on a terminal, plain lines elsewhere, nothing beside JSON."""

import io

import pytest
from rich.console import Console

from s3lake.cli import output


def shown(monkeypatch: pytest.MonkeyPatch, *, on_a_terminal: bool) -> io.StringIO:
    """What standard error gets."""
    file = io.StringIO()
    monkeypatch.setattr(output, "err", Console(file=file, force_terminal=on_a_terminal, width=100, highlight=False))
    return file


def work(*, quiet: bool = False) -> None:
    """Five steps."""
    with output.progress_bar("land orders: offsets", 0, quiet=quiet) as progress:
        for done in range(6):
            progress(done, 5)
        with progress.hidden():
            pass


def test_a_terminal_shows_a_bar_and_erases_it_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    file = shown(monkeypatch, on_a_terminal=True)
    work()
    assert "━" in file.getvalue()
    assert "5/5" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K"), "its line is erased"


def test_without_a_terminal_each_line_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    file = shown(monkeypatch, on_a_terminal=False)
    work()
    work(quiet=True)
    assert file.getvalue().splitlines() == ["land orders: offsets: 0 of 5", "land orders: offsets: 5 of 5"]


@pytest.mark.parametrize(
    ("on_a_terminal", "quiet", "named"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_terminal_shows_the_running_attempt(
    on_a_terminal: bool, quiet: bool, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shown(monkeypatch, on_a_terminal=on_a_terminal)
    with output.show_attempt("bucket lake of sink events", quiet=quiet):
        pass
    assert ("bucket lake of sink events …" in file.getvalue()) == named
