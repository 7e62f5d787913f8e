"""User headers, whose names and values have types in Iggy, as the texts that everything here knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apache_iggy import HeaderKey, HeaderValue


def name(field: HeaderKey) -> str:
    """A header's name; bytes that are no text are written out."""
    return text(field).decode("utf-8", "backslashreplace")


def text(field: HeaderKey | HeaderValue) -> bytes:
    """Texts and raw bytes as they are, numbers in decimal digits, booleans as `true` and `false`."""
    value = field.value  # type: ignore[union-attr]
    match value:
        case bytes():
            return value
        case bool():
            return b"true" if value else b"false"
    return str(value).encode()
