"""A world in which many actors run the product's own protocol code at once, request by request.

Every actor is a greenlet. Before each single request to the store or to Kafka it hands over to the world, which
decides whose request is carried out next, and with which fault. An actor that crashed never makes another request.

What may go wrong with the store beyond crashes and lost answers is a `Circumstances`. Invariants (`invariants.py`) are
checked after every request that changed the bucket, and once more when everything has come to rest.
"""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, get_args
from unittest import mock

import msgspec
from greenlet import greenlet

from s3lake import hours
from s3lake.commit import clean as clean_module
from s3lake.commit import index as index_module
from s3lake.commit import merge, opening, protocol, recovery, recreated, rewrite
from s3lake.commit.index import File, Manifest, Read, TopicHead, TopicIndex
from s3lake.commit.letters import LETTERS
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import Pace
from s3lake.errors import (
    ConfigurationError,
    DataLossError,
    FencedError,
    IncompleteError,
    KafkaUnavailableError,
    S3LakeError,
    StoreConflictError,
    StoreDeniedError,
    StoreUnavailableError,
)
from s3lake.land.change import retention
from s3lake.land.follower import Follower
from s3lake.land.task.outcomes import merged
from s3lake.plan.tile import Tile
from s3lake.sink.collisions import Keys
from s3lake.source.offsets import LogRange, Snapshot, Waiting
from s3lake.store import COMMIT, Begun, Completion, Document, Head, probe
from s3lake.store.memory import MemoryStore
from s3lake_tests.commit import invariants, table
from s3lake_tests.commit.invariants import Violation
from s3lake_tests.commit.table import Noted, Table

TOPIC = "orders"
PREFIX = "index/sink"
DATA = "data/"
FIRST_HOUR = "2026-11-20T00"
MINUTE = 60_000
PACE = Pace(parallel=1, looks=2, pause_s=0, patience_s=0)
FOREVER = 10**15
KEYS = Keys((f"{DATA}{TOPIC}/",), (), f"{DATA}{TOPIC}/")
Record = tuple[str, int, int]
"""Id of the topic, topic-partition and offset."""

Fault = Literal[
    "ok",
    "crash before",  # the request is never sent
    "crash after",  # carried out, but nobody hears the answer
    "crash, in flight",  # the actor is gone; the request is carried out some time later
    "answer lost",  # carried out, and the SDK sends it once more
    "timeout, done",  # StoreUnavailableError, though it was carried out
    "timeout, not done",
    "timeout, in flight",  # StoreUnavailableError, and it is carried out some time later
]
Mode = Literal["exactly once", "at once", "replacing"]
"""How commits become visible: together; one by one and then in the tile; or so, under keys that say no offset."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
Twist = Literal["none", "conflict", "conflict, in flight", "untrue", "refused", "slow", "late"]
"""What the store makes of a request that is well-founded.

conflict: 409; a PUT is not carried out, a Complete's upload is forgotten. conflict, in flight: the same, but an earlier
sending of the PUT is carried out some time later. untrue: 412 for a PUT whose condition holds. refused: 400 for a
Complete, as whenever it is sent again. slow: a Complete is under way, its upload already unknown and its object not yet
there, until its actor goes on. late: a Complete is answered before its object can be seen.
"""

CHANGES = {"put", "delete", "create_upload", "upload_part", "complete_upload", "abort_upload"}


def hour(number: int) -> str:
    """The world's hours are numbered from 0."""
    return hours.shift(FIRST_HOUR, number)


def ms(minute: float) -> int:
    """Minutes since hour 0 as epoch milliseconds."""
    return hours.start_ms(FIRST_HOUR) + int(minute * MINUTE)


class Died(BaseException):
    """Thrown into a crashed actor, again at every further request; no `except Exception` of the product catches it."""


class ExpiredError(Exception):
    """The stage's read failed, as Spark's does: the offsets are gone, or are another topic's."""


# ---------------------------------------------------------------------------------------------------------------- Kafka


@dataclass
class Log:
    """One topic-partition: the timestamps of its records (the offset is the position), and where it begins."""

    stamps: list[int] = field(default_factory=list)
    low: int = 0
    unstable: int | None = None  # first offset of an open transaction
    epochs: list[int] = field(default_factory=lambda: [0])  # where each leader's records begin

    @property
    def end(self) -> int:
        """The last stable offset."""
        return len(self.stamps) if self.unstable is None else self.unstable

    def first_since(self, stamp: int) -> int:
        """offsets_for_times, at most the last stable offset."""
        found = (offset for offset in range(self.low, self.end) if self.stamps[offset] >= stamp)
        return next(found, self.end)


class FakeKafka:
    """One topic. What it ever answered, and what it ever had expired, is kept for the invariants."""

    def __init__(self, partitions: int) -> None:
        self._ids = itertools.count(1)
        self.answered: dict[int, set[int]] = {}
        self.expired: dict[tuple[str, int], int] = {}
        self.gone: set[str] = set()
        self.compacted: set[tuple[str, int, int]] = set()
        self.unseen: set[int] = set()  # topic-partitions that a broker with old metadata does not name
        self.group: dict[int, int] = {}  # where a connector stopped
        self.topic_id = f"topic-{next(self._ids)}"
        self.logs = [Log() for _ in range(partitions)]

    def produce(self, partition: int, *minutes: float) -> None:
        """Append one record per timestamp."""
        self.logs[partition].stamps += [ms(minute) for minute in minutes]

    def retain(self, partition: int, low: int) -> None:
        """Retention moves the log start, never beyond the last stable offset."""
        log = self.logs[partition]
        log.low = max(log.low, min(low, log.end))
        self.expired[self.topic_id, partition] = log.low

    def compact(self, partition: int, *offsets: int) -> None:
        """The log cleaner takes records out of a log; their offsets stay."""
        log = self.logs[partition]
        self.compacted |= {(self.topic_id, partition, offset) for offset in offsets if log.low <= offset < log.end}

    def elect(self, partition: int, end: int | None = None) -> None:
        """Another leader; one that has the log up to `end` only cuts it."""
        log = self.logs[partition]
        del log.stamps[len(log.stamps) if end is None else end :]
        log.epochs = [*(min(at, len(log.stamps)) for at in log.epochs), len(log.stamps)]

    def cut(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """See `Offsets.cut`."""
        assert topic == TOPIC
        logs = {one: [*self.logs[one].epochs, len(self.logs[one].stamps)] for one in reached}
        cut = {one: logs[one][epoch + 1] for one, (at, epoch) in reached.items() if logs[one][epoch + 1] < at}
        for partition, end in cut.items():
            self.answered.setdefault(partition, {0}).add(end)
        return cut

    def delete_topic(self) -> None:
        """The topic is no more."""
        self.gone.add(self.topic_id)
        self.topic_id, self.logs = "", []

    def create_topic(self, partitions: int = 1) -> None:
        """A topic of the same name, with another id."""
        if self.topic_id:
            self.delete_topic()
        self.topic_id, self.logs = f"topic-{next(self._ids)}", [Log() for _ in range(partitions)]

    def snapshot(self, topic: str, hour: str, *, known: bool = False) -> Snapshot:  # noqa: ARG002
        """See `Offsets.snapshot`."""
        assert topic == TOPIC
        ranges = {
            partition: LogRange(
                log.low,
                log.end,
                log.first_since(hours.start_ms(hour)),
                log.first_since(hours.end_ms(hour)),
                epoch=len(log.epochs) - 1,
            )
            for partition, log in enumerate(self.logs)
            if partition not in self.unseen
        }
        for partition, log_range in ranges.items():
            answered = self.answered.setdefault(partition, {0})
            answered |= {log_range.low, log_range.end, log_range.at, log_range.next}
        return Snapshot(self.topic_id, ranges)

    def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """See `Offsets.ranges`."""
        assert topic == TOPIC
        return {
            partition: (log.low, log.end) for partition, log in enumerate(self.logs) if partition not in self.unseen
        }

    def waiting(self, topic: str, reached: Mapping[int, int], *, begin_ms: int, now_ms: int) -> Waiting:  # noqa: ARG002
        """See `Offsets.waiting`."""
        ends = {partition: end for partition, (_, end) in self.ranges(topic).items()}
        stamps = [self.logs[partition].stamps[at:end] for partition, end in ends.items() for at in [reached[partition]]]
        ages_s = [(now_ms - stamp) / 1000 for some in stamps for stamp in some]
        return Waiting(len(ages_s), max(ages_s, default=0.0), ends)

    def connector(self) -> Mapping[int, int]:
        """What the consumer group of a connector committed."""
        for partition, offset in self.group.items():
            self.answered.setdefault(partition, {0}).add(offset)
        return self.group

    def read(self, topic_id: str, partition: int, start: int, end: int) -> list[Record]:
        """Records of `[start, end)`."""
        log = self.logs[partition] if partition < len(self.logs) else Log()
        if topic_id != self.topic_id or start < log.low or end > log.end:
            raise ExpiredError(f"{partition}: [{start}, {end}) is not in [{log.low}, {log.end})")
        records = [(topic_id, partition, offset) for offset in range(start, end)]
        return [record for record in records if record not in self.compacted]


# ---------------------------------------------------------------------------------------------------------------- store


@dataclass(frozen=True)
class Circumstances:
    """How this store differs from the best of stores.

    Attributes:
        overwrites: a Complete does not honour If-None-Match.
        repeats: completing an upload twice answers 200 instead of 404.
        opaque: the ETag of an object is not the MD5 of its bytes.
        late: an object may become visible some time after its Complete was answered.
        conflicts: a PUT with a condition may answer 409 or an untrue 412; a Complete may answer 409, and the upload is
            lost.
        refuses: a Complete may be refused for good.
        keeps_data: nothing below `data/` may be deleted.
    """

    overwrites: bool = False
    repeats: bool = False
    opaque: bool = False
    late: bool = False
    conflicts: bool = False
    refuses: bool = False
    keeps_data: bool = False


@dataclass(frozen=True)
class Written:
    """An object was written."""

    key: str
    before: tuple[bytes, Head] | None
    after: tuple[bytes, Head]


@dataclass(frozen=True)
class Deleted:
    """A DELETE was sent; `before` is the object that it took away, if there was one."""

    key: str
    before: tuple[bytes, Head] | None


@dataclass(frozen=True)
class Aborted:
    """An upload was dropped by an actor; its commit is in `metadata`."""

    key: str
    metadata: Mapping[str, str]


class Bucket(MemoryStore):
    """The product's memory store, under circumstances; it says what happened to it."""

    def __init__(self, circumstances: Circumstances) -> None:
        super().__init__()
        self.circumstances = circumstances
        self.twist: Twist = "none"
        self.effects: list[Written | Deleted | Aborted] = []
        self.landing: list[tuple[str, bytes, Mapping[str, str]]] = []
        self.finished: set[str] = set()
        self.broken: set[str] = set()
        self.working: dict[str, tuple[str, bytes, Mapping[str, str]]] = {}
        self.staged: dict[str, bytes] = {}
        self._etags = itertools.count(1)
        self.clock: Callable[[], int] = lambda: 0
        self.shown: set[str] = set()  # uploads that a listing has shown: who ends them does what the bucket's rule does

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        upload = super().create_upload(key, metadata)
        self.uploads[upload].begun_ms = self.clock()
        return upload

    def list_uploads(self, prefix: str) -> Iterator[Begun]:
        begun = list(super().list_uploads(prefix))
        self.shown |= {one.upload for one in begun}
        return iter(begun)

    def put(
        self,
        key: str,
        body: bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] = {},
    ) -> str | None:
        if self.circumstances.conflicts and (if_absent or if_match is not None):
            if self.twist.startswith("conflict"):
                raise StoreConflictError(f"another request of {key} is under way")
            if self.twist == "untrue":
                return None
        return super().put(key, body, if_match=if_match, if_absent=if_absent, metadata=metadata)

    def delete(self, key: str) -> None:
        if self.circumstances.keeps_data and key.startswith("data/"):
            raise StoreDeniedError(f"DeleteObject {key} was refused: allow these credentials s3:DeleteObject here")
        self.effects.append(Deleted(key, self.objects.get(key)))
        super().delete(key)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        self.staged[upload] = body
        return super().upload_part(key, upload, number, body)

    def abort_upload(self, key: str, upload: str) -> None:
        if upload in self.uploads and upload not in self.shown:
            self.effects.append(Aborted(key, self.uploads[upload].metadata))
        super().abort_upload(key, upload)

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        self.overwrites = self.circumstances.overwrites
        if upload in self.finished and self.circumstances.repeats:
            return "taken" if key in self.objects and not self.overwrites else "completed"
        if upload not in self.uploads:
            return "gone"
        if self.circumstances.refuses and self.twist == "refused":
            self.broken.add(upload)
        if upload in self.broken:
            return "refused"
        if self.circumstances.conflicts and self.twist.startswith("conflict"):
            del self.uploads[upload]
            return "conflict"
        if self.circumstances.late and self.twist == "late" and key not in self.objects:
            found = self.uploads.pop(upload)
            self.landing.append((key, b"".join(found.parts.values()), found.metadata))
            self.finished.add(upload)
            return "completed"
        answer = super().complete_upload(key, upload, parts, replace=replace)
        if answer == "completed":
            self.finished.add(upload)
        return answer

    def begin(self, upload: str) -> None:
        """A Complete is under way."""
        found = self.uploads.pop(upload)
        self.working[upload] = found.key, b"".join(found.parts.values()), found.metadata

    def end(self, upload: str) -> Completion:
        """A Complete that was under way is done."""
        key, body, metadata = self.working.pop(upload)
        if key in self.objects and not self.circumstances.overwrites:
            return "taken"
        self._write(key, body, metadata)
        self.finished.add(upload)
        return "completed"

    def leave(self, upload: str) -> None:
        """Nobody waits any more for a Complete that is under way."""
        if upload in self.working:
            self.landing.append(self.working.pop(upload))
            self.finished.add(upload)

    def land(self) -> None:
        """The oldest Complete that was answered before its time becomes visible."""
        if self.landing:
            key, body, metadata = self.landing.pop(0)
            self._write(key, body, metadata)

    def _write(self, key: str, body: bytes, metadata: Mapping[str, str]) -> str:
        before = self.objects.get(key)
        etag = super()._write(key, body, metadata)
        if self.circumstances.opaque:
            etag = f'"opaque-{next(self._etags)}"'
            self.objects[key] = (body, Head(etag, len(body), metadata))
        self.effects.append(Written(key, before, self.objects[key]))
        return etag


# --------------------------------------------------------------------------------------------------------------- actors


@dataclass
class Request:
    """One request of one actor, and what came of it."""

    actor: "Actor"
    target: Literal["store", "kafka"]
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    slow: bool = False

    @property
    def key(self) -> str:
        return str(self.arguments[0])

    @property
    def puts_tile(self) -> Tile | None:
        """The tile that this request wants to write."""
        if self.method == "put" and invariants.is_tile(self.key):
            return msgspec.json.decode(self.arguments[1], type=Tile)
        return None

    @property
    def enters_pending(self) -> bool:
        """Whether this is step 4 of a commit."""
        tile = self.puts_tile
        return tile is not None and tile.pending is not None

    def __str__(self) -> str:
        options = (f"{name}={_short(value)}" for name, value in self.options.items() if value)
        shown = " ".join((*map(_short, self.arguments), *options))
        return f"{self.actor.name:<14} {self.method} {shown}"


class Actor:
    """One process: its own clock, its own door to the store and to Kafka, and work to do."""

    def __init__(
        self, world: "World", name: str, work: "Work", *, skew: float = 0, chunk: int = 2, limit: int = 99
    ) -> None:
        self.world = world
        self.name = name
        self.skew = skew
        self.chunk = chunk
        self.limit = limit
        self.dead = False
        self.error: S3LakeError | None = None
        self.wants: Request | None = None
        self.store = _Door(self)
        self.offsets = self.store
        self.index = TopicIndex(self.store, PREFIX, TOPIC)
        self.got: dict[str, int] = {}
        self.replaced: set[str] = set()  # commits that it takes the place of, and the table has to follow first
        self._work = work
        self._greenlet = greenlet(self._live)
        self.resume(None)

    @property
    def now_ms(self) -> int:
        """This actor's clock."""
        return ms(self.world.minute + self.skew)

    @property
    def alive(self) -> bool:
        return self.wants is not None

    def resume(self, answer: Any, error: Exception | None = None) -> None:
        """Give the answer to the last request, and run up to the next one."""
        self.world.acting = self
        self.wants = None
        self.wants = self._greenlet.throw(error) if error else self._greenlet.switch(answer)

    def crash(self) -> None:
        """Drop the actor; whatever its code does about it, no request leaves it any more."""
        self.dead = True
        if self.wants is not None and self.wants.slow and self.wants not in self.world.in_flight:
            self.world.bucket.leave(self.wants.arguments[1])
        self._greenlet.throw(Died())
        assert self._greenlet.dead
        self.wants = None

    def request(self, target: Literal["store", "kafka"], method: str, *arguments: Any, **options: Any) -> Any:
        """Hand over to the world until it answers this request."""
        if self.dead:
            raise Died
        return self._greenlet.parent.switch(Request(self, target, method, arguments, options))

    def _live(self, _: None) -> None:
        try:
            self._work(self)
        except Died:
            pass
        except S3LakeError as error:
            self.error = error
            self.world.outcomes[type(error).__name__] += 1
            self.world.log.append(f"{self.name:<14} ENDS with {type(error).__name__}: {str(error)[:160]}")
            invariants.error_is_expected(self.world, error)


Work = Callable[[Actor], None]


class _Door:
    """The store and the Kafka that an actor sees."""

    def __init__(self, actor: Actor) -> None:
        self.bucket = "memory"
        self._ask = actor.request
        self._bucket = actor.world.bucket

    def get(self, key: str, span: tuple[int, int] | None = None) -> Document | None:
        return self._ask("store", "get", key, span=span)

    def head(self, key: str) -> Head | None:
        return self._ask("store", "head", key)

    def put(
        self,
        key: str,
        body: bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] = {},
    ) -> str | None:
        return self._ask("store", "put", key, body, if_match=if_match, if_absent=if_absent, metadata=metadata)

    def delete(self, key: str) -> None:
        self._ask("store", "delete", key)

    def list(self, prefix: str) -> Iterator[str]:
        return self._ask("store", "list", prefix)

    def list_uploads(self, prefix: str) -> Iterator[Begun]:
        return self._ask("store", "list_uploads", prefix)

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        return self._ask("store", "create_upload", key, metadata)

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        return self._ask("store", "upload_part", key, upload, number, body)

    def complete_upload(self, key: str, upload: str, parts: Sequence[str], *, replace: bool = False) -> Completion:
        return self._ask("store", "complete_upload", key, upload, parts, replace=replace)

    def tag_offsets(self, key: str, first: int, last: int, records: int) -> None:
        self._bucket.tag_offsets(key, first, last, records)  # nothing that the protocol looks at

    def abort_upload(self, key: str, upload: str) -> None:
        self._ask("store", "abort_upload", key, upload)

    def snapshot(self, topic: str, hour: str, *, known: bool = False) -> Snapshot:
        return self._ask("kafka", "snapshot", topic, hour, known=known)

    def cut(self, topic: str, reached: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        return self._ask("kafka", "cut", topic, reached)

    def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        return self._ask("kafka", "ranges", topic)

    def read(self, topic_id: str, partition: int, start: int, end: int) -> Sequence[tuple[str, int, int]]:
        return self._ask("kafka", "read", topic_id, partition, start, end)


# ------------------------------------------------------------------------------------------------------- what actors do


def stage(me: Actor, attempt: Attempt, topic_id: str) -> Staged:
    """A toy of what Spark does: uploads of `me.chunk` records each, whose bodies are the offsets they hold."""
    files: list[File] = []
    reads: dict[int, Read] = {}
    replacing = me.world.mode == "replacing"
    for partition, (start, end) in attempt.batch.intervals.items():
        first, last = attempt.batch.reads.get(partition, (end, end))
        records = me.store.read(topic_id, partition, first, last) if last > first else []
        dead = [record for record in records if me.world.letters and record[2] % 5 in (1, 4)]
        landed = [record for record in records if record not in dead]
        reads[partition] = Read(start, end, read=len(records), landed=len(landed), dead=len(dead))
        for at in range(max(0, len(landed) - 1) if replacing else 0, len(landed), me.chunk):
            files.append(upload(me, attempt, partition, "data", landed[at : at + me.chunk]))
        if dead:
            files.append(upload(me, attempt, partition, LETTERS, dead))
    return Staged(tuple(files), reads, replacing=replacing)


def upload(me: Actor, attempt: Attempt, partition: int, kind: str, records: Sequence[Record]) -> File:
    """One file of an attempt, not visible yet."""
    (_, _, first), (_, _, last) = records[0], records[-1]
    name = f"{partition}+last" if me.world.mode == "replacing" and kind == "data" else f"{partition}+{first}"
    key = f"{DATA}{TOPIC}/{'dead/' if kind == LETTERS else ''}{name}{attempt.suffix}"
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


def staged_records(world: "World", manifest: Manifest) -> set[Record]:
    """What the files of a commit were made of, which costs nobody a request."""
    bodies = [json.loads(world.bucket.staged[file.upload]) for file in manifest.files]
    return {(topic_id, partition, offset) for body in bodies for topic_id, partition, offset in body}


def materialise(*numbers: int, rounds: int = 3, grace: float = 0) -> Work:
    """Open these hours, and land what Kafka has when the work begins, each in up to `rounds` micro-batches."""

    def work(me: Actor) -> None:
        until = {partition: end for partition, (_, end) in me.offsets.ranges(TOPIC).items()}
        heads = {number: opening.open_hour(me.index, me.offsets, hour(number), pace=PACE) for number in numbers}
        for number, head in heads.items():
            for _ in range(rounds if head else 0):
                attempt = protocol.begin(
                    me.index,
                    me.offsets,
                    head,
                    hour(number),
                    limit=me.limit,
                    now_ms=me.now_ms,
                    grace_ms=int(grace * MINUTE),
                    until=until,
                    pace=PACE,
                )
                if attempt is None:
                    break
                _land(me, attempt, head)

    return work


def rewriting(number: int) -> Work:
    """Land a complete hour once more."""

    def work(me: Actor) -> None:
        found = me.index.head()
        if found is None:
            return
        try:
            attempt = rewrite.begin_rewrite(me.index, me.offsets, found[0], hour(number), PACE)
            _land(me, attempt, found[0])
        except (DataLossError, IncompleteError) as error:
            me.world.log.append(f"{me.name:<14} is refused: {error}")

    return work


def merging(number: int, last: int = 99) -> Work:
    """Make one commit of an hour's last ones, from their objects; with exactly once only, as the product does."""

    def work(me: Actor) -> None:
        found = me.index.tile(hour(number)) if me.world.mode == "exactly once" else None
        if found is None or not found[0].complete:
            return
        commits = [me.index.manifest(hour(number), commit) for commit in found[0].commits[-last:]]
        attempt = merge.begin_merge(me.index, hour(number), commits, PACE) if len(commits) > 1 else None
        if attempt is not None:
            commit(me, attempt, lambda: joined(me, attempt), "merged")

    return work


def joined(me: Actor, attempt: Attempt) -> Staged:
    """A toy of what merging does: one upload for each topic-partition, of what the objects hold."""
    files: list[File] = []
    for partition, kind in itertools.product(attempt.batch.intervals, ("data", LETTERS)):
        of_manifests = (file for manifest in attempt.known for file in manifest.files)
        old = [file for file in of_manifests if (file.partition, file.kind) == (partition, kind)]
        try:
            records = [record for file in old for record in records_of(me, file)]
        except ExpiredError:
            recovery.abort(me.store, files, PACE)
            raise
        if old:
            files.append(upload(me, attempt, partition, kind, records))
    return Staged(tuple(files), merged(manifest.partitions for manifest in attempt.known))


def _land(me: Actor, attempt: Attempt, head: TopicHead) -> None:
    outcome = "rewritten" if attempt.replaces else "renamed" if attempt.suffix else "committed"
    commit(me, attempt, lambda: stage(me, attempt, head.topic_id), outcome)


def begun(me: Actor, attempt: Attempt) -> None:
    """Note for the invariants what an attempt was planned on."""
    me.world.began[attempt.commit] = me.got[me.index.tile_key(attempt.tile.hour)]


def commit(me: Actor, attempt: Attempt, stage: Callable[[], Staged], outcome: str) -> None:
    """Make visible what `stage` stages; an attempt that came to nothing is planned again by somebody."""
    begun(me, attempt)
    try:
        if me.world.mode != "exactly once":
            protocol.commit_at_once(me.index, attempt, stage(), PACE)
        elif me.world.letters:
            follower = Follower(Table(me))  # type: ignore[arg-type]
            protocol.commit(me.index, attempt, stage(), PACE, switched=lambda tile: follower(tile.hour))
        else:
            protocol.commit(me.index, attempt, stage(), PACE)
    except (ExpiredError, FencedError) as error:
        me.world.outcomes[type(error).__name__] += 1  # plan again
    else:
        me.world.outcomes[outcome] += 1


def recovering(number: int) -> Work:
    """Finish what others left in an hour."""
    return lambda me: void(recovery.tidy(me.index, hour(number), PACE))


def closing(number: int) -> Work:
    """Close an hour, whatever the clock says."""

    def work(me: Actor) -> None:
        found = me.index.head()
        if found is not None:
            opening.close_hour(me.index, me.offsets, found[0], hour(number), PACE)

    return work


def cleaning(*, keep_days: int = 14, spare_days: int = 0, later_days: int = 0) -> Work:
    """Fence and sweep what dead writers left, and what trials of the store did."""

    def work(me: Actor) -> None:
        clean_module.clean(
            me.index,
            now_ms=me.now_ms + later_days * clean_module.DAY_MS,
            spare_ms=spare_days * clean_module.DAY_MS,
            keep_ms=keep_days * clean_module.DAY_MS,
            pace=PACE,
            keys=KEYS,
        )
        probe.sweep(me.store, PREFIX, DATA, me.now_ms / 1000 + later_days * 86_400)

    return work


def accepting() -> Work:
    """Go on with a topic that was created again."""

    def work(me: Actor) -> None:
        try:
            recreated.accept(me.index, me.offsets, PACE)
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
        if me.world.mode != "replacing":
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


def has_condition(request: Request) -> bool:
    """Whether this is a PUT with a condition, or a Complete."""
    conditions = request.options.get("if_absent") or request.options.get("if_match") is not None
    return request.method == "complete_upload" or (request.method == "put" and bool(conditions))


# ---------------------------------------------------------------------------------------------------------------- world


class _InTurn:
    """A pool of threads that has none: whose request is next is for the world to say."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "_InTurn":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [work(item) for item in items]


class _Id(str):
    """An id that is short, so that traces are."""

    @property
    def hex(self) -> str:
        return str(self)


@dataclass
class View:
    """What stands in the bucket at one moment."""

    head: TopicHead | None
    tiles: dict[str, Tile]
    manifests: dict[str, Manifest]
    data: dict[str, tuple[bytes, Head]]
    table: dict[str, Noted] = field(default_factory=dict)

    def listed(self, tile: Tile) -> list[Manifest]:
        """Manifests of a tile's commits."""
        return [self.manifests[commit] for commit in tile.commits]


class World:
    """Kafka, the bucket, a true clock, and the actors; also everything that ever happened."""

    def __init__(
        self,
        circumstances: Circumstances = Circumstances(),
        *,
        partitions: int = 2,
        minute: float = 5,
        mute: tuple[str, ...] = (),
        mode: Mode = "exactly once",
        letters: bool = False,
    ) -> None:
        """A world in which nothing has happened yet.

        `mute` names invariants that are not checked, to see what comes of violating them; with `letters` some records
        are refused, and a table follows the index.
        """
        self.letters = letters
        self.mute = mute
        self.mode = mode
        self.kafka = FakeKafka(partitions)
        self.bucket = Bucket(circumstances)
        self.minute = minute
        self.bucket.clock = lambda: ms(self.minute)
        self.actors: list[Actor] = []
        self.acting: Actor | None = None
        self.log: list[str] = []
        self.requests = 0
        self.in_flight: list[Request] = []
        self.foreign: dict[str, tuple[bytes, Head]] = {}
        self.had_foreign = False
        self.outcomes: Counter[str] = Counter()  # what actors came to, to see that a search reaches everything
        # history, for the invariants
        self.moment = 0
        self.began: dict[str, int] = {}  # commit -> moment of the tile that its writer planned on, read or written
        self.tile_changes: dict[str, list[int]] = {}
        self.garbage: set[str] = set()  # ids that are or have been some tile's garbage
        self.erasing: set[Record] = set()  # that somebody has begun to take out
        self.erased: set[Record] = set()  # that somebody was told are gone
        self.completed: dict[str, set[str]] = {}  # key -> commits that ever had an object there
        self.topics = {"": self.kafka.topic_id}  # first hour ("" for the first topic) -> topic id
        self.later_partitions: list[tuple[str, int, str]] = []  # topic id, topic-partition, last tile at that time
        self._decoded: dict[str, tuple[bytes, Any]] = {}
        self._ids = itertools.count(1)
        self.started = 0  # actors
        self._patches = [
            mock.patch.object(protocol, "uuid", SimpleNamespace(uuid4=self._uuid4)),
            mock.patch.object(protocol, "time", SimpleNamespace(time=self._time)),
            mock.patch.object(index_module, "time", SimpleNamespace(sleep=void)),
            mock.patch.object(probe, "uuid", SimpleNamespace(uuid4=self._uuid4)),
            mock.patch.object(probe, "time", SimpleNamespace(time=self._time)),
            mock.patch.object(probe, "ThreadPoolExecutor", _InTurn),
            mock.patch.object(retention, "time", SimpleNamespace(time=self._time)),
        ]

    def __enter__(self) -> "World":
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self.actors:
            if actor.alive:
                actor.crash()
        for patch in self._patches:
            patch.stop()

    def _uuid4(self) -> "_Id":
        return _Id(f"c{next(self._ids)}")

    def _time(self) -> float:
        return (self.acting.now_ms if self.acting else ms(self.minute)) / 1000

    # ---- actors

    @property
    def index(self) -> TopicIndex:
        """The index, seen by nobody in particular."""
        return TopicIndex(self.bucket, PREFIX, TOPIC)

    def start(self, name: str, work: Work, *, skew: float = 0, chunk: int = 2, limit: int = 99) -> Actor:
        """A new actor, up to its first request."""
        self._settle_actors()
        self.started += 1
        actor = Actor(self, f"{name}#{self.started}", work, skew=skew, chunk=chunk, limit=limit)
        if actor.alive:
            self.actors.append(actor)
        return actor

    def step(self, actor: Actor, fault: Fault = "ok", twist: Twist = "none") -> None:
        """Carry out the request that `actor` waits with."""
        request = actor.wants
        assert request is not None, f"{actor.name} makes no request"
        self.bucket.twist = twist
        slow = twist == "slow" and fault == "ok" and self.bucket.circumstances.late and not request.slow
        if slow and request.method == "complete_upload" and request.arguments[1] in self.bucket.uploads:
            self.bucket.begin(request.arguments[1])
            request.slow = True
            self.log.append(f"{request} -> under way")
            return
        if fault == "answer lost" and request.method not in CHANGES:
            fault = "ok"
        if fault != "ok":
            self.log.append(f"{actor.name:<14} >>> {fault}")
        if fault.endswith("in flight") and request.method in CHANGES:
            self.in_flight.append(request)
            self.log.append(f"{request} -> in flight")
        elif fault.endswith(("before", "not done", "in flight")):
            self.log.append(f"{request} -> not sent")
        answer: Any = None
        error: Exception | None = None
        if fault in ("ok", "crash after", "answer lost", "timeout, done"):
            answer, error = self._carry_out(request)
        if twist == "conflict, in flight" and request.method == "put" and self.bucket.circumstances.conflicts:
            self.in_flight.append(request)
        if fault == "answer lost":
            self.bucket.twist = "none"
            answer, error = self._carry_out(request)
        if fault == "timeout, not done" and request.slow:
            self.bucket.leave(request.arguments[1])
        if fault.startswith("timeout"):
            unavailable = KafkaUnavailableError if request.target == "kafka" else StoreUnavailableError
            error = unavailable("the answer did not come")
        if fault.startswith("crash"):
            actor.crash()
        else:
            actor.resume(answer, error)
        self._settle_actors()

    def run(self, actor: Actor, *, until: Callable[[Request], bool] = lambda _: False, at_most: int = 2000) -> bool:
        """Let one actor go on alone until its next request is one such; whether it still lives."""
        for _ in range(at_most):
            if actor.wants is None or until(actor.wants):
                return actor.alive
            self.step(actor)
        raise Violation(self, "I11", f"{actor.name} alone does not come to an end: {actor.wants}")

    def do(self, name: str, work: Work, **traits: Any) -> Actor:
        """A new actor that runs alone from beginning to end."""
        actor = self.start(name, work, **traits)
        self.run(actor)
        return actor

    def _settle_actors(self) -> None:
        self.actors = [actor for actor in self.actors if actor.alive]

    def _carry_out(self, request: Request) -> tuple[Any, Exception | None]:
        self.requests += 1
        self.moment += 1
        target = self.bucket if request.target == "store" else self.kafka
        self.bucket.effects.clear()
        answer, error = None, None
        try:
            if request.slow:
                answer = self.bucket.end(request.arguments[1])
                request.slow = False
            else:
                answer = getattr(target, request.method)(*request.arguments, **request.options)
        except (ExpiredError, StoreDeniedError, StoreUnavailableError) as failure:  # a part of an upload that is gone
            error = failure
        if request.method == "get" or (request.method == "put" and answer is not None):
            request.actor.got[request.key] = self.moment
        self.log.append(f"{request} -> {_short(answer if error is None else error)}")
        self._changed()
        return answer, error

    # ---- what nobody asked for

    def happens(self, what: str) -> None:
        """Note an event of the outside world."""
        self.log.append(f"{'':<14} --- {what}")

    def add_partition(self) -> None:
        """Kafka's topic gets one more topic-partition."""
        tiles = self.view().tiles
        self.later_partitions.append((self.kafka.topic_id, len(self.kafka.logs), max(tiles, default="")))
        self.kafka.logs.append(Log())
        self.happens(f"topic-partition {len(self.kafka.logs) - 1} is added")

    def lose_upload(self, upload: str) -> None:
        """The bucket's lifecycle rule drops an upload."""
        self.happens(f"the lifecycle rule drops {upload} of {self.bucket.uploads[upload].key}")
        del self.bucket.uploads[upload]

    def place_foreign(self, key: str) -> None:
        """Somebody else's program writes an object."""
        if key not in self.bucket.objects and not invariants.is_trial(key):  # whose keys nobody can guess
            self.bucket.put(key, b"not ours")
            self.bucket.effects.clear()
            self.foreign[key] = self.bucket.objects[key]
            self.had_foreign = True
            self.happens(f"somebody else writes {key}")

    def remove_foreign(self) -> None:
        """Somebody moves all foreign objects away."""
        for key in self.foreign:
            self.bucket.objects.pop(key)
            self.happens(f"somebody takes {key} away")
        self.foreign.clear()

    def land_request(self, number: int = 0) -> None:
        """A request in flight arrives."""
        request = self.in_flight.pop(number)
        self.happens("a request in flight arrives:")
        self._carry_out(request)

    def land_object(self) -> None:
        """A completed upload becomes visible at last."""
        self.bucket.effects.clear()
        self.bucket.land()
        self._changed()

    # ---- what is, and what must be

    def view(self) -> View:
        """What stands in the bucket."""
        view = View(None, {}, {}, {})
        for key, (body, head) in sorted(self.bucket.objects.items()):
            if key.startswith("data/"):
                view.data[key] = (body, head)
                continue
            if key == table.KEY:
                view.table = table.decoded(body)
            kind = invariants.kind_of(key)
            if kind is None:
                continue
            known = self._decoded.get(key)
            if known is None or known[0] != body:
                known = self._decoded[key] = (body, msgspec.json.decode(body, type=kind))
            document = known[1]
            if isinstance(document, TopicHead):
                view.head = document
            elif isinstance(document, Tile):
                view.tiles[document.hour] = document
            else:
                view.manifests[document.id] = document
        return view

    def _changed(self) -> None:
        if not self.bucket.effects:
            return
        view = self.view()
        for effect in self.bucket.effects:
            self._remember(effect)
        self.check(invariants.AT_EVERY_STEP, view)
        for effect in self.bucket.effects:
            if isinstance(effect, Written) and invariants.is_tile(effect.key):
                self.tile_changes.setdefault(effect.key, []).append(self.moment)

    def _remember(self, effect: Written | Deleted | Aborted) -> None:
        if not isinstance(effect, Written):
            return
        if invariants.is_tile(effect.key):
            tile = msgspec.json.decode(effect.after[0], type=Tile)
            self.garbage |= set(tile.garbage)
        elif effect.key == self.index.head_key:
            head = msgspec.json.decode(effect.after[0], type=TopicHead)
            if head.topic_id:
                self.topics[head.since or ""] = head.topic_id
        elif COMMIT in effect.after[1].metadata and not invariants.is_trial(effect.key):
            self.completed.setdefault(effect.key, set()).add(effect.after[1].metadata[COMMIT])

    def topic_of(self, hour: str) -> str:
        """Id of the topic whose records a tile holds."""
        return self.topics[max(since for since in self.topics if since <= hour)]

    def trace(self, last: int = 150) -> str:
        """The last requests and events, to be read by people."""
        return "\n".join(self.log[-last:])

    # ---- the end

    def come_to_rest(self, rng: random.Random) -> None:
        """Everything that can still happen happens, every hour is asked for once, and clean runs: then all must hold.

        Some actors die now; the others were only slow, and wake up between the healthy runs that follow.
        """
        for actor in list(self.actors):
            if rng.random() < 0.3:
                actor.crash()
        self._settle_actors()
        self.remove_foreign()
        self.minute += 180
        self.happens("three hours later")
        self.kafka.unseen.clear()
        for log in self.kafka.logs:
            log.unstable = None
        if not self.kafka.topic_id:
            self.kafka.create_topic()
        final = int(self.minute // 60)
        todo = list(range(min(self._first_hour(), final), final + 1))
        rng.shuffle(todo)
        for number in todo:
            self._wake(rng)
            self._accept_if_need_be()
            if number >= self._first_hour():  # no hour of a topic that is gone
                self._healthy(materialise(number, rounds=40))
        for _ in range(2):
            for actor in list(self.actors):
                self.run(actor)
            while self.in_flight:
                self.land_request()
            while self.bucket.landing:
                self.land_object()
            self._accept_if_need_be()
            for number in range(self._first_hour(), final + 1):
                self._healthy(materialise(number, rounds=40))
            self._healthy(cleaning(later_days=30))
            if self.letters:
                self._healthy(lambda me: void(Table(me).follow()))
        self.check(invariants.AT_THE_END, self.view())

    def check(self, among: Sequence[invariants.Invariant], view: View) -> None:
        """Raise Violation for the first of these invariants that does not hold."""
        for invariant in among:
            muted = invariant.__name__.partition("_")[0].upper() in self.mute
            if not muted and self.mode in invariants.ONLY.get(invariant, (self.mode,)):
                invariant(self, view)

    def _accept_if_need_be(self) -> None:
        head = self.view().head
        if head is not None and head.hours and head.topic_id != self.kafka.topic_id:
            self._healthy(accepting())

    def _healthy(self, work: Work) -> None:
        actor = self.do("healthy", work)
        if actor.error is not None:
            raise Violation(self, "I11", f"a healthy actor alone ends with {actor.error!r}")

    def _first_hour(self) -> int:
        head = self.view().head
        known = hours.expand(head.hours) if head else list(self.view().tiles)
        first = min((one for one in known if not (head and head.since) or one >= head.since), default=None)
        first = first or (head.since if head else None) or hour(int(self.minute // 60))
        return (hours.start_ms(first) - hours.start_ms(FIRST_HOUR)) // hours.HOUR_MS

    def _wake(self, rng: random.Random) -> None:
        for actor in list(self.actors):
            if rng.random() < 0.3:
                for _ in range(rng.choice([1, 2, 5, 400])):
                    if actor.alive:
                        self.step(actor)


def _short(what: object) -> str:
    """An argument or an answer as it stands in a trace."""
    if isinstance(what, Document):
        return _short(what.body)
    if isinstance(what, Head):
        return str(dict(what.metadata) or "no metadata")
    if isinstance(what, Snapshot):
        logs = ", ".join(f"{p}:[{r.low}..{r.at}..{r.next}..{r.end}]" for p, r in what.partitions.items())
        return f"{what.topic_id} {logs}"
    if isinstance(what, bytes):
        return _document(what)
    if isinstance(what, str) and len(what) == 34 and what.startswith('"'):
        return what[1:7]  # an ETag
    if isinstance(what, Iterator):
        return "keys"
    text = str(what).removeprefix(PREFIX + "/")
    return text if len(text) <= 120 else f"{text[:117]}..."


def _document(body: bytes) -> str:
    for kind in (Tile, Manifest, TopicHead):
        try:
            document = msgspec.json.decode(body, type=kind, strict=True)
        except msgspec.MsgspecError:
            continue
        if isinstance(document, Tile) and document.hour:
            spans = " ".join(
                f"{partition}:[{span.start}..{span.committed}..{'' if span.end is None else span.end}]"
                for partition, span in document.partitions.items()
            )
            more = " ".join(
                f"{name}={getattr(document, name)}"
                for name in ("commits", "pending", "garbage", "burnt", "expired", "foreign")
                if getattr(document, name)
            )
            return f"<tile {document.hour} rev {document.rev} {spans} {more}>"
        if isinstance(document, Manifest):
            reads = " ".join(
                f"{partition}:[{read.start}..{read.end}]" for partition, read in document.partitions.items()
            )
            return f"<manifest {document.id} {reads} {len(document.files)} files replaces {document.replaces}>"
        if isinstance(document, TopicHead):
            new = document.new.hour if document.new else None
            return f"<head rev {document.rev} {document.topic_id} {document.hours} new {new} since {document.since}>"
    return body.decode()
