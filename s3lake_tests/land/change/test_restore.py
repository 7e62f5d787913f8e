"""Restoring: records are in the topic as they were, each once, wherever a restoration was stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from s3lake.errors import ConfigurationError
from s3lake.land.change import restore as restoring
from s3lake.land.change.restore import Restore, produce_record, restore_records
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake_tests.conftest import short_id, slow_after
from s3lake_tests.kit.crashes import Crash
from s3lake_tests.kit.lake import Lake
from s3lake_tests.kit.stores import RacingStore
from s3lake_tests.kit.topics import read_topic
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.parts import Parts, holding, run_change

RECORD = {"style": "record", "fields": ["key", "value", "headers", "metadata"]}


def landed(**sink: Any) -> Parts:
    """Two topic-partitions; the second commit has a dead letter in the middle of its records."""
    world = Parts(**{"envelope": RECORD, "flush": {"count": 2}, **sink})
    headers = [("h", b"1"), ("h", None), ("g", b"\xff")]
    world.land_records([(b"k%d" % number, b'{"n":%d}' % number, headers) for number in range(5)])
    others = [(None, b'{"a": "\xc3\xa9"}', []), (b"d", b"no JSON", headers), (b"z", b'{"n":7}', [])]
    world.land_records(others, partition=1)
    return world


def as_they_were(world: Parts) -> list[tuple[Any, ...]]:
    return [
        (partition, *world.log.more[partition, offset][:1], value, list(world.log.more[partition, offset][1]), stamp)
        for partition, log in sorted(world.log.records.items())
        for offset, (stamp, value) in sorted(log.items())
    ]


def consumed(lake: Lake, topic: str) -> list[tuple[Any, ...]]:
    """What a reader of committed data gets, by topic-partition."""
    messages = read_topic(lake.kafka.bootstrap_servers, topic)
    return [
        (one.partition(), one.key(), one.value(), list(one.headers() or ()), one.timestamp()[1])
        for one in sorted(messages, key=lambda one: one.partition() or 0)
    ]


@pytest.mark.parametrize(
    "sink",
    slow_after(
        1,
        "another format",
        [{}, {"format": {"type": "parquet"}, "converter": {"value": "string", "key": "bytes"}}],
    ),
    ids=short_id,
)
def test_wherever_it_is_stopped_each_record_is_there_once_and_as_it_was(
    lake: Lake, sink: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "TRANSACTION", 3)
    world, into = landed(**sink), lake.topic(partitions=2)
    wanted = Restore(holding(world), [HOUR], into)

    def stopped_between(done: int) -> None:
        if done == 3:
            raise Crash

    with pytest.raises(Crash):
        restore_records(wanted, lake.kafka.bootstrap_servers, {}, stopped_between)
    assert len(consumed(lake, into)) == 3

    class Broken(Restore):
        def records(self) -> Iterator[Any]:
            for number, record in enumerate(super().records()):
                if number == 5:
                    raise Crash  # in the middle of a transaction
                yield record

    with pytest.raises(Crash):
        restore_records(Broken(holding(world), [HOUR], into), lake.kafka.bootstrap_servers, {})
    reported: list[int] = []
    done = restore_records(Restore(holding(world), [HOUR], into), lake.kafka.bootstrap_servers, {}, reported.append)
    assert (done.records, done.done, reported) == (8, 8, [3, 6, 8])
    assert consumed(lake, into) == as_they_were(world)
    assert restore_records(Restore(holding(world), [HOUR], into), lake.kafka.bootstrap_servers, {}).done == 8
    assert len(consumed(lake, into)) == 8


@pytest.mark.slow("a case more on a real broker")
def test_hours_that_changed_since_it_began_are_refused_and_so_is_a_topic_that_does_not_fit(lake: Lake) -> None:
    world, into = landed(), lake.topic(partitions=2)
    restore_records(Restore(holding(world), [HOUR], into), lake.kafka.bootstrap_servers, {})
    run_change("compact", holding(world))
    with pytest.raises(ConfigurationError, match="were compacted or changed since"):
        restore_records(Restore(holding(world), [HOUR], into), lake.kafka.bootstrap_servers, {})
    with pytest.raises(ConfigurationError, match=r"it has 1 topic-partition, and records are of number 1: give"):
        restore_records(Restore(holding(world), [HOUR], lake.topic()), lake.kafka.bootstrap_servers, {})


def test_properties_that_librdkafka_refuses_are_an_error_without_their_secrets() -> None:
    properties = {"security.protocol": "ssl", "ssl.key.pem": "hunter2", "ssl.key.password": "routines"}
    with pytest.raises(ConfigurationError, match=r"librdkafka refuses them: .*DECODER \*+::"):
        restore_records(Restore(holding(landed()), [HOUR], "back"), "nowhere:1", properties)


def test_a_restore_of_records_without_some_parts_needs_these_parts_to_be_named() -> None:
    world = Parts().land(b'{"n":1}')
    with pytest.raises(ConfigurationError, match="--without key --without headers --without timestamp"):
        _ = Restore(holding(world), [HOUR], "back").planned
    wanted = Restore(holding(world), [HOUR], "back", ("key", "headers", "timestamp"))
    assert str(wanted.planned) == f"{HOUR} to {HOUR}: 0 of 1 record in 1 file is in topic back"
    assert [(one.value, one.timestamp, one.offset) for one in wanted.records()] == [(b'{"n":1}', -1, 0)]


class Produced:
    """Notes what is produced."""

    def __init__(self) -> None:
        self.stamps: list[int | None] = []

    def produce(self, *_: Any, timestamp: int | None = None, **__: Any) -> None:
        self.stamps.append(timestamp)


def test_a_record_of_any_size_goes_to_the_broker() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", **restoring.PRODUCER_SETTINGS})
    record = KafkaRecord("t", 0, 7, 1, None, bytes(2_000_000), ())
    produce_record(producer, Restore(holding(Parts()), [HOUR], "back"), record)
    assert len(producer) > 0
    producer.purge()


@pytest.mark.parametrize("stamp", [0, -1, -5])
def test_a_timestamp_that_no_client_writes_does_not_become_the_present_moment(stamp: int) -> None:
    record = KafkaRecord("t", 0, 7, stamp, None, b"1", ())
    producer = Produced()
    with pytest.raises(ConfigurationError, match=f"offset 7, has the timestamp {stamp}, .* use --without timestamp"):
        produce_record(producer, Restore(holding(Parts()), [HOUR], "back"), record)
    produce_record(producer, Restore(holding(Parts()), [HOUR], "back", ("timestamp",)), record)
    assert producer.stamps == [None]


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        ({"format": {"type": "parquet"}}, "its columns are fields of the value, whose text is not kept"),
        ({"transforms": [{"type": "InsertField$Value", "options": {"static.field": "a", "static.value": "b"}}]}, "SQL"),
    ],
    ids=short_id,
)
def test_values_that_objects_do_not_hold_cannot_go_back(sink: dict[str, Any], why: str) -> None:
    world = Parts(**sink).land(b'{"n":1}')
    with pytest.raises(ConfigurationError, match=f"cannot go back into a topic: .*{why}"):
        _ = Restore(holding(world), [HOUR], "back").planned


def test_parts_that_transforms_did_not_change_go_back() -> None:
    header = {"type": "InsertHeader", "options": {"header": "from", "value.literal": "here"}}
    world = Parts(envelope=RECORD, transforms=[header]).land(b'{"n": 1}')
    with pytest.raises(ConfigurationError, match="transforms or SQL may have changed the headers of its records"):
        _ = Restore(holding(world), [HOUR], "back").planned
    assert [one.value for one in Restore(holding(world), [HOUR], "back", ("headers",)).records()] == [b'{"n": 1}']


@dataclass
class Readers:
    """Counts the objects that are open at once, and the bytes of each request."""

    began: int = 0
    open: int = 0
    most: int = 0
    largest: int = 0

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        open_object = restoring.open_object

        @contextmanager
        def watched(store: Any, *given: Any) -> Iterator[Any]:
            self.began, self.open = self.began + 1, self.open + 1
            self.most = max(self.most, self.open)
            try:
                with open_object(Watched(store, self), *given) as stream:
                    yield stream
            finally:
                self.open -= 1

        monkeypatch.setattr(restoring, "open_object", watched)


@dataclass
class Watched:
    """A store that counts how much was asked for at once."""

    store: Any
    readers: Readers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def get(self, key: str, span: tuple[int, int]) -> Any:
        self.readers.largest = max(self.readers.largest, span[1] - span[0])
        return self.store.get(key, span)


def test_objects_are_read_one_after_the_other_where_their_offsets_do_not_overlap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, readers = Parts(envelope=RECORD, flush={"count": 2}), Readers()
    world.land(*(b'{"n":%d}' % number for number in range(20)))
    readers.watch(monkeypatch)
    wanted = Restore(holding(world), [HOUR], "back")
    assert wanted.planned.files == 10
    begun = [(one.offset, readers.began) for one in wanted.records()]
    assert begun == [(offset, offset // 2 + 1) for offset in range(20)]
    assert (readers.most, readers.open) == (1, 0)


def test_objects_whose_offsets_overlap_are_open_at_once_and_none_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    world, readers = Parts(envelope=RECORD, layout={"partition_by": ["n"]}, flush={"count": 2}), Readers()
    world.land(*(b'{"n":%d}' % (number % 2) for number in range(12)))
    readers.watch(monkeypatch)
    assert [one.offset for one in Restore(holding(world), [HOUR], "back").records()] == list(range(12))
    assert (readers.most, readers.open) == (2, 0)
    given_up = Restore(holding(world), [HOUR], "back").records()
    next(given_up)
    assert readers.open > 0
    given_up.close()  # type: ignore[attr-defined]
    assert readers.open == 0


def test_an_object_is_read_in_blocks_that_fit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    world, readers = Parts(envelope=RECORD, layout={"partition_by": ["n"]}), Readers()
    world.land(*(b'{"n":%d,"text":"%s"}' % (number % 2, b"x" * 1000) for number in range(100)))
    readers.watch(monkeypatch)
    monkeypatch.setattr(restoring, "MEMORY_BYTES", 64_000)
    monkeypatch.setattr(restoring, "LEAST_BLOCK", 1_000)
    assert [one.offset for one in Restore(holding(world), [HOUR], "back").records()] == list(range(100))
    assert (readers.most, readers.largest) == (2, 16_000)


@pytest.mark.slow("a case more on a real broker")
def test_an_hour_that_is_compacted_before_the_first_read_is_restored_from_its_new_files(lake: Lake) -> None:
    world, into = landed(), lake.topic(partitions=2)
    store = RacingStore(world.store, lambda: run_change("compact", holding(world)))
    done = restore_records(Restore(holding(world, store), [HOUR], into), lake.kafka.bootstrap_servers, {})  # type: ignore[arg-type]
    assert (done.done, done.files) == (8, 3)
    assert consumed(lake, into) == as_they_were(world)
