"""What actors do: they land, rewrite, recover, close, clean and read, by the product's own functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from s3lake import hours
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import ConfigurationError, DataLossError, FencedError, IncompleteError
from s3lake.index.commit import clean as clean_module
from s3lake.index.commit import open_and_close, protocol, quiet_hours, recovery
from s3lake.index.commit import replacing_attempts as replacing
from s3lake.index.commit.documents import DEAD_LETTERS, File, Read, TopicHead
from s3lake.index.commit.operator_decisions import accept_present_log
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.index.store import COMMIT
from s3lake_tests.index.commit import invariants
from s3lake_tests.index.commit.actors import Actor, Work
from s3lake_tests.index.commit.bucket import DATA
from s3lake_tests.index.commit.kafka import FIRST_HOUR, MINUTE, TOPIC, ExpiredError, Record, hour

_NO_KEY = re.compile("(?!)")
KEYS = KeySpace((f"{DATA}{TOPIC}/",), _NO_KEY, _NO_KEY, f"{DATA}{TOPIC}/", f"{DATA}.probe/")


def stage(me: Actor, attempt: Attempt, topic_id: str) -> Staged:
    """A toy of what Spark does: uploads of `me.chunk` records each, whose bodies are the offsets they hold."""
    files: list[File] = []
    reads: dict[int, Read] = {}
    replacing = me.world.mode == "replacing"
    for partition, (start, end) in attempt.batch.intervals.items():
        first, last = attempt.batch.reads.get(partition, (end, end))
        records = me.store.read(topic_id, partition, first, last) if last > first else []
        dead = [record for record in records if me.world.dead_letters and record[2] % 5 in (1, 4)]
        landed = [record for record in records if record not in dead]
        reads[partition] = Read(start, end, read=len(records), landed=len(landed), dead=len(dead))
        for at in range(max(0, len(landed) - 1) if replacing else 0, len(landed), me.chunk):
            files.append(upload(me, attempt, partition, "data", landed[at : at + me.chunk]))
        if dead:
            files.append(upload(me, attempt, partition, DEAD_LETTERS, dead))
    return Staged(tuple(files), reads, replacing=replacing)


def upload(me: Actor, attempt: Attempt, partition: int, kind: str, records: Sequence[Record]) -> File:
    """One file of an attempt, not visible yet."""
    (_, _, first), (_, _, last) = records[0], records[-1]
    name = f"{partition}+last" if me.world.mode == "replacing" and kind == "data" else f"{partition}+{first}"
    key = f"{DATA}{TOPIC}/{'dead/' if kind == DEAD_LETTERS else ''}{name}{attempt.suffix}"
    body = json.dumps(records).encode()
    upload = me.store.create_upload(key, {COMMIT: attempt.commit})
    etag = me.store.upload_part(key, upload, 1, body)
    return File(key, upload, (etag,), partition, first, last, len(records), len(body), kind)


def records_of(me: Actor, file: File) -> list[Record]:
    """What an object holds."""
    document = me.store.get(file.key, (0, file.bytes))
    if document is None:
        raise ExpiredError(f"{file.key} was replaced meanwhile")
    return [(topic_id, partition, offset) for topic_id, partition, offset in json.loads(document.body)]


def materialise(*numbers: int, rounds: int = 3, grace: float = 0) -> Work:
    """Open these hours, and land what Kafka has when the work begins, each in up to `rounds` micro-batches."""

    def work(me: Actor) -> None:
        until = {partition: end for partition, (_, end) in me.offsets.log_ranges(TOPIC).items()}
        heads = {number: open_and_close.open_hour(me.index, me.offsets, hour(number)) for number in numbers}
        for number, head in heads.items():
            for _ in range(rounds if head else 0):
                attempt = protocol.begin_micro_batch(
                    me.index,
                    me.offsets,
                    head,
                    hour(number),
                    limit=me.limit,
                    now_ms=me.now_ms,
                    grace_ms=int(grace * MINUTE),
                    until=until,
                )
                if attempt is None:
                    break
                _land(me, attempt, head)

    return work


def rewriting(number: int) -> Work:
    """Land a complete hour again."""

    def work(me: Actor) -> None:
        found = me.index.head()
        if found is None:
            return
        try:
            attempt = replacing.begin_rewrite(me.index, me.offsets, found[0], hour(number))
            _land(me, attempt, found[0])
        except (DataLossError, IncompleteError) as error:
            me.world.log.append(f"{me.name:<14} is refused: {error}")

    return work


def _land(me: Actor, attempt: Attempt, head: TopicHead) -> None:
    outcome = "rewritten" if attempt.replaces else "renamed" if attempt.suffix else "committed"
    commit(me, attempt, lambda: stage(me, attempt, head.topic_id), outcome)


def commit(me: Actor, attempt: Attempt, stage: Callable[[], Staged], outcome: str) -> None:
    """Make visible what `stage` stages; an attempt that came to nothing is planned again by some process."""
    try:
        if me.world.mode != "exactly once":
            protocol.commit_attempt_at_once(me.index, attempt, stage())
        else:
            protocol.commit_attempt(me.index, attempt, stage())
    except (ExpiredError, FencedError) as error:
        me.world.outcomes[type(error).__name__] += 1  # plan again
    else:
        me.world.outcomes[outcome] += 1


def recovering(number: int) -> Work:
    """Finish what others left in an hour."""
    return lambda me: void(recovery.settle_and_sweep_hour(me.index, hour(number)))


def closing(number: int) -> Work:
    """Close an hour, whatever the time is."""

    def work(me: Actor) -> None:
        found = me.index.head()
        if found is not None and hours.in_ranges(hour(number), found[0].hours):
            open_and_close.close_hour(me.index, me.offsets, found[0], hour(number), me.now_ms)

    return work


def closing_quiet_hours(number: int) -> Work:
    """Close hours before this one as long as they have no record, and open the next one each time."""

    def work(me: Actor) -> None:
        while (found := me.index.head()) is not None:
            tile = quiet_hours.find_last_tile(found[0])
            if tile is None or tile.hour >= hour(number):
                return
            kafka = me.offsets.snapshot(TOPIC, tile.hour)
            if quiet_hours.close_quiet_hour(me.index, *found, kafka, start=FIRST_HOUR) is None:
                return
            me.world.outcomes["quiet hour"] += 1

    return work


def cleaning(*, keep_days: int = 14, spare_days: int = 0, later_days: int = 0) -> Work:
    """Fence and sweep what crashed writers left."""

    def work(me: Actor) -> None:
        clean_module.clean_index(
            me.index,
            now_ms=me.now_ms + later_days * hours.DAY_MS,
            spare_ms=spare_days * hours.DAY_MS,
            keep_ms=keep_days * hours.DAY_MS,
            keys=KEYS,
        )

    return work


def accepting() -> Work:
    """Go on with a topic that was created again."""

    def work(me: Actor) -> None:
        try:
            accept_present_log(me.index, me.offsets)
        except ConfigurationError as error:
            me.world.log.append(f"{me.name:<14} has nothing to accept: {error}")

    return work


def reading(number: int) -> Work:
    """A reader of the index: tile, manifests, objects."""

    def work(me: Actor) -> None:
        found = me.index.tile(hour(number))
        if found is None:
            return
        tile, records = found[0], []
        for commit in tile.commits:
            manifest = me.index.manifest(tile.hour, commit)
            for file in manifest.files if manifest else ():
                document = me.store.get(file.key)
                if document is None:
                    invariants.i15_only_garbage_is_missing(me.world, commit, file.key)
                    return
                records += [tuple(one) for one in json.loads(document.body)]
            if manifest is None:
                invariants.i15_only_garbage_is_missing(me.world, commit, "its manifest")
                return
        if me.world.mode == "tables":
            invariants.i15_one_put(me.world, tile, records)
        elif me.world.mode != "replacing":
            invariants.i15_atomic_for_readers(me.world, tile, records)

    return work


def in_turn(*works: Work) -> Work:
    """One thing after the other."""

    def work(me: Actor) -> None:
        for one in works:
            one(me)

    return work


def void(_: object) -> None:
    """Drop a result."""
