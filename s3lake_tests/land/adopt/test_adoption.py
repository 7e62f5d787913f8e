"""Adoption as a whole: from a bucket and a group that a connector left behind to the first run of s3lake."""

import uuid

import pytest

from s3lake import hours
from s3lake.commit import opening, protocol
from s3lake.commit.index import Read, TopicHead, TopicIndex
from s3lake.commit.protocol import Staged
from s3lake.config.draft import Connector
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.land.adopt import (
    Adoption,
    Group,
    KafkaGroups,
    LensesNames,
    Start,
    adopt,
    table,
)
from s3lake.plan.tile import Span
from s3lake_tests.land.adopt import buckets
from s3lake_tests.land.adopt.buckets import (
    CONNECTOR,
    LOCKS,
    Groups,
    Log,
    bucket,
    committed,
    copy,
    delete,
    lines,
    lock,
    named,
    put,
    upload,
)

HOUR = "2026-11-21T09"
NOW = hours.start_ms(HOUR) + 1_234_567
GROUP = f"connect-{CONNECTOR}"
INDEXED = Connector(CONNECTOR, lenses=True, indexes=".indexes")
LENSES, VALUES = Adoption(INDEXED, LensesNames("p/")), Adoption(INDEXED, LensesNames("p/", True))
CONFLUENT = Adoption(Connector(CONNECTOR), named("topics/", buckets.CONFLUENT))
AIVEN = Adoption(Connector(CONNECTOR), named("", buckets.AIVEN, lines=True))
MASTER = f"{LOCKS}/Topic(orders)/0.lock"
TEMPORARY, FINAL = ".temp-upload/Topic(orders)/0/u1p/orders/0/119_1_2.json", "p/orders/0/119_1_2.json"


class Place:
    """A bucket, a group and a topic of 2 partitions with 1,000 records each."""

    def __init__(self, objects=(), group=None, log=None, running=""):
        self.store = bucket(objects)
        self.index = TopicIndex(self.store, ".indexes/sink", "orders")
        self.groups = Groups({GROUP: Group(group or {}, running)})
        self.log = Log(log or {0: (0, 1000), 1: (0, 1000)})

    def adopt(self, adoption, **options):
        given = {"first_hour": "2026-01-01T00", "now_ms": NOW, **options}
        return adopt(adoption, self.index, self.log, self.groups, **given)

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
        head = opening.open_hour(self.index, self.log, hour)
        attempt = protocol.begin(self.index, self.log, head, hour, limit=10**6, now_ms=now_ms)
        reads = {partition: Read(*span) for partition, span in attempt.batch.intervals.items()}
        protocol.commit(self.index, attempt, Staged((), reads))
        return dict(attempt.batch.intervals), attempt.batch.expired


# Each layout, and what goes on in it


@pytest.mark.parametrize(
    ("adoption", "objects", "group", "starts"),
    [
        (
            LENSES,
            {MASTER: lock(119), f"{LOCKS}/Topic(orders)/1.lock": lock(6), FINAL: 1, "p/orders/1/6_1_2.json": 1},
            {0: 120, 1: 7},
            {0: (120, "index"), 1: (7, "index")},
        ),
        (
            LENSES,
            {".indexes/.locks/Topic(orders)/0.lock": lock(119), FINAL: 1},
            {},
            {0: (120, "index"), 1: (0, "log start")},
        ),
        (
            LENSES,
            {f".indexes/{CONNECTOR}/orders/00000/119": FINAL.encode(), FINAL: 1},
            {0: 119},
            {0: (120, "index"), 1: (0, "log start")},
        ),
        (LENSES, {FINAL: 1}, {0: 119}, {0: (120, "objects"), 1: (0, "log start")}),
        (
            VALUES,
            {
                MASTER: lock(119),
                f"{LOCKS}/Topic(orders)/0/name=a.lock": lock(119),
                "p/name=a/orders(0_119).json": 1,
                "p/name=b/orders(0_118).json": 1,
            },
            {0: 120},
            {0: (120, "index"), 1: (0, "log start")},
        ),
        (
            CONFLUENT,
            {"topics/orders/partition=0/orders+0+0000000000.json": 120},
            {0: 120, 1: 7},
            {0: (120, "group"), 1: (7, "group")},
        ),
        (
            CONFLUENT,
            {"topics/orders/partition=0/orders+0+0000000100.json": 20},
            {},
            {0: (120, "objects"), 1: (0, "log start")},
        ),
        (
            AIVEN,
            {"orders-0-100.gz": b"a\nb", "orders-0-90.gz": b"a\n" * 9 + b"b"},
            {0: 102},
            {0: (102, "group"), 1: (0, "log start")},
        ),
    ],
)
def test_the_first_run_goes_on_where_the_connector_stopped(adoption, objects, group, starts):
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

    head = opening.open_hour(place.index, place.log, following)
    opening.open_hour(place.index, place.log, following)

    assert head.hours == ((HOUR, following),)
    assert place.index.tile(HOUR)[0].partitions == {0: Span(120, 1000, 1100), 1: Span(7, 1000, 1001)}
    assert place.index.tile(following)[0].partitions == {0: Span(1100, 1100), 1: Span(1001, 1001)}


def test_no_earlier_hour_can_be_opened_afterwards():
    place = Place(group={0: 120, 1: 7})
    place.adopt(CONFLUENT)
    with pytest.raises(DataLossError, match=HOUR):
        opening.open_hour(place.index, place.log, hours.shift(HOUR, -1))


def test_a_partition_that_is_added_later_is_landed_whole():
    place = Place(group={0: 120, 1: 7})
    place.adopt(CONFLUENT)
    place.log.partitions[2] = (0, 5)
    assert place.run(HOUR, NOW)[0][2] == (0, 5)


def test_the_tile_is_of_the_topic_that_was_looked_at():
    place = Place(group={0: 120})
    place.adopt(CONFLUENT)
    place.log.topic_id = "id-2"
    head = opening.open_hour(place.index, place.log, HOUR)
    with pytest.raises(DataLossError, match="was created again"):
        protocol.begin(place.index, place.log, head, HOUR, limit=10, now_ms=NOW)


# What is pending is finished first


def pending(*operations):
    place = Place({TEMPORARY: 20, "p/orders/0/99_1_2.json": 1})
    made = [operation(place.store) for operation in operations]
    put(place.store, MASTER, lock(99, 119, made))
    return place


COPY = [lambda store: copy(store, TEMPORARY, FINAL), lambda _: delete(TEMPORARY)]


def test_pending_operations_are_finished_before_anything_else():
    place = pending(*COPY)
    place.groups.groups[GROUP] = Group({0: 100})
    done = place.adopt(LENSES)
    assert done.starts[0] == Start(120, "index")
    assert done.recovered == (
        f"{MASTER}: copy {TEMPORARY} to {FINAL}",
        f"{MASTER}: delete {TEMPORARY}",
        f"{MASTER}: commit offset 119",
    )
    assert place.store.get(FINAL).body == lines(20)
    assert place.store.head(TEMPORARY) is None
    assert committed(place.store, MASTER) == (119, None)


def test_an_upload_whose_file_is_gone_is_read_again():
    place = pending(lambda _: upload("/tmp/x", TEMPORARY), *COPY)
    assert place.starts(LENSES)[0] == (100, "index")
    assert place.store.head(FINAL) is None


def test_an_upload_that_was_the_first_of_all_leaves_everything_to_be_read():
    place = Place({MASTER: lock(None, 19, [upload("/tmp/x", TEMPORARY)])}, {0: 0})
    assert place.starts(LENSES, trust="group")[0] == (0, "group")
    assert committed(place.store, MASTER) == (None, None)


def test_a_dry_run_says_everything_and_changes_nothing():
    place = pending(*COPY)
    before = dict(place.store.objects)
    would = place.adopt(LENSES, dry_run=True)
    assert (would.written, would.hour, would.starts[0]) == (False, HOUR, Start(120, "index"))
    assert place.store.objects == before
    done = place.adopt(LENSES)
    assert (done.starts, done.recovered, done.written) == (would.starts, would.recovered, True)


def test_what_is_pending_is_not_finished_against_what_is_trusted():
    place = pending(*COPY)
    place.groups.groups[GROUP] = Group({0: 100})
    assert "use --trust index" in place.refused(LENSES, trust="group")


def test_an_operation_that_cannot_be_finished_refuses_the_adoption():
    place = pending(*COPY)
    place.store.delete(TEMPORARY)
    assert "neither object is there" in place.refused(LENSES)


def test_an_adoption_that_died_after_finishing_what_was_pending_is_done_again():
    place = pending(*COPY)
    put(place.store, FINAL, 20)
    place.store.delete(TEMPORARY)
    assert place.starts(LENSES)[0] == (120, "index")


# Contradictions


@pytest.mark.parametrize(
    ("objects", "group"),
    [
        ({MASTER: lock(119), "p/orders/0/129_1_2.json": 1}, {0: 120}),
        ({MASTER: lock(119), "p/orders/0/99_1_2.json": 1}, {0: 120}),
        ({MASTER: lock(119), FINAL: 1}, {0: 140}),
        ({FINAL: 1}, {0: 100}),
    ],
)
def test_contradictions_in_a_bucket_of_lenses_are_refused(objects, group):
    assert "the sources contradict each other" in Place(objects, group).refused(LENSES)


@pytest.mark.parametrize(("records", "group"), [(120, 100), (120, 130), (90, 80)])
def test_contradictions_in_a_bucket_of_confluent_are_refused(records, group):
    place = Place({"topics/orders/partition=0/orders+0+0000000000.json": records}, {0: group})
    assert "--trust group or --trust objects" in place.refused(CONFLUENT)


@pytest.mark.parametrize(("trust", "offset"), [("group", 100), ("objects", 120)])
def test_what_is_trusted_wins(trust, offset):
    place = Place({"topics/orders/partition=0/orders+0+0000000000.json": 120}, {0: 100})
    assert place.starts(CONFLUENT, trust=trust)[0] == (offset, trust)


def test_values_ahead_of_the_master_lock_are_refused_whatever_is_trusted():
    objects = {MASTER: lock(99), f"{LOCKS}/Topic(orders)/0/name=a.lock": lock(119), "p/name=a/orders(0_119).json": 1}
    place = Place(objects, {0: 100})
    assert "leave doubt" in place.refused(VALUES)
    assert "do what the notes say" not in place.refused(VALUES)
    assert "Start the connector once more" in place.refused(VALUES, trust="index")


def test_values_ahead_of_the_master_lock_are_fine_where_the_group_is_as_far():
    objects = {MASTER: lock(99), f"{LOCKS}/Topic(orders)/0/name=a.lock": lock(119), "p/name=a/orders(0_119).json": 1}
    assert Place(objects, {0: 120}).starts(VALUES)[0] == (120, "group")


def test_a_lenses_group_alone_leaves_doubt_about_one_record():
    place = Place(group={0: 119})
    assert "119 to 120" in place.refused(LENSES)
    assert place.starts(LENSES, trust="group")[0] == (119, "group")


def test_a_group_that_lags_behind_the_lenses_index_is_no_contradiction():
    assert Place({MASTER: lock(119), FINAL: 1}, {0: 60}).starts(LENSES)[0] == (120, "index")


# What is refused


def test_a_connector_that_runs_is_refused():
    place = Place({MASTER: lock(119)}, {0: 120}, running="stable, 2 members")
    assert place.refused(LENSES, trust="index") == (
        "topic orders: consumer group connect-lake is stable, 2 members: the connector runs still. Stop it and wait "
        "until its tasks are gone"
    )


def test_a_dry_run_may_look_at_a_connector_that_runs():
    place = Place({MASTER: lock(119)}, {0: 120}, running="stable, 2 members")
    assert place.adopt(LENSES, dry_run=True).evidence.running == "consumer group connect-lake is stable, 2 members"


@pytest.mark.parametrize("what", ["lock", "group"])
def test_a_connector_that_goes_on_meanwhile_is_refused(what):
    place = Place({MASTER: lock(119)}, {0: 120})

    def meanwhile(asked):
        if asked == 2 and what == "group":
            place.groups.groups[GROUP] = Group({0: 130}, "")
        elif asked == 1 and what == "lock":
            put(place.store, MASTER, lock(129))

    place.groups.meanwhile = meanwhile
    with pytest.raises(ConfigurationError, match="the connector has gone on meanwhile"):
        place.adopt(LENSES)
    assert place.index.head() is None


def test_an_index_that_has_tiles_is_refused():
    place = Place(group={0: 120})
    place.adopt(CONFLUENT)
    assert place.refused(CONFLUENT) == (
        f"topic orders: s3://b/.indexes/sink/orders/ has tiles already, the first of hour {HOUR}: a sink adopts a "
        "topic before it has landed any of it. Give the sink another name to begin anew"
    )


def test_a_head_without_hours_is_taken_over():
    place = Place(group={0: 120})
    place.index.create(place.index.head_key, TopicHead())
    place.adopt(CONFLUENT)
    assert place.index.head()[0].rev == 1
    assert place.index.tile(HOUR)[0].partitions[0] == Span(120, 120)


def test_a_tile_that_was_announced_but_not_written_is_written_by_the_first_run():
    place = Place(group={0: 120, 1: 7})
    place.adopt(CONFLUENT)
    place.store.delete(place.index.tile_key(HOUR))
    assert place.run(HOUR, NOW)[0] == {0: (120, 1000), 1: (7, 1000)}


def test_a_sink_that_starts_later_is_refused():
    assert Place(group={0: 120}).refused(CONFLUENT, first_hour="2026-11-21T10") == (
        "topic orders: the sink starts at 2026-11-21T10, later than the present hour 2026-11-21T09, in which it would "
        "go on: set start: 2026-11-21T09 or earlier"
    )


def test_a_topic_that_does_not_exist_is_refused():
    place = Place(group={0: 120})
    place.log.partitions = {}
    assert place.refused(CONFLUENT) == "topic 'orders' does not exist in Kafka: there is nothing to go on with"


def test_a_topic_of_which_nothing_is_found_is_refused():
    message = Place({"other/orders/0/1_1_1.json": 1}).refused(LENSES)
    assert "nothing of a connector was found" in message
    assert "index: s3://b/.indexes/lake/" in message
    assert "group: consumer group connect-lake" in message
    assert "objects: s3://b/p/orders/" in message


def test_expired_offsets_are_refused_with_the_remedy():
    place = Place(group={0: 120, 1: 7}, log={0: (200, 1000), 1: (0, 1000)})
    assert place.refused(CONFLUENT).splitlines() == [
        "topic orders: Kafka does not have these offsets",
        "partition 0 goes on at 120 (group), but Kafka's log starts at 200: 80 offsets have expired and cannot be "
        "landed any more; --accept-expired goes on without them and records them as expired",
    ]


def test_accepted_expired_offsets_are_recorded_by_the_first_run():
    place = Place(group={0: 120, 1: 7}, log={0: (200, 1000), 1: (0, 1000)})
    place.adopt(CONFLUENT, accept_expired=True)
    assert place.run(HOUR, NOW) == ({0: (120, 1000), 1: (7, 1000)}, ((0, 120, 200),))


def test_offsets_beyond_the_log_are_refused_with_the_remedy():
    place = Place(group={0: 1001})
    assert place.refused(CONFLUENT, accept_expired=True).splitlines()[1] == (
        "partition 0 goes on at 1001 (group), but Kafka's log ends at 1000: the topic was created anew (then take "
        "another prefix and do not adopt), or a transaction is open (then adopt again when it has ended)"
    )


def test_a_partition_that_kafka_does_not_have_is_refused():
    assert "but Kafka's topic has no such partition" in Place(group={0: 1, 5: 1}).refused(CONFLUENT)


def test_a_group_of_another_name_can_be_given():
    place = Place()
    place.groups.groups["mine"] = Group({0: 120})
    assert place.starts(Adoption(Connector(CONNECTOR, group="mine"), CONFLUENT.naming))[0] == (120, "group")


def test_evidence_says_what_each_source_says():
    place = Place({MASTER: lock(119), FINAL: 1}, {0: 60})
    assert table(place.adopt(LENSES, dry_run=True).evidence) == [
        "partition  index  group       objects  log",
        "0          120    60 or more  120      0 to 1000",
        "1          -      -           -        0 to 1000",
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
    assert producer.flush(30) == 0
    offsets, groups = KafkaOffsets(kafka.bootstrap_servers), KafkaGroups(kafka.bootstrap_servers)
    assert groups.of(f"connect-{connector}", topic) == Group()

    consumer = Consumer({**servers, "group.id": f"connect-{connector}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 10)], asynchronous=False)
    index = TopicIndex(bucket(), ".indexes/sink", topic)
    adoption = Adoption(Connector(connector), CONFLUENT.naming)
    options = {"first_hour": "2026-01-01T00", "now_ms": NOW}

    with pytest.raises(ConfigurationError, match="is stable, 1 members: the connector runs still"):
        adopt(adoption, index, offsets, groups, **options)
    consumer.close()

    assert adopt(adoption, index, offsets, groups, **options).starts == {0: Start(4, "group"), 1: Start(10, "group")}
    head = opening.open_hour(index, offsets, HOUR)
    attempt = protocol.begin(index, offsets, head, HOUR, limit=10**6, now_ms=NOW)
    assert dict(attempt.batch.intervals) == {0: (4, 10)}
