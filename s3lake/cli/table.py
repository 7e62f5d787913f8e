"""Commands about the tables that follow the index."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.options import (
    ConfigArgument,
    FromOption,
    JsonOption,
    SinkOption,
    ToOption,
    TopicOption,
    in_order,
    load,
    routes,
)
from s3lake.cli.terminal import DIFFERENCES, FAILED, err, tell
from s3lake.errors import ConfigurationError, S3LakeError

if TYPE_CHECKING:
    from s3lake.table.iceberg import LakeTable

_KILLED_MS = 24 * 3_600_000
"""Nobody writes a file of metadata for as long."""

app = typer.Typer(no_args_is_help=True, help="Tables that follow the index.")


@app.command("sync")
def table_sync(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    by_files: Annotated[
        bool,
        typer.Option("--by-files", help="Look at the table's files, not at its notes: what was taken out comes back."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring tables to what the index says, by reference: a whole past, or what a run did not come to.

    It can be repeated, and beside runs, and ends uploads of metadata that killed processes left more than a day ago.
    --dry-run ends with exit code 1 where there is something to do.
    """
    in_order(first, last)
    tables = [(lander, lander.table) for lander in routes(load(config), sink, topic) if lander.table is not None]
    if not tables:
        raise ConfigurationError("no sink that was asked for has a table: give it one with `table:`")
    behind = failed = 0
    for lander, table in tables:
        name = {"sink": lander.sink.name, "topic": lander.topic, "table": table.name}
        try:
            hours = [hour for hour in table.hours() if (first or hour) <= hour <= (last or hour)]
            left = _would(table, hours, name, by_files=by_files, as_json=as_json) if dry_run else 0
            for snapshot in () if dry_run else table.follow(hours, by_files=by_files):
                row = {**name, **asdict(snapshot), "summary": str(snapshot)}
                tell(as_json, row, "{table}: {summary}".format_map)
            if not dry_run and (ended := table.end_uploads(time.time_ns() // 10**6 - _KILLED_MS)):
                row = {**name, "uploads_ended": ended}
                tell(as_json, row, "{table}: {uploads_ended} uploads of metadata ended".format_map)
        except S3LakeError as error:
            failed += 1
            err.print(f"{lander.sink.name} {lander.topic}: {type(error).__name__}: {error}", markup=False)
            continue
        behind += left
        if not left:
            tell(as_json, {**name, "behind": 0}, "{table} is as the index has it".format_map)
    if failed or behind:
        raise typer.Exit(FAILED if failed else DIFFERENCES)


def _would(table: "LakeTable", hours: list[str], name: dict[str, Any], *, by_files: bool, as_json: bool) -> int:
    """Say in which hours the table is behind: how many there are."""
    behind = list(table.differences(hours, by_files=by_files))
    for one in behind:
        tell(
            as_json,
            {**name, "hour": one.hour, "to_add": len(one.added), "to_take_out": len(one.gone)},
            ("{table} {hour}: {to_add} commits to add, {to_take_out} to take out").format_map,
        )
    return len(behind)
