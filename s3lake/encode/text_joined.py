"""Text files joined: as they are stored where a file is its records and no more, else without what is around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from s3lake.encode.form import FileFormat
from s3lake.encode.inflated import blocks
from s3lake.encode.text import TextEncoder


def opening_of(form: FileFormat, body: BinaryIO) -> bytes:
    """What stands before the first record of a file: its framing, and the header line of CSV."""
    opening, between, _ = form.frame
    if form.type != "csv" or not form.header:
        return opening
    if not {*b"\r\n"} & {*between}:
        raise ValueError(f"rows are separated by {between!r}, which may stand in the header line too")
    text = b""
    for block in blocks(body, form.codec):
        text += block
        at = text.find(between, len(opening))
        while at >= 0 and text.count(b'"', 0, at) % 2:  # the name of a column may hold a line end, in quotes
            at = text.find(between, at + 1)
        if at >= 0:
            return text[: at + len(between)]
    raise ValueError("the header line has no end")


class TextJoiner:
    """Records of several text files, with the framing of one."""

    def __init__(self, form: FileFormat, opening: bytes, out: Callable[[bytes], None]) -> None:
        """`opening` is what each of the files begins with."""
        self._form, self._opening, self._out = form, opening, out
        _, self._between, closing = form.frame
        self._ends_itself = self._between == closing
        self._closing = b"" if self._ends_itself else closing
        self._file = TextEncoder(form, out)
        self._begun = False

    def add(self, body: BinaryIO) -> None:
        if not self._opening and self._ends_itself:
            for block in blocks(body):
                self._out(block)
            return
        if not self._begun:
            self._file.put(self._opening)
        elif not self._ends_itself:
            self._file.put(self._between)
        self._begun = True
        for text in _within(blocks(body, self._form.codec), self._opening, self._closing):
            self._file.put(text)

    def close(self) -> None:
        self._file.close()


def _within(text: Iterable[bytes], opening: bytes, closing: bytes) -> Iterator[bytes]:
    """What stands between the opening and the closing of a file.

    Raises:
        ValueError: it lacks one of them.
    """
    buffered, begun = b"", not opening
    for block in text:
        buffered += block
        if not begun and len(buffered) < len(opening):
            continue
        if not begun and not buffered.startswith(opening):
            break
        buffered, begun = (buffered if begun else buffered[len(opening) :]), True
        ready = max(0, len(buffered) - len(closing))
        yield buffered[:ready]
        buffered = buffered[ready:]
    if not begun or buffered != closing:
        raise ValueError(f"the file does not begin with {opening[:80]!r} and end with {closing!r}")
