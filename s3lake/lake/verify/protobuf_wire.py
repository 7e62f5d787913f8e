"""Protobuf's wire format, read as its specification has it (https://protobuf.dev/programming-guides/encoding/).

Landing reads messages by Google's library, so `verify` does not: what that library keeps apart, because it does not
know it, is here a field as any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

VARINT, FIXED64, BYTES, GROUP, END, FIXED32 = range(6)
_DEEPEST = 100


class WireField(NamedTuple):
    """A field as it comes: an integer of its bits, its bytes, or the fields of a group."""

    number: int
    wire: int
    content: Any


class WireError(ValueError):
    """The data is not a message."""


def read_wire_fields(data: bytes) -> list[WireField]:
    """Return the fields of a message in their order.

    Raises:
        WireError: the data is not one.
    """
    fields, at = _read_until(data, 0, 0, 0)
    if at != len(data):
        raise WireError("it ends within a group")
    return fields


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of 64 bits without a sign, and where it ends."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("an integer ends too early, or never")
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number & 2**64 - 1, at


def unpack(data: bytes, wire: int) -> list[int]:
    """Return the numbers that are packed into one field.

    Raises:
        WireError: they end too early.
    """
    if wire == VARINT:
        numbers, at = [], 0
        while at < len(data):
            number, at = read_varint(data, at)
            numbers.append(number)
        return numbers
    width = 8 if wire == FIXED64 else 4
    if len(data) % width:
        raise WireError("packed numbers end too early")
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def _read_until(data: bytes, at: int, group: int, depth: int) -> tuple[list[WireField], int]:
    """Return the fields up to the end of a group, or of the data if the group is 0, and where they end."""
    if depth > _DEEPEST:
        raise WireError("it is nested too deeply")
    fields: list[WireField] = []
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 2**29:
            raise WireError("a field has no number")
        if wire == END:
            if number != group:
                raise WireError("a group ends that did not begin")
            return fields, at
        content: Any
        if wire == VARINT:
            content, at = read_varint(data, at)
        elif wire == GROUP:
            content, at = _read_until(data, at, number, depth + 1)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(wire)
            if size is None and wire != BYTES:
                raise WireError("a field is of no wire type")
            if size is None:
                size, at = read_varint(data, at)
            if at + size > len(data):
                raise WireError("a field ends too early")
            content = data[at : at + size]
            content = content if wire == BYTES else int.from_bytes(content, "little")
            at += size
        fields.append(WireField(number, wire, content))
    if group:
        raise WireError("a group does not end")
    return fields, at
