"""What the commands print, and how they end."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from s3lake.errors import S3LakeError

DIFFERENCES, INPUT, FAILED = 1, 2, 3
"""Exit codes, beside 0 for fine."""
_WIDEST = 1000

out, err = Console(highlight=False, soft_wrap=True), Console(stderr=True, highlight=False, soft_wrap=True)


def tell(as_json: bool, row: Mapping[str, Any], line: Callable[[Any], str]) -> None:
    if as_json:
        print_json(row)
    else:
        out.print(line(row), markup=False)


def say(as_json: bool, text: str) -> None:
    if not as_json:
        out.print(text, markup=False)


def print_table(table: Table) -> None:
    """A table as wide as its cells need: a path that is folded or cut off cannot be searched for."""
    console = Console(highlight=False, width=_WIDEST)
    console.print(table, crop=False)


def print_json(row: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def fail(error: S3LakeError, code: int) -> NoReturn:
    err.print(f"{type(error).__name__}: {error}", markup=False)
    raise SystemExit(code)


@contextmanager
def progress_bar(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda _: None
    elif err.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        printed, last = 0.0, None

        def line(done: int) -> None:
            nonlocal printed, last
            if done != last and (time.monotonic() - printed > 5 or done >= total):
                printed, last = time.monotonic(), done
                err.print(f"{what}: {done:,} of {total:,}", markup=False)

        yield line
