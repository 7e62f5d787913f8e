"""What actors do to hours that have landed: files joined, written again, records taken out, dead letters tried again.

The engine is the product's own (`s3lake/land/change/hour_change.py`); a toy stages what replaces the commits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from s3lake.config.draft import Connector
from s3lake.config.model import Sink
from s3lake.errors import ConfigurationError, FencedError, ReplacedError
from s3lake.index.commit.clean import delete_replaced_manifests
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, Read
from s3lake.index.commit.open_and_close import create_table_hour
from s3lake.index.commit.protocol import PUT, Attempt, Staged
from s3lake.index.commit.replacing_attempts import MERGE, REPLAY
from s3lake.index.store import trial
from s3lake.land.adopt import GroupOffsets, adopt_topic
from s3lake.land.change import retention
from s3lake.land.change.hour_change import carry_over, change_hour, group_compatible, replace_commits, settle_hour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.index.commit.actors import Actor, Work
from s3lake_tests.index.commit.bucket import DATA, PREFIX
from s3lake_tests.index.commit.kafka import FIRST_HOUR, TOPIC, ExpiredError, Record, hour
from s3lake_tests.index.commit.works import records_of, upload, void
from s3lake_tests.kit import targets

SINK = Sink.model_validate({"name": "sink", "topics": [TOPIC], "bucket": "memory", "start": FIRST_HOUR})
Contents = Iterable[tuple[int, str, Sequence[Record]]]
"""Topic-partition, kind and records of files."""


def target_of(me: Actor) -> TopicSink:
    """What the sink has landed, as one actor sees it."""
    return targets.target_of(SINK, me.index, me.store)


def exchange(
    me: Actor,
    number: int,
    replaced: Sequence[Manifest] | None,
    reason: str,
    write: Callable[[Attempt], Staged],
    *,
    keeps_garbage: bool = False,
) -> None:
    """Replace commits by the product's own engine."""

    def stage(attempt: Attempt, files: list[File]) -> Staged:
        staged = write(attempt)
        files += staged.files
        return staged

    try:
        replace_commits(target_of(me), hour(number), replaced, reason, stage, keeps_garbage=keeps_garbage)
    except FencedError as error:
        me.world.outcomes[f"{reason}: {type(error).__name__}"] += 1
        raise
    me.world.outcomes[reason] += 1


def merging(number: int, last: int = 99) -> Work:
    """An hour's last commits become one, as at the end of a landing."""

    def work(me: Actor) -> None:
        stored = me.index.tile(hour(number))
        if stored is None or not stored[0].complete:
            return
        try:
            commits = [me.index.read_listed(hour(number), commit) for commit in stored[0].commits[-last:]]
        except ReplacedError as error:
            me.world.log.append(f"{me.name:<14} comes too late: {error}")
            return
        if len(commits) > 1:
            exchange(me, number, commits, MERGE, lambda attempt: _joined(me, commits, attempt), keeps_garbage=True)

    return _of_an_hour(number, work)


def compacting(number: int) -> Work:
    """All files of a topic-partition become one."""
    return _changing(number, "compact", _joined)


def reformatting(number: int) -> Work:
    """Write every file again in another form."""
    return _changing(number, "reformat", lambda me, commits, attempt: _without(me, commits, attempt, frozenset()))


def erasing(number: int, person: int) -> Work:
    """The records of a person, who has every third, leave the hour."""

    def work(me: Actor) -> None:
        target, removed = target_of(me), set[Record]()

        def stage(commits: Sequence[Manifest], attempt: Attempt) -> Staged:
            return _without(me, commits, attempt, removed)

        for _ in range(3):
            settle_hour(target, hour(number))
            commits = target.manifests(hour(number)) or []
            meant = [(one, {record for record in _records(me, one) if record[2] % 3 == person}) for one in commits]
            removed |= {record for _, records in meant for record in records}
            me.world.erasing |= removed
            try:
                for some in group_compatible([manifest for manifest, records in meant if records]):
                    exchange(me, number, some, "erase", partial(stage, some))
            except FencedError:
                continue
            delete_replaced_manifests(me.index, hour(number), "erase")
            me.world.erased |= removed
            return

    return _of_an_hour(number, work)


def expiring(number: int) -> Work:
    """The hour is older than the sink keeps hours."""

    def work(me: Actor) -> None:
        change_hour(target_of(me), hour(number), retention.REASON, retention.plan_expire)
        delete_replaced_manifests(me.index, hour(number), retention.REASON)
        me.world.erased |= me.expired

    return _of_an_hour(number, work)


def replaying(number: int) -> Work:
    """Half of the dead letters are none any more."""

    def work(me: Actor) -> None:
        for tried in settle_hour(target_of(me), hour(number)).commits:
            stored = me.index.tile(hour(number))
            replaced = me.index.read_listed(hour(number), tried) if stored and tried in stored[0].commits else None
            if replaced is None or not any(map(_accepted, _records(me, replaced, DEAD_LETTERS))):
                continue
            exchange(me, number, [replaced], REPLAY, partial(_replayed, me, replaced))

    return _of_an_hour(number, work)


def following() -> Work:
    """The table is brought to all hours of the index."""
    return lambda me: void(me.table.sync())


def trying() -> Work:
    """The store is tried, as before the first landing of a day."""
    return lambda me: trial.try_store(me.store, PREFIX, DATA)


def adopting() -> Work:
    """The sink goes on where a connector stopped."""

    def work(me: Actor) -> None:
        try:
            adopt_topic(
                Connector("lake"), SINK, me.index, me.offsets, _Groups(me), now_ms=me.now_ms, accept_expired=True
            )
        except ConfigurationError as error:
            me.world.log.append(f"{me.name:<14} is refused: {error}")
        else:
            me.world.outcomes["adopted"] += 1

    return work


class _Groups:
    """The consumer group of a connector that has stopped."""

    def __init__(self, me: Actor) -> None:
        self._me = me

    def read(self, name: str, topic: str) -> GroupOffsets:  # noqa: ARG002
        return GroupOffsets(self._me.request("kafka", "connector"))


def putting(number: int) -> Work:
    """A table takes the place of the rows of an hour, however many they were."""

    def write(me: Actor, attempt: Attempt) -> Staged:
        rows = [(attempt.commit, 0, at) for at in range(2 * me.chunk - 1)]
        files = tuple(upload(me, attempt, 0, "data", rows[at : at + 2]) for at in range(0, len(rows), 2))
        return Staged(files, {0: Read(0, 1, read=len(rows), landed=len(rows))})

    def work(me: Actor) -> None:
        create_table_hour(me.index, hour(number))
        exchange(me, number, None, PUT, partial(write, me))

    return _of_an_hour(number, work, new=True)


def _of_an_hour(number: int, work: Work, *, new: bool = False) -> Work:
    """Where the hour has a tile, and is landed exactly once: other sinks are refused."""

    def checked(me: Actor) -> None:
        if me.world.mode in ("exactly once", "tables") and (new or me.index.tile(hour(number)) is not None):
            try:
                work(me)
            except (ExpiredError, FencedError) as error:
                me.world.log.append(f"{me.name:<14} stops: {error}")

    return checked


def _changing(number: int, reason: str, stage: Callable[[Actor, Sequence[Manifest], Attempt], Staged]) -> Work:
    def work(me: Actor) -> None:
        target = target_of(me)
        settle_hour(target, hour(number))
        commits = target.manifests(hour(number)) or []
        if any(manifest.files for manifest in commits):
            exchange(me, number, commits, reason, lambda attempt: stage(me, commits, attempt))

    return _of_an_hour(number, work)


def _joined(me: Actor, commits: Sequence[Manifest], attempt: Attempt) -> Staged:
    """One file for each topic-partition, and one for its dead letters."""
    together: dict[tuple[int, str], list[Record]] = {}
    for file, records in _read(me, commits):
        together.setdefault((file.partition, file.stream), []).extend(records)
    return _staged(me, commits, attempt, ((*place, sorted(records)) for place, records in sorted(together.items())))


def _without(me: Actor, commits: Sequence[Manifest], attempt: Attempt, removed: Iterable[Record]) -> Staged:
    """Each file without some records, and none that holds no other."""
    contents, reads = [], dict(carry_over(commits).reads)
    for file, records in _read(me, commits):
        kept = [record for record in records if record not in set(removed)]
        contents.append((file.partition, file.stream, kept))
        _erase(reads, file, len(records) - len(kept))
    return _staged(me, commits, attempt, contents, reads)


def _replayed(me: Actor, replaced: Manifest, attempt: Attempt) -> Staged:
    """The data again, what has landed now, and the dead letters that are left."""
    contents: list[tuple[int, str, Sequence[Record]]] = []
    reads = dict(replaced.partitions)
    for file, records in _read(me, [replaced]):
        landed = [record for record in records if file.stream == DEAD_LETTERS and _accepted(record)]
        contents.append((file.partition, file.stream, [record for record in records if record not in landed]))
        contents += [(file.partition, "data", [record]) for record in landed]
        if landed:
            read = reads[file.partition]
            reads[file.partition] = msgspec.structs.replace(
                read, landed=read.landed + len(landed), dead=read.dead - len(landed)
            )
    return _staged(me, [replaced], attempt, contents, reads)


def _erase(reads: dict[int, Read], file: File, records: int) -> None:
    read = reads[file.partition]
    left = {"dead": read.dead - records} if file.stream == DEAD_LETTERS else {"landed": read.landed - records}
    reads[file.partition] = msgspec.structs.replace(read, erased=read.erased + records, **left)


def _accepted(record: Record) -> bool:
    return record[2] % 2 == 0


def _staged(
    me: Actor,
    commits: Sequence[Manifest],
    attempt: Attempt,
    contents: Contents,
    reads: Mapping[int, Read] | None = None,
) -> Staged:
    files = tuple(upload(me, attempt, *content) for content in contents if content[2])
    carried_on = carry_over(commits)
    return replace(carried_on, files=files, reads=reads or carried_on.reads)


def _read(me: Actor, commits: Iterable[Manifest]) -> list[tuple[File, list[Record]]]:
    return [(file, records_of(me, file)) for manifest in commits for file in manifest.files]


def _records(me: Actor, manifest: Manifest, kind: str | None = None) -> set[Record]:
    return {record for file in manifest.files if kind in (None, file.stream) for record in records_of(me, file)}
