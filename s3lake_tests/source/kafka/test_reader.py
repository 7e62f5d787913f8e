"""What a reader promises, on a real broker: exactly the committed records of a range, or an error with the reason."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import ConfigurationError, KafkaUnavailableError, TransientError
from s3lake.source.kafka import reader
from s3lake.source.kafka.columns import take_in_python
from s3lake.source.kafka.librdkafka import Consumer, PolledMessages
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.record_batches import KAFKA_SCHEMA, OffsetRange
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import Topics
from s3lake_tests.kit.processes import until

MEBIBYTE = 2**20


class WrittenTopic:
    """One topic with one topic-partition, and who writes to it."""

    def __init__(self, kafka: EmbeddedKafka, **settings: str) -> None:
        self.topics, self.brokers = Topics(kafka), KafkaReader(kafka.bootstrap_servers)
        self.topic = self.topics.topic(**settings)
        plain = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0, "message.max.bytes": 10**9}
        self.producer = Producer({**plain, "linger.ms": 0})

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        return dict(self.topics.offsets.log_ranges(self.topic))

    def write(self, *values: bytes | None, keys: Sequence[bytes | None] | None = None, stamp_ms: int = 0) -> None:
        """Records; stamped now without a time of their own."""
        for number, value in enumerate(values):
            key = keys[number] if keys else None
            self.producer.produce(self.topic, value, key, partition=0, timestamp=stamp_ms)
            self.producer.poll(0)
        assert self.producer.flush(PATIENCE_S) == 0

    def transaction(self, *values: bytes, commit: bool) -> None:
        """Records and a marker; the reader never sees the marker, nor what was aborted."""
        end = self.ranges[0][1] + len(values) + 1
        producer = self.topics.transaction(self.topic, values, 0)
        (producer.commit_transaction if commit else producer.abort_transaction)()
        until(lambda: self.ranges[0][1] == end)  # the marker comes after the answer

    def table(self, start: int, end: int, columns: Sequence[str] = ("offset", "value")) -> pa.Table:
        found = self.brokers.batches(self.topic, [OffsetRange(0, start, end)], columns)
        return pa.Table.from_batches(found, pa.schema([KAFKA_SCHEMA.field(name) for name in columns]))

    def values(self, start: int, end: int) -> dict[int, bytes | None]:
        """Values by offset."""
        rows = self.table(start, end)
        return dict(zip(rows["offset"].to_pylist(), rows["value"].to_pylist(), strict=True))


@pytest.fixture
def log(kafka: EmbeddedKafka) -> WrittenTopic:
    return WrittenTopic(kafka)


@pytest.fixture(params=["columns.c", "loop"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are taken by C, and by the loop in Python."""
    take = take_in_python if request.param == "loop" else request.getfixturevalue("compiled")
    monkeypatch.setattr(reader, "choose_take", lambda: take)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for half a minute in a test."""
    monkeypatch.setattr(reader, "SILENCE_S", 3.0)
    monkeypatch.setattr(reader, "SILENCES", 2)


class TestRanges:
    def test_several_topic_partitions_come_one_after_the_other(self, kafka: EmbeddedKafka) -> None:
        log = WrittenTopic(kafka)
        log.write(b"a", b"b", b"c", b"d")
        found = log.brokers.batches(log.topic, [OffsetRange(0, 2, 4), OffsetRange(0, 0, 1)], ("offset",))
        assert [batch["offset"].to_pylist() for batch in found] == [[2, 3], [0]]

    def test_a_range_begins_with_batches_as_large_as_the_range_before_had(
        self, log: WrittenTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log.write(*[b"x"] * 3 * reader.FIRST_ROWS)
        polled: list[int] = []
        poll = Consumer.poll

        def record_poll(consumer: Consumer, most: int, timeout_ms: int) -> PolledMessages:
            polled.append(most)
            return poll(consumer, most, timeout_ms)

        monkeypatch.setattr(Consumer, "poll", record_poll)
        begins = []
        rows = 0
        ranges = [OffsetRange(0, 0, 3 * reader.FIRST_ROWS)] * 2
        for batch in log.brokers.batches(log.topic, ranges, ("offset",)):
            if batch["offset"][0].as_py() == 0:
                begins.append(len(polled) - 1)
            rows += batch.num_rows
        first, second = begins
        assert (polled[first], polled[second]) == (reader.FIRST_ROWS, 3 * reader.FIRST_ROWS)
        assert rows == 6 * reader.FIRST_ROWS


@pytest.mark.usefixtures("_each_way")
class TestGaps:
    def test_aborted_records_are_not_given(self, log: WrittenTopic) -> None:
        log.write(b"before")
        log.transaction(b"aborted", commit=False)
        log.transaction(b"committed", commit=True)
        log.write(b"after")
        assert log.values(0, 6) == {0: b"before", 3: b"committed", 5: b"after"}

    def test_a_range_may_end_in_a_marker(self, log: WrittenTopic, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reader, "SILENCE_S", 10 * PATIENCE_S)  # were it waited for, the test would be a timeout
        log.transaction(b"committed", commit=True)
        assert log.values(0, 2) == {0: b"committed"}

    def test_a_range_may_hold_nothing_at_all(self, log: WrittenTopic) -> None:
        log.transaction(b"aborted", b"aborted", commit=False)
        log.write(b"after")
        assert log.values(0, 3) == {}

    @pytest.mark.slow("a case more of reading a real broker")
    def test_a_range_may_end_where_records_were_compacted(self, kafka: EmbeddedKafka) -> None:
        log = WrittenTopic(
            kafka,
            cleanup_policy="compact",
            segment_ms="100",
            min_cleanable_dirty_ratio="0.01",
        )
        log.write(b"kept", *[b"old"] * 4, keys=[b"other", *[b"same"] * 4])
        time.sleep(0.3)
        log.write(b"new", keys=[b"same"])
        deadline = time.monotonic() + PATIENCE_S
        while log.values(0, 6) != {0: b"kept", 5: b"new"}:
            assert time.monotonic() < deadline, f"a timeout: not compacted within {PATIENCE_S} s"
            time.sleep(0.3)
            log.write(b"rolls", keys=[b"third"])  # the open segment is never compacted
        assert log.values(0, 4) == {0: b"kept"}
        assert log.values(2, 5) == {}


class TestWhatIsGone:
    @pytest.mark.usefixtures("_each_way")
    def test_expired_records_are_an_error_and_not_passed_over(self, log: WrittenTopic) -> None:
        log.write(*[b"x"] * 10)
        log.topics.expire(log.topic, 5)
        with pytest.raises(TransientError, match=r"partition 0: Kafka has no record at offset 2 any more.*planning"):
            log.values(2, 8)

    @pytest.mark.slow("a case more of reading a real broker")
    @pytest.mark.usefixtures("hasty")
    def test_a_log_that_ends_before_the_range_is_an_error_after_a_wait(self, log: WrittenTopic) -> None:
        log.write(b"a", b"b")
        with pytest.raises(KafkaUnavailableError, match=r"from offset 2 on within.*; 5 was planned, the log ends at 2"):
            log.values(0, 5)

    @pytest.mark.slow("a case more of reading a real broker")
    @pytest.mark.usefixtures("hasty")
    def test_records_that_come_late_are_waited_for(self, log: WrittenTopic, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reader, "SILENCE_S", 20.0)
        log.write(b"a")
        late = threading.Timer(1.0, log.write, [b"b"])
        late.start()
        assert log.values(0, 2) == {0: b"a", 1: b"b"}
        late.join()

    def test_a_deleted_topic_is_an_error(self, log: WrittenTopic) -> None:
        soon = {"topic.metadata.propagation.max.ms": "500", "topic.metadata.refresh.interval.ms": "500"}
        log.brokers = replace(log.brokers, properties=soon)
        log.topics.delete(log.topic)
        with pytest.raises(TransientError, match=rf"topic '{log.topic}', partition 0 is not there any more"):
            log.values(0, 1)


class SilentConsumer(Consumer):
    """Stands for a client of librdkafka that takes the leader of a topic which was created again for an old answer."""

    def poll(self, most: int, timeout_ms: int) -> PolledMessages:
        del most
        time.sleep(timeout_ms / 1000)
        return PolledMessages(self._rd, self._pointers, 0)


@pytest.mark.usefixtures("hasty")
def test_a_range_is_read_by_a_new_client_when_a_warm_one_gets_nothing_of_it(
    log: WrittenTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(b"a", b"b", b"c")
    monkeypatch.setattr(reader, "SILENCE_S", 0.5)
    reader.get_consumer.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(reader, "Consumer", SilentConsumer)
        reader.get_consumer(os.getpid(), tuple(sorted(log.brokers.consumer_settings.items())))
    assert log.values(1, 3) == {1: b"b", 2: b"c"}


class TestRecords:
    @pytest.mark.parametrize("stamp_ms", [-5000, -1, 1, 253_402_300_800_000, 1_700_000_000_000_000_000, 2**63 - 1])
    def test_keep_any_timestamp(self, log: WrittenTopic, stamp_ms: int) -> None:
        log.write(b"x", stamp_ms=stamp_ms)
        assert log.table(0, 1, ("timestamp",))["timestamp"].cast(pa.int64()).to_pylist() == [stamp_ms]

    @pytest.mark.slow("a case more of reading a real broker")
    def test_may_be_fifty_megabytes(self, kafka: EmbeddedKafka) -> None:
        log = WrittenTopic(kafka, max_message_bytes=str(64 * MEBIBYTE))
        large = os.urandom(50 * MEBIBYTE)
        log.write(b"small", large, b"after")
        assert log.values(0, 3) == {0: b"small", 1: large, 2: b"after"}

    @pytest.mark.slow("a case more of reading a real broker")
    @pytest.mark.usefixtures("_each_way")
    def test_come_in_batches_of_some_megabytes_however_large_they_are(self, kafka: EmbeddedKafka) -> None:
        log = WrittenTopic(kafka, max_message_bytes=str(2 * MEBIBYTE))
        log.write(*[bytes(MEBIBYTE)] * 300)
        sizes = [batch.nbytes for batch in log.brokers.batches(log.topic, [OffsetRange(0, 0, 300)], ("value",))]
        assert sum(sizes) >= 300 * MEBIBYTE
        assert max(sizes) <= reader.BATCH_BYTES + MEBIBYTE


class TestBrokers:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[EmbeddedKafka]:
        with EmbeddedKafka.start(tmp_path / "kafka") as broker:
            yield broker

    @staticmethod
    def _java(broker: EmbeddedKafka) -> psutil.Process:
        return psutil.Process(broker.pid).children(recursive=True)[-1]

    @pytest.mark.usefixtures("jvm")
    @pytest.mark.slow("a case more of reading a real broker")
    def test_records_of_brokers_that_pause_are_waited_for(self, own: EmbeddedKafka) -> None:
        log = WrittenTopic(own)
        log.write(*[os.urandom(1000)] * 60_000)
        found = log.brokers.batches(log.topic, [OffsetRange(0, 0, 60_000)], ("offset",))
        offsets = next(found)["offset"].to_pylist()
        java = self._java(own)
        java.send_signal(signal.SIGSTOP)
        threading.Timer(3.0, java.send_signal, [signal.SIGCONT]).start()
        for batch in found:
            offsets += batch["offset"].to_pylist()
        assert offsets == list(range(60_000))

    @pytest.mark.usefixtures("jvm")
    @pytest.mark.slow("a case more of reading a real broker")
    @pytest.mark.usefixtures("hasty")
    def test_that_are_killed_mid_read_are_an_error(self, own: EmbeddedKafka) -> None:
        log = WrittenTopic(own)
        log.write(*[os.urandom(2000)] * 60_000)
        found = log.brokers.batches(log.topic, [OffsetRange(0, 0, 60_000)], ("offset",))
        next(found)
        self._java(own).kill()
        with pytest.raises(KafkaUnavailableError, match=rf"Kafka at {own.bootstrap_servers} did not give the records"):
            list(found)

    @pytest.mark.usefixtures("hasty")
    def test_that_cannot_be_reached_are_an_error(self) -> None:
        with pytest.raises(KafkaUnavailableError, match=r"Kafka at 127\.0\.0\.1:1 did not give.*Connection refused"):
            list(KafkaReader("127.0.0.1:1").batches("t", [OffsetRange(0, 0, 1)], ("value",)))


class TestProperties:
    def test_the_users_properties_win_except_for_those_that_reading_needs(self) -> None:
        given = {"fetch.wait.max.ms": "77", "auto.offset.reset": "earliest", "isolation.level": "read_uncommitted"}
        settings = KafkaReader("k:1", given).consumer_settings
        assert settings["fetch.wait.max.ms"] == "77"
        assert (settings["auto.offset.reset"], settings["isolation.level"]) == ("error", "read_committed")

    def test_that_are_unknown_to_librdkafka_are_refused_by_name(self) -> None:
        with pytest.raises(ConfigurationError, match=r"kafka\.properties: librdkafka refuses them.*\"no\.such\""):
            list(KafkaReader("k:1", {"no.such": "1"}).batches("t", [OffsetRange(0, 0, 1)], ("value",)))

    def test_are_no_part_of_what_is_printed(self) -> None:
        assert "hunter2" not in repr(KafkaReader("k:1", {"sasl.password": "hunter2"}))
