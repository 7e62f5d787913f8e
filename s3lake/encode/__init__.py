"""Encoders: payloads in, a file's bytes out as they come. One small file per format, the same three verbs.

To add a format: write its encoder, name it in `encoder`, and give it an extension and its codecs in `sink.Format`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from s3lake.encode import avro, csv
from s3lake.encode.form import FileFormat
from s3lake.encode.text import TextEncoder

Out = Callable[[bytes], None]

__all__ = ["Disk", "Encoder", "FileFormat", "Out", "encoder", "prepared"]


class Disk(Protocol):
    """Where rows go that memory has no room for."""

    def add(self, data: bytes) -> tuple[int, int]:
        """Keep `data`: where it is."""
        ...

    def take(self, extent: tuple[int, int]) -> bytes:
        """Bytes kept before."""
        ...


class Encoder(Protocol):
    """One file being written."""

    @property
    def pending(self) -> int:
        """Bytes held back, before compression."""
        ...

    @property
    def memory(self) -> int:
        """Bytes of memory that `relieve` gives back."""
        ...

    def write(self, payload: Any) -> None:
        """Take one payload; bytes may come out now or later."""
        ...

    def drain(self) -> None:
        """Let out what is held back, as far as the format allows; the file goes on."""
        ...

    def relieve(self) -> None:
        """Give memory back, to `out` or to the disk."""
        ...

    def close(self) -> None:
        """Let out the rest."""
        ...


def prepared(form: FileFormat, payload: Any) -> Any:
    """What can be done for a whole batch before its rows are split among files: rows of CSV, datums of Avro.

    Encoders do it themselves where nobody has; for thousands of small files it is faster beforehand.
    """
    if isinstance(payload, pa.RecordBatch) and form.type == "csv":
        return csv.prepared(payload)
    if form.type == "avro":
        return avro.prepared(payload)
    return payload


def encoder(form: FileFormat, out: Out, disk: Disk, *, chunk: int) -> Encoder:
    """The encoder of a new file; it holds back at most about `chunk` bytes."""
    if form.type == "parquet":
        from s3lake.encode.parquet import ParquetEncoder

        return ParquetEncoder(out, form.codec, form.level, disk, row_group_bytes=chunk)
    if form.type == "avro":
        return avro.AvroEncoder(out, form.codec, form.level, disk)
    return TextEncoder(form, out)
