"""The memory of a sensor from tick to tick. It is advice: the index is the truth."""

import base64
import sys
import zlib
from collections.abc import Mapping

import msgspec

UNLIMITED = sys.maxsize


class RouteMemory(msgspec.Struct, omit_defaults=True):
    """The memory of a topic of a sink.

    Attributes:
        complete: ranges of hours that are known to be complete.
        looked_again: the last of these hours that got a second look: a rewrite that crashed makes one incomplete again.
        announced: ranges of hours that are known to be announced as sealed.
        swept_ms: when hours were requested last that only keep objects which a table may list.
        landed: the sum of end offsets up to which nothing waits; -1 if the index has to be read.
        waiting_since_ms: the time of the tick that first saw something wait, in epoch milliseconds; 0 if nothing waits.
        due_offsets: offsets that are due by their number or size.
        look_at_ms: when the index has to be read, also if Kafka has nothing new.
        looked_ms: when it was read last.
        requested_ms: when a run was requested of which nothing has been seen to land yet; else 0.
        open_hour: the last hour, if it is open and has no record, and all hours before it are complete; else empty.
        expected: the hours that were requested by the memory alone, as a range; the run leaves the last one open. None
            if no such run was requested.
        quiet_end: the sum of end offsets when that run was requested.
    """

    complete: list[tuple[str, str]] = []
    looked_again: str = ""
    announced: list[tuple[str, str]] = []
    swept_ms: int = 0
    landed: int = -1
    waiting_since_ms: int = 0
    due_offsets: int = UNLIMITED
    look_at_ms: int = 0
    looked_ms: int = 0
    requested_ms: int = 0
    open_hour: str = ""
    expected: tuple[str, str] | None = None
    quiet_end: int = 0


class Observed(msgspec.Struct, omit_defaults=True):
    """The last observation of a topic: its time, and the end offsets and the lags by sink at that time."""

    ms: int = 0
    ends: Mapping[int, int] = {}
    lags: Mapping[str, int] = {}


class Memory(msgspec.Struct, omit_defaults=True):
    """The cursor of a sensor: routes by sink and topic, observations by topic, and the time of the last tick."""

    routes: dict[str, RouteMemory] = {}
    observed: dict[str, Observed] = {}
    ticked_ms: int = 0


_decode_memory = msgspec.json.Decoder(Memory).decode


def decode_memory(text: str | None) -> Memory:
    """Return the memory of a cursor; an empty one if the cursor is lost or cannot be read."""
    try:
        return _decode_memory(zlib.decompress(base64.b64decode(text or "")))
    except (msgspec.MsgspecError, zlib.error, ValueError):
        return Memory()


def encode_memory(memory: Memory) -> str:
    """Return the memory as a cursor, compressed: Dagster keeps one for every tick."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(memory), 1)).decode()
