"""Records in JSON with their key, headers and metadata round the value, in any of the three styles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from s3lake.commit.written import Envelope
from s3lake.objects.parts import headers_of, members, text_of
from s3lake.objects.shape import BYTES, Shape
from s3lake.verify import digest, parts
from s3lake.verify.log import Records

_Members = Mapping[str, msgspec.Raw]


class _Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: int
    offset: int
    timestamp: int | None = None


class Member(NamedTuple):
    """A member of a record's object: what it is by Kafka, and what by the file."""

    name: str
    of_kafka: Callable[[Records], Iterable[Any]]
    of_file: Callable[[_Members], Any]


_decode_metadata = msgspec.json.Decoder(_Metadata).decode
_decode_number = msgspec.json.Decoder(int).decode
_decode_flag = msgspec.json.Decoder(bool).decode
_FLAGS = {"keyIsArray": "key", "valueIsArray": "value"}


class Envelopes:
    """How such records are digested."""

    def __init__(self, shape: Shape, envelope: Envelope, topic: str) -> None:
        self._members = list(_members(shape, envelope, topic))
        self._names = {member.name for member in self._members}
        self._needed = self._names - ({"headers"} if envelope.style == "iggy" else set())  # none are no member there
        self._bare = envelope.bare or (envelope.style == "iggy" and envelope.fields == ("value",))
        self._extra = {"headersOrder"} if envelope.style != "flat" else set()
        if envelope.style == "record":
            self._extra |= {flag for flag, part in _FLAGS.items() if shape.converter(part) == BYTES}

    def expected(self, records: Records) -> list[bytes]:
        """Digests of records of Kafka."""
        members = [member.of_kafka(records) for member in self._members]
        return [digest.of_record(row) for row in zip(*members, strict=False)]

    def rows(self, texts: Sequence[bytes]) -> list[bytes]:
        """Digests of what a file holds."""
        return [digest.of_text(text, self._row) for text in texts]

    def _row(self, text: bytes) -> list[Any]:
        row: _Members = {self._members[0].name: msgspec.Raw(text)} if self._bare else members(text)
        extra = row.keys() - self._names
        if not self._needed <= row.keys() or not extra <= self._extra or not _flags_fit(row, self._extra):
            raise ValueError("it has other members")
        return [member.of_file(row) for member in self._members]


def _members(shape: Shape, envelope: Envelope, topic: str) -> Iterable[Member]:
    if envelope.style == "iggy":
        yield from _iggy(shape, envelope, topic)
        return
    for field in envelope.fields:
        if field in ("key", "value"):
            yield _part(field, field, shape)
        elif field == "headers":
            yield _HEADERS
        elif field == "metadata":
            yield _member(field, partial(_metadata, topic), _metadata_in_file)
        elif field == "offset":
            yield _OFFSET
        else:
            yield _member(field, attrgetter("timestamps"), parts.instant)


def _iggy(shape: Shape, envelope: Envelope, topic: str) -> Iterable[Member]:
    if "metadata" in envelope.fields:
        shown = envelope.topic or topic
        yield _OFFSET
        yield _member("timestamp", _seconds, parts.instant)
        yield _member("stream", lambda _: repeat(envelope.stream), text_of)
        yield _member("topic", lambda _: repeat(shown), text_of)
        yield _member("partition_id", lambda records: repeat(records.partition), _decode_number)
    if "headers" in envelope.fields:
        yield _HEADERS
    if "value" in envelope.fields:
        yield _part("value", "payload", shape)


def _part(field: str, name: str, shape: Shape) -> Member:
    converter = shape.converter(field)
    of_kafka, of_text = parts.of_kafka(converter, base64_decimals=shape.base64_decimals), parts.of_text(converter)

    def in_kafka(records: Records) -> Iterable[Any]:
        return map(of_kafka, records.keys if field == "key" else records.values)

    return _member(name, in_kafka, of_text)


def _member(name: str, of_kafka: Callable[[Records], Iterable[Any]], of_text: Callable[[msgspec.Raw], Any]) -> Member:
    """A member that no other one has a say in."""
    return Member(name, of_kafka, lambda members: of_text(members[name]))


def _seconds(records: Records) -> Iterable[Any]:
    return [stamp // 1000 * 1000 for stamp in records.timestamps]


def _headers(records: Records) -> Iterable[Any]:
    return [list(map(list, headers)) for headers in records.headers]


def _headers_in_file(members: _Members) -> Any:
    return headers_of(members.get("headers", b"{}"), members.get("headersOrder"))


def _metadata(topic: str, records: Records) -> Iterable[Any]:
    partition = records.partition
    return [[topic, partition, offset, at] for offset, at in zip(records.offsets, records.timestamps, strict=True)]


def _metadata_in_file(text: msgspec.Raw) -> Any:
    metadata = _decode_metadata(text)
    return [metadata.topic, metadata.partition, metadata.offset, metadata.timestamp]


def _flags_fit(members: _Members, extra: set[str]) -> bool:
    """Whether bytes are marked as such, so that their base64 is not taken for a text."""
    return all(
        (_decode_flag(members[flag]) if flag in members else False) or bytes(members.get(part, b"null")) == b"null"
        for flag, part in _FLAGS.items()
        if flag in extra
    )


_HEADERS = Member("headers", _headers, _headers_in_file)
_OFFSET = _member("offset", attrgetter("offsets"), _decode_number)
