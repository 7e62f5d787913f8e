"""What a row holds of its record, as plain values: they travel to the workers, the sink's models do not."""

from __future__ import annotations

from dataclasses import dataclass


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
