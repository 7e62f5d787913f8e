"""One tile: its commits' parts of every topic-partition, compared in one pass over Kafka."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from s3lake import hours
from s3lake.plan.tile import Tile
from s3lake.source.offsets import LogRange, Snapshot
from s3lake.verify import index_side, s3_side
from s3lake.verify.comparison import Comparison, Question
from s3lake.verify.report import Checked, Difference, Kind, Unchecked

Advance = Callable[[int], None]
"""Called with how many more offsets are done."""

_NO_LOG = LogRange(0, 0, 0, 0)


def compared(
    question: Question, tile: Tile, kafka: Snapshot | None, advance: Advance
) -> tuple[list[Checked], list[Difference]]:
    """Compare a tile with Kafka, up to what is committed.

    Args:
        question: what is compared with what.
        tile: the tile as just read.
        kafka: the topic's log as it is now; None where it was deleted since, so that Kafka cannot be asked.
        advance: called with how many more offsets are done.
    """
    index = question.index
    differences: list[Difference] = []

    def note(kind: Kind, partition: int | None, text: str) -> None:
        differences.append(Difference(kind, index.topic, tile.hour, partition, text))

    manifests = []
    for commit in tile.commits:
        manifest = index.manifest(tile.hour, commit)
        if manifest is None:
            note("index", None, f"the manifest of commit {commit} is gone")
        else:
            index_side.numbers(manifest, tile, index.topic, note, replaces=index_side.keeps_last(question.sink))
            manifests.append(manifest)
    if len(manifests) == len(tile.commits):
        for text in s3_side.unlisted(index.store, tile.hour, manifests, is_alone=tile.hour != question.since):
            note("unlisted", None, text)
    parts: dict[int, list[Comparison]] = {partition: [] for partition in sorted(tile.partitions)}
    for segment in index_side.segments(tile, manifests, note):
        log = kafka.partitions.get(segment.partition, _NO_LOG) if kafka else None
        part = Comparison(question, segment, log, hours.start_ms(tile.hour), note)
        part.read_objects()
        parts.setdefault(segment.partition, []).append(part)
    _read_kafka(question, parts, advance)
    for of_partition in parts.values():
        for part in of_partition:
            part.conclude()
    return [_checked(tile.hour, partition, of_partition) for partition, of_partition in parts.items()], differences


def _read_kafka(question: Question, parts: dict[int, list[Comparison]], advance: Advance) -> None:
    ranges = {partition: found for partition, some in parts.items() if (found := _span(some))}
    at = {partition: start for partition, (start, _) in ranges.items()}
    needs = frozenset().union(*(part.needs for partition in ranges for part in parts[partition]))
    for records in question.log.read(question.index.topic, ranges, needs) if ranges else ():
        for part in parts[records.partition]:
            own = records.within(*part.window)
            if own.offsets:
                part.take(own)
        reached = records.offsets[-1] + 1
        advance(reached - at[records.partition])
        at[records.partition] = reached
    for partition, (_, end) in ranges.items():
        advance(end - at[partition])


def _span(parts: Iterable[Comparison]) -> tuple[int, int] | None:
    windows = [part.window for part in parts if part.window[0] < part.window[1]]
    return (windows[0][0], windows[-1][1]) if windows else None


def _checked(hour: str, partition: int, parts: Sequence[Comparison]) -> Checked:
    files = list(chain.from_iterable(part.segment.files for part in parts))
    return Checked(
        hour,
        partition,
        kafka_records=sum(part.kafka_records for part in parts),
        not_compared=sum(part.not_compared for part in parts),
        landed=sum(part.rows for part in parts),
        skipped=sum(part.skipped for part in parts),
        dead_letters=sum(part.letters.count for part in parts),
        missing=sum(part.missing for part in parts),
        duplicated=sum(part.duplicated for part in parts),
        files=sum(file.kind != "dead_letters" for file in files),
        dead_letter_files=sum(file.kind == "dead_letters" for file in files),
        bytes=sum(part.stored for part in parts),
        erased=sum(part.erased for part in parts),
        not_checkable=_joined(chain.from_iterable(part.unchecked for part in parts)),
    )


def _joined(unchecked: Iterable[Unchecked]) -> tuple[Unchecked, ...]:
    joined: list[Unchecked] = []
    for part in unchecked:
        before = joined[-1] if joined else None
        if before is not None and replace(before, first=before.end, end=part.end) == part:
            joined[-1] = replace(before, end=part.end)
        else:
            joined.append(part)
    return tuple(joined)
