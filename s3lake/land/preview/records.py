"""Records that are given in a file, one JSON object a line, and as the batches that a task would read."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timezone
from operator import attrgetter
from pathlib import Path
from typing import Any

from s3lake.errors import ConfigurationError
from s3lake.land.given import BATCH, Batches, Record, batch
from s3lake.text.dates import iso

_LARGEST = 2**63 // 1000 - 1  # a timestamp in microseconds has 64 bits
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def read(path: Path) -> list[Record]:
    """Records of a JSON lines file, one a line, as `Records.add` has them.

    Raises:
        ConfigurationError: the file cannot be read, or a line is no record.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--records {path}: cannot be read: {error}") from None
    records = Records()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            records.add(json.loads(line))
        except ValueError as error:
            raise ConfigurationError(f"{path}:{number}: no record: {error}") from None
    return list(records)


class Records:
    """Records that somebody writes down, in their order."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, int, int], Record] = {}
        self._following: dict[tuple[str, int], int] = {}

    def __iter__(self) -> Iterator[Record]:
        return iter(self._by_place.values())

    def add(self, row: Any) -> None:
        """One more: `{"topic", "partition", "offset", "timestamp", "key", "value", "headers"}`.

        Key, value and header values: a string stands for its UTF-8 bytes, `{"base64": "…"}` for those bytes, null for
        null, any other JSON for its compact encoding. Headers are an object or a list of pairs. Without a partition it
        is 0, without an offset the next one of its topic-partition. A timestamp is in milliseconds or in ISO 8601;
        without it there is none.

        Raises:
            ValueError: it is no record.
        """
        record = _record(row, self._following)
        place = (record.topic, record.partition, record.offset)
        if place in self._by_place:
            raise ValueError("this topic, partition and offset are those of an earlier one: offsets are unique")
        self._by_place[place] = record
        self._following[place[:2]] = record.offset + 1


def moment(value: Any) -> int:
    """Epoch milliseconds as they are written down: a number, or ISO 8601.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        try:
            return iso.parse_epoch_ms(value, timezone.utc)
        except (ValueError, OverflowError):
            raise ValueError(f"{value!r} is no time: write milliseconds, or as 2026-11-22T10:15:00Z") from None
    if type(value) is not int or abs(value) > _LARGEST:
        raise ValueError(f"{value!r} is no whole number up to {_LARGEST}")
    return value


def _record(row: Any, following: Mapping[tuple[str, int], int]) -> Record:
    if not isinstance(row, dict) or not isinstance(row.get("topic"), str):
        raise ValueError(f"an object is needed with {', '.join(_FIELDS)}; topic is text")
    unknown = sorted(row.keys() - set(_FIELDS))
    if unknown:
        raise ValueError(f"unknown name {unknown[0]!r}; allowed: {', '.join(_FIELDS)}")
    partition = _number(row, "partition", 0)
    offset = _number(row, "offset", following.get((row["topic"], partition), 0))
    if partition < 0 or offset < 0:
        raise ValueError("partition and offset are not negative")
    return Record(
        row["topic"],
        partition,
        offset,
        _timestamp(row),
        _bytes(row.get("key")),
        _bytes(row.get("value")),
        tuple(_headers(row.get("headers"))),
    )


def _number(row: Mapping[str, Any], name: str, default: int) -> int:
    value = row.get(name)
    if value is None:
        return default
    if type(value) is not int or abs(value) > _LARGEST:
        raise ValueError(f"{name} {value!r} is no whole number up to {_LARGEST}")
    return value


def _timestamp(row: Mapping[str, Any]) -> int:
    if row.get("timestamp") is None:
        return -1
    try:
        return moment(row["timestamp"])
    except ValueError as error:
        raise ValueError(f"timestamp {error}") from None


def _bytes(value: Any) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str(text)} if len(value) == 1:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise ValueError(f"base64 {text[:40]!r}: {error}") from None
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _headers(value: Any) -> Iterator[tuple[str, bytes | None]]:
    pairs = list(value.items()) if isinstance(value, dict) else value or []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError("headers are an object, or a list of [name, value]")
        yield pair[0], _bytes(pair[1])


def batches(records: Iterable[Record]) -> Batches:
    """Records of any topic-partitions, in the order of offsets."""
    of: dict[int, list[Record]] = {}
    for record in records:
        of.setdefault(record.partition, []).append(record)
    parts: Batches = {}
    for partition, rows in of.items():
        rows.sort(key=attrgetter("offset"))
        parts[partition] = [batch(rows[at : at + BATCH]) for at in range(0, len(rows), BATCH)]
    return parts
