"""The command that compares Kafka and the bucket: it ends with 0 only if everything is landed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import DIFFERENCES, ProgressLine, emit
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Config
    from s3lake.index.plan.hour_grid import Grid
    from s3lake.lake.verify import NotLanded, VerifyReport
    from s3lake.land.topic.topic_sink import TopicSink


def run_verify(
    request: Request,
    allow_open: Annotated[
        bool, typer.Option("--allow-open", help="Records of the current hour may still be waiting.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print differences and totals only.")] = False,
) -> None:
    """Compare Kafka with the committed files, record by record.

    Hours that should be landed by now and are not are differences too. Without --from: every hour since the sink's
    start; without --to: up to the current hour.
    """
    from s3lake.index.plan.hour_grid import Grid
    from s3lake.lake.verify import combine_reports

    config, now_ms = request.load(), hours.now_ms()
    targets = list(request.targets(config))
    grids = [Grid.from_sink(target.sink, now_ms, request.first, request.last) for target in targets]
    if not any(_landed_hours(target, grid) for target, grid in zip(targets, grids, strict=True)):
        require_due_hours(targets, grids)
    reports = verify_targets(config, targets, grids, quiet=request.as_json)
    reports = [report.allow_current_hour() if allow_open else report for report in reports]
    for target, report in zip(targets, reports, strict=True):
        for checked in () if quiet else report.checked:
            row = {"sink": target.sink.name, "topic": target.topic, **asdict(checked)}
            emit(request.as_json, row, _format_checked)
        print_differences(target, report, as_json=request.as_json)
    report = combine_reports(reports)
    emit(request.as_json, describe_totals(report), format_totals)
    if not report.clean:
        raise typer.Exit(DIFFERENCES)


def verify_targets(
    config: "Config", targets: Sequence["TopicSink"], grids: Sequence["Grid"], *, quiet: bool
) -> list["VerifyReport"]:
    """Verify each target and show the progress."""
    from s3lake.lake.verify import open_log, verify_against

    total = sum(_count_offsets(target, grid) for target, grid in zip(targets, grids, strict=True))
    done, progress = 0, ProgressLine("verify: offsets compared", total, quiet=quiet)

    def advance(offsets: int) -> None:
        nonlocal done
        done = min(total, done + offsets)  # what is compared again, or was landed meanwhile, counts once
        progress(done)

    with open_log(config) as log:
        return [
            verify_against(target.sink, target.index, log, grid, advance)
            for target, grid in zip(targets, grids, strict=True)
        ]


def _count_offsets(target: "TopicSink", grid: "Grid") -> int:
    tiles = (target.index.tile(hour) for hour in _landed_hours(target, grid))
    spans = chain.from_iterable(tile[0].partitions.values() for tile in tiles if tile)
    return sum(span.committed - span.start for span in spans)


def _landed_hours(target: "TopicSink", grid: "Grid") -> list[str]:
    head = target.index.head()
    return [hour for hour in hours.expand(head[0].hours) if hour in grid] if head else []


def require_due_hours(targets: Sequence["TopicSink"], grids: Iterable["Grid"]) -> None:
    """Raise ConfigurationError if no sink has an hour in the requested range."""
    grids = list(grids)
    if not any(grid.due_hours() for grid in grids):
        starts = ", ".join(dict.fromkeys(f"{target.sink.name} at {target.sink.start}" for target in targets))
        raise ConfigurationError(
            f"no sink has an hour in this range: they begin {starts}, and now it is {grids[0].present}"
        )


def print_differences(target: "TopicSink", report: "VerifyReport", *, as_json: bool) -> None:
    """Print the differences, notices and hours not landed of a report."""
    sink = {"sink": target.sink.name}
    for difference in report.differences:
        row = {
            "difference": difference.type,
            "topic": difference.topic,
            "hour": difference.hour,
            "partition": difference.partition,
            "detail": difference.detail,
        }
        emit(as_json, row | sink, lambda _, difference=difference: str(difference))  # type: ignore[misc]
    for notice in report.notices:
        row = {"notice": notice, "topic": target.topic, **sink}
        emit(as_json, row, "notice: {sink} {topic}: {notice}".format_map)
    for unlanded in report.unlanded:
        row = _describe_unlanded(unlanded) | sink
        emit(as_json, row, lambda _, unlanded=unlanded: str(unlanded))  # type: ignore[misc]


def _describe_unlanded(unlanded: "NotLanded") -> dict[str, Any]:
    """Return hours that should be landed and are not, with their offsets: `[first, end)` per topic-partition."""
    return {
        "difference": "not_landed",
        "topic": unlanded.topic,
        "hour": unlanded.first,
        "last_hour": unlanded.last,
        "offsets": {str(partition): list(pair) for partition, pair in unlanded.offsets.items()},
        "not_landed": unlanded.count,
        "expired": unlanded.expired,
        "state": unlanded.state,
        "under_way": unlanded.under_way,
        "allowed": unlanded.allowed,
    }


_STATES = {"lost": "not checkable", "incomparable": "not checkable", "counted": "counted"}


def _format_checked(row: Mapping[str, Any]) -> str:
    unchecked = "".join(
        f"; offsets {part['first']} to {part['end']} {_STATES[part['state']]}: {part['reason']}"
        for part in row["not_checkable"]
    )
    erased = f"{row['erased']:,} erased, " if row["erased"] else ""
    return (
        "{sink} {topic} {hour} partition {partition}: {kafka_records:,} in Kafka, {landed:,} landed, {dead}, "
        "{skipped:,} skipped, {out}{stored}; missing {missing:,}, duplicated {duplicated:,}"
    ).format(
        dead=format_count(row["dead_letters"], "dead letters"), stored=format_files(row), out=erased, **row
    ) + unchecked


def describe_totals(report: "VerifyReport") -> dict[str, Any]:
    """Return the totals of a report."""
    names = ("compared", "not_compared", "landed", "dead_letters", "skipped", "erased", "files", "dead_letter_files")
    faults = ("not_landed", "missing", "duplicated", "not_checkable")
    totals: dict[str, Any] = {name: getattr(report, name) for name in (*names, *faults)}
    return totals | {"counted_reasons": report.counted_reasons}


def format_totals(row: Mapping[str, Any]) -> str:
    """Return totals as a line."""
    extra = "".join(
        f", {row[name]:,} {text}"
        for name, text in (
            ("skipped", "skipped (null or filtered)"),
            ("erased", "erased"),
            ("not_checkable", "offsets not checkable"),
        )
        if row[name]
    )
    reasons = f" ({'; '.join(row['counted_reasons'])})" if row["counted_reasons"] else ""
    counted = f", counted {row['not_compared']:,}{reasons}" if row["not_compared"] else ""
    return (
        "{records} of Kafka{counted}: {landed:,} landed, {dead}{extra}, in {stored}; "
        "not landed {not_landed:,}, missing {missing:,}, duplicated {duplicated:,}"
    ).format(
        records="compared " + format_count(row["compared"], "records"),
        dead=format_count(row["dead_letters"], "dead letters"),
        extra=extra,
        counted=counted,
        stored=format_files(row),
        **row,
    )


def format_files(row: Mapping[str, Any]) -> str:
    """Return how many files of data and of dead letters a row counts."""
    dead = " and " + format_count(row["dead_letter_files"], "dead-letter files") if row["dead_letter_files"] else ""
    return format_count(row["files"], "data files") + dead
