"""Restore: records of landed hours back into a topic, as they were, each exactly once.

They are produced in transactions, and each transaction also commits, for a consumer group of the restoration's own, how
many records are there: so what was stopped goes on where its last transaction ended, and a restoration that is started
twice ends the one before.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from s3lake.errors import ConfigurationError, DataLossError, IncompleteError, KafkaUnavailableError
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, collect_files
from s3lake.index.store.reading import open_object
from s3lake.index.store.upload import PART_BYTES
from s3lake.lake.objects import ObjectShape
from s3lake.lake.objects.dead_letter_objects import read_dead_letters
from s3lake.land.change.kafka_records import Parts, read_kafka_records
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.land.topic.topic_sink import TopicSink, retry_fenced
from s3lake.source.kafka.client_properties import hide_secrets, to_librdkafka
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

PARTS = ("key", "headers", "timestamp")
TRANSACTION = 50_000
"""Records of one transaction."""
MEMORY_BYTES = 256 * 2**20
"""That blocks of the objects of a topic-partition and hour hold, as long as a block is not below the least."""
LEAST_BLOCK = 256 * 2**10
_TIMEOUT_S = 60.0
PRODUCER_SETTINGS = {
    "log_level": "0",
    "linger.ms": "50",
    "compression.type": "lz4",
    "message.max.bytes": "1000000000",  # the broker judges: it has taken these records once
    "queue.buffering.max.messages": "200000",
    "queue.buffering.max.kbytes": "262144",
}


def require_allowed(sinks: Sequence[Sink], into: str, without: Collection[str], *, landed_again: bool) -> None:
    """Refuse options that can only be a mistake, before anything is read.

    Raises:
        ConfigurationError: a part that records do not have, or a topic that one of `sinks` would land again.
    """
    strange = sorted({*without} - {*PARTS})
    if strange:
        raise ConfigurationError(f"--without {strange[0]}: it takes {', '.join(PARTS)}")
    readers = [one.name for one in sinks if one.reads(into)]
    if readers and not landed_again:
        raise ConfigurationError(
            f"--into {into}: sink {readers[0]} reads this topic and would land the records again: take another "
            "topic, or use --landed-again"
        )


@dataclass(frozen=True)
class Restoration:
    """Hours that go back into a topic.

    Attributes:
        into: the topic.
        records: rows and dead letters of the hours.
        files: objects that hold them.
        done: records that are in the topic.
        without_value: records without a value that the sink left out: they are in no object.
    """

    into: str
    first: str
    last: str
    records: int
    files: int
    done: int = 0
    without_value: int = 0

    def __str__(self) -> str:
        lacking = f"; {self.without_value:,} without a value were never landed" if self.without_value else ""
        return (
            f"{self.first} to {self.last}: {self.done:,} of {format_count(self.records, 'records')} in "
            f"{format_count(self.files, 'files')} {'is' if self.records == 1 else 'are'} in topic {self.into}{lacking}"
        )


@dataclass
class Restore:
    """The records of hours of a sink, in the order in which they are produced: by hour, topic-partition and offset.

    Attributes:
        without: parts of records that are left out: objects do not hold them, or not as they were in Kafka.
    """

    target: TopicSink
    hours: Sequence[str]
    into: str
    without: Collection[str] = ()
    _commits: dict[str, Manifest] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def files(self) -> Mapping[str, list[File]]:
        """The objects of each hour.

        Raises:
            IncompleteError: an hour is not complete.
            ConfigurationError: objects do not hold what records were.
        """
        files = {}
        for hour in self.hours:
            manifests = self.target.manifests(hour)
            if manifests is None:
                raise IncompleteError(f"{self.target.topic} {hour} is not complete: land it first")
            files[hour] = collect_files(manifests, "data", DEAD_LETTERS)
            for manifest in manifests:
                self._require_parts(manifest)
                self._commits |= {file.key: manifest for file in manifest.files}
        return files

    @property
    def planned(self) -> Restoration:
        """The restoration that is to be done."""
        files = list(chain.from_iterable(self.files.values()))
        commits = {manifest.id: manifest for manifest in self._commits.values()}
        skipped = sum(read.skipped for manifest in commits.values() for read in manifest.partitions.values())
        count = sum(file.records for file in files)
        return Restoration(self.into, self.hours[0], self.hours[-1], count, len(files), without_value=skipped)

    @cached_property
    def identity(self) -> str:
        """The digest of these records in this order: it changes if the hours are changed."""
        keys = "\n".join(file.key for file in chain.from_iterable(self.files.values()))
        return hashlib.sha256(f"{keys}\n{sorted(self.without)}".encode()).hexdigest()[:16]

    @property
    def group(self) -> str:
        """The consumer group that stores its progress, and the id of its transactions."""
        name = self.target.sink.name, self.target.topic, self.into, self.hours[0], self.hours[-1]
        return f"s3lake-restore-{'-'.join(name)}"

    def records(self) -> Iterator[KafkaRecord]:
        """All records, in order."""
        for hour in self.hours:
            ordered = sorted(self.files[hour], key=attrgetter("partition", "first_offset", "key"))
            for _, some in groupby(ordered, key=attrgetter("partition")):
                yield from self._merge(list(some))

    def _merge(self, files: Sequence[File]) -> Iterator[KafkaRecord]:
        """Yield the records of files by offset. Files are in the order of their first offsets.

        An object is opened when its first record is due, and closed after its last one: so those are open at the same
        time whose offsets overlap.
        """
        block_bytes = max(LEAST_BLOCK, min(PART_BYTES, MEMORY_BYTES // (2 * len(files))))
        # By the offset that is due next. The number of its file decides if two are the same: records have no order.
        due: list[tuple[int, int, KafkaRecord | None, Generator[KafkaRecord, None, None]]] = [
            (file.first_offset, number, None, self._records(file, block_bytes)) for number, file in enumerate(files)
        ]
        try:
            while due:
                _, number, record, rows = due[0]
                if record is not None:
                    yield record
                following = next(rows, None)  # opens the object if it is the first one
                if following is None:
                    heapq.heappop(due)
                else:
                    heapq.heapreplace(due, (following.offset, number, following, rows))
        finally:
            for *_, rows in due:
                rows.close()

    def _records(self, file: File, block_bytes: int) -> Generator[KafkaRecord, None, None]:
        manifest = self._commits[file.key]
        index = self.target.index
        with (
            index.reading(manifest.hour, [manifest.id]),
            open_object(index.store, file.key, file.bytes, manifest.id, block_bytes) as stream,
        ):
            if file.stream == DEAD_LETTERS:
                for dead_letter in read_dead_letters(stream, file.key):
                    place = dead_letter.topic, dead_letter.partition, dead_letter.offset, dead_letter.timestamp_ms
                    yield KafkaRecord(*place, dead_letter.key, dead_letter.value, dead_letter.headers)
            else:
                yield from chain.from_iterable(
                    read_kafka_records(ObjectShape.from_manifest(manifest), stream, file, index.topic)
                )

    def _require_parts(self, manifest: Manifest) -> None:
        if all(file.stream == DEAD_LETTERS for file in manifest.files):
            return
        shape = ObjectShape.from_manifest(manifest)
        parts = Parts.from_shape(shape)
        where = f"{self.target.topic} {manifest.hour} cannot go back into a topic"
        restored = {
            "value",
            *(part for part in ("key", "headers") if getattr(parts, part) and part not in self.without),
        }
        changed = [part for part in manifest.form.transformed if part in restored]
        if parts.lacking or changed:
            why = parts.lacking or f"transforms or SQL may have changed the {' and '.join(changed)} of its records"
            raise ConfigurationError(f"{where}: {why}")
        lacks = [part for part in PARTS if not getattr(parts, part) and part not in self.without]
        if lacks:
            raise ConfigurationError(
                f"{where} as it was: its envelope does not hold the {' and '.join(lacks)} of records. To restore "
                f"without, use {' '.join(f'--without {part}' for part in lacks)}"
            )


@retry_fenced
def restore_records(
    request: Restore,
    bootstrap_servers: str,
    properties: Mapping[str, str],
    advance: Callable[[int], None] = lambda _: None,
) -> Restoration:
    """Produce what is not in the topic yet.

    Args:
        request: the records.
        bootstrap_servers: the addresses of the cluster, `HOST:PORT` with commas.
        properties: the properties of the Kafka clients, by the names of the configuration.
        advance: called with how many records are in the topic.

    Raises:
        ConfigurationError: the topic does not exist, it has too few topic-partitions, librdkafka refuses the
            properties, or hours were changed since a restoration of them began.
        DataLossError: an object is missing, or is another one.
        KafkaUnavailableError: the brokers were in the way: this can be repeated, and goes on where it was.
        FencedError: other writers changed the hours, again and again.
    """
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    # Each time with the objects that there are then: if an hour was changed after a first transaction, it is unknown
    # which records are in the topic, and that is refused.
    request = replace(request)
    planned, group = request.planned, request.group
    settings: dict[str, Any] = {**to_librdkafka(properties), "bootstrap.servers": bootstrap_servers}
    try:
        consumer = Consumer({**settings, "log_level": "0", "group.id": group, "enable.auto.commit": "false"})
        producer = Producer({**settings, **PRODUCER_SETTINGS, "transactional.id": group})
    except KafkaException as error:
        reason = hide_secrets(error.args[0].str(), settings)
        raise ConfigurationError(f"kafka.properties: librdkafka refuses them: {reason}") from None
    try:
        producer.init_transactions(_TIMEOUT_S)  # ends a transaction that another process has left open
        _require_topic(producer, request)
        done = _read_position(consumer, request)
        advance(done)
        left = islice(request.records(), done, None)
        member = consumer.consumer_group_metadata()
        while some := list(islice(left, TRANSACTION)):
            producer.begin_transaction()
            for record in some:
                produce_record(producer, request, record)
            position = TopicPartition(request.into, 0, done + len(some), metadata=request.identity)
            producer.send_offsets_to_transaction([position], member, _TIMEOUT_S)
            producer.commit_transaction(_TIMEOUT_S)
            done += len(some)
            advance(done)
    except KafkaException as error:
        raise KafkaUnavailableError(
            f"restoring into topic {request.into}: {hide_secrets(error.args[0].str(), settings)}. What is committed "
            "stays; the same command goes on after it"
        ) from None
    finally:
        consumer.close()
    if done != planned.records:
        raise DataLossError(
            f"objects of {request.target.topic} hold {format_count(done, 'records')}, the index states "
            f"{planned.records:,}"
        )
    return Restoration(**{**vars(planned), "done": done})


def produce_record(producer: Any, request: Restore, record: KafkaRecord) -> None:
    stamp = {"timestamp": record.timestamp} if record.timestamp > 0 else {}
    if not stamp and "timestamp" not in request.without:  # Kafka's clients would make the present moment of it
        raise ConfigurationError(
            f"the record of topic-partition {record.partition}, offset {record.offset}, has the timestamp "
            f"{record.timestamp}, which no client of Kafka can write. To restore such records with the present moment "
            "instead, use --without timestamp, into a new topic"
        )
    key = None if "key" in request.without else record.key
    headers = [] if "headers" in request.without else list(record.headers)
    while True:
        try:
            producer.produce(request.into, record.value, key, record.partition, headers=headers, **stamp)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _require_topic(producer: Any, request: Restore) -> None:
    metadata = producer.list_topics(request.into, _TIMEOUT_S).topics[request.into]
    if metadata.error is not None:
        raise ConfigurationError(f"--into {request.into}: {metadata.error.str()}: create the topic first")
    most = max((file.partition for file in chain.from_iterable(request.files.values())), default=0)
    if most >= len(metadata.partitions):
        raise ConfigurationError(
            f"--into {request.into}: it has {format_count(len(metadata.partitions), 'topic-partitions')}, and "
            f"records are of number {most}: give it {most + 1}"
        )


def _read_position(consumer: Any, request: Restore) -> int:
    from confluent_kafka import TopicPartition

    (position,) = consumer.committed([TopicPartition(request.into, 0)], _TIMEOUT_S)
    if position.offset < 0:
        return 0
    if position.metadata != request.identity:
        raise ConfigurationError(
            f"topic {request.into} has {format_count(position.offset, 'records')} of these hours, which were compacted "
            f"or changed since, so it is unknown which records it has: delete the topic and the consumer group "
            f"{request.group}, and begin again"
        )
    return int(position.offset)
