"""The pieces of an object key: Lenses' options and templates are both parsed to them.

The text of some pieces depends on the topic-partition, of some (elements) on the record, of some on the whole file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RESERVED_STEPS = frozenset((".", "..", "_dead_letters", ".probe"))
"""Names that no step of a key may have: clients resolve the first two, s3lake uses the others itself."""

PaddingType = Literal["left", "right", "none"]
NumberName = Literal["partition", "offset", "last_offset", "min_timestamp", "max_timestamp", "records"]
NUMBERS: tuple[NumberName, ...] = ("partition", "offset", "last_offset", "min_timestamp", "max_timestamp", "records")
LARGEST: dict[NumberName, int] = {**dict.fromkeys(NUMBERS, 2**63 - 1), "partition": 2**31 - 1}
TimeUnit = Literal["seconds", "milliseconds", "microseconds", "nanoseconds"]
Source = Literal["value", "key", "header", "timestamp", "schema", "topic"]


WRITE_ANOTHER = "have the producer write another text, or lay out by another element"
"""The remedy for a text that no object key can have."""


class NoObjectKeyError(ValueError):
    """A record has no valid object key; the message has the reason and the remedy."""


@dataclass(frozen=True)
class FixedText:
    """Fixed text."""

    text: str


@dataclass(frozen=True)
class Topic:
    """The topic's name."""


@dataclass(frozen=True)
class RoutedTopicElement:
    """The topic's name as a router made it for the record."""

    source: Source = "topic"


@dataclass(frozen=True)
class Extension:
    """The file's extension; the mark of a commit is before it."""


@dataclass(frozen=True)
class Number:
    """A number of the topic-partition or of the file, filled up to a length so that keys sort as numbers do."""

    name: NumberName
    length: int = 0
    how: PaddingType = "left"
    char: str = "0"

    def format(self, number: int) -> str:
        """Format `number` for a key; padding never cuts it."""
        text = str(number)
        if self.how == "left":
            return text.rjust(self.length, self.char)
        return text.ljust(self.length, self.char) if self.how == "right" else text


@dataclass(frozen=True)
class FieldElement:
    """A field of the value."""

    path: tuple[str, ...]
    source: Source = "value"


@dataclass(frozen=True)
class KeyElement:
    """The record's key, or a field of it.

    Attributes:
        required: a record without a key is refused; if false, `missing` is its text.
    """

    path: tuple[str, ...] = ()
    required: bool = False
    source: Source = "key"


@dataclass(frozen=True)
class HeaderElement:
    """The last of the record's headers of that name, or a field of it."""

    name: str
    path: tuple[str, ...] = ()
    source: Source = "header"


@dataclass(frozen=True)
class SchemaNameElement:
    """The name of the value's schema."""

    source: Source = "schema"


@dataclass(frozen=True)
class DateElement:
    """The record's timestamp by a pattern of Java's DateTimeFormatter, in UTC (Lenses' `_date`)."""

    pattern: str
    source: Source = "timestamp"


@dataclass(frozen=True)
class TimeElement:
    """A time by a pattern of Joda's.

    Attributes:
        clock: the source of the time; `field` is a field of the value at `path`.
        toward_zero: buckets before 1970 are cut toward it, as Confluent's.
        unit: the unit of a field's numbers without a type of times, None if the user has chosen none.
    """

    pattern: str
    clock: Literal["record", "wallclock", "field"]
    path: tuple[str, ...]
    zone: str
    locale: str
    bucket_ms: int | None
    toward_zero: bool = False
    unit: TimeUnit | None = None

    @property
    def source(self) -> Source | None:
        """The part of a record that it is made from."""
        return {"record": "timestamp", "field": "value", "wallclock": None}[self.clock]


@dataclass(frozen=True)
class Hour:
    """The tile's own hour by a pattern of Joda's, in UTC, as Dagster's partitions are; the same for all of a commit."""

    pattern: str


Element = FieldElement | KeyElement | HeaderElement | SchemaNameElement | DateElement | TimeElement | RoutedTopicElement
Piece = FixedText | Topic | Extension | Number | Hour | Element
_NAMES: dict[type[Piece], str] = {
    FieldElement: "field",
    KeyElement: "key",
    HeaderElement: "header",
    SchemaNameElement: "schema",
    DateElement: "date",
    TimeElement: "time",
    RoutedTopicElement: "topic",
    Topic: "topic",
    Extension: "extension",
    Hour: "hour",
}


def get_template_name(piece: Piece) -> str:
    """Return the name of a piece, as templates write it in braces; a fixed text has none."""
    return piece.name if isinstance(piece, Number) else _NAMES.get(type(piece), "")
