"""Iggy's computed values, made so that a micro-batch tried again gives the same bytes."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone

from s3lake.transform.record import Record

KINDS = (
    "date_time",
    "timestamp_nanos",
    "timestamp_micros",
    "timestamp_millis",
    "timestamp_seconds",
    "uuid_v4",
    "uuid_v7",
)

_KEY = b"s3lake.transform"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_48_BITS = (1 << 48) - 1


def computed(computation: str, record: Record, position: int, field: int) -> str | int:
    """A value of that kind for the `field`-th field of the transform at `position` in its chain."""
    clock = record.wallclock_ms
    match computation:
        case "timestamp_nanos":
            return clock * 1_000_000
        case "timestamp_micros":
            return clock * 1000
        case "timestamp_millis":
            return clock
        case "timestamp_seconds":
            return clock // 1000
        case "date_time":
            return date_time(clock)
    seed = f"{record.origin}\0{record.partition}\0{record.offset}\0{position}\0{field}"
    bits = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=16, key=_KEY).digest(), "big")
    if computation == "uuid_v7":
        bits = (bits & ((1 << 80) - 1)) | ((clock & _48_BITS) << 80)
    version = 7 if computation == "uuid_v7" else 4
    bits = (bits & ~(0xF << 76)) | (version << 76)
    text = f"{(bits & ~(0x3 << 62)) | (0x2 << 62):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def date_time(epoch_ms: int) -> str:
    """RFC 3339 in UTC, with milliseconds where there are some."""
    moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    return moment.isoformat(timespec="milliseconds" if epoch_ms % 1000 else "seconds")
