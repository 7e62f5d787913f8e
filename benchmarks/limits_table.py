"""The table of `limits.md`: rows that were measured at different times, and how each limit grows."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

HEAD = """\
# Limits

Written by `benchmarks/limits.py`; [README.md](README.md#limits) says how. *Growth* is what CPU seconds, memory and \
requests were multiplied by since the smaller size before: at most as much as the size is linear.

| limit | size | seconds | CPU s | peak, MB | S3 requests | files | index, kB | growth | load | measured |
|---|---|---|---|---|---|---|---|---|---|---|
"""
_ROW = re.compile(
    r"\| (?P<title>[^|]+) \| (?P<size>[\d,]+) \| (?P<seconds>[\d,.]+) \| (?P<cpu>[\d,.]+) \| (?P<peak>[\d,.]+) "
    r"\| (?P<requests>[\d,]+) \| (?P<files>[\d,]+) \| (?P<index>[\d,.]+) \| [^|]* "
    r"\| (?P<load>\d*) ?\| (?P<day>[^|]+) \|"
)


@dataclass(frozen=True)
class Row:
    """What a limit cost at one size.

    Attributes:
        peak_bytes: the largest share of memory that its processes had together.
        load: how many processes the machine had at work, on average over the minute before.
    """

    title: str
    size: int
    seconds: float
    cpu_s: float
    peak_bytes: float
    requests: int
    index_bytes: float
    files: int = 0
    load: str = ""
    day: str = ""

    @property
    def place(self) -> tuple[str, int]:
        return self.title, self.size


def rewritten(text: str, row: Row, wanted: Mapping[str, Sequence[int]]) -> str:
    """The page with one row more, or another one in its place; it ends with the sizes `wanted` that it has not."""
    day = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    rows = {known.place: known for known in map(_read, _ROW.finditer(text))}
    rows[row.place] = replace(row, load=f"{os.getloadavg()[0]:.0f}", day=day)
    titles = list(dict.fromkeys(title for title, _ in rows))
    ordered = sorted(rows.values(), key=lambda one: (titles.index(one.title), one.size))
    lines = []
    for position, one in enumerate(ordered):
        before = ordered[position - 1] if position else None
        lines.append(_written(one, before if before and before.title == one.title else None))
    missing = [
        f"{title}: {' and '.join(f'{size:,}' for size in sizes if (title, size) not in rows)}"
        for title, sizes in wanted.items()
        if any((title, size) not in rows for size in sizes)
    ]
    end = f"\nNot measured yet: {'; '.join(missing)}.\n" if missing else ""
    return HEAD + "\n".join(lines) + "\n" + end


def _written(row: Row, before: Row | None) -> str:
    growth = ""
    if before is not None:
        parts = [("CPU", row.cpu_s, before.cpu_s), ("memory", row.peak_bytes, before.peak_bytes)]
        parts.append(("requests", row.requests, before.requests))
        growth = f"size x{row.size / before.size:g}: " + ", ".join(
            f"{name} x{now / earlier:.2g}" for name, now, earlier in parts if now and earlier
        )
    return (
        f"| {row.title} | {row.size:,} | {_short(row.seconds)} | {_short(row.cpu_s)} | {row.peak_bytes / 1e6:,.1f} "
        f"| {row.requests:,} | {row.files:,} | {row.index_bytes / 1e3:,.1f} | {growth} | {row.load} | {row.day} |"
    )


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.4f}"


def _read(found: re.Match[str]) -> Row:
    def number(name: str) -> float:
        return float(found[name].replace(",", ""))

    return Row(
        found["title"],
        int(number("size")),
        number("seconds"),
        number("cpu"),
        number("peak") * 1e6,
        int(number("requests")),
        number("index") * 1e3,
        int(number("files")),
        found["load"],
        found["day"],
    )
