"""Write a micro-batch as a commit. This is the order of the steps (docs/design/commit.md has the reasons).

| step | function | what |
|---|---|---|
| 1 | `begin_micro_batch`: `prepare_tile` | settles the pending commit, sweeps garbage; the tile's ETag is the fence |
| 2 | `begin_micro_batch`: `plan_next_batch` | plans offset ranges; then the caller stages invisible uploads |
| | `require_log_unchanged` | checks that Kafka's log is still the planned one |
| 3 | `commit_attempt`: `_record_manifest` | writes the manifest |
| 4 | `commit_attempt`: `_enter_pending_commit` | makes the commit pending in the tile, by compare-and-swap |
| 5, 6 | `commit_attempt`: `finish_own_commit` | completes the files, and lists the commit in the tile |
| | `commit_attempt`: `sweep_garbage` or `follow` | the table follows; replaced objects are deleted |

`recovery.py` has the steps that each process takes for a crashed writer. `replacing_attempts.py` begins commits that
replace others. With `exactly_once: false`, `commit_attempt_at_once` takes the place of `commit_attempt`.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from s3lake import hours
from s3lake.errors import (
    ConfigurationError,
    DataLossError,
    FencedError,
    KafkaUnavailableError,
    MissingDocumentError,
    StoreConflictError,
)
from s3lake.index.commit.commit_files import abort_uploads, complete_files
from s3lake.index.commit.documents import File, FileForm, Manifest, Read, RefusalReason, ReplayedDeadLetters, TopicHead
from s3lake.index.commit.log_checks import ask_kafka, find_truncated_offsets, require_same_log
from s3lake.index.commit.recovery import finish_own_commit, prepare_tile, roll_commit_forward, sweep_garbage
from s3lake.index.commit.sums import Commits, measure_waits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.batch import Batch, plan_next_batch
from s3lake.index.plan.stamps import find_stamps_ahead
from s3lake.index.plan.tile import Tile, Wait
from s3lake.source.offsets import Offsets

PUT = "put"
"""The reason of a commit that replaces an hour's table by another one, which may have fewer rows."""


@dataclass(frozen=True)
class Attempt:
    """One try at one commit: what to read, and the tile it was planned on.

    Attributes:
        commit: random id, chosen before staging, in the metadata of every object.
        suffix: what file names get because their plain names may have been used before; else empty.
        replaces: commits that this one takes the place of (a rewrite, a merge).
        reason: see `Manifest`.
        replaced_manifests: manifests of what it replaces, where they were read.
        begun_ms: see `Manifest`.
    """

    commit: str
    tile: Tile
    etag: str
    batch: Batch
    suffix: str = ""
    replaces: tuple[str, ...] = ()
    reason: str = ""
    replaced_manifests: tuple[Manifest, ...] = ()
    begun_ms: int = field(default_factory=hours.now_ms)


@dataclass(frozen=True)
class Staged:
    """The result of staging an attempt: uploads that are not visible yet, and counts of the records.

    Attributes:
        replacing: see `Manifest`; only with `exactly_once: false`.
        waits: see `Manifest`, of records that were committed before; empty for new ones.
        refusal_reasons: see `Manifest`.
        taken: see `Manifest`.
        clocks: see `Manifest`.
    """

    files: tuple[File, ...]
    reads: Mapping[int, Read]
    form: FileForm = field(default_factory=FileForm)
    nulls: str = ""
    columns: dict[str, Any] | None = None
    replacing: bool = False
    waits: tuple[Wait, ...] = ()
    refusal_reasons: tuple[RefusalReason, ...] = ()
    taken: tuple[ReplayedDeadLetters, ...] = ()
    clocks: tuple[tuple[int, int, int], ...] = ()


class Committed(NamedTuple):
    """A committed attempt: its manifest, and the tile that lists it; garbage there could not be deleted yet."""

    manifest: Manifest
    tile: Tile


def begin_micro_batch(
    index: TopicIndex,
    offsets: Offsets,
    head: TopicHead,
    hour: str,
    *,
    limit: int,
    now_ms: int,
    grace_ms: int = 0,
    until: Mapping[int, int] | None = None,
) -> Attempt | None:
    """Step 1 and the plan: what to do next in `hour`, or None when all there is has landed.

    Args:
        index: the index of the sink and topic.
        offsets: the offsets of Kafka's log.
        head: the head that `open_hour` returned.
        hour: an hour that has a tile.
        limit: most offsets one micro-batch reads.
        now_ms: this actor's clock; it decides when the hour is closed, never whether anything is right.
        grace_ms: how long after its end an hour is left open for late records.
        until: where the run's topic ended when the run began: an open hour is landed up to there; None for no such end.

    Raises:
        DataLossError: the topic is another one than the index was cut from, or its log was truncated.
        ForeignObjectError: keys of an earlier attempt have another program's objects.
        StoreDeniedError: all is landed, and what was given up on the way may not be deleted.
    """
    while True:
        tile, etag = prepare_tile(index, hour, head)
        if tile.landed:
            if tile.garbage:
                sweep_garbage(index, hour)  # if it was denied: all is landed, and the user has to know
            return None
        kafka = ask_kafka(index, offsets, head, hour)
        require_same_log(index, offsets, tile, kafka)
        if not tile.closed:
            over = now_ms >= hours.end_ms(hour) + grace_ms
            ahead = find_stamps_ahead(kafka, now_ms)
            grown = tiles.close_tile(tile, kafka, ahead) if over else tiles.add_partitions(tile, kafka, ahead)
            if grown is not tile:
                swapped = index.swap_tile(grown, etag)
                if swapped is None or grown.landed:
                    continue
                tile, etag = grown, swapped
        batch = plan_next_batch(tile, kafka, limit, until, ended=now_ms >= hours.end_ms(hour))
        return create_attempt(tile, etag, batch, renamed=tiles.is_burnt(tile.burnt, batch.intervals)) if batch else None


def create_attempt(
    tile: Tile,
    etag: str,
    batch: Batch,
    *,
    renamed: bool,
    replaces: tuple[str, ...] = (),
    reason: str = "",
    replaced_manifests: tuple[Manifest, ...] = (),
) -> Attempt:
    """A fresh attempt; `renamed` puts its id into every file name, so no key is ever used twice."""
    commit = uuid.uuid4().hex
    suffix = build_name_suffix(commit) if renamed else ""
    return Attempt(commit, tile, etag, batch, suffix, replaces, reason, replaced_manifests)


def build_name_suffix(commit: str) -> str:
    """Return the mark that a commit's file names get (rule R2)."""
    return f"~{commit[:12]}"


def require_log_unchanged(index: TopicIndex, offsets: Offsets, head: TopicHead, attempt: Attempt) -> None:
    """Step 2, once all is read: tasks know topics by name, and offsets by number, and read what they find there.

    Raises:
        DataLossError: the topic is another one, or its log was cut below what is landed.
        KafkaUnavailableError: the log was cut behind it: what was read may not be what is there now.
    """
    kafka = ask_kafka(index, offsets, head, attempt.tile.hour)
    ends = {partition: end for partition, (_, end) in attempt.batch.intervals.items()}
    epochs = {**attempt.tile.epochs, **attempt.batch.epochs}
    read = attempt.tile.revise(partitions=tiles.advance_committed(attempt.tile, ends), epochs=epochs)
    if cut := find_truncated_offsets(index, offsets, read, kafka):
        require_same_log(index, offsets, attempt.tile, kafka)
        ranges = ", ".join(f"topic-partition {partition} was cut off at offset {at}" for partition, at in cut.items())
        raise KafkaUnavailableError(
            f"topic {index.topic!r}: a leader was elected that lacked records while they were read ({ranges}); nothing "
            "of this micro-batch is visible. The next run reads the present log"
        )


def commit_attempt(index: TopicIndex, attempt: Attempt, staged: Staged) -> Committed:
    """Steps 3 to 6: make a staged attempt visible, atomically for readers of the index.

    What follows the index is brought to the hour then, and after that replaced objects are deleted. If it cannot
    follow they stay as garbage: who writes this hour next, or `clean`, deletes them.

    Raises:
        FencedError: another writer changed the tile since the attempt began; nothing of this attempt is visible.
        ForeignObjectError: a key is taken by an object that s3lake did not write; the commit was rolled back.
        DataLossError: a rewrite read fewer records than it would replace; nothing of it is visible.
        StoreConflictError: the manifest could not be written; nothing of this attempt is visible.
    """
    manifest = _record_manifest(index, _build_manifest(index, attempt, staged), attempt.replaced_manifests)
    pending, etag = _enter_pending_commit(index, attempt, staged)
    tile = finish_own_commit(index, pending, etag, manifest)
    # Readers of the index have switched. A sweep lets what follows the index follow first.
    if attempt.replaces:
        swept = sweep_garbage(index, tile.hour, (*attempt.replaced_manifests, manifest))
        return Committed(manifest, swept[0] if swept else tile)
    index.follow(tile.hour)
    return Committed(manifest, tile)


def commit_attempt_at_once(index: TopicIndex, attempt: Attempt, staged: Staged) -> Committed:
    """Steps 3 to 6 with `exactly_once: false`: make the objects visible one by one, then change the tile once.

    Raises:
        FencedError: a name was taken, or another writer changed the tile since the attempt began. What is visible of
            this attempt is not in the index; `clean` removes it once all that it held is landed.
        DataLossError: a rewrite read fewer records than it would replace; nothing of it is visible.
        StoreConflictError: the manifest could not be written; nothing of this attempt is visible.
    """
    planned = msgspec.structs.replace(_build_manifest(index, attempt, staged), at_once=True, replacing=staged.replacing)
    manifest = _record_manifest(index, planned, attempt.replaced_manifests)
    outcomes = complete_files(index, manifest)
    missing = [file for file in manifest.files if outcomes[file.key] != "landed"]
    if missing:
        abort_uploads(index.store, missing, index.pace)
        # Plain names of these offsets are in use now, by this attempt or by one that crashed: the next takes others.
        burnt = tiles.extend_burnt(attempt.tile.burnt, {one: read.end for one, read in manifest.partitions.items()})
        index.swap_tile(attempt.tile.revise(burnt=burnt), attempt.etag)
        reason = "another attempt's file is there" if outcomes[missing[0].key] == "foreign" else "its upload vanished"
    else:
        landed = roll_commit_forward(index, attempt.tile, manifest)
        if index.swap_tile(landed, attempt.etag) or _is_mine(index, attempt):
            swept = sweep_garbage(index, attempt.tile.hour) if attempt.replaces else None
            return Committed(manifest, swept[0] if swept else landed)
        reason = "another writer changed the hour first"
    raise FencedError(
        f"commit {attempt.commit} of {index.topic} {attempt.tile.hour}: {reason}; {len(manifest.files) - len(missing)} "
        "of its objects are visible and not in the index, until `s3lake clean` removes them"
    )


def _record_manifest(index: TopicIndex, manifest: Manifest, replaced: Sequence[Manifest]) -> Manifest:
    """Step 3: the manifest, once it is in the index; manifests that were read of what it replaces spare requests."""
    try:
        if manifest.replaces and manifest.reason != PUT:
            commits = Commits(index, manifest.hour, manifest.replaces, replaced)
            require_no_fewer_records(index.topic, manifest.hour, commits, manifest.partitions)
        index.record(manifest)
    except (DataLossError, StoreConflictError):
        abort_uploads(index.store, manifest.files, index.pace)  # a silent store is not asked again for every file
        raise
    return manifest


def require_no_fewer_records(topic: str, hour: str, replaced: Commits, reads: Mapping[int, Read]) -> None:
    """Refuse a commit that holds fewer records than the commits that it replaces (rule R6).

    Kafka's log start does not show this: compaction takes records out of the middle of a log.

    Raises:
        DataLossError: topic-partitions would lose records; the error has the counts of each.
    """
    before: Counter[int] = Counter()
    for at in range(len(replaced)):
        try:
            manifest = replaced[at]
        except MissingDocumentError:
            continue  # its files can be swept by no process either: the rewrite is what mends such an hour
        before.update({partition: read.read for partition, read in manifest.partitions.items()})
    now = {partition: reads[partition].read if partition in reads else 0 for partition in before}
    fewer = [
        f"topic-partition {partition}: {now[partition]} of {count}"
        for partition, count in sorted(before.items())
        if now[partition] < count
    ]
    if fewer:
        raise DataLossError(
            f"{topic} {hour}: Kafka has fewer records now than were landed ({', '.join(fewer)}), as after "
            "compaction. A rewrite would delete the last copy of the others, so the landed files stay. To have them in "
            "another form, read them (`load_input`, `s3lake.load`) and write the result elsewhere"
        )


def _enter_pending_commit(index: TopicIndex, attempt: Attempt, staged: Staged) -> tuple[Tile, str | None]:
    """Step 4: make the commit pending in the tile. Return that tile and its ETag, None if the answer was lost.

    Raises:
        FencedError: another process was first; the uploads are aborted.
    """
    pending = attempt.tile.revise(pending=attempt.commit)
    etag = index.swap_tile(pending, attempt.etag)
    if etag is not None or _is_mine(index, attempt):
        return pending, etag
    abort_uploads(index.store, staged.files, index.pace)
    stored = index.tile(attempt.tile.hour)
    tile = stored[0] if stored else None
    winner = (tile.pending or next(reversed(tile.commits), None)) if tile else None
    raise FencedError(
        f"another writer changed {index.topic} {attempt.tile.hour} first (revision {tile.rev if tile else '?'}, commit "
        f"{winner}); nothing of commit {attempt.commit} is visible"
    )


def _is_mine(index: TopicIndex, attempt: Attempt) -> bool:
    """Return whether the condition of this attempt failed because of its own repeated request."""
    stored = index.tile(attempt.tile.hour)
    return stored is not None and (stored[0].pending == attempt.commit or attempt.commit in stored[0].commits)


def _build_manifest(index: TopicIndex, attempt: Attempt, staged: Staged) -> Manifest:
    keys = [file.key for file in staged.files]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ConfigurationError(
            f"two files of one commit have the key {twice}: the layout lacks topic-partition or offset"
        )
    now_ms = hours.now_ms()
    return Manifest(
        id=attempt.commit,
        topic=index.topic,
        hour=attempt.tile.hour,
        partitions={
            partition: msgspec.structs.replace(staged.reads.get(partition, Read(0, 0)), start=start, end=end)
            for partition, (start, end) in attempt.batch.intervals.items()
        },
        files=staged.files,
        replaces=attempt.replaces,
        expired=attempt.batch.expired,
        form=staged.form,
        nulls=staged.nulls,
        columns=staged.columns,
        created_ms=now_ms,
        epochs=dict(attempt.batch.epochs),
        begun_ms=attempt.begun_ms,
        reason=attempt.reason,
        waits=staged.waits or measure_waits(staged.reads.values(), now_ms),
        refusal_reasons=staged.refusal_reasons,
        taken=staged.taken,
        clocks=staged.clocks,
    )
