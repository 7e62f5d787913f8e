"""Joining: files of one format become one file, and no record is converted again.

To join a new format: a class with the verbs of `Joiner` next to its encoder, and what its files must have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

from s3lake.records.encode import Out, avro_file, open_encoder
from s3lake.records.encode.background_work import BackgroundWork
from s3lake.records.encode.formats import FileFormat
from s3lake.records.encode.text_file import TextJoiner, opening_of

if TYPE_CHECKING:
    from s3lake.records.encode import Disk

JoinKey = bytes
"""What files must have in common, besides their form, to be joined: a schema, a header line."""


class Joiner(Protocol):
    """One file being made of others."""

    def add(self, body: BinaryIO) -> int | None:
        """Add the records of an open file, from its beginning. Return their number, if the format states it."""
        ...

    def close(self) -> None:
        """Let out the rest."""
        ...


def read_join_key(form: FileFormat, body: BinaryIO) -> JoinKey:
    """Return what files that can be joined have in common: columns, schema or opening. Leave the file at its start."""
    if form.type == "parquet":
        from s3lake.records.encode.parquet_file import schema_of

        shape: bytes = schema_of(body)
    else:
        shape = avro_file.beginning(body) if form.type == "avro" else opening_of(form, body)
    body.seek(0)
    return shape


def open_joiner(
    form: FileFormat,
    like: JoinKey,
    out: Out,
    disk: Disk,
    behind: BackgroundWork,
    *,
    chunk: int,
) -> Joiner:
    """Return the writer of a file that files with this join key become.

    Args:
        behind: encodes rows of Parquet, while the next are read.
        chunk: it holds back at most about so many bytes.
    """
    if form.type == "parquet":
        from s3lake.records.encode.parquet_file import ParquetJoiner

        return ParquetJoiner(open_encoder(form, out, disk, chunk=chunk), like, behind)
    if form.type == "avro":
        return avro_file.AvroJoiner(out, like)
    return TextJoiner(form, like, out)
