"""What the sensor of a fleet remembers from tick to tick: advice, for the index is the truth."""

import base64
import binascii
import sys
import zlib

import msgspec

from s3lake.orchestration.sensors import Cursor

NEVER = sys.maxsize


class RunAsked(msgspec.Struct, frozen=True):
    """A run that was asked for, up to the hour under way.

    Attributes:
        hour: the last one it lands.
        ends: sum of the topic's end offsets at that time.
        asked_ms: when.
    """

    hour: str
    ends: int
    asked_ms: int


class Topic(msgspec.Struct, omit_defaults=True):
    """What is remembered of a topic.

    Attributes:
        cursor: what the sensor of one topic would remember.
        landed: sum of end offsets up to which nothing waits; -1 where the index has to be asked.
        landed_ms: when the hour under way was landed last.
        since_ms: when it was first seen that something waits; 0 while nothing does.
        enough: offsets that are due by their number or size.
        until_ms: when the index has to be asked, whatever Kafka says.
        looked_ms: when it was asked last.
        run: what the run that was asked for lands; None where none was, or the index has to be asked after it.
        hour: the hour under way that such a run has landed; empty where another one is.
    """

    cursor: Cursor = msgspec.field(default_factory=Cursor)
    landed: int = -1
    landed_ms: int = 0
    since_ms: int = 0
    enough: int = NEVER
    until_ms: int = 0
    looked_ms: int = 0
    run: RunAsked | None = None
    hour: str = ""


class Memory(msgspec.Struct, omit_defaults=True):
    """The cursor of the sensor."""

    topics: dict[str, Topic] = {}
    ticked_ms: int = 0


def remembered(text: str | None) -> Memory:
    """The memory of a cursor; advice that is not understood is no advice."""
    try:
        return msgspec.json.decode(zlib.decompress(base64.b64decode(text or "")), type=Memory)
    except (msgspec.MsgspecError, zlib.error, binascii.Error, ValueError):
        return Memory()


def kept(memory: Memory) -> str:
    """The memory as a cursor: Dagster keeps one for every tick."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(memory), 1)).decode()
