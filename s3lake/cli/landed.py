"""Commands about hours: land them in the demo, verify, rewrite, clean up after."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from s3lake import hours, rows
from s3lake.cli.options import (
    ConfigArgument,
    DialectOption,
    FromOption,
    JsonOption,
    SinkOption,
    ToOption,
    TopicOption,
    hour_range,
    load,
    routes,
)
from s3lake.cli.terminal import DIFFERENCES, progress_bar, say, tell
from s3lake.errors import ConfigurationError
from s3lake.sink import Config

if TYPE_CHECKING:
    from s3lake.landing import Landing
    from s3lake.verify import Report


def demo(
    records: Annotated[int, typer.Option(min=1, help="Committed records to produce.")] = 200_000,
    serve: Annotated[bool, typer.Option("--serve", help="Keep producing and serve the Dagster UI.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep data, configuration and state here.")] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Let the sinks of this file, in any dialect, land.")
    ] = None,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Real Kafka and S3 on this machine: produce events, land every hour through Dagster, verify every record."""
    from s3lake.verify import combined

    try:
        from s3lake.demo import run
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the demo needs {error.name}: pip install 's3lake[demo]'") from None
    given = load(config, dialect, to_land=False) if config else None
    with (
        progress_bar("produce", records, quiet=as_json) as produced,
        run.stage(records, keep, produced, given) as stage,
    ):
        say(as_json, f"backfilling {stage.hours[0]} to {stage.hours[-1]} through Dagster")
        run.backfill(stage)
        landings = list(routes(stage.config))
        for hour in stage.hours:
            for lander in landings:
                tell(as_json, rows.hour_row(lander.topic, lander.report(hour)), rows.hour_line)
        report = combined(_verified(stage.config, landings, None, quiet=as_json))
        expected = run.expected(stage)
        missing = report.missing + max(0, expected - report.produced)
        tell(as_json, rows.totals(report) | {"produced": expected, "missing": missing}, rows.totals_line)
        _list_differences(report, as_json)
        if serve:
            with run.served(stage) as (process, url):
                tell(as_json, run.addresses(stage, url), rows.address_lines)
                run.trickle_until_interrupted(stage, process)
        if missing or not report.clean:
            raise typer.Exit(DIFFERENCES)


def verify(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read Kafka and the committed files, independently of the writer, and compare them record by record."""
    from s3lake.verify import combined

    loaded = load(config)
    landings = list(routes(loaded, sink, topic))
    reports = _verified(loaded, landings, hour_range(first, last), quiet=as_json)
    for lander, found in zip(landings, reports, strict=True):
        for one in found.checked:
            tell(as_json, {"sink": lander.sink.name, "topic": lander.topic, **rows.checked_row(one)}, rows.checked_line)
    report = combined(reports)
    _list_differences(report, as_json)
    tell(as_json, rows.totals(report), rows.totals_line)
    if not report.clean:
        raise typer.Exit(DIFFERENCES)


def rewrite(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land complete hours once more from Kafka, in place of what was landed."""
    wanted = hour_range(first, last)
    if wanted is None:
        raise ConfigurationError("rewrite needs --from H and --to H: it never rewrites everything by default")
    for lander in routes(load(config), sink, topic):
        for hour in hours.span(*wanted):
            tell(as_json, rows.hour_row(lander.topic, lander.rewrite(hour)), rows.hour_line)


def clean(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what dead writers left behind."""
    from s3lake.commit.clean import clean as cleaned

    for lander in routes(load(config), sink, topic):
        for one in cleaned(lander.index, now_ms=int(time.time() * 1000), dry_run=dry_run):
            row = {"sink": lander.sink.name, "topic": lander.topic, **asdict(one), "done": not dry_run}
            tell(as_json, row, rows.cleaned_line)


def _verified(
    config: Config, landings: Sequence["Landing"], wanted: tuple[str, str] | None, *, quiet: bool
) -> list["Report"]:
    from s3lake.verify import verify as compare

    total = sum(_offsets(lander, wanted) for lander in landings)
    with progress_bar("verify", total, quiet=quiet) as progress:
        done = 0
        reports = []
        for lander in landings:
            begun = done

            def seen(offsets: int, _: int, begun: int = begun) -> None:
                nonlocal done
                done = begun + offsets
                progress(done)

            reports.append(
                compare(
                    lander.sink,
                    lander.topic,
                    lander.index,
                    config.kafka.bootstrap_servers,
                    config.kafka.properties,
                    wanted,
                    seen,
                )
            )
        progress(total)
    return reports


def _offsets(lander: "Landing", wanted: tuple[str, str] | None) -> int:
    tiles = (tile for tile in lander.index.tiles() if wanted is None or wanted[0] <= tile.hour <= wanted[1])
    return sum(span.committed - span.start for tile in tiles for span in tile.partitions.values())


def _list_differences(report: "Report", as_json: bool) -> None:
    for one in report.differences:
        row = {
            "difference": one.kind,
            "topic": one.topic,
            "hour": one.hour,
            "partition": one.partition,
            "detail": one.detail,
        }
        tell(as_json, row, lambda _, one=one: str(one))  # type: ignore[misc]
