"""Text files: decompressed a block at a time, and cut into their records."""

import json
import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from s3lake.verify.shape import Frame

_BLOCK = 1 << 20
_BY_NAME = {".gz": "gzip", ".zst": "zstd"}
_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"
_SPACE = re.compile(r"[ \t\r\n]*")
_CSV = re.compile(rb'(?:"((?:[^"]|"")*)"|([^",]*))(?:,|\Z)')


class Unreadable(Exception):
    """An object is not a file of its format; what came before in it still counts."""


def blocks(body: bytes, key: str, codec: str | None) -> Iterator[bytes]:
    """The content of an object, never an empty block; `codec` None: by its name.

    Raises:
        Unreadable: the compression is broken; what came before was given.
    """
    codec = codec or next((name for ending, name in _BY_NAME.items() if key.endswith(ending)), "none")
    if codec == "none" or not body:
        yield from (body[start : start + _BLOCK] for start in range(0, len(body), _BLOCK))
    elif codec == "snappy_framed":
        yield from _snappy(body, key)
    else:
        try:
            with pa.input_stream(pa.BufferReader(body), compression=codec) as stream:
                while block := stream.read(_BLOCK):
                    yield block
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(f"{key} is not whole {codec}: {error}") from None


def split(content: Iterable[bytes], frame: Frame, key: str) -> Iterator[list[bytes]]:
    """The records of a text file, some at a time.

    Raises:
        Unreadable: it does not begin or end as it must; what came before was given.
    """
    opening, between, closing = frame
    buffered, begun = b"", not opening
    for block in content:
        buffered += block
        if not begun:
            if len(buffered) < len(opening):
                continue
            buffered, begun = _opened(buffered, opening, key), True
        # What may be the closing is no record yet.
        cut = len(buffered) - len(closing)
        if cut > 0 and buffered.find(between, 0, cut) >= 0:
            *complete, rest = buffered[:cut].split(between)
            buffered = rest + buffered[cut:]
            yield complete
    if not begun:
        buffered = _opened(buffered, opening, key)
    if buffered.endswith(closing):
        yield buffered[: len(buffered) - len(closing)].split(between)
        return
    if buffered:
        yield buffered.split(between)
    raise Unreadable(
        f"{key}: the last line is not ended" if closing == b"\n" else f"{key} does not end with {closing!r}"
    )


def whole(content: Iterable[bytes], frame: Frame, key: str) -> bytes:
    """What stands between opening and closing.

    Raises:
        Unreadable: it does not begin or end as it must.
    """
    body = _opened(b"".join(content), frame.opening, key)
    if not body.endswith(frame.closing):
        raise Unreadable(f"{key} does not end with {frame.closing!r}")
    return body[: len(body) - len(frame.closing)]


def json_values(content: Iterable[bytes], frame: Frame, key: str) -> Iterator[list[bytes]]:
    """The records of a JSON file whose separator may also stand inside of a value, without space round them.

    Raises:
        Unreadable: it is no JSON, or does not begin or end as it must; what came before was given.
    """
    try:
        text = whole(content, frame, key).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"{key} is no UTF-8: {error}") from None
    between = frame.between.decode()
    scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    at = _space(text, 0)
    while at < len(text):
        try:
            _, end = scan(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            raise Unreadable(f"{key} is no JSON: {error}") from None
        yield [text[at:end].encode()]
        after = _space(text, end)
        if after == len(text):
            return
        separator = next((one for one in range(end, after + 1) if text.startswith(between, one)), None)
        if separator is None:
            raise Unreadable(f"{key}: {text[end : end + 10]!r} stands where {between!r} must")
        at = _space(text, separator + len(between))


def csv_rows(records: Iterable[list[bytes]], between: bytes, key: str) -> Iterator[list[list[bytes | None]]]:
    """The rows of a CSV file (RFC 4180), some at a time: an empty field is null, a quoted empty one is not.

    Raises:
        Unreadable: quotes stand where they may not; what came before was given.
    """
    open_record: list[bytes] = []
    quotes = 0
    for block in records:
        rows: list[list[bytes | None]] = []
        for piece in block:
            if not open_record and b'"' not in piece:
                rows.append([field or None for field in piece.split(b",")])
                continue
            # Inside of quotes the separator is text: a record goes on until its quotes are even.
            open_record.append(piece)
            quotes += piece.count(b'"')
            if quotes % 2 == 0:
                rows.append(_fields(between.join(open_record), key))
                open_record, quotes = [], 0
        yield rows
    if open_record:
        raise Unreadable(f"{key}: a quote is not closed")


def _opened(text: bytes, opening: bytes, key: str) -> bytes:
    if not text.startswith(opening):
        raise Unreadable(f"{key} does not begin with {opening!r}")
    return text[len(opening) :]


def _space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _fields(record: bytes, key: str) -> list[bytes | None]:
    fields: list[bytes | None] = []
    at = 0
    while True:
        match = _CSV.match(record, at)
        if match is None:
            raise Unreadable(f"{key}: {record[at : at + 20]!r} is no field of a CSV file")
        quoted, bare = match.groups()
        fields.append(bare or None if quoted is None else quoted.replace(b'""', b'"'))
        at = match.end()
        if at == len(record) and not (match.group().endswith(b",")):
            return fields


def _snappy(body: bytes, key: str) -> Iterator[bytes]:
    import cramjam

    if not body.startswith(_SNAPPY_STREAM):
        raise Unreadable(f"{key} is not whole snappy_framed: it does not begin as a stream does")
    try:
        yield bytes(cramjam.snappy.decompress(body))
    except cramjam.DecompressionError as error:
        raise Unreadable(f"{key} is not whole snappy_framed: {error}") from None
