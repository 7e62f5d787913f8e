"""Keys, values and headers of records as they may be shown to somebody: they are other people's data."""

import re
from typing import Any

import msgspec

from s3lake.errors import printable
from s3lake.text.masking import MASK, is_secret, without

_MORE = re.compile(r"session", re.IGNORECASE)
_ASSIGNED = re.compile(r"""(["']?([\w.-]+)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)""")
_HEX = 32


def shown(content: bytes | None, most: int | None = 200, name: str = "") -> str:
    """Some of it on one line, without what its names call a secret, and without control characters.

    Args:
        content: as Kafka has it.
        most: how many characters; None for all.
        name: of a header.
    """
    if content is None:
        return "null"
    if _is_hidden(name):
        return MASK
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes, no UTF-8: {_cut(content[:_HEX].hex(' '), len(content) > _HEX)}"
    text = printable(without(_masked(text), ()).replace("\n", "\\n"))
    return text if most is None else _cut(text[:most], len(text) > most)


def _masked(text: str) -> str:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict | list):
        return msgspec.json.encode(_walked(document)).decode()
    return _ASSIGNED.sub(lambda found: found[1] + MASK if _is_hidden(found[2]) else found[0], text)


def _walked(document: Any) -> Any:
    match document:
        case dict():
            return {name: MASK if _is_hidden(name) else _walked(value) for name, value in document.items()}
        case list():
            return [_walked(value) for value in document]
    return document


def _is_hidden(name: str) -> bool:
    return is_secret(name) or _MORE.search(name) is not None


def _cut(text: str, more: bool) -> str:
    return f"{text} …" if more else text
