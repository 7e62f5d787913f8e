"""Every moment of an operation at which a process can die: `python -m trials matrix --only landing,compact`.

A command of ours is killed when its k-th request to S3 or Kafka has arrived at a proxy, before it is sent on, or when
its answer has come, before that is passed back; for every k. Another process runs the command again, `clean` runs as it
would two days later, and `checker.py` compares. Then Complete, conditional PUT and DELETE get each answer that S3 may
give, once and each time that they are sent.

Where a table follows, its catalog goes away at an earlier request, drawn by the seed, or with the one whose answer is
lost; and at request k of runs that nothing else happens to. It is away while the next process goes on, and comes back
then; the table is scanned before, between and after.

The bucket is the same at the start of each run, to the ids of uploads: it is copied as the S3 server keeps it.
"""

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from s3lake_tests.kit.s3 import find_program
from trials.armed import ArmedKafka, ArmedS3
from trials.operations import OPERATIONS, Operation
from trials.rehearsal import UNAVAILABLE, Rehearsal, Row, rehearsal

WAYS = ("S3", "Kafka", "answers", "catalog")
ANSWERED = ("Complete", "PUT If-None-Match", "PUT If-Match", "DELETE")
ANSWERS = (
    *("400", "403", "404", "409", "412", "500", "503", "200 with an error"),
    *("unanswered", "done and 500", "slow"),
)
OF_ANSWERS = ("landing", "compact")


def main() -> None:
    """Exit code 1 where anything is wrong after any run."""
    options = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    if find_program("versitygw") is None:
        raise SystemExit("versitygw is missing: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    rng = random.Random(options.seed)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="s3lake-matrix-") as scratch,
        rehearsal(Path(scratch)) as stage,
        _told(rows),
    ):
        for operation in OPERATIONS:
            if options.only and operation.name not in options.only:
                continue
            stage.prepare(operation)
            for way in options.ways:
                if _has(operation, way):
                    runs = {"answers": _answered, "catalog": _without_catalog}.get(way) or partial(
                        _killed, way=way, rng=rng
                    )
                    rows.append(Row(f"{operation.name}, {way}"))
                    first = rng.randrange(options.every) if options.first is None else options.first - 1
                    runs(rows[-1], stage, operation, first, options.every)
    if not rows:
        raise SystemExit(
            f"nothing was tried: {', '.join(options.only)} cannot end in these ways: {', '.join(options.ways)}"
        )
    sys.exit(0 if all(row.clean for row in rows) else 1)


def _has(operation: Operation, way: str) -> bool:
    return {"answers": operation.name in OF_ANSWERS, "catalog": operation.has_table}.get(way, True)


def _in_peace(row: Row, stage: Rehearsal, operation: Operation, proxy: ArmedS3 | ArmedKafka) -> None:
    """A run that nothing happens to, which counts the requests."""
    stage.s3.arm()
    stage.kafka.arm()
    stage.begin(operation)
    code, said = stage.ended()
    row.requests = proxy.requests
    peace = stage.judged(operation)
    row.add(replace(peace, failed=peace.failed or code != 0))
    if code:
        print(f"{operation.name} in peace ended with {code}:\n{said}", file=sys.stderr)


def _without_catalog(row: Row, stage: Rehearsal, operation: Operation, first: int, every: int) -> None:
    """The catalog of the table goes away at every request, and is away while a new process goes on."""
    _in_peace(row, stage, operation, stage.s3)
    for at in range(1 + first, row.requests + 1, every):
        stage.s3.arm()
        stage.kafka.arm()
        stage.s3.notify(at, stage.catalog.take_away)
        stage.begin(operation)
        code, said = stage.ended()
        row.points += stage.catalog.is_away
        row.codes[code] += 1
        after = stage.judged(operation)
        if code not in (0, UNAVAILABLE):
            print(f"exit code {code}, and it said:\n{said}", file=sys.stderr)
            after.failed = 1
        _tell(row, after, f"away at {at}: exit code {code}")


def _killed(
    row: Row, stage: Rehearsal, operation: Operation, first: int, every: int, *, way: str, rng: random.Random
) -> None:
    """Killed at every request that a run in peace makes, on either side."""
    proxy: ArmedS3 | ArmedKafka = stage.s3 if way == "S3" else stage.kafka
    _in_peace(row, stage, operation, proxy)
    for at in range(1 + first, row.requests + 1, every):
        for answered in (False, True):
            stage.s3.arm()
            stage.kafka.arm()
            proxy.arm(at, answered=answered, strike=stage.strike)
            away_at = (at if answered else rng.randint(1, at)) if operation.has_table else 0
            stage.s3.notify(away_at, stage.catalog.take_away)
            stage.begin(operation)
            code, _ = stage.ended()
            row.points += code == -signal.SIGKILL
            away = f", without catalog from {away_at} on" if stage.catalog.is_away else ""
            after = stage.judged(operation)
            _tell(row, after, f"{'after' if answered else 'before'} {at} {stage.s3.struck_at}{away}")


def _answered(row: Row, stage: Rehearsal, operation: Operation, first: int, every: int) -> None:
    """Each answer to each sort of request that it makes."""
    row.requests = len(ANSWERED)
    cases = [(sort, fault, often) for sort in ANSWERED for fault in ANSWERS for often in (False, True)]
    for sort, fault, often in cases[first::every]:
        if (fault == "200 with an error" and sort != "Complete") or (fault == "slow" and often):
            continue
        stage.s3.spoil(sort, fault, often=often)
        stage.kafka.arm()
        stage.begin(operation)
        code, said = stage.ended()
        row.points += bool(stage.s3.spoilt)
        row.codes[code] += 1
        after = stage.judged(operation)
        if code not in (0, UNAVAILABLE) or (code and not said.strip()):
            print(f"exit code {code}, and it said:\n{said}", file=sys.stderr)
            after.failed = 1
        _tell(row, after, f"{sort}: {fault}{', each time' if often else ''}: exit code {code}, {stage.s3.spoilt}")


def _tell(row: Row, after: Row, what: str) -> None:
    row.add(after)
    print(
        f"{time.strftime('%X')} {row.name} {what}{'' if after.clean else f': WRONG {after}'}",
        file=sys.stderr,
        flush=True,
    )


@contextlib.contextmanager
def _told(rows: Sequence[Row]) -> Iterator[None]:
    """What is known is told, also where somebody ended it."""
    try:
        yield
    finally:
        print(_in_words(rows), flush=True)


def _in_words(rows: Sequence[Row]) -> str:
    columns = (
        "requests",
        "points",
        "runs",
        "lost",
        "doubled",
        "unlisted",
        "left",
        "of_tables",
        "broken",
        "otherwise",
        "failed",
    )
    lines = [
        f"| operation | {' | '.join(column.replace('_', ' ') for column in columns)} |",
        f"|{'---|' * (len(columns) + 1)}",
    ]
    for row in rows:
        codes = ", ".join(f"{count} of code {code}" for code, count in sorted(row.codes.items()))
        name = f"{row.name} ({codes})" if codes else row.name
        lines.append(f"| {name} | {' | '.join(str(getattr(row, column)) for column in columns)} |")
    return "\n".join(lines)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ",".join(operation.name for operation in OPERATIONS)
    parser.add_argument("--only", type=_listed, default=[], help=f"of {names} (default: all)")
    parser.add_argument("--ways", type=_listed, default=list(WAYS), help=f"of {','.join(WAYS)} (default: all)")
    parser.add_argument("--every", type=int, default=1, help="each so-many-th request (default: %(default)s)")
    parser.add_argument("--first", type=int, help="of these, counted from 1 (default: drawn by --seed)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args()
    for given, known in ((options.only, names.split(",")), (options.ways, WAYS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{', '.join(unknown)}: expected one of {', '.join(known)}")
    return options


def _listed(text: str) -> list[str]:
    return text.split(",")
