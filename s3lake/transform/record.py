"""One record on its way through a chain, and the steps that a chain is made of."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import msgspec

from s3lake.convert.converters import CONVERTERS
from s3lake.schema import connect
from s3lake.text.masking import quote
from s3lake.transform.instants import Marking, marking

Side = Literal["key", "value"]
Header = tuple[str, bytes | None]

UNREAD: Any = object()
"""Stands for a key or value that no step looks into."""

NULL = msgspec.Raw(b"null")
"""JSON's null as a value; None is Kafka's, a tombstone."""

_SHOWN = 60
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=int)  # an instant is its number
# A number with a fraction keeps its digits: through a double, 0.10 would become 0.1 and long ones would be cut.
_decoder = msgspec.json.Decoder(float_hook=Decimal)


class Refusal(ValueError):
    """A step cannot handle this record; the message names field and value."""


class Record:
    """A record whose parts the steps replace; a batch's records are one after the other in the same object.

    Attributes:
        origin: the topic's own name; `topic` is the one that routers gave it.
        timestamp: epoch ms, None where Kafka has none.
        wallclock_ms: the micro-batch's time.
        key, value: decoded, None for null, UNREAD where no step looks at them. They are never changed in place. Dates
            and times of a schema are instants.
        headers: all of them where a step looks at headers, else those that steps have added.
    """

    __slots__ = ("headers", "key", "offset", "origin", "partition", "timestamp", "topic", "value", "wallclock_ms")

    def __init__(self, topic: str, wallclock_ms: int) -> None:
        self.origin = topic
        self.topic = topic
        self.wallclock_ms = wallclock_ms
        self.partition = 0
        self.offset = 0
        self.timestamp: int | None = None
        self.key: Any = UNREAD
        self.value: Any = UNREAD
        self.headers: list[Header] = []

    def add(self, name: str, value: bytes | None) -> None:
        """Append a header, also where there is one of that name."""
        self.headers.append((name, value))


@dataclass(frozen=True)
class Step:
    """One transform. Steps are plain values: they travel to Spark's workers."""

    @property
    def reads(self) -> frozenset[str]:
        """Parts of a record that it looks at: key, value, headers, tombstone (whether there is a value)."""
        return frozenset()

    @property
    def writes(self) -> frozenset[str]:
        """Parts that it may change: key, value, headers, topic."""
        return frozenset()

    @property
    def json_only(self) -> bool:
        """Whether it leaves everything that is no JSON as it is, and so does nothing to values of another kind."""
        return False

    def __call__(self, record: Record) -> bool | None:
        """Change the record; True drops it.

        Raises:
            Refusal: it cannot be handled.
        """
        raise NotImplementedError

    def at(self, position: int) -> Step:  # noqa: ARG002 - most do the same wherever they stand
        """The step at its place in the chain."""
        return self


@dataclass(frozen=True)
class HeaderStep(Step):
    """A transform that adds headers."""

    writes = frozenset({"headers"})

    def constants(self, wallclock_ms: int) -> list[Header] | None:  # noqa: ARG002 - for those that can
        """What it adds to every record, whatever is in it; None where it has to look at the record."""
        return None


@dataclass(frozen=True)
class SideStep(Step):
    """A transform of the key or of the value, whichever its class was asked for (`$Key`, `$Value`)."""

    side: Side

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({self.side})

    @property
    def writes(self) -> frozenset[str]:
        return frozenset({self.side})

    def operand(self, record: Record) -> Any:
        """The key or the value."""
        return record.key if self.side == "key" else record.value

    def assign(self, record: Record, new: Any) -> None:
        """Replace the key or the value."""
        if self.side == "key":
            record.key = new
        else:
            record.value = new

    def object_of(self, record: Record) -> dict[str, Any]:
        """The key or value, which must be an object.

        Raises:
            Refusal: it is none.
        """
        operand = self.operand(record)
        if not isinstance(operand, dict):
            raise Refusal(f"the {self.side} is {shown(operand)}, a JSON object is needed")
        return operand


def decoded(data: bytes | None, converter: str, mark: Marking | None = None) -> Any:
    """A key or value as steps see it; of Connect's JSON with its schema the payload.

    Args:
        data: as Kafka has it, or JSON of what was framed.
        converter: of the data.
        mark: makes instants of it; of Connect's JSON its own schema says them.

    Raises:
        Refusal: it is not what its converter says.
    """
    if data is None or CONVERTERS[converter].gives == "bytes":
        return data
    try:
        if CONVERTERS[converter].gives == "text":
            return data.decode()
        if CONVERTERS[converter].enveloped:
            data, mark = _payload(data)
        value = _decoder.decode(data)
        return value if mark is None else mark(value)
    except RecursionError:
        raise Refusal("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Refusal(f"no UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from None
    except ArithmeticError:
        raise Refusal("a number in it has an exponent beyond all bounds") from None
    except msgspec.DecodeError as error:
        raise Refusal(f"no JSON: {error}" if data.strip() else "empty, where JSON is needed") from None


def _payload(data: bytes) -> tuple[bytes, Marking | None]:
    parts = connect.split(data)
    if parts is None:
        return data, None
    schema, payload = parts
    reader = _reader(schema)
    if isinstance(reader, str):
        raise Refusal(f"its schema is none: {reader}")
    read, mark = reader
    try:
        return read(payload), mark
    except msgspec.ValidationError as error:
        raise Refusal(f"its payload does not fit its schema: {error}") from None


@lru_cache(maxsize=4096)
def _reader(schema: bytes) -> tuple[connect.Read, Marking | None] | str:
    """How payloads of a schema are read, and their instants marked; the reason where it is none."""
    compiled = connect.compiled(schema, tabular=False)
    if isinstance(compiled, str):
        return compiled
    described, read = compiled
    return read, marking(described.type)


def encoded(value: Any) -> bytes | None:
    """What a step left, as JSON."""
    return None if value is None else _encoder.encode(value)


def header_text(value: Any) -> bytes | None:
    """A value as a header carries it: text as it is, numbers plain, true and false, objects and lists as JSON."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case bytes():
            return value
        case Decimal() if -30 < value.adjusted() < 30:
            return format(value, "f").encode()
    return _encoder.encode(value)


def shown(value: Any, field: str = "") -> str:
    """A value in messages: its kind, and what it is where that is short and `field` is not the name of a secret."""
    match value:
        case None:
            return "null"
        case bool():
            return f"{quote(field, str(value).lower())} (a boolean)"
        case int() | float() | Decimal():
            return f"{quote(field, str(value)[:_SHOWN])} (a number)"
        case str():
            return f"{quote(field, repr(value[:_SHOWN]))} (a text)"
        case bytes():
            return f"{len(value)} bytes"
        case dict():
            return "an object"
        case list():
            return "a list"
    return "null" if value is NULL else "not read"
