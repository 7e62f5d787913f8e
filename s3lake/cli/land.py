"""Commands that land hours, land them again, clean up, and continue the bucket of a connector."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake import hours
from s3lake.cli.output import ProgressLine, emit, print_text
from s3lake.cli.request import Outcome, Request, print_notices
from s3lake.cli.verify import format_files, require_due_hours
from s3lake.errors import ConfigurationError, IncompleteError
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.cli.landing_printer import LandingPrinter
    from s3lake.index.plan.hour_grid import Grid
    from s3lake.land.adopt import Adopted
    from s3lake.land.topic.observer import LandedHour
    from s3lake.land.topic.topic_sink import TopicSink


def _make_printer(target: "TopicSink", verb: str, *, as_json: bool, prints_hours: bool = True) -> "LandingPrinter":
    """Return an observer that shows how far a landing is, and prints each landed hour if `prints_hours` is set."""
    from s3lake.cli.landing_printer import LandingPrinter

    sink, topic = target.sink.name, target.topic

    def print_hour(landed: "LandedHour") -> None:
        emit(as_json, describe_hour(sink, topic, landed), format_hour)

    progress = ProgressLine(f"{verb} {sink} {topic}: offsets", quiet=as_json)
    return LandingPrinter(sink, topic, progress, print_hour if prints_hours else None)


def describe_hour(sink: str, topic: str, landed: "LandedHour") -> dict[str, Any]:
    """Return what was landed of an hour. No record of committed data exists for offsets `without_record`."""
    from s3lake.index.plan.counts import counts_to_json
    from s3lake.index.plan.stamps import find_notices

    sums = landed.sums
    offsets = sum(span.committed - span.start for span in landed.tile.partitions.values())
    expired = sum(end - start for _, start, end in landed.tile.expired)
    return {
        "sink": sink,
        "topic": topic,
        "hour": landed.tile.hour,
        "offsets": offsets,
        **counts_to_json(sums),
        "expired": expired,
        "without_record": offsets - expired - sums.read,
        "files": sums.files,
        "dead_letter_files": sums.dead_files,
        "bytes": sums.bytes,
        "notices": find_notices(landed.tile),
    }


def format_hour(row: Mapping[str, Any]) -> str:
    """Return `describe_hour` as a line whose figures add up."""
    place = "{sink} {topic}".format(**row)
    notices = (f"notice: {place} {row['hour']}: {text}" for text in row["notices"])
    return "\n".join([f"{place} {_format_sums(row)}", *notices])


def _format_sums(row: Mapping[str, Any]) -> str:
    from s3lake.index.plan.counts import Counts, define_counts, sum_by_field

    definitions = define_counts(Counts).values()
    parts = {one.name: one.text for one in definitions if one.role == "outcome"}
    parts |= {"expired": "expired", "without_record": "markers and aborted"}
    sums = " + ".join(format_count(row[name], text) for name, text in parts.items() if row[name] or name == "rows")
    noted = [one for one in definitions if one.role == "note" and row[one.name]]
    if noted:
        sums += f" ({', '.join(format_count(sum_by_field(row[one.name]), one.text) for one in noted)})"
    offsets = format_count(row["offsets"], "offsets")
    return f"{row['hour']}: {offsets} = {sums}; {format_files(row)}, {format_count(row['bytes'], 'bytes')}"


def run_land(request: Request) -> None:
    """Land what Kafka has, without Dagster: for cron, CI and debugging; it may run next to Dagster's runs.

    Without --from: every hour since the sink's start, or the bucket's adoption, that is not complete. Without --to: up
    to the current hour.
    """
    from s3lake.index.plan.hour_grid import Grid

    targets, now_ms = list(request.targets()), hours.now_ms()
    grids = {target: Grid.from_sink(target.sink, now_ms, request.first, request.last) for target in targets}
    require_due_hours(targets, grids.values())
    count = 0

    def work(target: "TopicSink") -> None:
        nonlocal count
        if incomplete := _find_incomplete_hours(target, grids[target]):
            from s3lake.land.hour.landing import (
                land as land_hours,  # half a second, and most hours of cron have nothing
            )

            printer = _make_printer(target, "land", as_json=request.as_json)
            count += len(land_hours(target, incomplete, printer))

    request.each(work, targets)
    if not count:
        print_text(request.as_json, "nothing to land: every hour of this range is complete")


def _find_incomplete_hours(target: "TopicSink", grid: "Grid") -> Sequence[str]:
    """Return the hours that the index does not call complete.

    If none is given by name, hours that a connector landed before the adoption, or of an earlier topic, do not count.
    """
    from s3lake.lake.readback.committed import read_tiles

    head = target.index.head() if grid.first is None else None
    due = grid.due_hours(head[0].since if head else None)
    return [hour for hour, tile in read_tiles(target.index, due).items() if tile is None or not tile.complete]


def run_rewrite(request: Request) -> None:
    """Land complete hours again from Kafka.

    The new objects replace each hour's objects.
    """
    from s3lake.index.commit.replacing_attempts import require_not_erased
    from s3lake.land.hour.landing import rewrite as rewrite_hour

    request.require("first", "last")

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        for hour in hours.span(request.first or "", request.last or ""):
            if request.yes:
                printer = _make_printer(target, "rewrite", as_json=request.as_json, prints_hours=False)
                landed = rewrite_hour(target, hour, printer)
            else:
                landed = target.report(hour)
                if not landed.tile.landed:
                    raise IncompleteError(f"{target.topic} {hour} is not complete: land it before you rewrite it")
                require_not_erased(target.topic, landed.tile)
            row = describe_hour(target.sink.name, target.topic, landed)
            yield Outcome(row, ("" if request.yes else "would be landed again: ") + _format_sums(row))

    request.change(plan)


def run_clean(request: Request) -> None:
    """Remove what interrupted runs left behind."""

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        for leftover in target.clean(dry_run=not request.yes):
            yield Outcome(asdict(leftover), f"{'' if request.yes else 'would be removed: '}{leftover}")

    request.change(plan, list(request.targets(tables=True)), nothing="nothing to remove")


def run_adopt(
    request: Request,
    offset: Annotated[
        list[str] | None,
        typer.Option("--offset", help="PARTITION=OFFSET: the first offset to land, if the sources contradict."),
    ] = None,
    accept_expired: Annotated[
        bool, typer.Option("--accept-expired", help="Continue even if Kafka has expired records that were not landed.")
    ] = False,
) -> None:
    """Continue the bucket of a stopped connector.

    No record is missing and none is landed twice.
    """
    from s3lake.config.draft import Connector
    from s3lake.land.adopt import KafkaGroups, adopt_topic, first_tile, format_evidence

    loaded = request.read()
    print_notices(loaded)
    if loaded.config.kafka is None:
        raise ConfigurationError("adopt continues connectors of Kafka Connect, and source is not Kafka")
    groups = KafkaGroups(loaded.config.kafka.bootstrap_servers, loaded.config.kafka.properties)
    targets = list(request.targets(loaded.config))
    chosen = dict(map(_parse_offset, offset or ()))
    if len(chosen) < len(offset or ()):
        raise ConfigurationError("--offset names a topic-partition twice: give one offset for each")
    if chosen and len(targets) > 1:
        raise ConfigurationError("--offset is for one topic: name it with --topic, and its sink with --sink")
    begun = {target for target in targets if first_tile(target.index) is not None}

    def plan(target: "TopicSink") -> Iterator[Outcome]:
        if target in begun and len(begun) < len(targets):  # an interrupted command has adopted some of the topics
            yield Outcome({}, "has tiles already: an earlier command has adopted it", possible=False)
            return
        connector = loaded.connectors.get(target.sink.name, Connector(""))
        connector = replace(connector, name=request.name or connector.name)
        if not connector.name:
            raise ConfigurationError(
                f"sink {target.sink.name}: the configuration does not name the connector to continue; give its "
                "name with --name, or the connector's own file as CONFIG"
            )
        adopted = adopt_topic(
            connector,
            target.sink,
            target.index,
            target.offsets,
            groups,
            now_ms=hours.now_ms(),
            chosen=chosen,
            accept_expired=accept_expired,
            dry_run=not request.yes,
        )
        for line in format_evidence(adopted.evidence):
            print_text(request.as_json, line)
        yield Outcome(*_describe_adoption(adopted))

    request.change(plan, targets)


def _parse_offset(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition("=")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise ConfigurationError(f"--offset {text!r}: expected PARTITION=OFFSET, for example 0=1200")
    return int(partition), int(offset)


def _describe_adoption(adopted: "Adopted") -> tuple[dict[str, Any], str]:
    """Return the first offset of each topic-partition and its source, as a row and as text."""
    row = {
        "hour": adopted.hour,
        "starts": {str(one): {"offset": start.offset, "source": start.source} for one, start in adopted.starts.items()},
        "running": adopted.evidence.authority.group.running,
    }
    starts = ", ".join(f"{one} at {start.offset} ({start.source})" for one, start in adopted.starts.items())
    verb = "adopted" if adopted.written else "would be adopted"
    return row, f"{verb} in hour {adopted.hour}: topic-partition {starts}"
