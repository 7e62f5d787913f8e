"""Adoption as a whole: from a bucket and a group that a connector left behind to the first run of s3lake."""

import uuid

import pytest

from s3lake import hours
from s3lake.config.draft import Connector
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.documents import Read
from s3lake.index.commit.protocol import Staged
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import TileRange
from s3lake.land.adopt import GroupOffsets, KafkaGroups, Start, adopt_topic, format_evidence
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.land.adopt import buckets
from s3lake_tests.land.adopt.buckets import CONNECTOR, LOCKS, AdoptedTopic, Groups, bucket, lock, put, sink

HOUR = "2026-11-21T09"
NOW = hours.start_ms(HOUR) + 1_234_567
GROUP = f"connect-{CONNECTOR}"
INDEXED = Connector(CONNECTOR, lenses=True, indexes=".indexes")
LENSES, VALUES = (INDEXED, sink("p/")), (INDEXED, sink("p/", {"partition_by": ("name",)}))
CONFLUENT = (Connector(CONNECTOR), sink("topics/", {"template": buckets.CONFLUENT}))
AIVEN = (Connector(CONNECTOR), sink("", {"template": buckets.AIVEN}))
MASTER = f"{LOCKS}/Topic(orders)/0.lock"
FINAL = "p/orders/0/119_1_2.json"


class Place:
    """A bucket, a group and a topic of 2 partitions with 1,000 records each."""

    def __init__(self, objects=(), group=None, log=None, running=""):
        self.store = bucket(objects)
        self.index = TopicIndex(self.store, ".indexes/sink", "orders")
        self.groups = Groups({GROUP: GroupOffsets(group or {}, running)})
        self.log = AdoptedTopic({0: (0, 1000), 1: (0, 1000)} if log is None else log)

    def adopt(self, adoption, **options):
        return adopt_topic(*adoption, self.index, self.log, self.groups, now_ms=NOW, **options)

    def starts(self, adoption, **options):
        return {one: (start.offset, start.source) for one, start in self.adopt(adoption, **options).starts.items()}

    def refused(self, adoption, **options):
        before = dict(self.store.objects)
        with pytest.raises(ConfigurationError) as refusal:
            self.adopt(adoption, **options)
        assert self.store.objects == before
        return str(refusal.value)

    def run(self, hour, now_ms):
        """What a run of `hour` lands: intervals by partition, and what had expired."""
        head = open_and_close.open_hour(self.index, self.log, hour)
        attempt = protocol.begin_micro_batch(self.index, self.log, head, hour, limit=10**6, now_ms=now_ms)
        reads = {partition: Read(*span) for partition, span in attempt.batch.intervals.items()}
        protocol.commit_attempt(self.index, attempt, Staged((), reads))
        return dict(attempt.batch.intervals), attempt.batch.expired


# Each layout


@pytest.mark.parametrize(
    ("adoption", "objects", "group", "starts"),
    [
        (
            LENSES,
            {MASTER: lock(119), f"{LOCKS}/Topic(orders)/1.lock": lock(6), FINAL: 1, "p/orders/1/6_1_2.json": 1},
            {0: 60, 1: 7},
            {0: (120, "lock"), 1: (7, "lock")},
        ),
        (
            VALUES,
            {
                MASTER: lock(119),
                f"{LOCKS}/Topic(orders)/0/name=a.lock": lock(119),
                "p/name=a/orders(0_119).json": 1,
                "p/name=b/orders(0_118).json": 1,
            },
            {0: 120},
            {0: (120, "lock"), 1: (0, "log start")},
        ),
        (
            CONFLUENT,
            {"topics/orders/partition=0/orders+0+0000000000.json": 120},
            {0: 120, 1: 7},
            {0: (120, "group"), 1: (7, "group")},
        ),
        (AIVEN, {"orders-0-100.gz": 2, "orders-0-90.gz": 10}, {0: 102}, {0: (102, "group"), 1: (0, "log start")}),
    ],
)
def test_the_first_run_continues_where_the_connector_stopped(adoption, objects, group, starts):
    place = Place(objects, group)
    assert place.starts(adoption) == starts

    landed, expired = place.run(HOUR, NOW)

    assert landed == {partition: (offset, 1000) for partition, (offset, _) in starts.items()}
    assert expired == ()


def test_the_next_hour_goes_on_where_the_first_ends():
    place = Place(group={0: 120, 1: 7})
    place.adopt(CONFLUENT)
    place.run(HOUR, NOW)
    place.log.partitions = {0: (0, 1100), 1: (0, 1001)}
    following = hours.shift(HOUR, 1)

    head = open_and_close.open_hour(place.index, place.log, following)
    open_and_close.open_hour(place.index, place.log, following)

    assert head.hours == ((HOUR, following),)
    assert place.index.tile(HOUR)[0].partitions == {0: TileRange(120, 1000, 1100), 1: TileRange(7, 1000, 1001)}
    assert place.index.tile(following)[0].partitions == {0: TileRange(1100, 1100), 1: TileRange(1001, 1001)}


def test_the_tile_is_of_the_topic_that_was_looked_at():
    place = Place(group={0: 120})
    place.adopt(CONFLUENT)
    place.log.topic_id = "id-2"
    head = open_and_close.open_hour(place.index, place.log, HOUR)
    with pytest.raises(DataLossError, match="was created again"):
        protocol.begin_micro_batch(place.index, place.log, head, HOUR, limit=10, now_ms=NOW)


# Contradictions


@pytest.mark.parametrize(
    ("adoption", "objects", "group", "reason"),
    [
        (
            LENSES,
            {MASTER: lock(119), "p/orders/0/129_1_2.json": 1},
            {0: 120},
            "is at 120, but s3://lake/p/orders/0/129",
        ),
        (LENSES, {FINAL: 1}, {}, "119_1_2.json exists, but s3://lake/.indexes/lake/.locks/Topic(orders)/ has no"),
        (
            LENSES,
            {},
            {0: 119},
            "consumer group connect-lake is at 119, but s3://lake/.indexes/lake/.locks/Topic(orders)/",
        ),
        (LENSES, {MASTER: lock(99, 119, [])}, {}, "0.lock has operations pending"),
        (VALUES, {MASTER: lock(99), f"{LOCKS}/Topic(orders)/0/n=a.lock": lock(119)}, {0: 100}, "n=a up to 119"),
        (CONFLUENT, {"topics/orders/partition=0/orders+0+0000000100.json": 20}, {0: 100}, "is at 100, but s3://lake/"),
        (CONFLUENT, {"topics/orders/partition=0/orders+0+0000000100.json": 20}, {}, "has no offset"),
    ],
)
def test_objects_that_contradict_the_authority_are_refused_until_the_user_decides(adoption, objects, group, reason):
    place = Place(objects, group)
    message = place.refused(adoption)
    assert reason in message
    assert "--offset PARTITION=OFFSET" in message
    assert place.starts(adoption, chosen={0: 120}) == {0: (120, "user"), 1: (0, "log start")}


def test_a_dry_run_returns_everything_and_changes_nothing():
    place = Place({MASTER: lock(119), FINAL: 1})
    before = dict(place.store.objects)
    would = place.adopt(LENSES, dry_run=True)
    assert (would.written, would.hour, would.starts[0]) == (False, HOUR, Start(120, "lock"))
    assert place.store.objects == before
    done = place.adopt(LENSES)
    assert (done.starts, done.written) == (would.starts, True)


# What is refused

LATER = (CONFLUENT[0], sink("topics/", {"template": buckets.CONFLUENT}, start="2026-11-21T10"))
RUNNING = Place({MASTER: lock(119)}, {0: 120}, running="stable, 2 members")
REFUSED = {
    "a connector that runs": (
        *(RUNNING, LENSES, "consumer group connect-lake is stable, 2 members: the connector still runs"),
        "Stop it and wait until its tasks have stopped",
    ),
    "a sink that starts later": (
        *(Place(group={0: 120}), LATER, "starts at 2026-11-21T10, later than the present hour 2026-11-21T09"),
        "set start: 2026-11-21T09 or earlier",
    ),
    "a topic that does not exist": (
        *(Place(group={0: 120}, log={}), CONFLUENT, "topic 'orders' does not exist in Kafka"),
        "there is nothing to continue",
    ),
    "a topic-partition that Kafka does not have": (
        *(Place(group={0: 1, 5: 1}), CONFLUENT, "partition 5 continues at 1"),
        "but Kafka's topic has no such partition",
    ),
    "expired offsets": (
        Place(group={0: 120, 1: 7}, log={0: (200, 1000), 1: (0, 1000)}),
        *(CONFLUENT, "partition 0 continues at 120 (group), but Kafka's log starts at 200: 80 offsets expired"),
        "--accept-expired continues without them and records them as expired",
    ),
    "offsets beyond the log": (
        *(Place(group={0: 1001}), CONFLUENT, "partition 0 continues at 1001 (group), but Kafka's log ends at 1000"),
        "take another prefix and do not adopt), or a transaction is open (then adopt again when it has ended)",
    ),
    "nothing of a connector": (
        *(Place({"other/orders/0/1_1_1.json": 1}), LENSES, "nothing of a connector was found"),
        "s3://lake/.indexes/lake/.locks/Topic(orders)/",
    ),
}


@pytest.mark.parametrize(("place", "adoption", "reason", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_sink_that_cannot_be_continued_is_refused_with_the_remedy(place, adoption, reason, remedy):
    message = place.refused(adoption)
    assert "topic orders" in message or "topic 'orders'" in message
    assert reason in message
    assert remedy in message


def test_an_index_that_has_tiles_is_refused():
    place = Place(group={0: 120})
    place.adopt(CONFLUENT)
    message = place.refused(CONFLUENT)
    assert f"s3://lake/.indexes/sink/orders/ has tiles already, the first of hour {HOUR}" in message
    assert "Give the sink another name to begin again" in message


def test_a_dry_run_may_look_at_a_connector_that_runs():
    place = Place({MASTER: lock(119)}, {0: 120}, running="stable, 2 members")
    assert place.adopt(LENSES, dry_run=True).evidence.authority.group.running == "stable, 2 members"


@pytest.mark.parametrize("what", ["lock", "group"])
def test_a_connector_that_goes_on_meanwhile_is_refused(what):
    place = Place({MASTER: lock(119)}, {0: 120})

    def meanwhile(asked):
        if asked == 2 and what == "group":
            place.groups.groups[GROUP] = GroupOffsets({0: 130}, "")
        elif asked == 2:
            put(place.store, MASTER, lock(129))

    place.groups.meanwhile = meanwhile
    with pytest.raises(ConfigurationError, match="the connector has continued meanwhile"):
        place.adopt(LENSES)
    assert place.index.head() is None


def test_a_tile_that_was_announced_but_not_written_is_written_by_the_first_run():
    place = Place(group={0: 120, 1: 7})
    place.adopt(CONFLUENT)
    place.store.delete(place.index.tile_key(HOUR))
    assert place.run(HOUR, NOW)[0] == {0: (120, 1000), 1: (7, 1000)}


def test_accepted_expired_offsets_are_recorded_by_the_first_run():
    place = Place(group={0: 120, 1: 7}, log={0: (200, 1000), 1: (0, 1000)})
    place.adopt(CONFLUENT, accept_expired=True)
    assert place.run(HOUR, NOW) == ({0: (120, 1000), 1: (7, 1000)}, ((0, 120, 200),))


def test_a_group_of_another_name_can_be_given_and_the_sink_may_start_in_the_present_hour():
    place = Place()
    place.groups.groups["mine"] = GroupOffsets({0: 120})
    present = sink("topics/", {"template": buckets.CONFLUENT}, start=HOUR)
    assert place.starts((Connector(CONNECTOR, group="mine"), present))[0] == (120, "group")


def test_the_evidence_has_a_line_for_each_topic_partition():
    place = Place({MASTER: lock(119), FINAL: 1}, {0: 60})
    assert format_evidence(place.adopt(LENSES, dry_run=True).evidence) == [
        "partition  next  newest name  log",
        "0          120   119          0 to 1000",
        "1          -     -            0 to 1000",
    ]


# A real consumer group


def test_a_real_consumer_group_is_read_and_refused_while_it_is_active(kafka):
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    from s3lake.source.kafka.offsets import KafkaOffsets

    topic, connector = f"t-{uuid.uuid4()}", f"c-{uuid.uuid4()}"
    servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    producer = Producer(servers)
    for number in range(20):
        producer.produce(topic, b"{}", partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    offsets, groups = KafkaOffsets(kafka.bootstrap_servers, timeout_s=PATIENCE_S), KafkaGroups(kafka.bootstrap_servers)
    assert groups.read(f"connect-{connector}", topic) == GroupOffsets()

    consumer = Consumer({**servers, "group.id": f"connect-{connector}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 10)], asynchronous=False)
    index = TopicIndex(bucket(), ".indexes/sink", topic)
    adoption = Connector(connector), CONFLUENT[1]

    with pytest.raises(ConfigurationError, match="is stable, 1 members: the connector still runs"):
        adopt_topic(*adoption, index, offsets, groups, now_ms=NOW)
    consumer.close()

    assert adopt_topic(*adoption, index, offsets, groups, now_ms=NOW).starts == {
        0: Start(4, "group"),
        1: Start(10, "group"),
    }
    head = open_and_close.open_hour(index, offsets, HOUR)
    attempt = protocol.begin_micro_batch(index, offsets, head, HOUR, limit=10**6, now_ms=NOW)
    assert dict(attempt.batch.intervals) == {0: (4, 10)}
