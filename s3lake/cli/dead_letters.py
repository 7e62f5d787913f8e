"""Commands about dead letters: count them, show them, and land them with the present configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.output import emit, err, print_json, print_table, print_text
from s3lake.cli.request import CHANGE, HOURS, JSON, ROUTES, SOURCE, Outcome, Request, command, require_hours
from s3lake.errors import ConfigurationError, printable

if TYPE_CHECKING:
    from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter
    from s3lake.land.topic.topic_sink import TopicSink

app = typer.Typer(no_args_is_help=True, help="Inspect refused records and retry them.")
HourOption = Annotated[str | None, typer.Option("--hour", metavar="H", help="Only this hour, as 2026-11-20T05 (UTC).")]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Only those whose stage or reason contains this text.")
]


@command(app, SOURCE, ROUTES, HOURS, JSON, name="list")
def list_dead_letters(request: Request, hour: HourOption = None) -> None:
    """Count dead letters by hour and reason, with the first of each, and how many were replayed."""
    import msgspec

    from s3lake.index.commit.dead_letter_reasons import merge_reasons
    from s3lake.land.change.committed_dead_letters import hours_of

    first, last = _hour_range(request, hour)
    rows: list[dict[str, Any]] = []
    for target in request.targets():
        for tile, commits in hours_of(target, first, last):
            replayed = sum(taken.count for taken in chain.from_iterable(commit.taken for commit in commits))
            reasons = msgspec.to_builtins(merge_reasons(commit.refusal_reasons for commit in commits))
            name = {"sink": target.sink.name, "topic": target.topic, "hour": tile.hour}
            rows += [{**name, **reason, "replayed": replayed} for reason in reasons or ([{}] if replayed else [])]
    if request.as_json:
        for row in rows:
            print_json(row)
    elif rows:
        columns = ("sink", "topic", "hour", "stage", "reason", "count", "first", "replayed")
        print_table(columns, list(map(_cells, rows)), right=("count",))
    else:
        print_text(False, "no dead letters")


@command(app, SOURCE, ROUTES, HOURS, JSON, name="show")
def show_dead_letters(
    request: Request,
    hour: HourOption = None,
    reason: ReasonOption = None,
    partition: Annotated[int | None, typer.Option("--partition", help="Only of this topic-partition.")] = None,
    offset: Annotated[int | None, typer.Option("--offset", help="Only the one at this offset.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 10,
    whole: Annotated[bool, typer.Option("--whole", help="Print long keys, values and headers in full.")] = False,
) -> None:
    """Show dead letters: place, reason, headers, key and value.

    Values of fields with a secret's name are masked, and control characters are escaped.
    """
    from s3lake.land.change.committed_dead_letters import ReasonFilter, hours_of, read_committed_dead_letters

    chosen, (first, last), count = ReasonFilter(reason), _hour_range(request, hour), 0
    for target in request.targets():
        for tile, commits in hours_of(target, first, last):
            for dead_letter in chain.from_iterable(
                read_committed_dead_letters(target.store, commit, partition) for commit in commits
            ):
                if not chosen(dead_letter) or offset not in (None, dead_letter.offset):
                    continue
                if count == limit:
                    err.print(f"only the first {limit}: --limit shows more")
                    return
                count += 1
                row = {"sink": target.sink.name, "hour": tile.hour, **_describe(dead_letter, None if whole else 200)}
                emit(request.as_json, row, _format)
    if not count:
        print_text(request.as_json, "no dead letters")


@command(app, SOURCE, ROUTES, HOURS, CHANGE, name="replay")
def replay_dead_letters(request: Request, hour: HourOption = None, reason: ReasonOption = None) -> None:
    """Land dead letters with the present configuration, in the hours that they belong to.

    Each is landed exactly once, and then it is a dead letter no longer. One that is refused again stays, with its new
    reason. If the command is interrupted, repeat it.
    """
    import msgspec

    from s3lake.land.change.committed_dead_letters import ReasonFilter, hours_of
    from s3lake.land.change.replay import replay

    chosen, (first, last) = ReasonFilter(reason), _hour_range(request, hour)

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        for tile, _ in list(hours_of(target, first, last)):
            for replayed in replay(target, tile.hour, chosen, dry_run=not request.yes):
                refused = [msgspec.to_builtins(each) for each in replayed.refused]
                yield Outcome({**asdict(replayed), "refused": refused}, f"{tile.hour}: {replayed}")

    request.change(plan, nothing="no dead letters to replay")


def _hour_range(request: Request, hour: str | None) -> tuple[str | None, str | None]:
    """Return the first and the last requested hour; None at an open end."""
    if hour is not None and (request.first or request.last):
        raise ConfigurationError("--hour is one hour, --from and --to are a range: give one of them")
    require_hours(hour)
    return hour or request.first, hour or request.last


def _cells(row: Mapping[str, Any]) -> list[str]:
    first = f"{row['partition']}@{row['offset']}" if "offset" in row else ""
    texts = (row["sink"], row["topic"], row["hour"], row.get("stage", ""), row.get("reason", ""))
    return [*texts, f"{row['count']:,}" if first else "0", first, f"{row['replayed']:,}" if row["replayed"] else ""]


def _describe(dead_letter: "StoredDeadLetter", limit: int | None) -> dict[str, Any]:
    from s3lake.text.masking import format_content

    return {
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "timestamp": dead_letter.timestamp_ms,
        "stage": dead_letter.stage,
        "reason": dead_letter.message,
        "headers": [[name, format_content(value, limit, name)] for name, value in dead_letter.headers],
        "key": format_content(dead_letter.key, limit),
        "value": format_content(dead_letter.value, limit),
    }


def _format(row: Mapping[str, Any]) -> str:
    place = f"{row['topic']}, partition {row['partition']}, offset {row['offset']}, timestamp {row['timestamp']}"
    lines = [f"{row['sink']} {row['hour']}: {place}", f"  {row['stage']}: {row['reason']}"]
    lines += [f"  header {printable(name)}: {value}" for name, value in row["headers"]]
    return "\n".join([*lines, f"  key: {row['key']}", f"  value: {row['value']}"])
