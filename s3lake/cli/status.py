"""Commands that show how far every sink is: for people, and for Prometheus."""

import os
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import FAILED, err, print_json, print_table, write
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError
from s3lake.plugins import require_extra

if TYPE_CHECKING:
    from s3lake.lake.metrics import Measured
    from s3lake.land.topic.topic_sink import TopicSink

_LOOK_S = 0.5
_ONCE_S = 120.0
"""The seconds that `s3lake metrics` without --listen may take."""
_COLUMNS = (
    "sink",
    "topic",
    "landed up to",
    "lag",
    "sealed up to",
    "dead letters (24 h)",
    "other counts (24 h)",
    "last error",
)
_DAY = 24
_AT_ONCE = 16


def run_status(request: Request) -> None:
    """Print one line for each sink and topic: how far it is landed, and its last error.

    Columns: the last complete hour; records in Kafka that are not landed and the age of the oldest; the hour up to
    which all are sealed, as Dagster noted it; dead letters of the last 24 hours; other counts of these hours that
    are not 0, apart from rows; the last error. The exit code is 3 if Kafka or S3 did not answer.
    """
    from s3lake.lake.metrics import Looks

    targets = list(request.targets(fail_fast=True))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        measured = list(pool.map(partial(Looks().measure, limit=_DAY), targets))
    failures = _read_failed_runs(targets, measured)
    rows = [_describe(target, look, failures) for target, look in zip(targets, measured, strict=True)]
    if request.as_json:
        for row in rows:
            print_json(row)
    else:
        print_table(_COLUMNS, list(map(_cells, rows)), right=("dead letters (24 h)",))
    if any(look.errors for look in measured):
        raise typer.Exit(FAILED)


def _describe(target: "TopicSink", look: "Measured", failures: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the status of a sink and topic; None for what could not be read."""
    from s3lake.index.plan.counts import counts_to_json, sum_counts

    progress, waiting = look.progress, look.waiting
    first = hours.shift(hours.key_of_ms(target.clock()), 1 - _DAY)
    errors = [f"{part}: {error}" for part, error in look.errors.items()]
    counts = None if progress is None else sum_counts(tile.sums for tile in progress.tiles if tile.hour >= first)
    return {
        "sink": target.sink.name,
        "topic": target.topic,
        "landed_up_to": progress.complete.hour if progress and progress.complete else None,
        "lag_records": None if waiting is None else waiting.records,
        "lag_seconds": None if waiting is None else round(waiting.seconds),
        "sealed_up_to": progress.sealed if progress else None,
        "dead_letters": None if counts is None else counts.dead,
        "counts": None if counts is None else counts_to_json(counts),
        "last_error": "; ".join(errors) or failures.get((target.sink.name, target.topic)),
    }


def _read_failed_runs(targets: Sequence["TopicSink"], looks: Sequence["Measured"]) -> dict[tuple[str, str], str]:
    """Return why the newest run of Dagster for each sink and topic failed, if it failed after the last commit."""
    if "DAGSTER_HOME" not in os.environ:
        return {}
    from s3lake.orchestration.runs import read_last_failures

    names = [(target.sink.name, target.topic) for target in targets]
    try:
        commits = [look.progress.last_commit if look.progress else None for look in looks]
        return read_last_failures({name: last[0] if last else 0 for name, last in zip(names, commits, strict=True)})
    except Exception as error:  # Dagster's storage can fail in many ways, and does not affect what is landed
        return dict.fromkeys(names, f"the instance of DAGSTER_HOME cannot be read: {type(error).__name__}")


def _cells(row: Mapping[str, Any]) -> list[str]:
    """Return a status as cells; `?` for what could not be read."""
    lag = "?"
    if row["lag_records"] is not None:
        age = f", {_format_age(row['lag_seconds'])}" if row["lag_records"] else ""
        lag = f"{row['lag_records']:,}{age}"
    unread = row["dead_letters"] is None
    dates = [row[name] or ("?" if unread else "none") for name in ("landed_up_to", "sealed_up_to")]
    dead = "?" if unread else f"{row['dead_letters']:,}"
    counts = "?" if unread else _format_other_counts(row["counts"]) or "none"
    return [row["sink"], row["topic"], dates[0], lag, dates[1], dead, counts, row["last_error"] or "none"]


def _format_other_counts(counts: Mapping[str, Any]) -> str:
    """Return the counts that no other column has, if they are not 0."""
    from s3lake.index.plan.counts import Counts, define_counts, sum_by_field

    others = [one for one in define_counts(Counts).values() if one.name not in ("read", "rows", "dead_letters")]
    return ", ".join(f"{sum_by_field(counts[one.name]):,} {one.text}" for one in others if counts[one.name])


def _format_age(seconds: int) -> str:
    """Return seconds with their two largest units, for example `3h9m`."""
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


def run_metrics(
    request: Request,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve them there, for example 127.0.0.1:9108.")
    ] = None,
) -> None:
    """Print lag, completeness and volumes of every sink and topic for Prometheus, or serve them."""
    with require_extra("metrics", "s3lake metrics"):
        from prometheus_client import CollectorRegistry, generate_latest, start_http_server
    from s3lake.lake.prometheus import Scrape

    address = None if listen is None else _parse_address(listen)
    config = request.load()
    find = partial(request.targets, config, fail_fast=True)
    list(find())  # a wrong option ends the command now
    registry = CollectorRegistry()
    registry.register(Scrape(find) if address else Scrape(find, _ONCE_S))
    if address is None:
        write(generate_latest(registry).decode())
        return
    host, port = address
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigurationError(f"--listen {listen}: cannot listen there: {error.strerror or error}") from None
    shown = f"[{host}]" if ":" in host else host
    err.print(f"metrics: http://{shown}:{server.server_address[1]}/metrics")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        while not ended.wait(_LOOK_S):  # a signal does not always wake a thread that waits without end
            pass
    finally:
        server.shutdown()
        server.server_close()


def _parse_address(listen: str) -> tuple[str, int]:
    address = re.fullmatch(r"\[?([^\[\]]+)\]?:(\d{1,5})", listen)
    if address is None or int(address[2]) > 65_535:
        raise ConfigurationError(f"--listen {listen}: write HOST:PORT, for example 127.0.0.1:9108")
    return address[1], int(address[2])
