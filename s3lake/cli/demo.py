"""The demo's command: what it does is told while it does it."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli import rows
from s3lake.cli.options import DialectOption, JsonOption, load, routes
from s3lake.cli.terminal import DIFFERENCES, progress_bar, say, tell
from s3lake.cli.verify import list_differences, verified
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

_NEXT = """\
next: s3lake demo --serve keeps all of it running, with Dagster's UI and new events
      s3lake demo --keep DIR keeps the files, the configuration and Dagster's state in DIR"""


def demo(
    records: Annotated[int, typer.Option(min=1, help="Committed records to produce.")] = 200_000,
    serve: Annotated[bool, typer.Option("--serve", help="Keep producing and serve the Dagster UI.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep data, configuration and state here.")] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Let the sinks of this file, in any dialect, land.")
    ] = None,
    dialect: DialectOption = None,
    table: Annotated[bool, typer.Option("--table", help="Land into Iceberg tables too, and query them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Real Kafka and S3 on this machine: produce events, land every hour through Dagster, verify every record."""
    from s3lake.verify import Grid, combined

    try:
        from s3lake.demo import run
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the demo needs {error.name}: in a clone of s3lake, pip install '.[demo]'") from None
    own = load(config, dialect, to_land=False) if config else None
    port = run.ui_port() if serve else 0
    say(as_json, f"starting Kafka{', S3 and Spark' if serve else ' and S3'} on this machine")
    if serve:
        say(as_json, f"Dagster's UI will be at http://127.0.0.1:{port} as soon as everything is verified")
    with ExitStack() as stack:
        with progress_bar("produce", records, quiet=as_json) as produced:
            stage = stack.enter_context(run.stage(records, keep, produced, own, warm=serve, tables=table))
        tell(as_json, run.produced_row(stage), rows.produced_line)
        session = "; Spark starts first" if stage.spark is None else f" and {stage.spark.address}"
        say(as_json, f"backfilling {stage.hours[0]} to {stage.hours[-1]} through Dagster{session}")
        run.backfill(stage, lambda message: say(as_json, f"  {message}"))
        landings = list(routes(stage.config))
        for hour in stage.hours:
            for lander in landings:
                tell(as_json, rows.hour_row(lander.sink.name, lander.topic, lander.report(hour)), rows.hour_line)
        grids = [Grid.of(lander.sink, hours.now_ms()) for lander in landings]
        reports = verified(stage.config, landings, grids, quiet=as_json)
        for lander, report in zip(landings, reports, strict=True):
            list_differences(lander, report, as_json)
        report = combined(reports)
        lost = max(0, run.expected(stage) - report.compared)
        tell(as_json, rows.totals(report) | {"missing": report.missing + lost}, rows.totals_line)
        behind = [lander for lander in landings if table and not _queried(lander, stage.hours, as_json)]
        if serve:
            with run.served(stage, port) as (process, url):
                stop = run.interrupted()
                tell(as_json, run.addresses(stage, landings, url), rows.address_lines)
                run.trickle(stage, process, stop)
        else:
            say(as_json, _NEXT)
        if lost or behind or not report.clean:
            raise typer.Exit(DIFFERENCES)


def _queried(lander: "Landing", hours: list[str], as_json: bool) -> bool:
    """Whether a query of a topic's table finds what the index calls landed."""
    from s3lake.demo.run import queried

    row = queried(lander, hours)
    if row is not None:
        tell(as_json, row, _answer)
    return row is None or row["rows"] == row["landed"]


def _answer(row: dict[str, Any]) -> str:
    return f"DuckDB, {row['table']}: {row['query']} -> {row['rows']:,}; landed {row['landed']:,}"
