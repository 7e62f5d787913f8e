"""Object keys: directory, file name, extension. Known before a file's first byte, so that uploads stream.

Default: `[prefix/]topic/partition/OFFSET[suffix].ext`. With `partition_by`:
`[prefix/]topic/[name=]value/…/topic(PARTITION_OFFSET)[suffix].ext`. OFFSET is the file's first record's offset.
Source: the Lenses document, and compatibility.md, Object keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from s3lake.layout import dates, partitioners
from s3lake.layout.padding import PaddingType, pad
from s3lake.layout.partitioners import Element, Unplaceable

if TYPE_CHECKING:
    from s3lake.sink import Sink

MAX_KEY_BYTES = 1024
_MARK_BYTES = 13  # `renamed` of any later commit


@dataclass(frozen=True)
class Fields:
    """What directories can be named after: one entry per record, empty where no element asks for it.

    Attributes:
        values: values as JSON bytes.
        keys: keys as bytes.
        headers: lists of `{"key": name, "value": bytes}`.
        timestamps: epoch milliseconds.
    """

    values: Sequence[bytes | None] = ()
    keys: Sequence[bytes | None] = ()
    headers: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    timestamps: Sequence[int] = ()


@dataclass(frozen=True)
class KeyRule:
    """A sink's layout for one topic, as plain values: Spark's closures carry it to the workers.

    Attributes:
        root: empty, or the prefix ending in a slash.
        sink: the sink's name, for the directory of its dead letters.
        renamed: mark of a commit whose plain names may have been used before, for example `~1f2e3d4c5b6a`.
    """

    root: str
    sink: str
    topic: str
    elements: tuple[Element, ...]
    include_keys: bool
    padding: PaddingType
    char: str
    partition_length: int
    offset_length: int
    suffix: str
    extension: str
    key_converter: str
    renamed: str = ""

    @classmethod
    def of(cls, sink: Sink, topic: str, renamed: str = "") -> KeyRule:
        """The rule of `sink` for `topic`."""
        padding = sink.layout.padding
        return cls(
            root=sink.root,
            sink=sink.name,
            topic=topic,
            elements=tuple(map(partitioners.parse, sink.layout.partition_by)),
            include_keys=bool(sink.layout.include_keys),
            padding=padding.type,
            char=padding.char,
            partition_length=padding.partition,
            offset_length=padding.offset,
            suffix=sink.layout.suffix,
            extension=sink.format.extension,
            key_converter=sink.converter.key,
            renamed=renamed,
        )

    def needs(self, source: str) -> bool:
        """Whether a directory is named after this part of a record."""
        return any(element.source == source for element in self.elements)

    def fixed_directory(self, partition: int) -> str | None:
        """The directory of every record of a topic-partition, or None where it depends on the record."""
        if not self.elements:
            parts = [("topic", self.topic), ("partition", self._partition(partition))]
            return self.root + "/".join(self._named(name, value) for name, value in parts)
        if all(element.source in ("topic", "partition") for element in self.elements):
            return self._directory(
                [self.topic if e.source == "topic" else self._partition(partition) for e in self.elements]
            )
        return None

    def directories(self, partition: int, fields: Fields, records: int) -> list[str | Unplaceable]:
        """The directory of each of `records` records, or why it has none."""
        values = list(map(_decoded, fields.values)) if self.needs("value") else []
        columns = [self._column(element, partition, fields, values, records) for element in self.elements]
        known: dict[tuple[str | Unplaceable, ...], str | Unplaceable] = {}
        found = []
        for texts in zip(*columns, strict=True):
            directory = known.get(texts)
            if directory is None:
                directory = known[texts] = _placed(self._directory, texts)
            found.append(directory)
        return found

    def key(self, directory: str, partition: int, offset: int) -> str:
        """The key of a file that begins with `offset`."""
        name = pad(offset, self.offset_length, self.padding, self.char)
        if self.elements:
            name = f"{self.topic}({self._partition(partition)}_{name})"
        return f"{directory}/{name}{self.suffix}{self.renamed}{self.extension}"

    def dead_letters_key(self, partition: int, offset: int) -> str:
        """The key of a dead-letter object that begins with `offset`."""
        name = pad(offset, self.offset_length, self.padding, self.char)
        return f"{self.root}_dead_letters/{self.sink}/{self.topic}/{partition}/{name}{self.renamed}.json"

    def _partition(self, partition: int) -> str:
        return pad(partition, self.partition_length, self.padding, self.char)

    def _named(self, name: str, value: str) -> str:
        return f"{name}={value}" if self.include_keys else value

    def _directory(self, texts: Sequence[str]) -> str:
        parts = [self._named(element.name, text) for element, text in zip(self.elements, texts, strict=True)]
        directory = self.root + "/".join([self.topic, *parts])
        # The longest numbers and a mark: a key that could grow too long fails with its record, not with its file.
        longest = len(self.key(directory, 2**31 - 1, 2**63 - 1).encode()) + max(0, _MARK_BYTES - len(self.renamed))
        if longest > MAX_KEY_BYTES:
            raise Unplaceable(f"its object key would exceed {MAX_KEY_BYTES} bytes: {directory[:80]}…")
        return directory

    def _column(
        self, element: Element, partition: int, fields: Fields, values: list[Any], records: int
    ) -> list[str | Unplaceable]:
        match element.source:
            case "topic":
                return [self.topic] * records
            case "partition":
                return [self._partition(partition)] * records
            case "date":
                formatter = _formatter(element.path[0])
                try:
                    return list(map(formatter, fields.timestamps))
                except ValueError:  # one of them has no date: look at each
                    return [_text(element, _date, formatter, timestamp) for timestamp in fields.timestamps]
            case "value":
                what = f"field {element.name}"
                return [_text(element, _field, value, element.path, what) for value in values]
            case "key":
                return [_text(element, self._key, key, element) for key in fields.keys]
            case "header":
                return [_text(element, _header, headers, element) for headers in fields.headers]

    def _key(self, key: bytes | None, element: Element) -> str:
        if key is None:
            raise Unplaceable("the record has no key")
        if self.key_converter != "json":
            return _utf8(key, "the key")
        decoded = partitioners.decoded(key, "the key")
        if element.path and isinstance(decoded, dict):
            return partitioners.field(decoded, element.path, f"key field {element.name}")
        return partitioners.text_of(decoded, "the key")


def _text(element: Element, extract: Callable[..., str], *arguments: Any) -> str | Unplaceable:
    try:
        return _safe(extract(*arguments), element)
    except Unplaceable as error:
        return error


def _placed(directory: Callable[[Sequence[str]], str], texts: Sequence[str | Unplaceable]) -> str | Unplaceable:
    try:
        return next((text for text in texts if isinstance(text, Unplaceable)), None) or directory(texts)  # type: ignore[arg-type]
    except Unplaceable as error:
        return error


_FORMATTERS: dict[str, Any] = {}


def _formatter(pattern: str) -> Any:
    # One per process, because each remembers the seconds that it has formatted.
    if pattern not in _FORMATTERS:
        _FORMATTERS[pattern] = dates.formatter(pattern)
    return _FORMATTERS[pattern]


def _decoded(value: bytes | None) -> Any:
    try:
        return None if value is None else partitioners.decoded(value, "the value")
    except Unplaceable as error:
        return error


def _field(value: Any, path: tuple[str, ...], what: str) -> str:
    if isinstance(value, Unplaceable):
        raise value
    return partitioners.field(value, path, what)


def _date(formatter: Callable[[int], str], epoch_ms: int) -> str:
    try:
        return formatter(epoch_ms)
    except ValueError as error:
        raise Unplaceable(f"the record has no date: {error}") from None


def _header(headers: Sequence[Mapping[str, Any]] | None, element: Element) -> str:
    name, *path = element.path
    found = [header["value"] for header in headers or () if header["key"] == name]
    if not found:
        raise Unplaceable(f"header {name!r} is not in the record")
    if found[-1] is None:
        raise Unplaceable(f"header {name!r} is null")
    text = _utf8(found[-1], f"header {name!r}")
    if not path:
        return text
    decoded = partitioners.decoded(found[-1], f"header {name!r}")
    return partitioners.field(decoded, tuple(path), f"header {element.name}")


def _utf8(data: bytes, what: str) -> str:
    try:
        return data.decode().replace("\n", "\\n")
    except UnicodeDecodeError:
        raise Unplaceable(f"{what} is no UTF-8") from None


def _safe(value: str, element: Element) -> str:
    # S3 takes any bytes, but XML listings cannot carry control characters and clients resolve dot segments.
    if not value.isprintable() and any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise Unplaceable(f"{element.text} holds a control character: {value[:40]!r}")
    if "." in value and any(part in (".", "..") for part in value.split("/")):
        raise Unplaceable(f"{element.text} holds a path step: {value[:40]!r}")
    return value
