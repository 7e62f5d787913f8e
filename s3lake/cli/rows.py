"""What the command line prints: a row for `--json`, and the line that says the same to people."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from s3lake import hours
from s3lake.plan.stamps import find_notices
from s3lake.text.quantities import duration_text, size_text

if TYPE_CHECKING:
    from s3lake.land.adopt import Adopted
    from s3lake.land.observer import LandedHour
    from s3lake.land.preview import Object
    from s3lake.plan.tile import Tile
    from s3lake.sink import Config, Sink
    from s3lake.verify import Checked, Difference, Report, Unlanded


def tile_row(tile: "Tile", *, sealed: bool) -> dict[str, Any]:
    """A tile, whole."""
    return {
        "hour": tile.hour,
        "state": _state(tile, sealed=sealed),
        "offsets": {str(one): [span.start, span.committed, span.end] for one, span in tile.partitions.items()},
        "commits": list(tile.commits),
        "pending": tile.pending,
        "garbage": list(tile.garbage),
        "expired": [list(one) for one in tile.expired],
        "rev": tile.rev,
        "notices": find_notices(tile),
    }


def tile_cells(tile: "Tile", *, sealed: bool) -> list[str]:
    """A tile as cells of the table that `index show` prints."""
    spans = tile.partitions.values()
    covered = sum((span.committed if span.end is None else span.end) - span.start for span in spans)
    landed = sum(span.committed - span.start for span in spans)
    counts = (str(len(some)) for some in (tile.commits, tile.garbage, tile.expired))
    commits, garbage, expired = counts
    state = _state(tile, sealed=sealed)
    return [tile.hour, state, str(covered), str(landed), commits, (tile.pending or "")[:12], garbage, expired]


def _state(tile: "Tile", *, sealed: bool) -> str:
    if sealed:
        return "sealed"
    if tile.complete:
        return "complete"
    return "closed" if tile.closed else "open"


def hour_row(sink: str, topic: str, landed: "LandedHour") -> dict[str, Any]:
    """What was landed of an hour; `without_record` are offsets that a reader of committed data gets no record for."""
    sums = landed.sums
    offsets = sum(span.committed - span.start for span in landed.tile.partitions.values())
    expired = sum(end - start for _, start, end in landed.tile.expired)
    return {
        "sink": sink,
        "topic": topic,
        "hour": landed.tile.hour,
        "offsets": offsets,
        "rows": sums.landed,
        "dead_letters": sums.dead,
        "skipped": sums.skipped,
        "erased": sums.erased,
        "expired": expired,
        "without_record": offsets - expired - sums.read,
        "files": sums.files,
        "dead_letter_files": sums.dead_files,
        "bytes": sums.bytes,
        "notices": find_notices(landed.tile),
    }


def hour_line(row: Mapping[str, Any]) -> str:
    """`hour_row` as a line, whose figures add up."""
    parts = (
        ("rows", "rows"),
        ("dead_letters", "dead letters"),
        ("skipped", "skipped nulls"),
        ("erased", "erased"),
        ("expired", "expired"),
        ("without_record", "markers and aborted"),
    )
    sums = " + ".join(f"{row[name]:,} {text}" for name, text in parts if row[name] or name == "rows")
    line = "{sink} {topic} {hour}: {offsets:,} offsets = {sums}; {stored}, {bytes:,} bytes".format(
        sums=sums, stored=_files(row), **row
    )
    place = "{sink} {topic} {hour}".format(**row)
    return "\n".join([line, *(f"notice: {place}: {text}" for text in row["notices"])])


def _files(row: Mapping[str, Any]) -> str:
    letters = f" and {row['dead_letter_files']:,} dead-letter files" if row["dead_letter_files"] else ""
    return f"{row['files']:,} data files{letters}"


def checked_row(checked: "Checked") -> dict[str, Any]:
    """What `verify` found in one topic-partition of one tile."""
    return asdict(checked) | {"not_checkable": [asdict(part) for part in checked.not_checkable]}


def checked_line(row: Mapping[str, Any]) -> str:
    gone = "".join(
        f"; offsets {part['first']} to {part['end']} not checkable: {part['reason']}" for part in row["not_checkable"]
    )
    erased = f"{row['erased']:,} erased, " if row["erased"] else ""
    return (
        "{sink} {topic} {hour} partition {partition}: {kafka_records:,} in Kafka, {landed:,} landed, {dead_letters:,} "
        "dead letters, {skipped:,} skipped, {out}{stored}; missing {missing:,}, duplicated {duplicated:,}"
    ).format(stored=_files(row), out=erased, **row) + gone


def difference_row(difference: "Difference") -> dict[str, Any]:
    """Something that `verify` found to differ."""
    return {
        "difference": difference.kind,
        "topic": difference.topic,
        "hour": difference.hour,
        "partition": difference.partition,
        "detail": difference.detail,
    }


def unlanded_row(unlanded: "Unlanded") -> dict[str, Any]:
    """Hours that should be landed and are not, with their offsets: `[first, end)` per topic-partition."""
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


def cleaned_line(row: Mapping[str, Any]) -> str:
    """What `clean` did, or would do, as a line."""
    would = "" if row["done"] else "would "
    place = (
        "{sink} {topic} {hour}, commit {commit}, {files} files" if row["commit"] else "{sink} {topic}, {files} uploads"
    )
    return (would + "{action}: " + place).format(**row)


def totals(report: "Report") -> dict[str, Any]:
    """What `verify` found in all."""
    names = ("compared", "not_compared", "landed", "dead_letters", "skipped", "erased", "files", "dead_letter_files")
    faults = ("not_landed", "missing", "duplicated", "not_checkable")
    return {name: getattr(report, name) for name in (*names, *faults)}


def totals_line(row: Mapping[str, Any]) -> str:
    extra = "".join(
        f", {row[name]:,} {text}"
        for name, text in (
            ("skipped", "nulls skipped"),
            ("erased", "erased"),
            ("not_checkable", "offsets not checkable"),
        )
        if row[name]
    )
    counted = f" and counted {row['not_compared']:,} more" if row["not_compared"] else ""
    return (
        "compared {compared:,} records of Kafka{counted}: {landed:,} landed, {dead_letters:,} dead letters{extra}, in "
        "{stored}; "
        "not landed {not_landed:,}, missing {missing:,}, duplicated {duplicated:,}"
    ).format(extra=extra, counted=counted, stored=_files(row), **row)


def produced_line(row: Mapping[str, Any]) -> str:
    """What the demo produced, as a line."""
    return "produced {committed:,} committed records, {malformed:,} of them malformed, and {aborted:,} aborted".format(
        **row
    )


def address_lines(row: Mapping[str, str]) -> str:
    """Where the parts of the demo are, one a line, and how it ends."""
    return "\n".join([*(f"{name}: {value}" for name, value in row.items()), "Ctrl-C ends"])


def preview_row(object: "Object") -> dict[str, Any]:
    """An object that `preview` made."""
    file = object.file
    return {
        "key": file.key,
        "topic": object.topic,
        "partition": file.partition,
        "first_offset": file.first_offset,
        "last_offset": file.last_offset,
        "records": file.records,
        "bytes": file.bytes,
    }


def preview_line(row: Mapping[str, Any]) -> str:
    return (
        "{key}  {topic}[{partition}] offsets {first_offset} to {last_offset}, {records} records, {bytes} bytes"
    ).format(**row)


def sink_row(sink: "Sink") -> dict[str, Any]:
    """What a sink comes to, in short: `s3lake check`."""
    from s3lake.land import binding

    topics = sink.topics or (sink.topics_regex,)
    landed = sink.landed
    rule = binding.key_rule(landed, sink.topics[0] if sink.topics else "TOPIC", hour_ms=hours.start_ms(sink.start))
    flush = sink.flush
    limits = [size_text(flush.size), f"at latest after {duration_text(flush.interval)}"]
    if flush.count is not None:
        limits.insert(0, f"{flush.count} records")
    if flush.span is not None:
        limits.append(f"records less than {duration_text(flush.span)} apart")
    return {
        "sink": sink.name,
        "topics": [str(topic) for topic in topics],
        "bucket": sink.bucket,
        "key": rule.example(),
        "format": " ".join([sink.format.type, sink.format.codec, *(["envelope"] if sink.envelope else [])]),
        "flush": limits,
        "stages": _stages(sink),
        "exactly_once": sink.exactly_once,
    }


def _stages(sink: "Sink") -> list[str]:
    """What happens to a record, in order; two Spark stages where there is SQL."""
    stages = ["read (Spark)"]
    if sink.transforms:
        from s3lake.land import binding

        chain = binding.chain(sink)
        looks = "looks at keys and values" if {"key", "value"} & (chain.reads | chain.writes) else "headers only"
        stages.append(f"{len(sink.transforms)} transforms ({looks}, Arrow stage)")
    if sink.sql is not None:
        stages.append("SQL (a Spark stage of its own)")
    return [*stages, f"convert {sink.landed.converter.value}", "lay out", f"encode {sink.format.type}", "stage, commit"]


def doubts(config: "Config") -> list[str]:
    """What is allowed and still unlikely to be meant."""
    doubtful = []
    for sink in config.sinks:
        if sink.transforms:
            from s3lake.land import binding

            doubtful += [f"sink {sink.name}: {notice}" for notice in binding.chain(sink).notices]
        if sink.layout.template and sink.layout.time.source == "wallclock" and "{time:" in sink.layout.template:
            doubtful.append(
                f"sink {sink.name}: directories are named after the time of landing: a rewrite or a backfill gives "
                "other keys; layout.time.source record gives the same ones"
            )
        if sink.sealed.within <= sink.close_grace:
            within, grace = duration_text(sink.sealed.within), duration_text(sink.close_grace)
            doubtful.append(
                f"sink {sink.name}: sealed.within {within} is over before close_grace {grace}: every hour will be late"
            )
        if not sink.exactly_once:
            doubtful.append(f"sink {sink.name}: exactly_once is off: a crash can leave objects that are written again")
        if sink.flush.size < 5_000_000 and sink.flush.count != 1:
            size = size_text(sink.flush.size)
            doubtful.append(f"sink {sink.name}: flush.size {size} makes small files, which cost requests")
    return doubtful


def settings(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every single setting of a configuration with its path."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from settings(inner, (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for position, inner in enumerate(value):
            yield from settings(inner, (*path, position))
    else:
        yield path, value


def shown(value: Any) -> str:
    """A value in one cell of a table."""
    match value:
        case list():
            return ", ".join(map(str, value)) or "none"
        case bool():
            return "true" if value else "false"
        case dict() | None | "":
            return "none"
    return str(value)


def adopted_row(sink: str, topic: str, adopted: "Adopted") -> dict[str, Any]:
    """What adopting a topic did, or would do: the first offset of each topic-partition, and who said so."""
    evidence = adopted.evidence
    return {
        "sink": sink,
        "topic": topic,
        "hour": adopted.hour,
        "starts": {str(one): {"offset": start.offset, "source": start.source} for one, start in adopted.starts.items()},
        "evidence": {
            str(one): {claim.source: str(claim) for claim in evidence.claims.get(one, ())}
            for one in evidence.partitions
        },
        "running": evidence.running,
        "recovered": list(adopted.recovered),
        "written": adopted.written,
    }


def adopted_line(row: Mapping[str, Any]) -> str:
    starts = ", ".join(f"{one} at {start['offset']} ({start['source']})" for one, start in row["starts"].items())
    steps = "".join(f"\n  {step}" for step in row["recovered"])
    done = "adopted" if row["written"] else "would be adopted"
    return f"{row['sink']} {row['topic']}: {done} in hour {row['hour']}: topic-partition {starts}{steps}"
