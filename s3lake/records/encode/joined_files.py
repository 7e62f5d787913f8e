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
        """Take the records of a file that lies open at its beginning: how many, if its format states it."""
        ...

    def close(self) -> None:
        """Let out the rest."""
        ...


def read_join_key(form: FileFormat, body: BinaryIO) -> JoinKey:
    """The likeness of a file; it lies open at its beginning again."""
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
    """A new file of files with this likeness.

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
