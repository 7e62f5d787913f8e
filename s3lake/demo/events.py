"""A shop's orders and clicks over the last three closed hours and the open one; the same events each time."""

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from datetime import datetime, timezone
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake.errors import KafkaUnavailableError
from s3lake.hours import HOUR_MS
from s3lake.text.quantities import format_count

CLOSED_HOURS = 3
_SEED, _SEED_OF_PRESENT = 7, 11
"""Decide everything that looks random in the hours up to now, and in what comes from then on."""

_TIMEOUT_S = 120.0
_PROGRESS_EVERY = 20_000

_POOL = 4096
_ORDERS_SHARE = 0.7
_LATE_SHARE = 0.003
_OUT_OF_ORDER_SHARE = 0.02
_OUT_OF_ORDER_MS = 30_000
_MALFORMED = (
    b'{"type":"order_placed","order_id":"cut-of',
    b"",
    b'{"type":"view","note":"\xff\xfe"}',
    b'{"type":"view","n":1}{"type":"view","n":2}',
)
_MALFORMED_EVERY = 50_000

_CURRENCIES = ("EUR", "USD", "GBP", "CHF")
_CITIES = ("Zürich", "Łódź", "Lyon", "Osaka", "Austin", "Malmö")
_GOODS = ("lamp-17", "chair-4", "desk-2", "rug-33", "sofa-8", "vase-51")
_PAGES = ("/", "/search?q=lamp", "/p/lamp-17", "/p/chair-4", "/p/desk-2", "/cart", "/checkout", "/blog/über-uns")
_OF_EACH_EVENT = ("type", "order_id", "click_id")

_Headers = list[tuple[str, str | bytes | None]]

_EVENTS: tuple[tuple[tuple[str, ...], str, _Headers], ...] = (
    (
        ("order_placed", "order_placed", "order_paid", "order_shipped", "order_returned"),
        "order_id",
        [("source", b"shop"), ("schema", b"order/1")],
    ),
    (("view", "view", "view", "click", "click", "add_to_cart", "purchase"), "click_id", [("source", b"web")]),
)
"""Of orders and of clicks: types, of which some are more frequent; the name of the id; headers."""

Fields = Mapping[tuple[str, ...], bool]
"""The path of each field that events get in addition, and whether it is the event's time in epoch milliseconds."""
NO_FIELDS: Fields = {}


@dataclass
class Produced:
    """The records that were produced, to one topic or to several.

    Attributes:
        committed: records that a read_committed consumer reads, including malformed ones.
        malformed: committed records whose value is not exactly one JSON document in UTF-8.
        late: committed records whose timestamp is in an earlier hour than their neighbours'.
        transactional: records of committed transactions.
        aborted: records of aborted transactions; they are not committed.
    """

    committed: int = 0
    malformed: int = 0
    late: int = 0
    transactional: int = 0
    aborted: int = 0

    @classmethod
    def total(cls, topics: Mapping[str, "Produced"]) -> "Produced":
        """Add up the records of several topics."""
        return cls(*map(sum, zip(*map(astuple, topics.values()), strict=True)))


def produce_demo(
    bootstrap_servers: str,
    records: int,
    now: datetime,
    *,
    topics: tuple[str, str] = ("orders", "clicks"),
    partitions: int = 4,
    fields: Fields = NO_FIELDS,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Produced]:
    """Create two topics and produce events to them, about 70 to 30. Return what was produced, by topic.

    The timestamps spread over the three closed hours before `now` and the open one, in order; a few records are out of
    order, late by an hour or more, or malformed. No value is null. Committed and aborted transactions come last. They
    have the real present time, whatever `now` is: the broker stamps transaction markers so, and a marker among
    back-dated records would bend `offsets_for_times`.

    Args:
        bootstrap_servers: Kafka's address.
        records: committed records over both topics.
        now: the present, with a time zone.
        topics: the names of the topics of orders and clicks; events are appended to topics that exist.
        partitions: topic-partitions of topics that do not exist.
        fields: see `Fields`; they replace the shop's own of that name.
        progress: called now and then with the number of committed records produced so far.

    Raises:
        KafkaUnavailableError: Kafka refused a request or did not answer.
    """
    _create_topics(bootstrap_servers, topics, partitions)
    shop = _Shop(_SEED, topics, partitions, fields)
    counts = {topic: Produced() for topic in topics}
    transactional = min(300, records // 10)
    plain = records - transactional
    now_ms = int(now.timestamp() * 1000)
    start_ms = (now_ms // HOUR_MS - CLOSED_HOURS) * HOUR_MS
    rng = random.Random(_SEED)
    malformed = _choose_malformed(rng, plain)
    sender = _Sender(bootstrap_servers)
    for number in range(plain):
        due_ms = start_ms + (now_ms - start_ms) * number // plain
        ms = _choose_timestamp(rng.random(), due_ms, start_ms)
        event = shop.make_event(ms)
        count = counts[event.topic]
        if number in malformed:
            event = event._replace(value=malformed[number])
            count.malformed += 1
        count.committed += 1
        count.late += ms // HOUR_MS < due_ms // HOUR_MS
        sender.send(event)
        if progress is not None and number % _PROGRESS_EVERY == 0:
            progress(number)
    sender.flush()
    if transactional:
        _produce_transactions(bootstrap_servers, shop, counts, transactional)
    if progress is not None:
        progress(records)
    return counts


def keep_producing(
    bootstrap_servers: str,
    stop: threading.Event,
    per_second: float = 5,
    *,
    topics: tuple[str, str] = ("orders", "clicks"),
    partitions: int = 4,
    fields: Fields = NO_FIELDS,
) -> int:
    """Produce a few events a second with the present time until `stop` is set. Return their number.

    The topics must exist and have at least `partitions` topic-partitions.

    Raises:
        KafkaUnavailableError: Kafka refused a record, or did not answer at the end.
    """
    sender = _Sender(bootstrap_servers)
    shop = _Shop(_SEED_OF_PRESENT, topics, partitions, fields)
    sent = 0
    while not stop.wait(1 / per_second):
        sender.send(shop.make_event(_present_ms()))
        sent += 1
    sender.flush()
    return sent


class _Event(NamedTuple):
    topic: str
    partition: int
    key: bytes
    value: bytes
    headers: _Headers
    ms: int


class _Shop:
    """Makes events of a pool of ready-made ones: drawing every field would take longer than producing the event."""

    def __init__(self, seed: int, topics: tuple[str, str], partitions: int, fields: Fields) -> None:
        self._seed, self._topics, self._partitions, self._number = seed, topics, partitions, 0
        self._random, rng = random.Random(seed).random, random.Random(seed)
        fields = {path: is_time for path, is_time in fields.items() if path[0] not in _OF_EACH_EVENT}
        self._time_fields = [path for path, is_time in fields.items() if is_time]
        customers = [rng.randrange(20_000) for _ in range(_POOL)]
        self._pools = [[(one, make(rng, one)) for one in customers] for make in (_make_order, _make_click)]
        for _, event in chain(*self._pools):
            for path in fields:
                _set_field(event, path, rng.randrange(3))  # few: each value may be a directory of S3

    def make_event(self, ms: int) -> _Event:
        """Make the next event, with its time in epoch milliseconds."""
        number, draw = int(self._random() >= _ORDERS_SHARE), int(self._random() * _POOL)
        self._number += 1
        types, id_name, headers = _EVENTS[number]
        customer, further = self._pools[number][draw]
        for path in self._time_fields:
            _set_field(further, path, ms)
        event = {
            "type": types[self._number % len(types)],
            id_name: f"{id_name[0]}{self._seed}-{self._number:08d}",
            "ts": datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds"),
            **further,
        }
        key, partition = b"c-%05d" % customer, customer % self._partitions
        return _Event(self._topics[number], partition, key, msgspec.json.encode(event), headers, ms)


def _make_order(rng: random.Random, customer: int) -> dict[str, object]:
    lines = [(rng.choice(_GOODS), rng.randint(1, 4), rng.randint(499, 29_999)) for _ in range(rng.choice((1, 1, 1, 2)))]
    order: dict[str, object] = {
        "customer": f"c-{customer:05d}",
        "city": rng.choice(_CITIES),
        "amount": sum(quantity * cents for _, quantity, cents in lines) / 100,
        "currency": rng.choice(_CURRENCIES),
        "items": [{"sku": sku, "qty": quantity, "price": cents / 100} for sku, quantity, cents in lines],
    }
    if rng.random() < 0.2:
        order["coupon"] = rng.choice(("SPRING", None))
    return order


def _make_click(rng: random.Random, customer: int) -> dict[str, object]:
    return {
        "user": f"c-{customer:05d}",
        "session": f"{rng.getrandbits(64):016x}",
        "url": f"https://shop.example{rng.choice(_PAGES)}",
        "referrer": rng.choice((None, "https://search.example/", "https://news.example/")),
        "screen": {"width": rng.choice((390, 1280, 1920)), "height": rng.choice((844, 800, 1080))},
        "ms_on_page": rng.randint(80, 90_000),
    }


def _set_field(event: dict[str, Any], path: tuple[str, ...], value: int) -> None:
    for name in path[:-1]:
        if not isinstance(event.get(name), dict):
            event[name] = {}
        event = event[name]
    event[path[-1]] = value


def _choose_malformed(rng: random.Random, records: int) -> dict[int, bytes]:
    """Choose the records that are malformed; return their values by number, each way of being malformed as often."""
    count = min(len(_MALFORMED) * max(1, records // _MALFORMED_EVERY), records // 10)
    places = rng.sample(range(records), count)
    return {place: _MALFORMED[number % len(_MALFORMED)] for number, place in enumerate(places)}


def _choose_timestamp(draw: float, due_ms: int, start_ms: int) -> int:
    """Return the time that is due; seldom a little earlier, rarely so late that it belongs to an earlier hour."""
    if draw < _LATE_SHARE:
        return max(start_ms, due_ms - HOUR_MS - int(draw / _LATE_SHARE * HOUR_MS))
    if draw < _LATE_SHARE + _OUT_OF_ORDER_SHARE:
        return max(start_ms, due_ms - int((draw - _LATE_SHARE) / _OUT_OF_ORDER_SHARE * _OUT_OF_ORDER_MS))
    return due_ms


def _present_ms() -> int:
    return time.time_ns() // 1_000_000


def _create_topics(bootstrap_servers: str, topics: tuple[str, str], partitions: int) -> None:
    # Kept in a variable: without the client its answers are lost.
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    requested = [NewTopic(topic, num_partitions=partitions) for topic in topics]
    for topic, created in admin.create_topics(requested, request_timeout=_TIMEOUT_S).items():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise KafkaUnavailableError(f"Kafka did not create the topic {topic!r}: {error.args[0]}") from error


def _produce_transactions(bootstrap_servers: str, shop: _Shop, counts: Mapping[str, Produced], records: int) -> None:
    """Produce three committed transactions of `records` in total, and two aborted ones of half their size between."""
    sender = _Sender(bootstrap_servers, {"transactional.id": f"s3lake-demo-{uuid.uuid4()}"})
    third = records // 3
    try:
        sender.producer.init_transactions(_TIMEOUT_S)
        for size, commits in ((third, True), (third // 2, False), (third, True), (third // 2, False)):
            _produce_transaction(sender, shop, counts, size, commits)
        _produce_transaction(sender, shop, counts, records - 2 * third, True)
    except KafkaException as error:
        raise KafkaUnavailableError(f"Kafka refused a transaction of the demo: {error.args[0]}") from error


def _produce_transaction(
    sender: "_Sender", shop: _Shop, counts: Mapping[str, Produced], size: int, commits: bool
) -> None:
    sender.producer.begin_transaction()
    for _ in range(size):
        event = shop.make_event(_present_ms())
        sender.send(event)
        count = counts[event.topic]
        count.committed += commits
        count.transactional += commits
        count.aborted += not commits
    # An abort drops records that have not been sent yet; these have to be in the log.
    sender.flush()
    if commits:
        sender.producer.commit_transaction(_TIMEOUT_S)
    else:
        sender.producer.abort_transaction(_TIMEOUT_S)


class _Sender:
    """A producer that waits when its queue is full and keeps the errors of records that brokers refused."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str] = {}) -> None:
        refused: list[KafkaError] = []

        # Not a method: the producer would keep this object, and with it itself and its connections, alive.
        def on_refusal(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                refused.append(error)

        self._refused = refused
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap_servers,
            # Retries must neither repeat nor reorder what is counted here.
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 200_000,
            "compression.type": "lz4",
            # Its warnings are about retries that succeed.
            "log_level": 3,
            # A callback for every record would cost more than the record.
            "delivery.report.only.error": True,
            "on_delivery": on_refusal,
        }
        self.producer = Producer({**settings, **properties})

    def send(self, event: _Event) -> None:
        topic, partition, key, value, headers, ms = event
        while True:
            try:
                self.producer.produce(topic, value, key, partition, timestamp=ms, headers=headers)
                return
            except BufferError:
                self.producer.poll(0.02)
            except KafkaException as error:  # the client refuses it by itself once it has the topic's metadata
                self._refused.append(error.args[0])
                return

    def flush(self) -> None:
        waiting = self.producer.flush(_TIMEOUT_S)
        if self._refused:
            raise KafkaUnavailableError(
                f"Kafka refused {format_count(len(self._refused), 'demo records')}, first: {self._refused[0]}"
            )
        if waiting:
            raise KafkaUnavailableError(
                f"Kafka did not take {format_count(waiting, 'demo records')} within {_TIMEOUT_S:.0f} s."
            )
