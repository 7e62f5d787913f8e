"""What Kafka returns about offsets, asked of a real broker."""

import pickle
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from s3lake import hours
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import ConfigurationError, KafkaUnavailableError
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.offsets import LogRange, TopicOffsets, match_topics
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.kafka_proxy import ProxiedKafka
from s3lake_tests.kit.lake import Topics, at
from s3lake_tests.kit.processes import until

HOUR = "2026-01-05T10"
NEXT = "2026-01-05T11"
PASSWORD = "hunter2-hunter2"
LIST_OFFSETS = 2
"""The number of such requests in Kafka's protocol."""
FOR_EVER = {"socket.timeout.ms": "300000", "socket.connection.setup.timeout.ms": "300000"}
"""As long as librdkafka allows: a question that waited so long would take at least PATIENCE_S."""
"""Its own limit of a request, which would be waited for if ours did not count; no busy machine needs that long."""
SECURE = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u"}


def write(topics: Topics, topic: str, stamps: Sequence[int], partition: int = 0) -> None:
    """Write one record for each timestamp."""
    topics.produce(topic, [b"x"] * len(stamps), stamps, partition)


def write_open(topics: Topics, topic: str, stamps: Sequence[int]) -> Producer:
    """Write one record for each timestamp in a transaction, and leave it open."""
    return topics.transaction(topic, [b"x"] * len(stamps), stamps)


@pytest.fixture(scope="module")
def topics(kafka: EmbeddedKafka) -> Topics:
    return Topics(kafka)


@pytest.fixture
def offsets(kafka: EmbeddedKafka) -> KafkaOffsets:
    return KafkaOffsets(kafka.bootstrap_servers, timeout_s=PATIENCE_S)


class TestSnapshotsOfManyTopics:
    def test_snapshots_are_the_same_as_those_of_each_topic(self, topics: Topics, offsets: KafkaOffsets) -> None:
        one, other = topics.topic(partitions=2), topics.topic()
        write(topics, one, [at(HOUR), at(HOUR, 5), at(NEXT), at(HOUR, 6)], partition=1)
        write(topics, other, [at(HOUR)] * 2)
        asked = offsets.snapshots([one, other, "no-such-topic"], HOUR)
        assert asked == {topic: offsets.snapshot(topic, HOUR) for topic in (one, other)}
        assert asked[one].partitions[1].next_stamp_ms == at(NEXT)
        assert asked[one].partitions[1].epoch is not None

    def test_snapshots_are_empty_if_no_topic_exists(self, offsets: KafkaOffsets) -> None:
        assert offsets.snapshots(["no-such-topic"], HOUR) == {}

    def test_snapshots_are_an_error_if_the_brokers_do_not_answer(self) -> None:
        with pytest.raises(KafkaUnavailableError, match=r"did not tell the offsets of 2 topics within 0\.5 s"):
            KafkaOffsets("127.0.0.1:1", timeout_s=0.5).snapshots(["orders", "clicks"], HOUR)


class TestEndsOfManyTopics:
    def test_leave_out_topics_that_do_not_exist(self, topics: Topics, offsets: KafkaOffsets) -> None:
        one, other = topics.topic(partitions=2), topics.topic()
        write(topics, one, [at(HOUR)] * 3, partition=1)
        write(topics, other, [at(HOUR)] * 2)
        assert offsets.log_ends([one, other, "no-such-topic"]) == {one: {0: 0, 1: 3}, other: {0: 2}}
        assert offsets.log_ends(["no-such-topic"]) == {}

    def test_are_an_error_if_the_brokers_do_not_answer(self) -> None:
        with pytest.raises(KafkaUnavailableError, match=r"did not tell the offsets of 2 topics within 0\.5 s"):
            KafkaOffsets("127.0.0.1:1", timeout_s=0.5).log_ends(["a", "b"])


class TestSnapshot:
    def test_has_the_timestamp_of_the_first_record_after_the_hour(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic(partitions=3, message_timestamp_after_max_ms=str(2**63 - 1))
        in_microseconds = at(HOUR, 1) * 1000
        write(topics, topic, [at(HOUR), in_microseconds, at(HOUR, 2)], partition=0)
        write(topics, topic, [at(HOUR), at(NEXT, 3)], partition=1)
        write(topics, topic, [at(HOUR)], partition=2)
        logs = offsets.snapshot(topic, HOUR).partitions
        assert {number: (log.hour_end, log.next_stamp_ms) for number, log in logs.items()} == {
            0: (1, in_microseconds),
            1: (1, at(NEXT, 3)),
            2: (1, None),
        }

    def test_an_hour_lies_between_its_first_record_and_the_first_of_the_next(
        self, topics: Topics, offsets: KafkaOffsets
    ) -> None:
        topic = topics.topic(partitions=2)
        write(topics, topic, [at(HOUR, -1), at(HOUR), at(HOUR, 59), at(NEXT)], partition=0)
        write(topics, topic, [at(HOUR, -1), at(HOUR, 30)], partition=1)
        snapshot = offsets.snapshot(topic, HOUR)
        assert snapshot.partitions == {0: LogRange(0, 4, 1, 3), 1: LogRange(0, 2, 1, 2)}
        assert snapshot.exists
        assert offsets.snapshot(topic, NEXT).partitions == {0: LogRange(0, 4, 3, 4), 1: LogRange(0, 2, 2, 2)}

    def test_an_empty_topic_has_empty_ranges(self, topics: Topics, offsets: KafkaOffsets) -> None:
        snapshot = offsets.snapshot(topics.topic(partitions=3), HOUR)
        assert snapshot.partitions == dict.fromkeys(range(3), LogRange(0, 0, 0, 0))
        assert snapshot.exists
        assert snapshot.topic_id

    def test_a_topic_that_does_not_exist_is_an_answer(self, offsets: KafkaOffsets) -> None:
        snapshot = offsets.snapshot("no-such-topic", HOUR)
        assert snapshot == TopicOffsets("", {})
        assert not snapshot.exists
        assert "no-such-topic" not in offsets.topics()

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_an_existing_topic_that_is_missing_once_is_requested_again(
        self, topics: Topics, offsets: KafkaOffsets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR)] * 3)
        describe, missing = AdminClient.describe_topics, [topic] * 3

        def describe_late(client: AdminClient, asked: Any, **how: Any) -> dict[str, Future[Any]]:
            if not missing:
                return describe(client, asked, **how)
            answer: Future[Any] = Future()  # as brokers answer that have just started
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            return {missing.pop(): answer}

        monkeypatch.setattr(AdminClient, "describe_topics", describe_late)
        assert offsets.snapshot(topic, HOUR, existed=True).partitions == {0: LogRange(0, 3, 0, 3)}
        missing.append(topic)
        assert offsets.snapshot(topic, HOUR) == TopicOffsets("", {})

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_an_existing_topic_that_stays_missing_does_not_exist(self, kafka: EmbeddedKafka) -> None:
        begun = time.monotonic()
        offsets = KafkaOffsets(kafka.bootstrap_servers, FOR_EVER, timeout_s=1.0)
        assert offsets.snapshot("no-such-topic", HOUR, existed=True) == TopicOffsets("", {})
        assert 0.3 < time.monotonic() - begun < PATIENCE_S

    def test_timestamps_out_of_order_take_the_first_that_is_late_enough(
        self, topics: Topics, offsets: KafkaOffsets
    ) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR, -5), at(NEXT, 30), at(HOUR, 10), at(HOUR, -2), at(NEXT, 5)])
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 5, 1, 1)
        assert offsets.snapshot(topic, NEXT).partitions[0] == LogRange(0, 5, 1, 5)

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_log_append_time_counts_instead_of_the_producers_clock(self, topics: Topics, offsets: KafkaOffsets) -> None:
        now = hours.key_of_ms(int(time.time() * 1000))
        topic = topics.topic(message_timestamp_type="LogAppendTime")
        write(topics, topic, [at(HOUR), at(HOUR, 1)])
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 2, 0, 0)
        assert offsets.snapshot(topic, now).partitions[0].hour_start == 0
        assert offsets.snapshot(topic, hours.shift(now, 2)).partitions[0] == LogRange(0, 2, 2, 2)

    def test_records_that_kafka_deleted_raise_the_log_start(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR, number) for number in range(50)])
        topics.expire(topic, 20)
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(20, 50, 20, 50)
        topics.expire(topic, 50)
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(50, 50, 50, 50)

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_partitions_added_later_are_seen(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        before = offsets.snapshot(topic, HOUR)
        topics.add_partitions(topic, 3)
        write(topics, topic, [at(HOUR)], partition=2)
        after = offsets.snapshot(topic, HOUR)
        assert set(before.partitions) == {0}
        assert after.partitions == {0: LogRange(0, 0, 0, 0), 1: LogRange(0, 0, 0, 0), 2: LogRange(0, 1, 0, 1)}
        assert after.topic_id == before.topic_id

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_a_topic_created_again_has_another_id(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR)] * 3)
        before = offsets.snapshot(topic, HOUR)
        topics.delete(topic)
        assert offsets.snapshot(topic, HOUR) == TopicOffsets("", {})
        topics.topic(name=topic)
        after = offsets.snapshot(topic, HOUR)
        assert after.topic_id not in ("", before.topic_id)
        assert after.partitions[0] == LogRange(0, 0, 0, 0)

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_offsets_of_a_new_topic_never_go_under_the_id_of_the_old_one(
        self, topics: Topics, offsets: KafkaOffsets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR)] * 3)
        old = offsets.snapshot(topic, HOUR)

        def recreate() -> None:
            topics.delete(topic)
            topics.topic(name=topic)

        _before_offsets(monkeypatch, 1, recreate)  # straight after the first look at the id
        found = offsets.snapshot(topic, HOUR)
        assert found.topic_id != old.topic_id
        assert found.partitions[0] == LogRange(0, 0, 0, 0)

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_a_topic_deleted_while_asking_does_not_exist(
        self, topics: Topics, offsets: KafkaOffsets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = topics.topic()
        _before_offsets(monkeypatch, 1, lambda: topics.delete(topic))
        assert offsets.snapshot(topic, HOUR) == TopicOffsets("", {})

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_records_that_come_while_asking_lie_behind_every_edge(
        self, topics: Topics, offsets: KafkaOffsets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR)] * 3)
        # After the start and the end of the log were asked for, before the timestamps are.
        _before_offsets(monkeypatch, 3, lambda: write(topics, topic, [at(HOUR)] * 2 + [at(NEXT)]))
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 3, 0, 3)
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 6, 0, 5)


class TestTransactions:
    def test_the_end_is_the_last_stable_offset(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        write(topics, topic, [at(HOUR)] * 2)
        producer = write_open(topics, topic, [at(HOUR, 1), at(NEXT)])
        write(topics, topic, [at(NEXT)])
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 2, 0, 2)
        assert offsets.snapshot(topic, NEXT).partitions[0] == LogRange(0, 2, 2, 2)
        assert offsets.log_ranges(topic) == {0: (0, 2)}
        assert offsets.find_offset_since(topic, at(HOUR, 1)) == {0: 2}
        producer.commit_transaction(10)
        # Two records, two of the transaction, one after it, and the marker, which is written after the answer.
        until(lambda: offsets.log_ranges(topic) == {0: (0, 6)})
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 6, 0, 3)

    def test_an_aborted_transaction_is_a_gap_before_the_end(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        producer = write_open(topics, topic, [at(HOUR)] * 4)
        producer.abort_transaction(10)
        until(lambda: offsets.log_ranges(topic) == {0: (0, 5)})
        write(topics, topic, [at(HOUR, 1)])
        assert offsets.snapshot(topic, HOUR).partitions[0] == LogRange(0, 6, 0, 4)

    @pytest.mark.slow("waits for what does not come, or for a change of a topic")
    def test_the_marker_of_a_back_dated_transaction_answers_for_all_later_hours(
        self, topics: Topics, offsets: KafkaOffsets
    ) -> None:
        """Markers carry the broker's clock and an offset: hours of the past get 0,100,100,100, not 0,101,202,303."""
        topic = topics.topic()
        past = [hours.shift(HOUR, by) for by in range(4)]
        for hour in past:
            producer = write_open(topics, topic, [at(hour, number % 60) for number in range(100)])
            producer.commit_transaction(10)
        until(lambda: offsets.log_ranges(topic) == {0: (0, 404)})
        assert [offsets.snapshot(topic, hour).partitions[0].hour_start for hour in past] == [0, 100, 100, 100]
        assert [offsets.snapshot(topic, hour).partitions[0].hour_end for hour in past] == [100, 100, 100, 100]


class TestOtherQuestions:
    def test_ranges_are_log_start_and_end(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic(partitions=2)
        write(topics, topic, [at(HOUR)] * 3, partition=1)
        assert offsets.log_ranges(topic) == {0: (0, 0), 1: (0, 3)}
        assert offsets.log_ranges("no-such-topic") == {}

    def test_first_since_is_the_end_where_nothing_is_late_enough(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic(partitions=3)
        write(topics, topic, [at(HOUR), at(HOUR, 1)], partition=1)
        write(topics, topic, [at(HOUR)], partition=2)
        assert offsets.find_offset_since(topic, at(HOUR, 1)) == {0: 0, 1: 1, 2: 1}
        assert offsets.find_offset_since("no-such-topic", 0) == {}

    def test_topics_are_the_ones_that_users_created(self, topics: Topics, offsets: KafkaOffsets) -> None:
        names = [topics.topic(name=f"{kind}-{uuid.uuid4()}") for kind in ("orders", "orders.eu", "payments")]
        write_open(topics, names[0], []).abort_transaction(10)  # makes the broker create __transaction_state
        listed = offsets.topics()  # once: other tests create and delete topics of this broker
        assert set(names) <= set(listed)
        assert listed == sorted(listed)
        assert not any(name.startswith("__") for name in listed)
        assert set(match_topics(offsets, r"orders[.-].*")) & set(names) == set(names[:2])
        assert match_topics(offsets, "orders") == []


class TestClient:
    def test_it_can_be_sent_to_another_process(self, topics: Topics, offsets: KafkaOffsets) -> None:
        topic = topics.topic()
        assert pickle.loads(pickle.dumps(offsets)).log_ranges(topic) == {0: (0, 0)}

    def test_a_topic_name_that_cannot_be_is_refused_for_good(self, offsets: KafkaOffsets) -> None:
        with pytest.raises(ConfigurationError, match=r"refuses to tell the offsets of topic 'a b'.*correct the topic"):
            offsets.snapshot("a b", HOUR)


@pytest.fixture(params=["refused", "silent", "unknown"])
def dead_servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Brokers that are down, hung, or no host at all."""
    if request.param == "unknown":
        yield "no-such-host.invalid:9092"
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "silent":
            listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


class TestBrokersDown:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda offsets: offsets.snapshot("t", HOUR),
            lambda offsets: offsets.log_ranges("t"),
            lambda offsets: offsets.find_offset_since("t", 0),
            lambda offsets: offsets.topics(),
        ],
        ids=["snapshot", "ranges", "find_offset_since", "topics"],
    )
    def test_every_question_ends_in_time(
        self, dead_servers: str, ask: Callable[[KafkaOffsets], object], capfd: pytest.CaptureFixture[str]
    ) -> None:
        begun = time.monotonic()
        offsets = KafkaOffsets(dead_servers, {**SECURE, **FOR_EVER, "sasl.password": PASSWORD}, timeout_s=0.1)
        with pytest.raises(KafkaUnavailableError) as caught:
            ask(offsets)
        assert time.monotonic() - begun < PATIENCE_S, "a timeout"
        assert f"Kafka at {dead_servers} did not tell the" in str(caught.value)
        assert "within 0.1 s" in str(caught.value)
        assert "Check that the brokers are up" in str(caught.value)
        assert PASSWORD not in str(caught.value) + repr(caught.value) + repr(offsets)
        assert capfd.readouterr() == ("", "")  # librdkafka would tell stderr, again and again

    def test_the_reason_of_the_connection_is_in_the_error(self) -> None:
        with pytest.raises(KafkaUnavailableError, match="Failed to resolve"):
            KafkaOffsets("no-such-host.invalid:9092", timeout_s=0.5).topics()


class Forgetful(ProxiedKafka):
    """Ends the connection in place of one answer about offsets: of the request of this number."""

    def __init__(self, bootstrap_servers: str, number: int) -> None:
        super().__init__(bootstrap_servers)
        self._left = number

    def fault(self, api_key: int) -> str | None:
        self._left -= api_key == LIST_OFFSETS
        return "unanswered" if api_key == LIST_OFFSETS and self._left == 0 else None


class TestLostAnswers:
    @pytest.mark.parametrize("lost", [1, 2, 3, 4])
    def test_an_answer_that_is_lost_is_never_taken_for_no_record(self, topics: Topics, lost: int) -> None:
        topic = topics.topic()
        write(topics, topic, [at(NEXT)] * 3)
        with Forgetful(topics.kafka.bootstrap_servers, lost) as proxy:
            offsets = KafkaOffsets(proxy.bootstrap_servers, timeout_s=PATIENCE_S)
            (log,) = offsets.snapshot(topic, HOUR).partitions.values()
        assert (log.log_start, log.log_end, log.hour_start, log.hour_end) == (0, 3, 0, 0)

    @pytest.mark.parametrize("lost", [1, 2, 3, 4])
    def test_a_topic_whose_answer_is_lost_is_left_out_of_many(self, topics: Topics, lost: int) -> None:
        topic = topics.topic()
        write(topics, topic, [at(NEXT)] * 3)
        with Forgetful(topics.kafka.bootstrap_servers, lost) as proxy:
            offsets = KafkaOffsets(proxy.bootstrap_servers, timeout_s=PATIENCE_S)
            assert offsets.snapshots([topic], HOUR) in ({}, {topic: offsets.snapshot(topic, HOUR)})
            assert offsets.snapshots([topic], HOUR)[topic].partitions[0].hour_end == 0


class TestWrongProperties:
    def test_an_unknown_name_is_refused_with_the_remedy(self) -> None:
        with pytest.raises(ConfigurationError, match=r'property: "max\.poll\.nonsense".*take out a name that only'):
            KafkaOffsets("127.0.0.1:1", {"max.poll.nonsense": "1"}).topics()

    def test_a_refused_value_is_reported_unless_it_is_secret(self) -> None:
        with pytest.raises(ConfigurationError, match=r'"socket\.timeout\.ms"'):
            KafkaOffsets("127.0.0.1:1", {"socket.timeout.ms": "soon"}).topics()
        with pytest.raises(ConfigurationError) as caught:
            KafkaOffsets("127.0.0.1:1", {"security.protocol": "ssl", "ssl.key.pem": PASSWORD}).topics()
        assert PASSWORD not in str(caught.value)
        assert "ssl" in str(caught.value)


def _before_offsets(monkeypatch: pytest.MonkeyPatch, call: int, happens: Callable[[], object]) -> None:
    """Let something happen just before the nth time that the brokers are asked for offsets."""
    real, calls = AdminClient.list_offsets, []

    def replaced(*args: Any, **how: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            monkeypatch.setattr(AdminClient, "list_offsets", real)  # what happens may ask as well
            happens()
            monkeypatch.setattr(AdminClient, "list_offsets", replaced)
        return real(*args, **how)

    monkeypatch.setattr(AdminClient, "list_offsets", replaced)
