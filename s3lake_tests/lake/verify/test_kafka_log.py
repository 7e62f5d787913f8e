"""A real broker: exactly the committed records of exactly the offsets asked for, and an end without a wait."""

import math
import time
from collections.abc import Iterator

import pytest

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import KafkaUnavailableError
from s3lake.index.commit.documents import Read
from s3lake.lake.verify import verify_against
from s3lake.lake.verify.kafka_log import KafkaLog
from s3lake.lake.verify.log import LogStartMovedError
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Topics
from s3lake_tests.kit.processes import until
from s3lake_tests.lake.verify.world import HOUR, IN_TIME, TOPIC, VerifiedTopic, texts

NUMBERS = [b"%d" % n for n in range(10)]


@pytest.fixture
def log(kafka: EmbeddedKafka) -> Iterator[KafkaLog]:
    """One that waits for longer than any load: what ends only when its patience does is an error, and no end."""
    with KafkaLog(kafka.bootstrap_servers, {}, patience_s=PATIENCE_S) as log:
        yield log


@pytest.fixture
def topics(kafka: EmbeddedKafka) -> Topics:
    return Topics(kafka)


def transact(topics: Topics, topic: str, *values: bytes, commit: bool) -> None:
    """Write a transaction to partition 0, and wait for its marker, which comes after the broker's answer."""
    end = topics.offsets.log_ranges(topic)[0][1] + len(values) + 1
    producer = topics.transaction(topic, values, IN_TIME)
    (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)
    until(lambda: topics.offsets.log_ranges(topic)[0][1] == end)


def read(log: KafkaLog, topic: str, **ranges: tuple[int, int]) -> dict[int, dict[int, bytes | None]]:
    found: dict[int, dict[int, bytes | None]] = {}
    for records in log.read(topic, {int(name[1:]): range for name, range in ranges.items()}):
        assert records.offsets == sorted(records.offsets)
        assert len(records.offsets) == len(records.values) == len(records.timestamps)
        found.setdefault(records.partition, {}).update(zip(records.offsets, records.values, strict=True))
    return found


def test_only_the_offsets_asked_for_are_read(topics: Topics, log: KafkaLog) -> None:
    topic = topics.topic(2)
    topics.produce(topic, NUMBERS)
    topics.produce(topic, [b"a", None, b"c"], partition=1)
    assert read(log, topic, p0=(3, 5), p1=(1, 3)) == {0: {3: b"3", 4: b"4"}, 1: {1: None, 2: b"c"}}
    assert read(log, topic, p0=(9, 10)) == {0: {9: b"9"}}
    assert read(log, topic, p0=(4, 4), p1=(3, 3)) == read(log, topic) == {}


@pytest.mark.slow("a case more of reading a real broker")
def test_a_topic_more_costs_no_second_more(topics: Topics, log: KafkaLog) -> None:
    names = [topics.filled([b"a", b"b"], IN_TIME) for _ in range(20)]

    def read_s(topic: str) -> float:
        began = time.monotonic()
        assert [record.values for record in log.read(topic, {0: (0, 2)})] == [[b"a", b"b"]]
        return time.monotonic() - began

    # librdkafka asks for a topic that is only assigned a second later: for each of them, on any machine.
    unknown_s = known_s = math.inf
    for name in names:
        unknown_s, known_s = min(unknown_s, read_s(name)), min(known_s, read_s(name))
        if unknown_s < known_s + 0.9:
            return
    pytest.fail(f"each topic that is new costs {unknown_s - known_s:.2f} s more")


def test_a_range_that_ends_in_transaction_markers_ends(topics: Topics, log: KafkaLog) -> None:
    topic = topics.topic()
    transact(topics, topic, b"0", b"1", commit=True)
    assert log.snapshot(topic, HOUR).partitions[0].log_end == 3
    assert read(log, topic, p0=(0, 3)) == {0: {0: b"0", 1: b"1"}}
    assert read(log, topic, p0=(2, 3)) == {}


def test_aborted_records_are_not_read(topics: Topics, log: KafkaLog) -> None:
    topic = topics.topic()
    transact(topics, topic, b"no", b"neither", commit=False)
    topics.produce(topic, [b"3"])
    transact(topics, topic, b"nor this", commit=False)
    assert read(log, topic, p0=(0, 6)) == {0: {3: b"3"}}
    assert read(log, topic, p0=(0, 2)) == {}


@pytest.mark.slow("a case more of reading a real broker")
def test_an_open_transaction_behind_the_range_does_not_hold_it_up(topics: Topics, log: KafkaLog) -> None:
    topic = topics.topic()
    transact(topics, topic, b"0", commit=True)
    still_open = topics.transaction(topic, [b"2"], IN_TIME)
    topics.produce(topic, [b"3"])
    assert log.snapshot(topic, HOUR).partitions[0].log_end == 2
    assert read(log, topic, p0=(0, 2)) == {0: {0: b"0"}}
    still_open.abort_transaction(PATIENCE_S)


@pytest.mark.slow("a case more of reading a real broker")
def test_offsets_that_never_come_are_an_error_in_time(topics: Topics) -> None:
    topic = topics.filled([b"0"], IN_TIME)
    with (
        KafkaLog(topics.kafka.bootstrap_servers, {}, patience_s=1) as log,
        pytest.raises(KafkaUnavailableError, match="partition 0 up to 5"),
    ):
        read(log, topic, p0=(0, 5))


def test_brokers_that_do_not_answer_are_an_error_in_time() -> None:
    for patience_s in (3, PATIENCE_S):  # a busy machine may need more to see that the port refuses
        with KafkaLog("127.0.0.1:1", {}, patience_s=patience_s) as log, pytest.raises(KafkaUnavailableError) as caught:
            read(log, "nothing", p0=(0, 5))
        if "Connect" in str(caught.value):
            break
    assert "Connect" in str(caught.value)
    with KafkaLog("127.0.0.1:1", {}, patience_s=1) as log, pytest.raises(KafkaUnavailableError):
        log.snapshot("nothing", HOUR)


def test_an_expired_start_is_reported(topics: Topics, log: KafkaLog) -> None:
    topic = topics.filled(NUMBERS, IN_TIME)
    topics.expire(topic, 4)
    with pytest.raises(LogStartMovedError):
        read(log, topic, p0=(3, 10))
    assert list(read(log, topic, p0=(4, 10))[0]) == list(range(4, 10))


@pytest.mark.slow("a case more of reading a real broker")
def test_compacted_topics_are_recognized(topics: Topics, log: KafkaLog) -> None:
    assert log.is_compacted(topics.topic(cleanup_policy="compact,delete"))
    assert not log.is_compacted(topics.topic())
    assert not log.is_compacted("no-such-topic")


def test_nothing_is_committed_for_a_group(topics: Topics, log: KafkaLog) -> None:
    read(log, topics.filled([b"0"], IN_TIME), p0=(0, 1))
    groups = topics.admin.list_consumer_groups().result()
    assert not groups.errors
    assert "s3lake-verify" not in {group.group_id for group in groups.valid}


def test_a_landed_topic_is_verified_from_end_to_end(topics: Topics) -> None:
    topics.topic(2, TOPIC)
    values = [b'{"n":%d}' % n for n in range(4000)]
    topics.produce(TOPIC, values, IN_TIME)
    transact(topics, TOPIC, b"aborted", commit=False)
    transact(topics, TOPIC, b"committed", commit=True)
    world = VerifiedTopic()
    files = [world.lines("c1", values[:2000], 0), world.lines("c1", [*values[2000:], b"committed"], 2000, 4002)]
    world.commit("c1", files, {0: Read(0, 4004, read=4001, landed=4001)})
    world.span(0, 0, 0, partition=1)
    with KafkaLog(topics.kafka.bootstrap_servers, {}) as log:
        topic_id = log.snapshot(TOPIC, HOUR).topic_id
        world.write_index()
        found = world.index.head()
        assert found
        world.index.swap(world.index.head_key, found[0].revise(topic_id=topic_id), found[1])
        report = verify_against(world.sink, world.index, log, world.grid())
        assert report.clean, report.differences
        assert (report.compared, report.landed, report.files) == (4001, 4001, 2)
        world.overwrite(files[0], world.store.objects[files[0].key][0].replace(b":77}", b":78}"))
        report = verify_against(world.sink, world.index, log, world.grid())
    assert (report.missing, report.duplicated) == (1, 1)
    assert "offset 77:" in texts(report, "missing")[0]
