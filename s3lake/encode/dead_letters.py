"""Dead letters: refused records as JSON lines, with all that is needed to bring them back."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def line(
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Mapping[str, Any]] | None,
    stage: str,
    error: str,
    message: str,
) -> bytes:
    """One refused record. Bytes that are UTF-8 are a string, others `{"base64": …}`, null is null."""
    return msgspec.json.encode(
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp_ms,
            "key": _text(key),
            "value": _text(value),
            "headers": [{"name": header["key"], "value": _text(header["value"])} for header in headers or ()],
            "stage": stage,
            "error": error,
            "message": message,
        }
    )


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
