"""Records that are given in a file, one JSON object a line, and as the batches that a task would read."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from datetime import timezone
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from s3lake.errors import ConfigurationError
from s3lake.land.request.in_process_tasks import BATCH_RECORDS, Batches, KafkaRecord, to_record_batch
from s3lake.text.dates import iso

_LARGEST = 2**63 - 1
_Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST - 1)]
_Partition = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record as it is written in a file: see `parse_records`."""

    topic: str
    partition: _Partition | None = None
    offset: _Count | None = None
    timestamp: _Milliseconds | str | None = None
    key: Any = None
    value: Any = None
    headers: dict[str, Any] | list[tuple[str, Any]] | None = None


def read_record_lines(path: Path) -> list[KafkaRecord]:
    """Read the records of a JSON lines file; see `parse_records`.

    Raises:
        ConfigurationError: the file cannot be read, or a line is not a record.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--records {path}: cannot be read: {error}") from None
    number = 0

    def read_rows() -> Iterator[Any]:
        nonlocal number
        for line in text.split("\n"):
            number += 1
            if line.strip():
                yield json.loads(line)

    try:
        return list(parse_records(read_rows()))
    except ValueError as error:
        raise ConfigurationError(f"{path}:{number}: not a record: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}:{number}: not a record: nested too deeply") from None


def parse_records(rows: Iterable[Any]) -> Iterator[KafkaRecord]:
    """Yield a record for each `{"topic", "partition", "offset", "timestamp", "key", "value", "headers"}`.

    Key, value and header values: a string is for its UTF-8 bytes, `{"base64": "…"}` for those bytes, null for null,
    any other JSON for its compact encoding. Headers are an object or a list of pairs. Without a partition it is 0,
    without an offset the next one of its topic-partition. A timestamp is in milliseconds or in ISO 8601; without it
    there is none.

    Raises:
        ValueError: a row is not a record.
    """
    places: set[tuple[str, int, int]] = set()
    following: dict[tuple[str, int], int] = {}
    for written in rows:
        try:
            row = msgspec.convert(written, _Row)
        except msgspec.ValidationError as error:
            names = ", ".join(_Row.__struct_fields__)
            raise ValueError(f"{error}; expected an object with {names}; only topic is required") from None
        partition = row.partition or 0
        offset = following.get((row.topic, partition), 0) if row.offset is None else row.offset
        if (row.topic, partition, offset) in places:
            raise ValueError("an earlier record has this topic, partition and offset: offsets are unique")
        places.add((row.topic, partition, offset))
        following[row.topic, partition] = offset + 1
        pairs = row.headers.items() if isinstance(row.headers, dict) else row.headers or ()
        headers = tuple((name, _to_bytes(value)) for name, value in pairs)
        stamp = _parse_timestamp(row.timestamp)
        yield KafkaRecord(row.topic, partition, offset, stamp, _to_bytes(row.key), _to_bytes(row.value), headers)


def _parse_timestamp(value: int | str | None) -> int:
    if not isinstance(value, str):
        return -1 if value is None else value
    try:
        return iso.parse_epoch_ms(value, timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(f"timestamp {value!r} is not a time; expected milliseconds, or 2026-11-22T10:15:00Z") from None


def _to_bytes(value: Any) -> bytes | None:
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


def batches(records: Iterable[KafkaRecord]) -> Batches:
    """Records of any topic-partitions, in the order of offsets."""
    of: dict[int, list[KafkaRecord]] = {}
    for record in records:
        of.setdefault(record.partition, []).append(record)
    parts: Batches = {}
    for partition, rows in of.items():
        rows.sort(key=attrgetter("offset"))
        parts[partition] = [to_record_batch(rows[at : at + BATCH_RECORDS]) for at in range(0, len(rows), BATCH_RECORDS)]
    return parts
