"""What the commands print, and how they end."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from s3lake.errors import S3LakeError

DIFFERENCES, INPUT, FAILED, INTERRUPTED, UNREAD = 1, 2, 3, 130, 141
EXIT_CODES: Mapping[int, str] = {
    0: "fine; or there was nothing to do, which is said",
    DIFFERENCES: "differences were found, by the commands that look for some",
    INPUT: "the configuration, an argument or what was asked for cannot be: change it, trying again does not help",
    FAILED: "it failed while running: Kafka, the store or a stage; what was landed stays, and trying again may help",
    INTERRUPTED: "cut off by Ctrl-C; what serves until then ends with 0",
    UNREAD: "whoever read the output has closed it, as `head` does",
}
DIFFERENT: Mapping[str, str] = {
    "demo": "a record is not landed, missing or duplicated",
    "compact": "hours would be changed, and --yes was not said",
    "erase": "rows would be taken out, and --yes was not said",
    "preview": "a record is refused, and the sink tolerates none",
    "reformat": "hours would be written anew, and --yes was not said",
    "restore": "records would be produced, and --yes was not said",
    "retention": "hours would go, and --yes was not said",
    "test": "a case differs, or nothing is expected of it",
    "verify": "a record is not landed, missing, duplicated or changed",
}
"""Commands that end with `DIFFERENCES`, and when."""
_WIDEST = 1000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """See `Console.on_broken_pipe`, whose exit code is that of differences."""
        raise _unread()


out = _Console(highlight=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False, soft_wrap=True)


def tell(as_json: bool, row: Mapping[str, Any], line: Callable[[Any], str]) -> None:
    if as_json:
        print_json(row)
    else:
        out.print(line(row), markup=False)


def say(as_json: bool, text: str) -> None:
    if not as_json:
        out.print(text, markup=False)


def print_table(table: Table) -> None:
    """A table as wide as its cells and its title need: a path that is folded or cut off cannot be searched for."""
    table.min_width = len(str(table.title or ""))
    console = _Console(highlight=False, width=_WIDEST)
    console.print(table, crop=False)


def print_json(row: Mapping[str, Any]) -> None:
    write(json.dumps(row) + "\n")


def write(text: str) -> None:
    """A document as it is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise _unread() from None


def _unread() -> SystemExit:
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - Python flushes it once more when it ends
    return SystemExit(UNREAD)


def fail(error: S3LakeError, code: int) -> NoReturn:
    err.print(f"{type(error).__name__}: {error}", markup=False)
    raise SystemExit(code)


class Progressed:
    """How far a command is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, what: str, total: int, bar: Progress | None, *, quiet: bool) -> None:
        self._what, self._total, self._bar, self._quiet = what, total, bar, quiet
        self._task = bar.add_task(what, total=total) if bar else None
        self._printed, self._last = 0.0, -1

    def __call__(self, done: int, total: int | None = None) -> None:
        """So much is done, and, where that became known, so much is to do."""
        self._total = self._total if total is None else total
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=self._total)
        elif not self._quiet and done != self._last and (time.monotonic() - self._printed > 5 or done >= self._total):
            self._printed, self._last = time.monotonic(), done
            err.print(f"{self._what}: {done:,} of {self._total:,}", markup=False)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Lines that stay are printed while no bar is there, which would stand in one of them."""
        if self._bar is not None:
            self._bar.stop()
        yield
        if self._bar is not None:
            self._bar.start()


@contextmanager
def progress_bar(what: str, total: int, *, quiet: bool) -> Iterator[Progressed]:
    """The progress of something that is `total` long."""
    if quiet or not err.is_terminal:
        yield Progressed(what, total, None, quiet=quiet)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        yield Progressed(what, total, bar, quiet=quiet)


@contextmanager
def trying(what: str, *, quiet: bool) -> Iterator[None]:
    """Something that may take seconds is tried: a terminal shows what, other readers get its outcome."""
    if quiet or not err.is_terminal:
        yield
    else:
        with err.status(f"{what} …"):
            yield
