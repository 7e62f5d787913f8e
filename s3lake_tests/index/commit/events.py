"""What may happen in the world, as values: their `repr` is Python."""

from dataclasses import dataclass

from s3lake_tests.index.commit import changing as c
from s3lake_tests.index.commit import works as w
from s3lake_tests.index.commit.actors import has_condition
from s3lake_tests.index.commit.bucket import Twist
from s3lake_tests.index.commit.invariants import FIRST_TOPIC
from s3lake_tests.index.commit.world import Fault, World


@dataclass(frozen=True)
class Produce:
    """Records are written, stamped some minutes from now."""

    partition: int
    count: int
    minutes: int

    def happen(self, world: World) -> None:
        if world.kafka.logs:
            partition = self.partition % len(world.kafka.logs)
            world.kafka.produce(partition, *[max(0, world.minute + self.minutes)] * self.count)
            world.happens(f"{self.count} records to partition {partition}, stamped {self.minutes} minutes from now")


@dataclass(frozen=True)
class Transaction:
    """A transaction begins (readers of committed data stop there), or ends."""

    partition: int

    def happen(self, world: World) -> None:
        if world.kafka.logs:
            log = world.kafka.logs[self.partition % len(world.kafka.logs)]
            log.unstable = len(log.stamps) if log.unstable is None else None
            world.happens(f"partition {self.partition % len(world.kafka.logs)} is unstable from {log.unstable}")


@dataclass(frozen=True)
class Wait:
    """Time goes by."""

    minutes: int

    def happen(self, world: World) -> None:
        world.minute += self.minutes
        world.happens(f"it is minute {world.minute}")


@dataclass(frozen=True)
class Retention:
    """Kafka deletes records from the beginning of a log."""

    partition: int
    records: int

    def happen(self, world: World) -> None:
        if world.kafka.logs:
            partition = self.partition % len(world.kafka.logs)
            world.kafka.retain(partition, world.kafka.logs[partition].low + self.records)
            world.happens(f"partition {partition} now begins at {world.kafka.logs[partition].low}")


@dataclass(frozen=True)
class Compact:
    """Kafka takes records out of the middle of a log."""

    partition: int
    first: int
    count: int

    def happen(self, world: World) -> None:
        if world.kafka.logs:
            partition = self.partition % len(world.kafka.logs)
            world.kafka.compact(partition, *range(self.first, self.first + self.count))
            world.happens(f"partition {partition} is compacted: {sorted(world.kafka.compacted)} are deleted")


@dataclass(frozen=True)
class AddPartition:
    """The topic gets one more topic-partition."""

    def happen(self, world: World) -> None:
        if 0 < len(world.kafka.logs) < 4:
            world.add_partition()


@dataclass(frozen=True)
class Stale:
    """Brokers answer with old metadata, in which a topic-partition is missing, or know all of them again."""

    partition: int

    def happen(self, world: World) -> None:
        known = world.kafka.unseen
        world.kafka.unseen = set() if known or len(world.kafka.logs) < 2 else {self.partition % len(world.kafka.logs)}
        world.happens(f"brokers do not name topic-partitions {world.kafka.unseen or 'that they do not have'}")


@dataclass(frozen=True)
class Catalog:
    """The catalog of the table goes away, or comes back."""

    def happen(self, world: World) -> None:
        world.catalog_away = not world.catalog_away
        world.happens(f"the catalog is {'away' if world.catalog_away else 'there again'}")


@dataclass(frozen=True)
class Lifecycle:
    """The bucket drops an upload."""

    upload: int

    def happen(self, world: World) -> None:
        if world.bucket.uploads:
            world.lose_upload(sorted(world.bucket.uploads)[self.upload % len(world.bucket.uploads)])


@dataclass(frozen=True)
class Arrive:
    """A request in flight is carried out, and a late object becomes visible."""

    request: int

    def happen(self, world: World) -> None:
        if world.in_flight:
            world.land_request(self.request % len(world.in_flight))
        else:
            world.land_object()


@dataclass(frozen=True)
class Foreign:
    """Another program writes an object where an upload is on its way to, or takes its objects away."""

    upload: int
    away: bool

    def happen(self, world: World) -> None:
        if self.away:
            world.remove_foreign()
        elif world.bucket.uploads:
            uploads = sorted(world.bucket.uploads)
            world.place_foreign(world.bucket.uploads[uploads[self.upload % len(uploads)]].key)


@dataclass(frozen=True)
class Recreate:
    """The topic is deleted, and perhaps created again."""

    partitions: int

    def happen(self, world: World) -> None:
        if world.kafka.topic_id:
            world.kafka.delete_topic()
        if self.partitions:
            world.kafka.create_topic(self.partitions)
        world.happens(f"the topic is deleted, and has {self.partitions} partitions now")


@dataclass(frozen=True)
class Stop:
    """A connector stops that had landed some records of each topic-partition."""

    records: int

    def happen(self, world: World) -> None:
        if not world.kafka.group and world.kafka.topic_id == FIRST_TOPIC:
            world.kafka.group = {
                partition: min(log.end, log.low + self.records) for partition, log in enumerate(world.kafka.logs)
            }
            world.happens(f"a connector stopped at {world.kafka.group}")


@dataclass(frozen=True)
class Start:
    """An actor begins; `hours_ago` selects its hour."""

    kind: str
    hours_ago: int
    chunk: int
    limit: int
    skew: int

    def happen(self, world: World) -> None:
        if len(world.actors) >= 6:
            return
        about = max(0, int(world.minute // 60) - self.hours_ago)
        late = world.bucket.circumstances.late
        works = {
            "materialise": lambda: w.materialise(about),
            "backfill": lambda: w.materialise(*range(max(0, about - 2), about + 1)),
            "patient": lambda: w.materialise(about, grace=20),
            "recover": lambda: w.recovering(about),
            "close": lambda: w.closing(about),
            "quiet": lambda: w.closing_quiet_hours(about),
            "quiet or land": lambda: w.in_turn(w.closing_quiet_hours(about), w.materialise(about)),
            "rewrite": lambda: w.rewriting(about),
            "merge": lambda: c.merging(about),
            "land and merge": lambda: w.in_turn(w.materialise(about, rounds=9), c.merging(about)),
            "land and rewrite": lambda: w.in_turn(w.materialise(about, rounds=9), w.rewriting(about)),
            "clean": lambda: w.cleaning(),
            "clean old": lambda: w.cleaning(keep_days=14 if late else 0),  # age is what protects from late objects
            "accept": lambda: w.accepting(),
            "read": lambda: w.reading(about),
            "compact": lambda: c.compacting(about),
            "reformat": lambda: c.reformatting(about),
            "erase": lambda: c.erasing(about, self.chunk % 3),
            "expire": lambda: c.expiring(about),
            "replay": lambda: c.replaying(about),
            "follow": lambda: c.following(),
            "try": lambda: c.trying(),
            "put": lambda: c.putting(about),
            "adopt": lambda: c.adopting(),
            "land and change": lambda: w.in_turn(
                w.materialise(about, rounds=9),
                c.replaying(about),
                c.compacting(about),
                c.erasing(about, self.chunk % 3),
                c.reformatting(about),
            ),
            "land and expire": lambda: w.in_turn(w.materialise(about, rounds=9), c.expiring(about)),
        }
        limit = 1 if self.kind == "land and merge" else self.limit
        world.start(self.kind, works[self.kind](), chunk=self.chunk, limit=limit, skew=self.skew)


@dataclass(frozen=True)
class Run:
    """An actor makes some requests, the last one with a fault."""

    actor: int
    requests: int
    fault: Fault = "ok"
    twist: Twist = "none"

    def happen(self, world: World) -> None:
        if not world.actors:
            return
        actor = world.actors[self.actor % len(world.actors)]
        for left in range(self.requests, 0, -1):
            if actor.alive:
                world.step(actor, self.fault if left == 1 else "ok", self.twist)


@dataclass(frozen=True)
class Refuse:
    """An actor goes on to a request with a condition that holds, and the store refuses it all the same."""

    actor: int
    passed: int
    twist: Twist

    def happen(self, world: World) -> None:
        if not world.actors:
            return
        actor = world.actors[self.actor % len(world.actors)]
        for left in range(self.passed, -1, -1):
            if actor.alive and world.run(actor, until=has_condition):
                world.step(actor, twist="none" if left else self.twist)
