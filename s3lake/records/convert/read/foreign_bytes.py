"""What bytes are that a converter cannot read, and what to do about them: for the reasons of refused records."""

from __future__ import annotations

import codecs
import re

_NO_NUMBER = re.compile(rb"-?(NaN|Infinity)")
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLACE = re.compile(r"\(byte (\d+)\)")
_SHORTEST_OF_GLUE = 18
_SHORTEST_OF_REGISTRY = 5


def explain_json(value: bytes, reason: str) -> str:
    """Return the reason why bytes are not JSON, and their cause and remedy if these are known.

    Args:
        reason: the parser's, which may name a byte.
    """
    place = _PLACE.search(reason)
    at = int(place[1]) if place else len(value)
    for word in _NO_NUMBER.finditer(value, max(0, at - 1), at + 10):
        if word.start() <= at < word.end():
            return f"{reason}: {word[0].decode()} is not a value of JSON: have the producer write null or a text"
    half = _find_half_character(value) if "truncated" in reason or "surrogate" in reason else None
    if half is not None:
        return f"a text has half a character, the surrogate '{half}' alone: have the producer write whole characters"
    return add_cause(value, reason)


def explain_unframed(value: bytes, reason: str) -> str:
    """Return the reason why bytes have no schema id before them, with their cause and remedy."""
    if value[:1] in (b"{", b"["):
        return f"{reason}: it looks like JSON: set the converter json"
    explained = add_cause(value, reason)
    if explained != reason:
        return explained
    return f"{reason}: set the converter that fits"


def add_cause(value: bytes, reason: str) -> str:
    """Return a reason why bytes cannot be read, and their cause and remedy if these are known."""
    cause = _find_cause(value)
    return reason if cause is None else f"{reason}: {cause}"


def _find_cause(value: bytes) -> str | None:
    if value.startswith(codecs.BOM_UTF8):
        return "it begins with a byte order mark: have the producer leave it out"
    if value.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it looks like UTF-16: have the producer write UTF-8"
    if value.startswith(b"\x1f\x8b"):
        return "it looks like gzip: have Kafka's client compress records (compression.type), or use the converter bytes"
    if value.startswith(b"\xc3\x01"):
        return "it looks like Avro's single-object encoding, which has no schema id of a registry: use bytes"
    if value[:1] == b"\3" and value[1:2] in (b"\0", b"\5") and len(value) >= _SHORTEST_OF_GLUE:
        return "it looks like a value of AWS Glue's serializer, whose registry s3lake does not read: use bytes"
    if value[:1] == b"\0" and len(value) >= _SHORTEST_OF_REGISTRY:
        return (
            "it looks like a value of a Schema Registry's serializer: set the converter avro, json_schema or protobuf"
        )
    return None


def _find_half_character(value: bytes) -> str | None:
    """Return the first surrogate of a JSON text that has no other half."""
    high: re.Match[bytes] | None = None
    for escape in _ESCAPE.finditer(value):
        number = int(escape[1][1:], 16) if escape[1][:1] == b"u" and len(escape[1]) > 1 else 0
        is_low, follows = 0xDC00 <= number < 0xE000, high is not None and high.end() == escape.start()
        if high is not None and not (is_low and follows):
            return high[0].decode()
        if is_low and high is None:
            return escape[0].decode()
        high = escape if 0xD800 <= number < 0xDC00 else None
    return None if high is None else high[0].decode()
