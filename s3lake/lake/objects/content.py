"""Text files: decompressed a block at a time, and cut into their records."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

import pyarrow as pa

from s3lake.errors import UnreadableError
from s3lake.lake.objects.shape import FramingBytes, ObjectShape

Row = TypeVar("Row")
Body = bytes | IO[bytes]
"""An object's bytes, or a stream of them."""

ROWS = 10_000
"""How many rows are given at a time, unless the file decides."""

_BLOCK = 1 << 20
_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"
_SPACE = re.compile(r"[ \t\r\n]*")


def split_records(shape: ObjectShape, body: Body, key: str) -> Iterator[list[bytes]]:
    """Yield the records of a text file, some at a time.

    Raises:
        UnreadableError: it is not of its shape; what came before was given.
    """
    every, frame = decompress_blocks(body, key, shape.codec), shape.frame
    if frame is None:
        yield [b"".join(every)]
    elif not frame.between and not shape.format.startswith("json"):
        yield [strip_framing(every, frame, key)]  # nothing tells where a record ends
    # A value in JSON holds no newline, so a separator with one is nowhere else.
    elif b"\n" in frame.between or not shape.format.startswith("json"):
        yield from split_lines(every, frame, key)
    else:
        yield from split_json(every, frame, key)


def decompress_blocks(body: Body, key: str, codec: str) -> Iterator[bytes]:
    """Yield the content of an object, never an empty block.

    Raises:
        UnreadableError: the compression is broken; what came before was given.
    """
    source = pa.BufferReader(body) if isinstance(body, bytes) else body
    if codec == "snappy_framed":
        yield from _decompress_snappy(source.read(), key)
        return
    try:
        with pa.input_stream(source, compression=None if codec == "none" else codec) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"{key} is not whole {codec}: {error}") from None


def split_lines(content: Iterable[bytes], frame: FramingBytes, key: str) -> Iterator[list[bytes]]:
    """Yield the records of a text file whose separator is nowhere else, some at a time.

    Raises:
        UnreadableError: it does not begin or end as it must; what came before was given.
    """
    opening, between, closing = frame
    buffered, begun = b"", not opening
    for block in content:
        buffered += block
        if not begun:
            if len(buffered) < len(opening):
                continue
            buffered, begun = _strip_opening(buffered, opening, key), True
        # What may be the closing is not a record yet.
        cut = len(buffered) - len(closing)
        if cut > 0 and buffered.find(between, 0, cut) >= 0:
            *complete, rest = buffered[:cut].split(between)
            buffered = rest + buffered[cut:]
            yield complete
    if not begun:
        buffered = _strip_opening(buffered, opening, key)
    if buffered.endswith(closing):
        yield buffered[: len(buffered) - len(closing)].split(between)
        return
    if buffered:
        yield buffered.split(between)
    raise UnreadableError(
        f"{key}: the last line is not ended" if closing == b"\n" else f"{key} does not end with {closing!r}"
    )


def strip_framing(content: Iterable[bytes], frame: FramingBytes, key: str) -> bytes:
    """Return what is between opening and closing.

    Raises:
        UnreadableError: it does not begin or end as it must.
    """
    body = _strip_opening(b"".join(content), frame.opening, key)
    if not body.endswith(frame.closing):
        raise UnreadableError(f"{key} does not end with {frame.closing!r}")
    return body[: len(body) - len(frame.closing)]


def split_json(content: Iterable[bytes], frame: FramingBytes, key: str) -> Iterator[list[bytes]]:
    """Yield the records of a JSON file whose separator may also be inside of a value, without the space around them.

    Raises:
        UnreadableError: it is not JSON, or does not begin or end as it must; what came before was given.
    """
    try:
        text = strip_framing(content, frame, key).decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{key} is not UTF-8: {error}") from None
    yield from batch_rows(_split_json(text, frame.between.decode(), key))


def batch_rows(rows: Iterable[Row], size: int = ROWS) -> Iterator[list[Row]]:
    """Yield rows, some at a time; if the file breaks off, first the rows before."""
    batch: list[Row] = []
    try:
        for row in rows:
            batch.append(row)
            if len(batch) == size:
                yield batch
                batch = []
    except UnreadableError:
        yield batch
        raise
    if batch:
        yield batch


def _split_json(text: str, between: str, key: str) -> Iterator[bytes]:
    scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    at = _skip_space(text, 0)
    while at < len(text):
        try:
            _, end = scan(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UnreadableError(f"{key} is not JSON: {error}") from None
        yield text[at:end].encode()
        after = _skip_space(text, end)
        if after == len(text):
            return
        separator = next((start for start in range(end, after + 1) if text.startswith(between, start)), None)
        if separator is None:
            raise UnreadableError(f"{key}: {text[end : end + 10]!r} is where {between!r} must be")
        at = _skip_space(text, separator + len(between))


def _strip_opening(text: bytes, opening: bytes, key: str) -> bytes:
    if not text.startswith(opening):
        raise UnreadableError(f"{key} does not begin with {opening!r}")
    return text[len(opening) :]


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _decompress_snappy(body: bytes, key: str) -> Iterator[bytes]:
    import cramjam

    if not body:
        return
    if not body.startswith(_SNAPPY_STREAM):
        raise UnreadableError(f"{key} is not whole snappy_framed: it does not begin as a stream does")
    try:
        yield bytes(cramjam.snappy.decompress(body))
    except cramjam.DecompressionError as error:
        raise UnreadableError(f"{key} is not whole snappy_framed: {error}") from None
