"""A real broker: exactly the committed records of exactly the offsets asked for, and an end without a wait."""

import time
from collections import defaultdict
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake.commit.documents import Read
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.errors import KafkaUnavailableError
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.verify import verify_against
from s3lake.verify.kafka_log import KafkaLog
from s3lake.verify.log import LogStartMovedError
from s3lake_tests.kit.processes import until
from s3lake_tests.verify.world import HOUR, IN_TIME, TOPIC, World, texts

PATIENCE_S = 60


@pytest.fixture
def log(kafka: EmbeddedKafka) -> Iterator[KafkaLog]:
    """One that waits for longer than any load: what ends only when its patience does is an error, and no end."""
    with KafkaLog(kafka.bootstrap_servers, {}, patience_s=PATIENCE_S) as log:
        yield log


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with two partitions."""
    name = f"verify-{request.node.name}".replace("[", "-").replace("]", "")[:200]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, 2)])[name].result()
    return name


def produce(kafka: EmbeddedKafka, topic: str, values: list[bytes | None], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=partition, timestamp=IN_TIME)
    assert producer.flush(PATIENCE_S) == 0


def transaction(kafka: EmbeddedKafka, topic: str, values: list[bytes], end: str = "commit") -> Producer:
    """A transaction in partition 0, committed, aborted or left open."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-{time.monotonic_ns()}"}
    offsets = KafkaOffsets(kafka.bootstrap_servers, timeout_s=PATIENCE_S)
    before = offsets.log_ranges(topic)[0][1]
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0, timestamp=IN_TIME)
    producer.flush(PATIENCE_S)
    if end == "commit":
        producer.commit_transaction(PATIENCE_S)
    elif end == "abort":
        producer.abort_transaction(PATIENCE_S)
    if end in ("commit", "abort"):  # the marker comes after the answer
        until(PATIENCE_S, lambda: offsets.log_ranges(topic)[0][1] == before + len(values) + 1)
    return producer


def read(log: KafkaLog, topic: str, **ranges: tuple[int, int]) -> dict[int, dict[int, bytes | None]]:
    found: dict[int, dict[int, bytes | None]] = defaultdict(dict)
    for records in log.read(topic, {int(name[1:]): range for name, range in ranges.items()}):
        assert records.offsets == sorted(records.offsets)
        assert len(records.offsets) == len(records.values) == len(records.timestamps)
        found[records.partition] |= dict(zip(records.offsets, records.values, strict=True))
    return found


def test_only_the_offsets_asked_for_are_read(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    produce(kafka, topic, [b"%d" % n for n in range(10)])
    produce(kafka, topic, [b"a", None, b"c"], partition=1)
    assert read(log, topic, p0=(3, 5), p1=(1, 3)) == {0: {3: b"3", 4: b"4"}, 1: {1: None, 2: b"c"}}
    assert read(log, topic, p0=(9, 10)) == {0: {9: b"9"}}
    assert read(log, topic, p0=(4, 4), p1=(3, 3)) == {}
    assert read(log, topic) == {}


@pytest.mark.slow("a case more of reading a real broker")
def test_a_topic_more_costs_no_second_more(kafka: EmbeddedKafka, log: KafkaLog) -> None:
    topics = [f"verify-many-{number}" for number in range(8)]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1) for topic in topics])
    for topic in topics:
        created[topic].result()
        produce(kafka, topic, [b"a", b"b"])
    began = time.monotonic()
    for topic in topics:
        assert [record.values for record in log.read(topic, {0: (0, 2)})] == [[b"a", b"b"]]
    assert time.monotonic() - began < 6  # librdkafka asks for a topic that is only assigned a second later


def test_a_range_that_ends_in_transaction_markers_ends(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    transaction(kafka, topic, [b"0", b"1"])
    assert log.snapshot(topic, HOUR).partitions[0].log_end == 3
    assert read(log, topic, p0=(0, 3)) == {0: {0: b"0", 1: b"1"}}
    assert read(log, topic, p0=(2, 3)) == {}


def test_aborted_records_are_not_read(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    transaction(kafka, topic, [b"no", b"neither"], "abort")
    produce(kafka, topic, [b"3"])
    transaction(kafka, topic, [b"nor this"], "abort")
    assert read(log, topic, p0=(0, 6)) == {0: {3: b"3"}}
    assert read(log, topic, p0=(0, 2)) == {}


@pytest.mark.slow("a case more of reading a real broker")
def test_an_open_transaction_behind_the_range_does_not_hold_it_up(
    kafka: EmbeddedKafka, topic: str, log: KafkaLog
) -> None:
    transaction(kafka, topic, [b"0"])
    still_open = transaction(kafka, topic, [b"2"], "leave open")
    produce(kafka, topic, [b"3"])
    assert log.snapshot(topic, HOUR).partitions[0].log_end == 2
    assert read(log, topic, p0=(0, 2)) == {0: {0: b"0"}}
    still_open.abort_transaction(PATIENCE_S)


@pytest.mark.slow("a case more of reading a real broker")
def test_offsets_that_never_come_are_an_error_in_time(kafka: EmbeddedKafka, topic: str) -> None:
    produce(kafka, topic, [b"0"])
    with (
        KafkaLog(kafka.bootstrap_servers, {}, patience_s=1) as log,
        pytest.raises(KafkaUnavailableError, match="partition 0 up to 5"),
    ):
        read(log, topic, p0=(0, 5))


def test_brokers_that_do_not_answer_are_an_error_in_time() -> None:
    with (
        KafkaLog("127.0.0.1:1", {}, patience_s=3) as log,
        pytest.raises(KafkaUnavailableError, match="Connect"),
    ):
        read(log, "nothing", p0=(0, 5))
    with KafkaLog("127.0.0.1:1", {}, patience_s=1) as log, pytest.raises(KafkaUnavailableError):
        log.snapshot("nothing", HOUR)


def test_an_expired_start_is_reported(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    produce(kafka, topic, [b"%d" % n for n in range(10)])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    deleted.result()
    with pytest.raises(LogStartMovedError):
        read(log, topic, p0=(3, 10))
    assert list(read(log, topic, p0=(4, 10))[0]) == list(range(4, 10))


@pytest.mark.slow("a case more of reading a real broker")
def test_compacted_topics_are_recognized(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    name = f"{topic}-compacted"
    admin.create_topics([NewTopic(name, 1, config={"cleanup.policy": "compact,delete"})])[name].result()
    assert log.is_compacted(name)
    assert not log.is_compacted(topic)
    assert not log.is_compacted("no-such-topic")


def test_nothing_is_committed_for_a_group(kafka: EmbeddedKafka, topic: str, log: KafkaLog) -> None:
    produce(kafka, topic, [b"0"])
    read(log, topic, p0=(0, 1))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})  # one that is let go of answers with nothing
    groups = admin.list_consumer_groups().result()
    assert not groups.errors
    assert "s3lake-verify" not in {group.group_id for group in groups.valid}


def test_a_landed_topic_is_verified_from_end_to_end(kafka: EmbeddedKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result()
    values = [b'{"n":%d}' % n for n in range(4000)]
    produce(kafka, TOPIC, list(values))
    transaction(kafka, TOPIC, [b"aborted"], "abort")
    transaction(kafka, TOPIC, [b"committed"])
    world = World()
    files = [world.lines("c1", values[:2000], 0), world.lines("c1", [*values[2000:], b"committed"], 2000, 4002)]
    world.commit("c1", files, {0: Read(0, 4004, 4001, 4001)})
    world.span(0, 0, 0, partition=1)
    with KafkaLog(kafka.bootstrap_servers, {}) as log:
        topic_id = log.snapshot(TOPIC, HOUR).topic_id
    world.write_index()
    found = world.index.head()
    assert found
    world.index.swap(world.index.head_key, found[0].revise(topic_id=topic_id), found[1])
    with KafkaLog(kafka.bootstrap_servers, {}) as log:
        report = verify_against(world.sink, world.index, log, world.grid())
    assert report.clean, report.differences
    assert (report.compared, report.landed, report.files) == (4001, 4001, 2)
    world.overwrite(files[0], world.store.objects[files[0].key][0].replace(b":77}", b":78}"))
    with KafkaLog(kafka.bootstrap_servers, {}) as log:
        report = verify_against(world.sink, world.index, log, world.grid())
    assert (report.missing, report.duplicated) == (1, 1)
    assert "offset 77:" in texts(report, "missing")[0]
