"""The index against itself and against the bucket: offsets, numbers, and which objects there are."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from posixpath import commonpath
from typing import TYPE_CHECKING, Protocol

from s3lake import hours
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, Read, TopicHead
from s3lake.index.plan.tile import NOTHING, Tile, TileRange
from s3lake.index.store import COMMIT, Store
from s3lake.lake.verify.commit_file_groups import group_files
from s3lake.lake.verify.differences import DifferenceType
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

_HEADS = 1_000
"""How many objects of others are looked at in a directory: it may be one of many topics."""
_HIDDEN = re.compile("/[_.]|/$")
"""In a key: engines do not read the object, as they read no markers."""
_OFFSET = re.compile(r"\{(?:last_)?offset[:}]")


class ReportDifference(Protocol):
    """Takes a difference: its type, its detail, and its topic-partition if it concerns only one."""

    def __call__(self, type: DifferenceType, detail: str, partition: int | None = None) -> None: ...


@dataclass(frozen=True)
class CommitRange:
    """Offsets `[start, end)` of one topic-partition that one commit covers.

    Attributes:
        manifest: the commit's; None if no commit covers these offsets.
        read: the counts of the commit for this topic-partition.
        files: the commit's files of this topic-partition.
        landable: offsets before had expired before they could be landed.
    """

    partition: int
    start: int
    end: int
    manifest: Manifest | None = None
    read: Read | None = None
    files: tuple[File, ...] = ()
    landable: int = 0


def replaces_files(sink: "Sink") -> bool:
    """Return whether a later record replaces an earlier one's file, because the sink's keys name no offset."""
    template = sink.layout.template
    return not sink.exactly_once and template is not None and _OFFSET.search(template.replace("{{", "")) is None


def find_commit_ranges(tile: Tile, manifests: Sequence[Manifest], report: ReportDifference) -> Iterator[CommitRange]:
    """Yield what each commit covers of the tile's `[start, committed)`, in order; overlaps go to the earlier one."""
    expired = sorted(chain.from_iterable(manifest.expired for manifest in manifests))
    for partition in sorted({*tile.partitions}.union(*(manifest.partitions for manifest in manifests))):
        span = tile.partitions.get(partition)
        if span is None:
            report("index", "commits have this topic-partition, the tile does not", partition)
            span = NOTHING
        elif not span.start <= span.committed <= (span.committed if span.end is None else span.end):
            report(
                "index",
                f"the tile's offsets are out of order: start {span.start}, committed {span.committed}, end {span.end}",
                partition,
            )
        yield from _cut_claims(partition, span, _find_claims(partition, manifests, tile, expired), report)


def check_head(head: TopicHead) -> Iterator[tuple[str, str]]:
    """Yield each hour that `topic.json` names and does not list, and what it states of it."""
    if head.new is not None and not hours.in_ranges(head.new.hour, head.hours):
        yield head.new.hour, "topic.json announces the tile of this hour, and does not list the hour"
    if head.sealed is not None and not hours.in_ranges(head.sealed.upto, head.hours):
        yield head.sealed.upto, "topic.json states that this hour is sealed, and does not list it"


def check_tile(tile: Tile, head: TopicHead, hour: str) -> Iterator[str]:
    """Yield what contradicts `topic.json`, or the key, in the tile that is stored for an hour."""
    if tile.hour != hour:
        yield f"the tile is for {tile.hour}"
    if head.sealed is not None and head.sealed.since <= hour <= head.sealed.upto and not tile.landed:
        yield f"topic.json states that all hours up to {head.sealed.upto} are sealed, and this one is not landed"


def check_expired(tile: Tile, manifests: Sequence[Manifest], report: ReportDifference) -> None:
    """Report offsets that a commit recorded as expired, and its tile did not."""
    for manifest in manifests:
        for partition, first, end in manifest.expired:
            recorded = [(start, stop) for number, start, stop in tile.expired if number == partition]
            for start, stop in _subtract(first, end, recorded):
                text = f"commit {manifest.id} states that offsets {start} to {stop - 1} had expired, the tile does not"
                report("index", text, partition)


def check_manifest(
    manifest: Manifest, commit: str, tile: Tile, topic: str, report: ReportDifference, *, replaces: bool
) -> None:
    """Check the manifest of a commit against itself; `replaces`: files of the sink may replace each other."""
    if (manifest.id, manifest.topic, manifest.hour) != (commit, topic, tile.hour):
        named = f"commit {manifest.id} of {manifest.topic} {manifest.hour}"
        report("index", f"the manifest of commit {commit} is for {named}")
    keys = [file.key for file in manifest.files if not replaces]
    for key in sorted({key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else ()):
        report("index", f"commit {manifest.id} has {key} twice")
    for file in manifest.files:
        read, span = manifest.partitions.get(file.partition), f"{file.first_offset} to {file.last_offset}"
        if read is None or not read.start <= file.first_offset <= file.last_offset < read.end:
            covered = f"[{read.start}, {read.end})" if read else "nothing"
            report("interval", f"{file.key} holds offsets {span}, its commit covers {covered}", file.partition)
        if not 0 < file.records <= file.last_offset - file.first_offset + 1:
            records = format_count(file.records, "records")
            report("count", f"{file.key} cannot hold {records} of its offsets", file.partition)
    refused = sum(reason.count for reason in manifest.refusal_reasons)
    dead = sum(file.records for file in manifest.files if file.stream == DEAD_LETTERS)
    if refused != dead:
        reasons = format_count(refused, "dead letters")
        report("count", f"commit {manifest.id} has reasons for {reasons}, its files have {dead}")
    for partition, read in sorted(manifest.partitions.items()):
        files = [file for file in manifest.files if file.partition == partition]
        dead = sum(file.records for file in files if file.stream == DEAD_LETTERS)
        landed = read.landed if replaces else sum(group.first.records for group in group_files(files))
        for what, counted, recorded in (("landed", landed, read.landed), ("dead", dead, read.dead)):
            if counted != recorded:
                text = (
                    f"commit {manifest.id} states {what} {recorded}, its files have {format_count(counted, 'records')}"
                )
                report("count", text, partition)
        if read.unexplained:
            sums = f"landed {read.landed}, skipped {read.skipped}, filtered {read.filtered}, dead {read.dead}"
            text = f"commit {manifest.id} states read {read.read}, but {sums} and erased {read.erased}"
            report("count", text, partition)


def check_object(store: Store, file: File, commit: str) -> tuple[int | None, list[str]]:
    """Return the object's size, None if it is missing, and what makes it another object than the commit's."""
    head = store.head(file.key)
    if head is None:
        return None, [f"{file.key} of commit {commit} is missing"]
    wrong = []
    owner = head.metadata.get(COMMIT)
    if owner != commit:
        wrong.append(f"{file.key} is not commit {commit}'s any more: its metadata {COMMIT} is {owner!r}")
    if head.size != file.bytes:
        wrong.append(f"{file.key} has {format_count(head.size, 'bytes')}, the manifest states {file.bytes}")
    return head.size, wrong


def find_unlisted(store: Store, hour: str, manifests: Sequence[Manifest], *, is_alone: bool) -> Iterator[str]:
    """Yield what is wrong with each object that no commit lists, in the hour's directories: engines count its records.

    Directories are looked at if they name the hour, in UTC. An object of another commit is not reported: that may be
    running, another hour's or another sink's, and `clean` ends what is left of one that failed.

    Args:
        manifests: the manifests of all commits that the hour's tile lists.
        is_alone: whether nothing but s3lake has written into the hour.
    """
    keys = {file.key for manifest in manifests for file in manifest.files}
    names_hour = re.compile(r"{}\D?{}\D?{}\D+{}(?!\d)[^/]*/".format(*re.split("[-T]", hour)))
    places: dict[str, list[str]] = {}
    for key in {file.key for manifest in manifests for file in manifest.files if file.stream != DEAD_LETTERS}:
        if match := names_hour.search(key):
            places.setdefault(key[: match.end()], []).append(key.rpartition("/")[0])
    owners = {None if is_alone else "", *(manifest.id for manifest in manifests)}
    for directories in places.values():
        place = commonpath(directories) + "/"
        others = (key for key in store.list(place) if key not in keys and not _HIDDEN.search(key[len(place) - 1 :]))
        for key in islice(others, _HEADS):
            head = store.head(key)
            if head is not None and head.metadata.get(COMMIT) in owners:
                yield f"{key} is in a directory of the hour, and no commit lists it"


def check_edges(earlier: Tile, later: Tile) -> Iterator[tuple[DifferenceType, int, str]]:
    """Yield each topic-partition of which a tile does not begin where the one before it ends."""
    tile, is_adjacent = f"the tile of {earlier.hour}", hours.shift(earlier.hour, 1) == later.hour
    for partition in sorted({*earlier.partitions, *later.partitions}):
        end = earlier.partitions.get(partition, NOTHING).end
        start = later.partitions.get(partition, NOTHING).start
        if end is None:
            yield "index", partition, f"{tile} is open, and this one follows it"
        elif end > start:
            yield "interval", partition, f"offsets {start} to {end - 1} are also in {tile}"
        elif is_adjacent and end < start:
            yield "interval", partition, f"offsets {end} to {start - 1} are neither here nor in {tile}"


def _find_claims(
    partition: int, manifests: Sequence[Manifest], tile: Tile, expired: Sequence[tuple[int, int, int]]
) -> list[CommitRange]:
    claims = []
    for manifest in manifests:
        read = manifest.partitions.get(partition)
        if read is None:
            continue
        files = tuple(file for file in manifest.files if file.partition == partition)
        landable = max((end for number, _, end in manifest.expired if number == partition), default=read.start)
        claims.append(CommitRange(partition, read.start, read.end, manifest, read, files, landable))
    recorded = [(first, end) for number, first, end in expired if number == partition]
    for number, start, end in tile.expired:
        if number == partition:  # what no commit recorded was given up when the topic was created again
            claims += [CommitRange(partition, *left, landable=left[1]) for left in _subtract(start, end, recorded)]
    return sorted(claims, key=attrgetter("start", "end"))


def _subtract(start: int, end: int, taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of `[start, end)`; the taken intervals are in order."""
    for first, last in taken:
        if first >= end or last <= start:
            continue
        if first > start:
            yield start, first
        start = last
    if start < end:
        yield start, end


def _cut_claims(
    partition: int, span: TileRange, claims: Sequence[CommitRange], report: ReportDifference
) -> Iterator[CommitRange]:
    at = span.start
    for claim in claims:
        if claim.start > at:
            report("interval", f"no commit covers offsets {at} to {claim.start - 1}", partition)
            yield CommitRange(partition, at, claim.start)
        elif claim.start < at and claim.end > claim.start:
            last = min(at, claim.end) - 1
            report(
                "interval",
                f"offsets {claim.start} to {last} are covered by more than one commit, or by none of this tile",
                partition,
            )
        start = max(at, claim.start)
        at = max(at, claim.end)
        if at > start or claim.files:
            yield CommitRange(partition, start, at, claim.manifest, claim.read, claim.files, claim.landable)
    if at < span.committed:
        report("interval", f"no commit covers offsets {at} to {span.committed - 1}", partition)
        yield CommitRange(partition, at, span.committed)
    elif at > span.committed:
        ends = f"up to {at - 1}, the tile is committed up to {span.committed}"
        report("interval", f"commits cover offsets {ends}", partition)
