"""What a record looks like in a file, worked out anew from the formats' description and not with the writer's code.

A stream of files has a judge that gives both sides the same digests: `expected` for records of Kafka, `rows` for what
an object holds. Where records stand one after the other with a separator that may also stand inside of them (`bytes`),
it is the pieces between separators that are compared: a record may be several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from s3lake.commit.index import File
from s3lake.objects import content
from s3lake.objects.shape import BYTES, TEXT, Shape
from s3lake.verify import digest, parts
from s3lake.verify.columns import Columns
from s3lake.verify.envelope import Envelopes
from s3lake.verify.flat import FlatRows
from s3lake.verify.log import Records

_OfTexts = Callable[[Sequence[bytes]], list[bytes]]
_OfRecords = Callable[[Records], list[bytes]]


class Judge(Protocol):
    """How the two sides of one stream are digested."""

    def expected(self, records: Records) -> list[bytes]:
        """Digests of records, one each, once every file was read."""
        ...

    def rows(self, body: bytes, file: File) -> Iterator[list[bytes]]:
        """Digests of the rows of a file, whose bytes these are, some at a time.

        Raises:
            UnreadableError: it is no file of its format; what came before was given.
        """
        ...


def of(shape: Shape, topic: str) -> Judge:
    """The judge of a stream of records of a topic."""
    if shape.in_columns:
        return Columns(shape, topic)
    if shape.frame is None:
        return _Texts(shape, partial(_digests, _values), _as_they_are)
    if shape.envelope is not None and shape.format not in ("csv", "bytes"):
        envelopes = Envelopes(shape, shape.envelope, topic)
        return _Texts(shape, envelopes.expected, envelopes.rows)
    if shape.format == "csv" and parts.CONNECT in (shape.key, shape.value):
        rows = FlatRows(shape)
        return _Texts(shape, rows.expected, rows.rows)
    if shape.format in ("json", "json_array") or (shape.format == "text" and shape.value == parts.CONNECT):
        return _Texts(shape, *_json(shape))
    return _Texts(shape, partial(_digests, raw_text(shape)), _as_they_are)


class _Texts:
    def __init__(self, shape: Shape, expected: _OfRecords, rows: _OfTexts) -> None:
        self._shape, self.expected, self._rows = shape, expected, rows

    def rows(self, body: bytes, file: File) -> Iterator[list[bytes]]:
        yield from map(self._rows, content.records(self._shape, body, file.key))


def in_pieces(shape: Shape) -> bool:
    """Whether a file's pieces are those of its records: no separator begins within another one."""
    between = shape.frame.between if shape.frame else b""
    return bool(between) and not any(between.startswith(between[at:]) for at in range(1, len(between)))


def pieces(shape: Shape) -> Callable[[Records], tuple[list[bytes], list[int]]]:
    """Digests of what stands between separators of each record, and its offset as often."""
    assert shape.frame is not None
    spelled, between = raw_text(shape), shape.frame.between

    def cut(records: Records) -> tuple[list[bytes], list[int]]:
        digests: list[bytes] = []
        offsets: list[int] = []
        for offset, record in zip(records.offsets, spelled(records), strict=True):
            cuts = [digest.of(piece) for piece in record.split(between)]
            digests += cuts
            offsets += [offset] * len(cuts)
        return digests, offsets

    return cut


def raw_text(shape: Shape) -> Callable[[Records], list[bytes]]:
    """What a text file that is no JSON has of each record."""
    if shape.format == "csv" and shape.envelope:
        return FlatRows(shape).texts
    if shape.envelope and shape.envelope.fields == ("key",):
        return _keys
    return _values if shape.format == "bytes" else _values_in_one_line


def _keys(records: Records) -> list[bytes]:
    return [key or b"" for key in records.keys]


def _values(records: Records) -> list[bytes]:
    return [value or b"" for value in records.values]


def _values_in_one_line(records: Records) -> list[bytes]:
    return list(map(parts.in_one_line, _values(records)))


def _json(shape: Shape) -> tuple[_OfRecords, _OfTexts]:
    assert shape.frame is not None
    if shape.value not in (parts.CONNECT, TEXT, BYTES):
        return _lines if b"\n" in shape.frame.between else _trimmed, _as_they_are
    of_kafka, of_text = parts.of_kafka(shape.value, base64_decimals=shape.base64_decimals), parts.of_text(shape.value)

    def read(line: bytes) -> Any:
        return None if shape.value == parts.CONNECT and not line else of_text(line)

    return (
        lambda records: [digest.of_record(of_kafka(value)) for value in records.values],
        lambda lines: [digest.of_text(line, read) for line in lines],
    )


def _digests(texts: _OfRecords, records: Records) -> list[bytes]:
    return _as_they_are(texts(records))


def _as_they_are(lines: Sequence[bytes]) -> list[bytes]:
    return list(map(digest.of, lines))


def _lines(records: Records) -> list[bytes]:
    return [digest.of(parts.in_one_line(b"null" if value is None else value)) for value in records.values]


def _trimmed(records: Records) -> list[bytes]:
    return [digest.of(parts.in_one_line(b"null" if value is None else value).strip(b" \t")) for value in records.values]
