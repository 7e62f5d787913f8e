"""How many records an object holds, where its format tells without knowing the connector's settings."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from pathlib import PurePosixPath

_ZSTD = b"\x28\xb5\x2f\xfd"
_LINES = {".json", ".jsonl", ".text"}
_CODECS = {".gz", ".zst"}


def records(body: bytes, key: str, *, lines: bool) -> int | None:
    """Records in an object, or None where its bytes do not tell.

    Args:
        key: its key; the extension says what text is.
        lines: text without an extension is one record a line.
    """
    if body.startswith(b"PAR1"):
        return _parquet(body)
    if body.startswith(b"Obj\x01"):
        return _avro(body)
    text = _decompressed(body)
    if text is None:
        return None
    if text.startswith(b"[\n") and text.endswith(b"]"):
        return _array(text)
    suffixes = [one for one in PurePosixPath(key).suffixes if one not in _CODECS]
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _LINES and not lines:
        return None
    return text.count(b"\n") + (not text.endswith(b"\n") and len(text) > 0)


def _parquet(body: bytes) -> int | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: int = pq.read_metadata(pa.BufferReader(body)).num_rows
    except (pa.ArrowException, OSError):
        return None
    return rows


def _avro(body: bytes) -> int | None:
    import fastavro

    try:
        return sum(block.num_records for block in fastavro.block_reader(io.BytesIO(body)))
    except (ValueError, EOFError, KeyError, TypeError, zlib.error):
        return None


def _array(text: bytes) -> int | None:
    try:
        return len(json.loads(text))
    except ValueError:
        return None


def _decompressed(body: bytes) -> bytes | None:
    if body.startswith(b"\x1f\x8b"):
        try:
            return gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            return None
    if body.startswith(_ZSTD):
        import zstandard

        try:
            with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
                return reader.read()
        except zstandard.ZstdError:
            return None
    return body
