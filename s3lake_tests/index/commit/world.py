"""A world in which many actors run the product's own protocol code at once, request by request.

Every actor is a greenlet. Before each single request to the store or to Kafka it hands over to the world, which
decides whose request is carried out next, and with which fault. An actor that crashed never makes another request.

What may go wrong with the store beyond crashes and lost answers is a `Circumstances`. Invariants (`invariants.py`) are
checked after every request that changed the bucket, and again when everything has come to rest.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, get_args
from unittest import mock

import msgspec

from s3lake import hours
from s3lake.errors import KafkaUnavailableError, StoreDeniedError, StoreUnavailableError
from s3lake.index.commit import protocol, topic_index
from s3lake.index.commit.documents import Manifest, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.index.store import COMMIT, Head, trial
from s3lake.land.change import retention
from s3lake_tests.index.commit import invariants, table
from s3lake_tests.index.commit.actors import Actor, ActorRequest, Answered, Work
from s3lake_tests.index.commit.bucket import BEST, PACE, PREFIX, Aborted, Bucket, Circumstances, Deleted, Twist, Written
from s3lake_tests.index.commit.invariants import Violation
from s3lake_tests.index.commit.kafka import FIRST_HOUR, TOPIC, ExpiredError, FakeKafka, PartitionLog, Record, hour, ms
from s3lake_tests.index.commit.table import NotedHour
from s3lake_tests.index.commit.works import accepting, cleaning, materialise

Fault = Literal[
    "ok",
    "crash before",  # the request is never sent
    "crash after",  # carried out, but the answer is lost
    "crash, in flight",  # the actor has stopped; the request is carried out some time later
    "answer lost",  # carried out, and the SDK sends it again
    "timeout, done",  # StoreUnavailableError, though it was carried out
    "timeout, not done",
    "timeout, in flight",  # StoreUnavailableError, and it is carried out some time later
]
Mode = Literal["exactly once", "at once", "replacing", "tables"]
"""How commits become visible: together; one by one and then in the tile; or so, under keys that contain no offset.

`tables`: together, and hours are tables that assets hand in, not records of Kafka.
"""
FAULTS: tuple[Fault, ...] = get_args(Fault)
CHANGES = {"put", "delete", "create_upload", "upload_part", "complete_upload", "abort_upload"}


class _InTurn:
    """A pool of threads that has none: whose request is next is for the world to decide."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "_InTurn":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        return list(map(work, *items))


class _NoBarrier:
    """A barrier of one: actors run in turn, so no other actor comes to it."""

    def __init__(self, _: int) -> None:
        pass

    def wait(self) -> None:
        """Return at once."""

    def abort(self) -> None:
        """Nobody waits."""


class ShortId(str):
    """An id that is short, so that traces are."""

    @property
    def hex(self) -> str:
        return str(self)


def standing_in(uuid4: Callable[[], ShortId], time: Callable[[], float]) -> list[Any]:
    """Patches that are not in force yet."""
    return [
        mock.patch.object(protocol, "uuid", SimpleNamespace(uuid4=uuid4)),
        mock.patch.object(hours, "time", SimpleNamespace(time=time)),
        mock.patch.object(topic_index, "time", SimpleNamespace(sleep=lambda _: None)),
        mock.patch.object(trial, "uuid", SimpleNamespace(uuid4=uuid4)),
        mock.patch.object(trial, "time", SimpleNamespace(time=time)),
        mock.patch.object(trial, "ThreadPoolExecutor", _InTurn),
        mock.patch.object(trial, "threading", SimpleNamespace(Barrier=_NoBarrier)),
        mock.patch.object(trial, "RACES", 1),  # the world decides whose request is next: the first race is as any other
        mock.patch.object(retention, "time", SimpleNamespace(time=time)),
    ]


@dataclass
class View:
    """The contents of the bucket at one moment."""

    head: TopicHead | None
    tiles: dict[str, Tile]
    manifests: dict[str, Manifest]
    data: dict[str, tuple[bytes, Head]]
    table: dict[str, NotedHour] = field(default_factory=dict)

    def listed(self, tile: Tile) -> list[Manifest]:
        """Manifests of a tile's commits."""
        return [self.manifests[commit] for commit in tile.commits]


class World:
    """Kafka, the bucket, a true clock, and the actors; also everything that ever happened."""

    def __init__(
        self,
        circumstances: Circumstances = BEST,
        *,
        partitions: int = 2,
        minute: float = 5,
        mute: tuple[str, ...] = (),
        mode: Mode = "exactly once",
        dead_letters: bool = False,
    ) -> None:
        """A world in which nothing has happened yet.

        `mute` names invariants that are not checked, to see what comes of violating them; with `dead_letters` some
        records are refused, and a table follows the index.
        """
        self.dead_letters = dead_letters
        self.mute = mute
        self.mode = mode
        self.kafka = FakeKafka(partitions)
        self.bucket = Bucket(circumstances)
        self.minute = minute
        self.bucket.clock = lambda: ms(self.minute)
        self.actors: list[Actor] = []
        self.acting: Actor | None = None
        self.log: list[object] = []  # lines of the trace: their text costs more than what they report
        self.requests = 0
        self.in_flight: list[ActorRequest] = []
        self.foreign: dict[str, tuple[bytes, Head]] = {}
        self.had_foreign = False
        self.catalog_away = False
        self.outcomes: Counter[str] = Counter()  # what actors came to, to see that a search reaches everything
        # history, for the invariants
        self.moment = 0
        self.checked: dict[str, list[Tile | Manifest]] = {}  # by hour: the tile and manifests that I3 was checked on
        self.began: dict[str, int] = {}  # commit -> moment of the tile that its writer planned on, read or written
        self.tile_changes: dict[str, list[int]] = {}
        self.garbage: set[str] = set()  # ids that are or have been some tile's garbage
        self.erasing: set[Record] = set()  # that an actor has begun to take out
        self.erased: set[Record] = set()  # that an actor has reported as erased
        self.completed: dict[str, set[str]] = {}  # key -> commits that ever had an object there
        self.topics = {"": self.kafka.topic_id}  # first hour ("" for the first topic) -> topic id
        self.later_partitions: list[tuple[str, int, str]] = []  # topic id, topic-partition, last tile at that time
        self._decoded: dict[str, tuple[bytes, Any]] = {}
        self._ids = itertools.count(1)
        self.started = 0  # actors
        self._patches = standing_in(self._uuid4, self._time)

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

    def _uuid4(self) -> ShortId:
        return ShortId(f"c{next(self._ids)}")

    def _time(self) -> float:
        return (self.acting.now_ms if self.acting else ms(self.minute)) / 1000

    # ---- actors

    @property
    def index(self) -> TopicIndex:
        """The index, seen by no actor in particular."""
        return TopicIndex(self.bucket, PREFIX, TOPIC, pace=PACE)

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

    def run(
        self, actor: Actor, *, until: Callable[[ActorRequest], bool] = lambda _: False, at_most: int = 2000
    ) -> bool:
        """Let one actor go on alone until its next request is one such; whether it still lives."""
        for _ in range(at_most):
            if actor.wants is None or until(actor.wants):
                return actor.alive
            self.step(actor)
        raise Violation(self, "I11", f"{actor.name} alone does not come to an end: {actor.wants}")

    def do(
        self, name: str, work: Work, *, until: Callable[[ActorRequest], bool] = lambda _: False, **traits: Any
    ) -> Actor:
        """A new actor that runs alone from its beginning to its end, or until its next request is one such."""
        actor = self.start(name, work, **traits)
        self.run(actor, until=until)
        return actor

    def _settle_actors(self) -> None:
        self.actors = [actor for actor in self.actors if actor.alive]

    def _carry_out(self, request: ActorRequest) -> tuple[Any, Exception | None]:
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
        except (ExpiredError, StoreDeniedError, StoreUnavailableError) as failure:  # a part of an upload that was ended
            error = failure
        if request.method == "get" or (request.method == "put" and answer is not None):
            request.actor.got[request.key] = self.moment
        self.log.append(Answered(request, answer if error is None else error))
        self._changed()
        return answer, error

    # ---- what no actor requested

    def happens(self, what: str) -> None:
        """Note an event of the outside world."""
        self.log.append(f"{'':<14} --- {what}")

    def add_partition(self) -> None:
        """Kafka's topic gets one more topic-partition."""
        tiles = self.view().tiles
        self.later_partitions.append((self.kafka.topic_id, len(self.kafka.logs), max(tiles, default="")))
        self.kafka.logs.append(PartitionLog())
        self.happens(f"topic-partition {len(self.kafka.logs) - 1} is added")

    def lose_upload(self, upload: str) -> None:
        """The bucket's lifecycle rule drops an upload."""
        self.happens(f"the lifecycle rule drops {upload} of {self.bucket.uploads[upload].key}")
        del self.bucket.uploads[upload]

    def place_foreign(self, key: str) -> None:
        """Somebody else's program writes an object."""
        if key not in self.bucket.objects and not invariants.is_trial(key):  # whose keys cannot be guessed
            self.bucket.put(key, b"not ours")
            self.bucket.effects.clear()
            self.foreign[key] = self.bucket.objects[key]
            self.had_foreign = True
            self.happens(f"another program writes {key}")

    def remove_foreign(self) -> None:
        """Somebody moves all foreign objects away."""
        for key in self.foreign:
            self.bucket.objects.pop(key)
            self.happens(f"another program deletes {key}")
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
        """Return the contents of the bucket."""
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
        return "\n".join(map(str, self.log[-last:]))

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
        self.catalog_away = False
        for log in self.kafka.logs:
            log.unstable = None
        if not self.kafka.topic_id:
            self.kafka.create_topic()
        land = self._lands()
        final = int(self.minute // 60)
        todo = list(range(min(self._first_hour(), final), final + 1))
        rng.shuffle(todo)
        for number in todo:
            self._wake(rng)
            self._accept_if_need_be()
            if number >= self._first_hour():  # no hour of a deleted topic
                self._healthy(land(number))
        for _ in range(2):
            for actor in list(self.actors):
                self.run(actor)
            while self.in_flight:
                self.land_request()
            while self.bucket.landing:
                self.land_object()
            self._accept_if_need_be()
            for number in range(self._first_hour(), final + 1):
                self._healthy(land(number))
            self._healthy(cleaning(later_days=30))
        self.check(invariants.AT_THE_END, self.view())

    def check(self, among: Sequence[invariants.Invariant], view: View) -> None:
        """Raise Violation for the first of these invariants that does not hold."""
        for invariant in among:
            muted = invariant.__name__.partition("_")[0].upper() in self.mute
            if not muted and self.mode in invariants.ONLY.get(invariant, (self.mode,)):
                invariant(self, view)

    def _lands(self) -> Callable[[int], Work]:
        """What lands an hour."""
        if self.mode == "tables":
            from s3lake_tests.index.commit.changing import putting  # it needs the world first

            return putting
        return partial(materialise, rounds=40)

    def _accept_if_need_be(self) -> None:
        head = self.view().head
        if self.mode != "tables" and head is not None and head.hours and head.topic_id != self.kafka.topic_id:
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
