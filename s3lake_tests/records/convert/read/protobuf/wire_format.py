"""Fields of Protobuf's messages, byte by byte."""

import struct

NAN = b"\x11" + struct.pack("<d", float("nan"))


def field_bytes(number: int, data: bytes | int) -> bytes:
    """A field of a message: an integer, or bytes with their length."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)
