"""The protocol's invariants (docs/design/commit.md), one function each.

The checks `AT_EVERY_STEP` run after every request that changed the bucket, the checks `AT_THE_END` once every actor
has finished or crashed, every hour was asked for once, and clean has run. I14, clock independence, holds if the others
hold under skewed clocks; what can be checked of it by itself is that no edge of a tile comes from a clock.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from s3lake import hours
from s3lake.errors import (
    DataLossError,
    ForeignObjectError,
    MissingDocumentError,
    S3LakeError,
    StoreDeniedError,
    TransientError,
)
from s3lake.index.commit import clean as clean_module
from s3lake.index.commit import open_and_close, recovery, sums
from s3lake.index.commit.documents import DEAD_LETTERS, Manifest, TopicHead
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import NOTHING, Tile, TileRange
from s3lake.index.store import COMMIT
from s3lake_tests.index.commit import table

if TYPE_CHECKING:
    from s3lake_tests.index.commit.world import View, World


class Violation(AssertionError):
    """An invariant does not hold; the message ends with the requests that led there."""

    def __init__(self, world: "World | None", invariant: str, message: str) -> None:
        trace = f"\n{world.trace()}" if world else ""
        super().__init__(f"{invariant}: {message}{trace}")
        self.invariant = invariant


# -------------------------------------------------------------------------------------------------------- at every step


def i1_no_loss(world: "World", view: "View") -> None:
    """Each file of each listed commit exists at its key, with the content that was staged and that commit's id."""
    landing = {key for key, _, _ in world.bucket.landing}
    for tile in view.tiles.values():
        for commit in tile.commits:
            if commit not in view.manifests:
                raise Violation(world, "I1", f"the manifest of listed commit {commit} is missing")
            for file in view.manifests[commit].files:
                found = view.data.get(file.key)
                if found is None and file.key not in landing:
                    raise Violation(world, "I1", f"{file.key} of listed commit {commit} is missing")
                if found and found[1].metadata.get(COMMIT) != commit:
                    raise Violation(world, "I1", f"{file.key} of listed commit {commit} is {found[1].metadata}'s")
                if found and found[0] != world.bucket.staged[file.upload]:
                    raise Violation(world, "I1", f"{file.key} of listed commit {commit} has other content")


def i2_immutable(world: "World", view: "View") -> None:
    """An object of a listed commit is never overwritten; it disappears only after its id has moved to `garbage`."""
    listed = {commit for tile in view.tiles.values() for commit in tile.commits}
    for effect in world.bucket.effects:
        before = getattr(effect, "before", None)
        if before and before[1].metadata.get(COMMIT) in listed:
            raise Violation(world, "I2", f"{effect.key} of a listed commit was overwritten or deleted")


def i3_one_index_entry(world: "World", view: "View") -> None:
    """The intervals of a tile's listed commits are disjoint, and their union is [start, committed)."""
    for tile in view.tiles.values():
        manifests = view.listed(tile)
        documents = [tile, *manifests]
        if [*map(id, world.checked.get(tile.hour, []))] == [*map(id, documents)]:
            continue  # these very documents were checked before
        world.checked[tile.hour] = documents
        text = {(one, at) for manifest in manifests for one, *ends in manifest.expired for at in range(*ends)}
        covered: dict[int, list[tuple[int, int]]] = {}
        for manifest in manifests:
            for partition, read in manifest.partitions.items():
                covered.setdefault(partition, []).append((read.start, read.end))
        for partition, start, end in tile.expired:
            given_up = [at for at in range(start, end) if (partition, at) not in text]  # the topic was created again
            covered.setdefault(partition, []).extend((at, at + 1) for at in given_up)
        if tile.expired != tiles.join_offset_ranges(tile.expired):
            raise Violation(world, "I3", f"{tile.hour}: expired intervals are not joined: {tile.expired}")
        if tile.sums != sums.sum_commits(manifests):
            raise Violation(world, "I3", f"{tile.hour}: {tile.sums} are not the sums of its commits")
        for partition, span in tile.partitions.items():
            at = span.start
            for start, end in sorted(covered.pop(partition, [])):
                if start != at:
                    raise Violation(world, "I3", f"{tile.hour} partition {partition}: [{start}, {end}) follows {at}")
                at = end
            if at != span.committed:
                raise Violation(world, "I3", f"{tile.hour} partition {partition}: committed {span.committed}, not {at}")
        if covered:
            raise Violation(world, "I3", f"{tile.hour}: commits of unknown partitions {covered}")


def i4_tiles(world: "World", view: "View") -> None:
    """start <= committed <= end; tiles do not overlap, and adjacent ones leave no gap (absent is the empty [0, 0))."""
    for tile in view.tiles.values():
        for partition, span in tile.partitions.items():
            if not span.start <= span.committed <= (span.committed if span.end is None else span.end):
                raise Violation(world, "I4", f"{tile.hour} partition {partition}: {span}")
    for earlier, later in _neighbours(world, view):
        adjacent = hours.shift(earlier.hour, 1) == later.hour
        for partition in set(earlier.partitions) | set(later.partitions):
            before = earlier.partitions.get(partition, NOTHING)
            start = later.partitions.get(partition, NOTHING).start
            end = before.committed if before.end is None else before.end
            if end > start or (adjacent and before.end is not None and end != start):
                problem = "overlap" if end > start else "gap"
                raise Violation(
                    world,
                    "I4",
                    f"{problem} of partition {partition}: {earlier.hour} ends at {end}, {later.hour} begins at {start}",
                )


def i5_one_open_tile(world: "World", view: "View") -> None:
    """A tile with a successor is closed; an edge once written never changes; committed and rev never decrease."""
    for earlier, later in _neighbours(world, view):
        if not earlier.closed:
            raise Violation(world, "I5", f"{earlier.hour} is open and has a successor, {later.hour}")
    for before, after in _tile_changes(world):
        if after.rev <= before.rev:
            raise Violation(world, "I5", f"{after.hour}: rev {before.rev} -> {after.rev}")
        for partition, was in before.partitions.items():
            now = after.partitions.get(partition, TileRange(-1, -1, -1))
            if now.start != was.start or (was.end is not None and now.end != was.end) or now.committed < was.committed:
                raise Violation(world, "I5", f"{after.hour} partition {partition}: {was} -> {now}")


def i6_fencing(world: "World", view: "View") -> None:
    """Nobody changed the tile between a writer's step 1 and its step 4; pending is in neither commits nor garbage.

    One pending commit never takes the place of another.
    """
    for tile in view.tiles.values():
        if tile.pending is not None and tile.pending in (*tile.commits, *tile.garbage):
            raise Violation(world, "I6", f"{tile.hour}: pending {tile.pending} is in commits or garbage")
        if set(tile.commits) & set(tile.garbage):
            raise Violation(world, "I6", f"{tile.hour}: {set(tile.commits) & set(tile.garbage)} is listed and garbage")
    for before, after in _tile_changes(world):
        if None not in (before.pending, after.pending) and before.pending != after.pending:
            raise Violation(world, "I6", f"{after.hour}: pending {before.pending} was replaced by {after.pending}")
        if after.pending is not None and after.pending != before.pending:
            since = world.began[after.pending]
            between = [one for one in world.tile_changes.get(world.index.tile_key(after.hour), ()) if one > since]
            if between:
                raise Violation(world, "I6", f"{after.hour}: the fenced writer of {after.pending} passed its CAS")


def i7_key_discipline(world: "World", _: "View") -> None:
    """Two commits with a completed object never share a key, in any tile of the topic."""
    for key, commits in world.completed.items():
        if len(commits) > 1:
            raise Violation(world, "I7", f"{key} was used by {sorted(commits)}")


def i8_delete_discipline(world: "World", view: "View") -> None:
    """Each DELETE names a key whose object's commit is or was garbage; no upload of a pending commit is aborted."""
    pending = {tile.pending for tile in view.tiles.values()} - {None}
    for effect in world.bucket.effects:
        kind = type(effect).__name__
        if kind == "Deleted" and effect.key.startswith("data/") and effect.before and not is_trial(effect.key):
            commit = effect.before[1].metadata.get(COMMIT)
            if commit not in world.garbage:
                raise Violation(world, "I8", f"{effect.key} of {commit} was deleted; {commit} never was garbage")
        if kind == "Aborted" and effect.metadata.get(COMMIT) in pending:
            raise Violation(world, "I8", f"the upload of {effect.key} was aborted while its commit was pending")


def tables_let_go_first(world: "World", view: "View") -> None:
    """No object that the table lists is deleted, whoever deletes it, and for what reason."""
    for effect in world.bucket.effects:
        before = getattr(effect, "before", None) if type(effect).__name__ == "Deleted" else None
        commit = before[1].metadata.get(COMMIT) if before else None
        noted = [hour for hour, held in view.table.items() if commit in held.commits]
        if noted:
            raise Violation(world, "tables", f"{effect.key} of {commit} goes, and the table has it in {noted}")


def tables_never_go_back(world: "World", _: "View") -> None:
    """No older state of the index takes the place of a newer one in the table."""
    for effect in world.bucket.effects:
        if effect.key == table.KEY and getattr(effect, "before", None) and hasattr(effect, "after"):
            before, after = table.decoded(effect.before[0]), table.decoded(effect.after[0])
            back = {hour: held for hour, held in before.items() if after[hour].rev < held.rev}
            if back:
                raise Violation(world, "tables", f"{back} became {after}")


def rewrites_keep_records(world: "World", view: "View") -> None:
    """A rewrite never lowers the set of landed records, whatever Kafka has lost since.

    Where objects replace one another, a record counts as long as none of its key has been landed after it.
    """
    for before, after in _tile_changes(world):
        if set(before.commits) - set(after.commits):
            had, has = _landed(world, view, before.commits), _landed(world, view, after.commits)
            if world.mode == "replacing":
                had = _last_of_each_key(had)
            lost = had - has - world.erasing
            if lost:
                raise Violation(
                    world, "rewrites", f"{after.hour}: {sorted(lost)} were landed, and are replaced by nothing"
                )


def foreign_objects_stay(world: "World", view: "View") -> None:
    """An object that s3lake did not write is never touched; a tile that met one is written only by a rewrite."""
    for key, document in world.foreign.items():
        if world.bucket.objects.get(key) != document:
            raise Violation(world, "foreign", f"{key} was not ours, and is changed")
    for tile in view.tiles.values():
        if tile.pending is not None and tile.foreign and not tile.landed:
            raise Violation(world, "foreign", f"{tile.hour}: {tile.pending} began although {tile.foreign} is taken")


def i14_clock_independence(world: "World", view: "View") -> None:
    """Every edge of a tile is an offset that Kafka answered, or a commit's end; none comes from a clock."""
    ends: dict[int, set[int]] = {}
    for manifest in view.manifests.values():
        for partition, read in manifest.partitions.items():
            ends.setdefault(partition, set()).add(read.end)
    for tile in view.tiles.values():
        for partition, span in tile.partitions.items():
            known = {0, None} | world.kafka.answered.get(partition, set()) | ends.get(partition, set())
            if not {span.start, span.end} <= known and span.end != span.committed:
                raise Violation(world, "I14", f"{tile.hour} partition {partition}: {span}, Kafka never returned it")


# ----------------------------------------------------------------------------------------------------------- at the end


def i9_exactly_once(world: "World", view: "View") -> None:
    """Each offset of each tile is in exactly one visible object, which the index lists, or had expired and is noted."""
    seen: dict[tuple[str, int, int], str] = {}
    for key, record in _visible(world, view):
        if record in seen:
            raise Violation(world, "I9", f"{record} is in {seen[record]} and in {key}")
        seen[record] = key
    for tile in view.tiles.values():
        topic = world.topic_of(tile.hour)
        listed = {file.key for manifest in view.listed(tile) for file in manifest.files}
        expired = {(partition, offset) for partition, *ends in tile.expired for offset in range(*ends)}
        for partition, span in tile.partitions.items():
            for offset in range(span.start, span.committed):
                key = seen.pop((topic, partition, offset), None)
                if key is None and (topic, partition, offset) in world.kafka.compacted:
                    continue  # before it was landed, or `rewrites_keep_records` would have found it
                if key is None and (topic, partition, offset) in world.erasing:
                    continue
                if key is None and (partition, offset) not in expired:
                    raise Violation(world, "I9", f"{tile.hour}: offset {offset} of partition {partition} is nowhere")
                if key is not None and (partition, offset) in expired:
                    raise Violation(
                        world, "I9", f"{tile.hour}: {partition}@{offset} is in {key}, and reported to be expired"
                    )
                if key is not None and key not in listed:
                    raise Violation(world, "I9", f"{tile.hour}: {partition}@{offset} is in {key}, which is not listed")
                if key is None and not _had_expired(world, topic, partition, offset):
                    raise Violation(
                        world, "I9", f"{tile.hour}: {partition}@{offset} is reported to be expired; it was not"
                    )
    if seen:
        raise Violation(world, "I9", f"records outside every tile: {seen}")


def erased_stays_erased(world: "World", view: "View") -> None:
    """Records reported as erased are in no object, in no file of any manifest, and counted by their commit."""
    for key, record in _visible(world, view):
        if record in world.erased:
            raise Violation(world, "erased", f"{record} is in {key} again")


def records_are_counted(world: "World", view: "View") -> None:
    """The counts of a listed commit are the counts of its files: `read` = landed + skipped + dead + erased."""
    for tile in view.tiles.values():
        for manifest in view.listed(tile):
            for partition, read in manifest.partitions.items():
                if read.read != read.landed + read.skipped + read.dead + read.erased:
                    raise Violation(world, "counted", f"{manifest.id}, partition {partition}: {read}")
                for kind, count in (("data", read.landed), (DEAD_LETTERS, read.dead)):
                    files = [file for file in manifest.files if (file.partition, file.stream) == (partition, kind)]
                    if sum(file.records for file in files) != count:
                        raise Violation(world, "counted", f"{manifest.id}, partition {partition}: {read}, {files}")


def tables_have_what_is_listed(world: "World", view: "View") -> None:
    """Once it has followed, the table has the commits that the tiles list."""
    listed = {tile.hour: tile.commits for tile in view.tiles.values() if tile.commits}
    noted = {hour: held.commits for hour, held in view.table.items() if held.commits}
    if world.dead_letters and noted != listed:
        raise Violation(world, "tables", f"the table has {noted}, the index {listed}")


def adopted_records_are_not_landed(world: "World", view: "View") -> None:
    """Where a connector's topic was adopted nothing is landed that it had landed."""
    if not (view.head and view.head.since and world.kafka.group):
        return
    for tile in view.tiles.values():
        for partition, span in tile.partitions.items():
            if world.topic_of(tile.hour) == FIRST_TOPIC and span.start < world.kafka.group.get(partition, 0):
                raise Violation(world, "adopted", f"{tile.hour} partition {partition}: {span}, {world.kafka.group}")


def i10_no_orphans(world: "World", view: "View") -> None:
    """Visible objects are of listed commits or crashed trials; no commit is pending, garbage, or uploading."""
    listed = {file.key for tile in view.tiles.values() for manifest in view.listed(tile) for file in manifest.files}
    orphans = {key for key in view.data if not is_trial(key)} - listed - set(world.foreign)
    if orphans:
        raise Violation(world, "I10", f"visible, but not in the index: {sorted(orphans)}")
    for tile in view.tiles.values():
        if tile.pending is not None or tile.garbage:
            raise Violation(world, "I10", f"{tile.hour}: pending {tile.pending}, garbage {tile.garbage}")
    left = {upload: begun.key for upload, begun in world.bucket.uploads.items() if not is_trial(begun.key)}
    if left and view.head and view.head.hours:
        raise Violation(world, "I10", f"uploads are left: {left}")


def i11_no_stall(world: "World", view: "View") -> None:
    """Every closed tile is landed to its end, and the last one to Kafka's log end."""
    for tile in view.tiles.values():
        if tile.closed and not tile.landed:
            raise Violation(world, "I11", f"{tile.hour} is closed and not landed: {tile.partitions}")
    last = view.tiles[max(view.tiles)] if view.tiles else None
    for partition, log in enumerate(world.kafka.logs):
        span = last.partitions.get(partition, NOTHING) if last else NOTHING
        if span.committed != log.end:
            raise Violation(world, "I11", f"partition {partition} ends at {log.end}, the last tile has {span}")


def i12_idempotence(world: "World", view: "View") -> None:
    """Settle, sweep, open, close and clean change no byte a second time; a complete hour costs no PUT."""
    before = dict(world.bucket.objects), dict(world.bucket.uploads)
    later = world.acting.now_ms + 30 * hours.DAY_MS if world.acting else 0
    for hour, tile in view.tiles.items():
        recovery.settle_pending_commit(world.index, hour)
        recovery.sweep_garbage(world.index, hour)
        open_and_close.open_hour(world.index, world.kafka, hour)
        if tile.closed and view.head:
            open_and_close.close_hour(world.index, world.kafka, view.head, hour, later)
    clean_module.clean_index(world.index, now_ms=later)
    if before != (world.bucket.objects, world.bucket.uploads):
        raise Violation(world, "I12", "recovering, opening, closing or cleaning again changed something")
    # imported here: the world needs the invariants first
    from s3lake_tests.index.commit.kafka import FIRST_HOUR
    from s3lake_tests.index.commit.works import materialise

    for hour, tile in view.tiles.items():
        if tile.complete:
            written = len(world.log)
            world.do("again", materialise((hours.start_ms(hour) - hours.start_ms(FIRST_HOUR)) // hours.HOUR_MS))
            again = [line for line in map(str, world.log[written:]) if " put " in line or "upload" in line]
            if again:
                raise Violation(world, "I12", f"{hour} was complete, and was written to again: {again}")


def i13_later_partition(world: "World", view: "View") -> None:
    """Where adjacent tiles exist before a topic-partition is created, it is covered from its first offset."""
    for topic, partition, last in world.later_partitions:
        chain = [tile for hour, tile in view.tiles.items() if hour >= last and world.topic_of(hour) == topic]
        whole = chain and chain[0].hour == last and len(chain) == len(hours.expand([(last, chain[-1].hour)]))
        spans = [tile.partitions[partition] for tile in chain if partition in tile.partitions]
        if whole and topic == world.kafka.topic_id and world.kafka.logs[partition].end and not spans:
            raise Violation(world, "I13", f"partition {partition} is not covered at all")
        if whole and spans and spans[0].start != 0:
            raise Violation(
                world, "I13", f"partition {partition} was added after {last} and begins at {spans[0].start}"
            )


# ------------------------------------------------------------------------------------------- in the middle of something


def i15_atomic_for_readers(world: "World", tile: Tile, records: list[tuple[str, int, int]]) -> None:
    """Tile, then manifests, then objects: a state between two commits, every offset up to `committed` exactly once."""
    expired = {(partition, offset) for partition, *ends in tile.expired for offset in range(*ends)}
    compacted = {(partition, offset) for _, partition, offset in world.kafka.compacted | world.erasing}
    found = sorted((partition, offset) for _, partition, offset in records)
    wanted = [
        (partition, offset)
        for partition, span in sorted(tile.partitions.items())
        for offset in range(span.start, span.committed)
        if (partition, offset) not in expired and ((partition, offset) not in compacted or (partition, offset) in found)
    ]
    if found != wanted:
        raise Violation(None, "I15", f"a reader of {tile.hour} at revision {tile.rev} finds {found}, not {wanted}")


def i15_one_put(world: "World", tile: Tile, records: list[tuple[str, int, int]]) -> None:
    """A reader of an hour of a table sees the rows of one put, all of them."""
    puts = {commit for commit, *_ in records}
    wanted = list(range(tile.sums.landed))
    if len(puts) > 1 or sorted(row for *_, row in records) != wanted:
        raise Violation(world, "I15", f"a reader of {tile.hour} at revision {tile.rev} finds {records}, not one table")


def i15_only_garbage_is_missing(world: "World", commit: str, key: str) -> None:
    """A reader misses an object only when its commit has become garbage meanwhile (or its store shows it late)."""
    if commit not in world.garbage and key not in {one for one, _, _ in world.bucket.landing}:
        raise Violation(world, "I15", f"a reader misses {key} of {commit}, which never was garbage")


def error_is_expected(world: "World", error: S3LakeError) -> None:
    """An actor ends with an error only where the world gives cause for it."""
    foreign = isinstance(error, ForeignObjectError) and world.had_foreign
    recreated = isinstance(error, DataLossError) and (bool(world.kafka.former_ids) or world.kafka.elected)
    unavailable = isinstance(error, TransientError) and not isinstance(error, MissingDocumentError)
    circumstances = world.bucket.circumstances
    misled = (circumstances.conflicts and "conditional writes" in str(error)) or (
        circumstances.late and "still there after it was deleted" in str(error)
    )
    denied = isinstance(error, StoreDeniedError) and (circumstances.keeps_data or misled)
    head = world.view().head
    adopted = isinstance(error, DataLossError) and bool(world.kafka.group and head and head.since)
    if not (unavailable or foreign or recreated or denied or adopted):
        raise Violation(world, "errors", f"no cause for {error!r}")


# ------------------------------------------------------------------------------------------- with `exactly_once: false`


def listed_objects_exist(world: "World", view: "View") -> None:
    """Each file of each listed commit exists at its key, whoever wrote it last."""
    for tile in view.tiles.values():
        for commit in tile.commits:
            missing = {file.key for file in view.manifests[commit].files} - set(view.data)
            if missing:
                raise Violation(world, "listed", f"{sorted(missing)} of listed commit {commit} is missing")


def never_less_than_once(world: "World", view: "View") -> None:
    """Each offset of each tile is in an object that the index lists, or had expired and is noted."""
    for tile in view.tiles.values():
        topic = world.topic_of(tile.hour)
        files = [file for manifest in view.listed(tile) for file in manifest.files]
        found = {tuple(record) for file in files for record in json.loads(view.data[file.key][0])}
        expired = {(topic, partition, offset) for partition, *ends in tile.expired for offset in range(*ends)}
        for partition, span in tile.partitions.items():
            wanted = {(topic, partition, offset) for offset in range(span.start, span.committed)}
            nowhere = wanted - found - expired - world.kafka.compacted
            if nowhere:
                raise Violation(world, "less than once", f"{tile.hour}: {sorted(nowhere)} is nowhere")


Invariant = Callable[["World", "View"], None]
AT_EVERY_STEP: tuple[Invariant, ...] = (
    listed_objects_exist,
    i8_delete_discipline,
    i2_immutable,
    i1_no_loss,
    i3_one_index_entry,
    i4_tiles,
    i5_one_open_tile,
    i6_fencing,
    i7_key_discipline,
    rewrites_keep_records,
    tables_let_go_first,
    tables_never_go_back,
    foreign_objects_stay,
    i14_clock_independence,
)
AT_THE_END: tuple[Invariant, ...] = (
    never_less_than_once,
    i10_no_orphans,
    i9_exactly_once,
    erased_stays_erased,
    records_are_counted,
    tables_have_what_is_listed,
    adopted_records_are_not_landed,
    i11_no_stall,
    i13_later_partition,
    i12_idempotence,
)
OF_KAFKA = ("exactly once", "at once", "replacing")
ONLY: dict[Invariant, tuple[str, ...]] = {
    rewrites_keep_records: OF_KAFKA,
    i14_clock_independence: OF_KAFKA,
    i11_no_stall: OF_KAFKA,
    i12_idempotence: OF_KAFKA,
    listed_objects_exist: ("at once", "replacing"),
    never_less_than_once: ("at once",),
    i1_no_loss: ("exactly once", "at once", "tables"),
    i2_immutable: ("exactly once", "at once", "tables"),
    i7_key_discipline: ("exactly once", "tables"),
    i9_exactly_once: ("exactly once",),
    erased_stays_erased: ("exactly once",),
    records_are_counted: ("exactly once", "tables"),
    tables_have_what_is_listed: ("exactly once", "tables"),
    i10_no_orphans: ("exactly once", "at once", "tables"),
    foreign_objects_stay: ("exactly once", "at once", "tables"),
}
"""In which modes an invariant holds; without an entry in all."""


# -------------------------------------------------------------------------------------------------------------- helpers


FIRST_TOPIC = "topic-1"


def is_trial(key: str) -> bool:
    """Whether `key` is of a trial of the store."""
    return "/.probe/" in key


def is_tile(key: str) -> bool:
    """Whether `key` is a tile's: `<prefix>/<sink>/<topic>/<hour>.json`."""
    return kind_of(key) is Tile


@cache
def kind_of(key: str) -> Any:
    """Return the type of the index document at `key`."""
    if not key.startswith("index/") or not key.endswith(".json"):
        return None
    if key.count("/") == 4:
        return Manifest
    return TopicHead if key.endswith("/topic.json") else Tile


def _neighbours(world: "World", view: "View") -> Iterator[tuple[Tile, Tile]]:
    """Tiles that follow each other and were cut from the same topic."""
    for earlier, later in pairwise(view.tiles.values() if world.mode != "tables" else ()):
        if world.topic_of(earlier.hour) == world.topic_of(later.hour):
            yield earlier, later


def _tile_changes(world: "World") -> Iterator[tuple[Tile, Tile]]:
    for effect in world.bucket.effects:
        if is_tile(effect.key) and getattr(effect, "before", None) and hasattr(effect, "after"):
            yield msgspec.json.decode(effect.before[0], type=Tile), msgspec.json.decode(effect.after[0], type=Tile)


def _landed(world: "World", view: "View", commits: tuple[str, ...]) -> set[tuple[str, int, int]]:
    files = [file for commit in commits if commit in view.manifests for file in view.manifests[commit].files]
    return {tuple(record) for file in files for record in json.loads(world.bucket.staged[file.upload])}


def _last_of_each_key(records: set[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
    """Of each topic-partition the last one: an actor of this mode writes one key for each of them."""
    last = {(topic, partition): offset for topic, partition, offset in sorted(records)}
    return {(topic, partition, offset) for (topic, partition), offset in last.items()}


def _visible(world: "World", view: "View") -> Iterator[tuple[str, tuple[str, int, int]]]:
    for key, (body, _) in view.data.items():
        if key not in world.foreign and not is_trial(key):
            for topic, partition, offset in json.loads(body):
                yield key, (topic, partition, offset)


def _had_expired(world: "World", topic: str, partition: int, offset: int) -> bool:
    return topic in world.kafka.former_ids or offset < world.kafka.expired.get((topic, partition), 0)
