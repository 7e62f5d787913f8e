"""Keys, values and headers of records as they may be printed: they are other people's data."""

import re
from typing import Any

import msgspec

from s3lake.errors import printable
from s3lake.text.masking import MASK, is_secret, mask_secrets

_MORE = re.compile(r"session", re.IGNORECASE)
_ASSIGNED = re.compile(r"""(["']?([\w.-]+)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)""")
_HEX = 32


def format_content(content: bytes | None, most: int | None = 200, name: str = "") -> str:
    """Format the beginning of a content on one line, without control characters; values of secrets are masked.

    Args:
        content: as it is in Kafka.
        most: the number of characters; None for all.
        name: of a header.
    """
    if content is None:
        return "null"
    if _is_hidden(name):
        return MASK
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes, not UTF-8: {_cut(content[:_HEX].hex(' '), len(content) > _HEX)}"
    text = printable(mask_secrets(_masked(text), ()).replace("\n", "\\n"))
    return text if most is None else _cut(text[:most], len(text) > most)


def _masked(text: str) -> str:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict | list):
        return msgspec.json.encode(_mask_members(document)).decode()
    return _ASSIGNED.sub(lambda match: match[1] + MASK if _is_hidden(match[2]) else match[0], text)


def _mask_members(document: Any) -> Any:
    match document:
        case dict():
            return {name: MASK if _is_hidden(name) else _mask_members(value) for name, value in document.items()}
        case list():
            return [_mask_members(value) for value in document]
    return document


def _is_hidden(name: str) -> bool:
    return is_secret(name) or _MORE.search(name) is not None


def _cut(text: str, more: bool) -> str:
    return f"{text} …" if more else text
