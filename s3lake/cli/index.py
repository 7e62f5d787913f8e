"""Commands about what was committed: the index, the columns of files, and tables that follow the index."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import print_json, print_table, print_text, write
from s3lake.cli.request import CHANGE, HOURS, JSON, ROUTES, SOURCE, Outcome, Request, command, require_hours
from s3lake.errors import ConfigurationError
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.index.plan.tile import Tile
    from s3lake.land.topic.topic_sink import TopicSink

index = typer.Typer(no_args_is_help=True, help="Inspect the index and repair it (expert).")
schema = typer.Typer(no_args_is_help=True, help="Inspect the columns of files; print the configuration's JSON Schema.")
table = typer.Typer(no_args_is_help=True, help="Tables that follow the index.")


@command(index, SOURCE, ROUTES, HOURS, JSON, name="show")
def show_index(request: Request) -> None:
    """Show tiles: states, offsets, commits, what is pending, garbage, and up to which hour all are sealed."""
    from s3lake.index.commit.documents import TopicHead
    from s3lake.index.commit.sealing import Sealing
    from s3lake.index.plan.stamps import find_notices

    for target in request.targets(tables=True):
        name, stored, tiles = f"{target.sink.name}: {target.topic}", target.index.head(), list(target.index.tiles())
        sealing = Sealing(target.index, stored[0] if stored else TopicHead()).with_tiles(tiles)
        sealed_up_to = sealing.upto(target.sink.start)
        tiles = [tile for tile in tiles if hours.is_within(tile.hour, request.first, request.last)]
        states = [_state(tile, sealed=not sealing.flaw(tile.hour)) for tile in tiles]
        if request.as_json:
            for tile, state in zip(tiles, states, strict=True):
                row = {"sink": target.sink.name, "topic": target.topic, **_describe_tile(tile, state)}
                print_json({**row, "sealed_up_to": sealed_up_to})
            continue
        if not tiles:
            print_text(
                False, f"{name}: nothing is landed {'in these hours' if request.first or request.last else 'yet'}"
            )
            continue
        columns = ("hour", "state", "offsets", "landed", "commits", "pending", "garbage", "expired")
        cells = [_tile_cells(tile, state) for tile, state in zip(tiles, states, strict=True)]
        print_table(columns, cells, f"{name}, sealed up to {sealed_up_to or 'no hour'}")
        for tile in tiles:
            for notice in find_notices(tile):
                print_text(False, f"notice: {target.sink.name} {target.topic} {tile.hour}: {notice}")


def _describe_tile(tile: "Tile", state: str) -> dict[str, Any]:
    from s3lake.index.plan.stamps import find_notices

    return {
        "hour": tile.hour,
        "state": state,
        "offsets": {str(number): [span.start, span.committed, span.end] for number, span in tile.partitions.items()},
        "commits": list(tile.commits),
        "pending": tile.pending,
        "garbage": list(tile.garbage),
        "expired": [list(offsets) for offsets in tile.expired],
        "rev": tile.rev,
        "notices": find_notices(tile),
    }


def _tile_cells(tile: "Tile", state: str) -> list[Any]:
    spans = tile.partitions.values()
    covered = sum((span.committed if span.end is None else span.end) - span.start for span in spans)
    landed = sum(span.committed - span.start for span in spans)
    pending = (tile.pending or "")[:12]
    return [tile.hour, state, covered, landed, len(tile.commits), pending, len(tile.garbage), len(tile.expired)]


def _state(tile: "Tile", *, sealed: bool) -> str:
    if sealed:
        return "sealed"
    if tile.complete:
        return "complete"
    return "closed" if tile.closed else "open"


@command(index, SOURCE, ROUTES, CHANGE, name="rollback")
def rollback_index(
    request: Request,
    hour: Annotated[str, typer.Option(metavar="H", help="The hour whose commit is pending, as 2026-11-20T05 (UTC).")],
    give_up_expired: Annotated[
        bool, typer.Option("--give-up-expired", help="Even if Kafka has expired some of its records.")
    ] = False,
) -> None:
    """Give up a pending commit that no run can finish.

    The next run reads its records from Kafka again, and writes them under other names.
    """
    from s3lake.index.commit.operator_decisions import roll_back_by_hand

    require_hours(hour)
    request.require("sink", "topic")

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        result = roll_back_by_hand(
            target.index, target.offsets, hour, give_up_expired=give_up_expired, dry_run=not request.yes
        )
        verb = "is" if request.yes else "would be"
        summary = (
            f"{hour}: commit {result.commit} {verb} rolled back; the next run reads its "
            f"{format_count(result.offsets, 'offsets')} again, {result.expired:,} of them expired"
        )
        yield Outcome({"hour": hour, **asdict(result)}, summary)

    request.change(plan)


@command(index, SOURCE, ROUTES, CHANGE, name="accept")
def accept_topic(request: Request) -> None:
    """Continue with a topic that was deleted and created again.

    What the former topic had not landed is given up. --topic is needed.
    """
    from s3lake.index.commit.operator_decisions import accept_present_log

    request.require("topic")
    targets, refusals = list(request.targets()), list[str]()

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        try:
            since = accept_present_log(target.index, target.offsets, dry_run=not request.yes)
        except ConfigurationError as error:  # an interrupted command has accepted it for some of the sinks
            refusals.append(f"{target.sink.name}: {error}")
        else:
            verb = "begin" if request.yes else "would begin"
            yield Outcome({"since": since}, f"hours of the present topic {verb} at {since}")

    request.change(plan, targets)
    if len(refusals) == len(targets):
        raise ConfigurationError("\n".join(refusals))
    for refusal in refusals:
        print_text(request.as_json, refusal)


@command(schema, SOURCE, ROUTES, JSON, name="show")
def show_schema(request: Request) -> None:
    """Show the columns that files have now, with their types."""
    from s3lake.index.commit.column_history import read_present_columns

    for target in request.targets(tables=True):
        rows = [{"column": name, "type": str(type)} for name, type in read_present_columns(target.index).items()]
        _print_columns(target, rows, "files have no columns, or none yet", as_json=request.as_json)


@command(schema, SOURCE, ROUTES, JSON, name="history")
def show_schema_history(request: Request) -> None:
    """Show each change of columns: its hour and commit, and the type before and after."""
    from s3lake.index.commit.column_history import list_column_steps

    for target in request.targets(tables=True):
        rows = [
            {
                "hour": step.hour,
                "commit": step.commit,
                "column": step.change.column,
                "before": step.change.before,
                "after": step.change.after,
            }
            for step in list_column_steps(target.index)
        ]
        _print_columns(target, rows, "no columns were seen yet", as_json=request.as_json)


def _print_columns(
    target: "TopicSink", rows: Sequence[Mapping[str, str | None]], if_empty: str, *, as_json: bool
) -> None:
    name = f"{target.sink.name}: {target.topic}"
    if as_json:
        for row in rows:
            print_json({"sink": target.sink.name, "topic": target.topic, **row})
    elif rows:
        print_table(list(rows[0]), [[cell or "" for cell in row.values()] for row in rows], name)
    else:
        print_text(as_json, f"{name}: {if_empty}")


@command(schema, name="editor")
def print_json_schema(request: Request) -> None:  # noqa: ARG001 - it has no options
    """Print the JSON Schema of the native configuration, for editors.

    s3lake schema editor > s3lake.schema.json
    """
    from s3lake.config.model.descriptions import json_schema

    write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


@command(table, SOURCE, ROUTES, HOURS, CHANGE, name="sync")
def sync_table(
    request: Request,
    by_files: Annotated[
        bool,
        typer.Option("--by-files", help="Read the table's files, not its notes: files that were removed come back."),
    ] = False,
) -> None:
    """Bring tables to the state of the index, by reference. It may be repeated, and run next to Dagster's runs."""
    targets = [target for target in request.targets(tables=True) if target.table is not None]
    if not targets:
        raise ConfigurationError("no selected sink has a table: give it one with `table:`")

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        synced = target.table
        assert synced is not None, "others are left out"
        row = {"table": synced.name}
        selected = [hour for hour in synced.select_hours() if hours.is_within(hour, request.first, request.last)]
        if not request.yes:
            for difference in synced.find_differences(selected, by_files=by_files):
                add, remove = len(difference.added), len(difference.removed)
                yield Outcome(
                    {**row, "hour": difference.hour, "to_add": add, "to_take_out": remove},
                    f"{synced.name} {difference.hour}: {format_count(add, 'commits')} to add, {remove} to remove",
                )
            return
        for snapshot in synced.sync(selected, by_files=by_files):
            yield Outcome({**row, **asdict(snapshot)}, f"{synced.name}: {snapshot}")

    request.change(plan, targets, nothing="every table is as the index has it")
