"""Dead letters: refused records as JSON lines, with all that is needed to bring them back."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from s3lake.errors import RecordError

ERROR = RecordError.__name__
"""What every record is refused with."""


class DeadLetter(msgspec.Struct, frozen=True):
    """A refused record as Kafka has it, the stage that refused it, and why."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Mapping[str, Any]] | None
    stage: str
    message: str

    def to_line(self) -> bytes:
        """Return its line of a file. Bytes that are UTF-8 are a string, others `{"base64": …}`, null is null."""
        return msgspec.json.encode(
            {
                "topic": self.topic,
                "partition": self.partition,
                "offset": self.offset,
                "timestamp": self.timestamp_ms,
                "key": _text(self.key),
                "value": _text(self.value),
                "headers": [{"name": header["key"], "value": _text(header["value"])} for header in self.headers or ()],
                "stage": self.stage,
                "error": ERROR,
                "message": self.message,
            }
        )


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
