"""Actors: greenlets that run the product's own code, and hand over to the world before each request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from greenlet import greenlet

from s3lake.errors import S3LakeError
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.index.store import Document, Head
from s3lake.land.change import retention
from s3lake.land.topic.table_follower import TableFollower
from s3lake.source.offsets import TopicOffsets
from s3lake_tests.index.commit import invariants
from s3lake_tests.index.commit.bucket import PACE, PREFIX
from s3lake_tests.index.commit.kafka import TOPIC, FakeKafka, Record, ms
from s3lake_tests.index.commit.table import ActorTable

if TYPE_CHECKING:
    from s3lake_tests.index.commit.world import World


class Died(BaseException):
    """Thrown into a crashed actor, again at every further request; no `except Exception` of the product catches it."""


@dataclass
class ActorRequest:
    """One request of one actor, and what came of it."""

    actor: Actor
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
        options = (f"{name}={short(value)}" for name, value in self.options.items() if value)
        shown = " ".join((*map(short, self.arguments), *options))
        return f"{self.actor.name:<14} {self.method} {shown}"


@dataclass(frozen=True)
class Answered:
    """A request and its answer, or the error that it ended with: a line of the trace."""

    request: ActorRequest
    answer: Any

    def __str__(self) -> str:
        return f"{self.request} -> {short(self.answer)}"


class Actor:
    """One process: its own clock, its own door to the store and to Kafka, and work to do."""

    def __init__(
        self, world: World, name: str, work: Work, *, skew: float = 0, chunk: int = 2, limit: int = 99
    ) -> None:
        self.world = world
        self.name = name
        self.skew = skew
        self.chunk = chunk
        self.limit = limit
        self.dead = False
        self.error: S3LakeError | None = None
        self.wants: ActorRequest | None = None
        self.store = _Door(self)
        self.offsets = self.store
        self.table = ActorTable(self)
        self.index = _Index(self, TableFollower(self.table if world.dead_letters else None))
        self.got: dict[str, int] = {}
        self.expired: set[Record] = set()
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
        return self._greenlet.parent.switch(ActorRequest(self, target, method, arguments, options))

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


class _Index(TopicIndex):
    """The index as an actor sees it; the world notes what each commit was planned on, and what retention takes out."""

    def __init__(self, me: Actor, follower: TableFollower) -> None:
        super().__init__(me.store, PREFIX, TOPIC, follower=follower, pace=PACE)
        self._me = me

    def record(self, manifest: Manifest) -> None:
        me, world = self._me, self._me.world
        world.began[manifest.id] = me.got[self.tile_key(manifest.hour)]
        if manifest.reason == retention.REASON:
            replaced = [world.view().manifests[commit] for commit in manifest.replaces]
            me.expired.update(*(staged_records(world, one) for one in replaced))
            world.erasing |= me.expired
        super().record(manifest)


def staged_records(world: World, manifest: Manifest) -> set[Record]:
    """Return what the files of a commit were made of, which costs no actor a request."""
    bodies = [json.loads(world.bucket.staged[file.upload]) for file in manifest.files]
    return {(topic_id, partition, offset) for body in bodies for topic_id, partition, offset in body}


class _Door:
    """The store and the Kafka that an actor sees: it asks the world for each request to either."""

    bucket = "memory"

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method == "tag_offsets":  # nothing that the protocol looks at
            return self._actor.world.bucket.tag_offsets
        return partial(self._actor.request, "kafka" if hasattr(FakeKafka, method) else "store", method)


def has_condition(request: ActorRequest) -> bool:
    """Whether this is a PUT with a condition, or a Complete."""
    conditions = request.options.get("if_absent") or request.options.get("if_match") is not None
    return request.method == "complete_upload" or (request.method == "put" and bool(conditions))


# Requests and answers as a trace shows them to people


def short(what: object) -> str:
    """An argument or an answer as a trace shows it."""
    if isinstance(what, Document):
        return short(what.body)
    if isinstance(what, Head):
        return str(dict(what.metadata) or "no metadata")
    if isinstance(what, TopicOffsets):
        logs = ", ".join(
            f"{p}:[{r.log_start}..{r.hour_start}..{r.hour_end}..{r.log_end}]" for p, r in what.partitions.items()
        )
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


def completes(request: ActorRequest) -> bool:
    return request.method == "complete_upload"


def enters_pending(request: ActorRequest) -> bool:
    return request.enters_pending
