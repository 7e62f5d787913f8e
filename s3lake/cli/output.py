"""Exit codes, and what the commands print: lines or JSON on standard output, progress on standard error."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

from s3lake.errors import S3LakeError

DIFFERENCES, INPUT, FAILED, INTERRUPTED, UNREAD = 1, 2, 3, 130, 141
EXIT_CODES: Mapping[int, str] = {
    0: "success; or there was nothing to do, which is printed",
    DIFFERENCES: "differences were found, by the commands below",
    INPUT: "the configuration or an argument is wrong: correct it, trying again does not help",
    FAILED: "it failed while running: Kafka, the store or a stage; what was landed stays, trying again may help",
    INTERRUPTED: "stopped by Ctrl-C or SIGTERM; a command that serves until then ends with 0",
    UNREAD: "the reader of the output has closed it, as `head` does",
}
DIFFERENT: Mapping[str, str] = {
    "demo": "a record is not landed, missing or duplicated",
    "preview": "a record is refused, and the sink tolerates none",
    "test": "a case differs, or expects nothing",
    "verify": "a record is not landed, missing, duplicated or changed",
}
"""Commands that end with `DIFFERENCES`, and when."""
_WIDEST = 1000
_EVERY_S, _EVERY_S_ON_TERMINALS = 5.0, 0.1
_BAR = 30


class _Console(Console):
    def __init__(self, **options: Any) -> None:
        """Initialize; a text is printed as it is: to rich `:100:` of a key is an emoji, and `[b]` of a path a style."""
        super().__init__(highlight=False, emoji=False, markup=False, **options)

    def on_broken_pipe(self) -> None:
        """See `Console.on_broken_pipe`, whose exit code is that of differences."""
        raise _close_output()


out = _Console(soft_wrap=True)
err = _Console(stderr=True, soft_wrap=True)


def emit(as_json: bool, row: Mapping[str, Any], line: Callable[[Any], str]) -> None:
    """Print a row as JSON, or the line that `line` makes of it."""
    if as_json:
        print_json(row)
    else:
        out.print(line(row))


def print_text(as_json: bool, text: str) -> None:
    """Print a line for people; nothing with `--json`."""
    if not as_json:
        out.print(text)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "", *, right: Sequence[str] = ()
) -> None:
    """Print a table as wide as its cells and its title need: a path that is folded cannot be searched for."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, min_width=len(title))
    table.show_header = any(columns)
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*map(format_cell, row))
    _Console(width=_WIDEST).print(table, crop=False)


def format_cell(value: Any) -> str:
    """Return a value as the text of a cell."""
    match value:
        case list():
            return ", ".join(map(str, value)) or "none"
        case bool():
            return "true" if value else "false"
        case dict() | None:
            return "none"
    return str(value)


def print_json(row: Mapping[str, Any]) -> None:
    """Print a JSON document on a line."""
    write(json.dumps(row) + "\n")


def write(text: str) -> None:
    """Write a document to standard output, unchanged: it is UTF-8 whatever the terminal shows, as s3lake reads it."""
    try:
        if (buffer := getattr(sys.stdout, "buffer", None)) is None:
            sys.stdout.write(text)
        else:
            sys.stdout.flush()
            buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        raise _close_output() from None


def _close_output() -> SystemExit:
    close_unwritable()
    return SystemExit(UNREAD)


def take_every_text() -> None:
    """Let standard output and standard error take every text, also if they are closed, or their encoding is ASCII."""
    sys.stdout = _take_every_text(sys.stdout)
    sys.stderr = _take_every_text(sys.stderr)


def _take_every_text(stream: Any) -> Any:
    if stream is None:  # closed by who started this process
        return _open_nothing()
    if getattr(stream, "errors", None) == "strict":
        stream.reconfigure(errors="backslashreplace")
    return stream


def find_output_failure() -> OSError | None:
    """Return why standard output cannot be written to. If it can, it gets an empty line: an error follows anyhow."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def close_unwritable() -> None:
    """Replace standard output and standard error if they cannot be written to.

    Python flushes both when it ends, and would print a trace and end with an exit code of its own.
    """
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = _open_nothing()
    try:
        sys.stderr.flush()
    except OSError:
        sys.stderr = _open_nothing()


def _open_nothing() -> Any:
    return Path(os.devnull).open("w", encoding="utf-8")


def tell(text: str) -> None:
    """Print a line to standard error, in place of a bar."""
    if err.is_terminal:
        _draw("")
    err.print(text)


def fail(error: S3LakeError, code: int) -> NoReturn:
    """Print an error, in place of a bar, and end with an exit code."""
    end_command(f"{type(error).__name__}: {error}", code)


def end_command(text: str, code: int) -> NoReturn:
    """Print a line, in place of a bar, and end with an exit code, also if nothing can be printed."""
    with contextlib.suppress(OSError, SystemExit):
        tell(text)
    raise SystemExit(code)


class ProgressLine:
    """Shows on standard error how far a command is: a bar on a terminal, else a line every few seconds.

    Nothing is shown if `quiet`.
    """

    def __init__(self, what: str, total: int = 0, *, quiet: bool) -> None:
        self._what, self._total, self._quiet = what, total, quiet
        self._shown_s, self._last = 0.0, -1

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show how much is done, and set the total if it became known."""
        self._total = self._total if total is None else total
        every_s = _EVERY_S_ON_TERMINALS if err.is_terminal else _EVERY_S
        is_due = done >= self._total or time.monotonic() - self._shown_s > every_s
        if not is_due or self._quiet or done == self._last:
            return
        self._shown_s, self._last = time.monotonic(), done
        text = f"{self._what}: {done:,} of {self._total:,}"
        if not err.is_terminal:
            err.print(text)
        elif done >= self._total:
            self.erase()
        else:
            filled = _BAR * done // self._total
            _draw(f"{'━' * filled}{'─' * (_BAR - filled)} {text}"[: err.width - 1])

    def erase(self) -> None:
        """Erase the bar, because other lines follow."""
        if err.is_terminal and not self._quiet:
            _draw("")


def _draw(line: str) -> None:
    """Replace the present line of a terminal."""
    err.file.write(f"\r\x1b[2K{line}")
    err.file.flush()
