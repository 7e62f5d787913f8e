"""Commands about dead letters: which there are, what is in them, and to land them after all."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.table import Table

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
from s3lake.cli.terminal import FAILED, err, print_json, print_table, say, tell
from s3lake.errors import ConfigurationError, S3LakeError, printable
from s3lake.text.contents import shown

if TYPE_CHECKING:
    from s3lake.land.replay import Replayed
    from s3lake.objects.letters import Letter

app = typer.Typer(no_args_is_help=True, help="Records that were refused: look at them, and land them after all.")
HourOption = Annotated[str | None, typer.Option("--hour", metavar="H", help="Only this hour, as 2026-11-20T05 (UTC).")]
ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Only those whose stage and reason have this in them."),
]


@app.command("list")
def letters_list(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    hour: HourOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """How many there are of each hour and reason, the first of each, and how many were replayed."""
    from s3lake.commit.letters import united
    from s3lake.land.replay.letters import hours_of, reasons_of

    span = _span(hour, first, last)
    table, none = Table(box=None, pad_edge=False), True
    for column in ("sink", "topic", "hour", "stage", "reason", "count", "first", "replayed"):
        table.add_column(column, no_wrap=True, justify="right" if column == "count" else "left")
    for lander in routes(load(config), sink, topic):
        for tile, commits in hours_of(lander.index, *span):
            taken = chain.from_iterable(one.taken for one in commits)
            replayed = sum(one.count for one in taken)
            reasons = msgspec.to_builtins(united(reasons_of(lander.store, one) for one in commits))
            for reason in reasons or ([{}] if replayed else []):
                none = False
                row = {
                    "sink": lander.sink.name,
                    "topic": lander.topic,
                    "hour": tile.hour,
                    **reason,
                    "replayed": replayed,
                }
                if as_json:
                    print_json(row)
                else:
                    table.add_row(*_cells(row))
    if none:
        say(as_json, "no dead letters")
    elif not as_json:
        print_table(table)


@app.command("show")
def letters_show(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    hour: HourOption = None,
    first: FromOption = None,
    last: ToOption = None,
    reason: ReasonOption = None,
    partition: Annotated[int | None, typer.Option("--partition", help="Only of this topic-partition.")] = None,
    offset: Annotated[int | None, typer.Option("--offset", help="Only the one at this offset.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 10,
    whole: Annotated[bool, typer.Option("--whole", help="All of a key, value or header, however long.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Dead letters with place, reason, headers, key and value.

    What names in them call a secret is masked, and what a terminal would obey is written out.
    """
    from s3lake.land.replay.letters import Chosen, hours_of, letters_of

    chosen, span, count = Chosen(reason), _span(hour, first, last), 0
    for lander in routes(load(config), sink, topic):
        for tile, commits in hours_of(lander.index, *span):
            for letter in chain.from_iterable(letters_of(lander.store, one, partition) for one in commits):
                if not chosen(letter) or offset not in (None, letter.offset):
                    continue
                if count == limit:
                    err.print(f"only the first {limit}: --limit says how many", markup=False)
                    return
                count += 1
                row = {"sink": lander.sink.name, "hour": tile.hour, **_row(letter, None if whole else 200)}
                tell(as_json, row, _paragraph)
    if not count:
        say(as_json, "no dead letters")


@app.command("replay")
def letters_replay(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    hour: HourOption = None,
    first: FromOption = None,
    last: ToOption = None,
    reason: ReasonOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would become of them, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Land dead letters after all: through the present configuration, into the hours that they belong to.

    Each is landed exactly once, and no longer a dead letter in the commit that takes it; what is refused again stays
    one, with its new reason. It can be stopped anywhere, and repeated. A topic that fails keeps no other from being
    replayed; the exit code is 3 then.
    """
    from s3lake.land.replay import replay
    from s3lake.land.replay.letters import Chosen, hours_of

    chosen, span = Chosen(reason), _span(hour, first, last)
    work = [
        (lander, [tile.hour for tile, _ in hours_of(lander.index, *span)])
        for lander in routes(load(config), sink, topic)
    ]
    if not dry_run and not yes:
        _ask(sum(len(found) for _, found in work))
    tried = failed = 0
    for lander, found in work:
        try:
            for name in found:
                for replayed in replay(lander, name, chosen, dry_run=dry_run):
                    tried += replayed.chosen
                    row = {"sink": lander.sink.name, "topic": lander.topic, **_of_replay(replayed, dry_run=dry_run)}
                    tell(as_json, row, "{sink} {topic} {hour}: {summary}".format_map)
        except S3LakeError as error:
            failed += 1
            err.print(f"{lander.sink.name} {lander.topic}: {type(error).__name__}: {error}", markup=False)
    if failed:
        raise typer.Exit(FAILED)
    if not tried:
        say(as_json, "no dead letters to replay")


def _ask(count: int) -> None:
    if not count:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "dead-letters replay changes what is landed: say --yes, or --dry-run to see what it would do"
        )
    if not typer.confirm(f"Replay dead letters of {count} hours?"):
        raise typer.Exit


def _span(hour: str | None, first: str | None, last: str | None) -> tuple[str, str]:
    """The first and the last hour that are asked for."""
    if hour is not None and (first or last):
        raise ConfigurationError("--hour is one hour, --from and --to are a range: give one of them")
    in_order(hour or first, hour or last)
    return hour or first or "", hour or last or "9"


def _cells(row: Mapping[str, Any]) -> list[str]:
    where = f"{row['partition']}@{row['offset']}" if "offset" in row else ""
    texts = (row["sink"], row["topic"], row["hour"], row.get("stage", ""), row.get("reason", ""))
    return [*texts, f"{row['count']:,}" if where else "0", where, f"{row['replayed']:,}" if row["replayed"] else ""]


def _row(letter: "Letter", most: int | None) -> dict[str, Any]:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "stage": letter.stage,
        "reason": letter.message,
        "headers": [[name, shown(value, most, name)] for name, value in letter.headers],
        "key": shown(letter.key, most),
        "value": shown(letter.value, most),
    }


def _paragraph(row: Mapping[str, Any]) -> str:
    place = f"{row['topic']}, partition {row['partition']}, offset {row['offset']}, timestamp {row['timestamp']}"
    lines = [f"{row['sink']} {row['hour']}: {place}", f"  {row['stage']}: {row['reason']}"]
    lines += [f"  header {printable(name)}: {value}" for name, value in row["headers"]]
    return "\n".join([*lines, f"  key: {row['key']}", f"  value: {row['value']}"])


def _of_replay(replayed: "Replayed", *, dry_run: bool) -> dict[str, Any]:
    refused = [msgspec.to_builtins(one) for one in replayed.refused]
    return {**asdict(replayed), "refused": refused, "done": not dry_run, "summary": str(replayed)}
