"""The command that compares Kafka and the bucket, for a cron job as for people: exit 0 only where all is landed."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import typer

from s3lake import hours
from s3lake.cli import rows
from s3lake.cli.options import (
    ConfigArgument,
    FromOption,
    JsonOption,
    OpenOption,
    SinkOption,
    ToOption,
    TopicOption,
    in_order,
    load,
    no_hours,
    routes,
)
from s3lake.cli.terminal import DIFFERENCES, progress_bar, tell
from s3lake.sink import Config

if TYPE_CHECKING:
    from s3lake.land.landing import Landing
    from s3lake.verify import Grid, Report


def verify(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    allow_open: OpenOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare Kafka and the committed files record by record, and name what should be landed by now and is not.

    Without --from every hour since the sink's start is looked at, without --to every hour up to the present.
    """
    from s3lake.verify import Grid, combined

    in_order(first, last)
    loaded = load(config)
    landings = list(routes(loaded, sink, topic))
    grids = [Grid.of(lander.sink, hours.now_ms(), first, last) for lander in landings]
    _must_have_hours(landings, grids)
    reports = verified(loaded, landings, grids, quiet=as_json)
    reports = [report.allowing_open() if allow_open else report for report in reports]
    for lander, report in zip(landings, reports, strict=True):
        for checked in report.checked:
            row = {"sink": lander.sink.name, "topic": lander.topic, **rows.checked_row(checked)}
            tell(as_json, row, rows.checked_line)
        list_differences(lander, report, as_json)
    report = combined(reports)
    tell(as_json, rows.totals(report), rows.totals_line)
    if not report.clean:
        raise typer.Exit(DIFFERENCES)


def verified(config: Config, landings: Sequence["Landing"], grids: Sequence["Grid"], *, quiet: bool) -> list["Report"]:
    from s3lake.verify import verify_against
    from s3lake.verify.logs import log_of

    total = sum(_offsets(lander, grid) for lander, grid in zip(landings, grids, strict=True))
    done = 0
    with progress_bar("verify: offsets compared", total, quiet=quiet) as progress:

        def advance(offsets: int) -> None:
            nonlocal done
            done = min(total, done + offsets)  # what is compared again, or was landed meanwhile, counts once
            progress(done)

        with log_of(config) as log:
            return [
                verify_against(lander.sink, lander.index, log, grid, advance)
                for lander, grid in zip(landings, grids, strict=True)
            ]


def _offsets(lander: "Landing", grid: "Grid") -> int:
    tiles = (lander.index.tile(hour) for hour in _tiles(lander, grid))
    spans = chain.from_iterable(tile[0].partitions.values() for tile in tiles if tile)
    return sum(span.committed - span.start for span in spans)


def _tiles(lander: "Landing", grid: "Grid") -> list[str]:
    head = lander.index.head()
    return [hour for hour in hours.expand(head[0].hours) if hour in grid] if head else []


def _must_have_hours(landings: Sequence["Landing"], grids: Sequence["Grid"]) -> None:
    """Of a range in which nothing can be, nothing can be said: neither that all is well."""
    if any(grid.due() or _tiles(lander, grid) for lander, grid in zip(landings, grids, strict=True)):
        return
    raise no_hours(landings, grids[0].present)


def list_differences(lander: "Landing", report: "Report", as_json: bool) -> None:
    for difference in report.differences:
        row = rows.difference_row(difference) | {"sink": lander.sink.name}
        tell(as_json, row, lambda _, difference=difference: str(difference))  # type: ignore[misc]
    for notice in report.notices:
        row = {"notice": notice, "topic": lander.topic, "sink": lander.sink.name}
        tell(as_json, row, "notice: {sink} {topic}: {notice}".format_map)
    for rest in report.unlanded:
        row = rows.unlanded_row(rest) | {"sink": lander.sink.name}
        tell(as_json, row, lambda _, rest=rest: str(rest))  # type: ignore[misc]
