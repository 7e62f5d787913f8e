"""What a row holds of its record, as plain values: they travel to the workers, the sink's models do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s3lake.sink import Sink


@dataclass(frozen=True)
class Envelope:
    """`sink.Envelope` for one topic.

    Attributes:
        printed_stream, printed_topic: names in the lines of style iggy.
    """

    style: str
    fields: tuple[str, ...]
    topic: str
    value_encoding: str = "base64"
    bare: bool = False
    printed_stream: str = ""
    printed_topic: str = ""

    @classmethod
    def of(cls, sink: Sink, topic: str) -> Envelope | None:
        """The envelope of `sink`, None where it has none."""
        found = sink.envelope
        if found is None:
            return None
        return cls(
            style=found.style,
            fields=tuple(found.fields),
            topic=topic,
            value_encoding=found.value_encoding,
            bare=found.bare,
            printed_stream=found.stream,
            printed_topic=found.topic or topic,
        )
