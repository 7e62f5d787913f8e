"""Padding of numbers in object keys, so that keys sort as numbers do. It never cuts a number."""

from typing import Literal

PaddingType = Literal["left", "right", "none"]


def pad(number: int, length: int, how: PaddingType, char: str) -> str:
    """`number` filled up with `char` to `length` characters."""
    text = str(number)
    if how == "left":
        return text.rjust(length, char)
    if how == "right":
        return text.ljust(length, char)
    return text
