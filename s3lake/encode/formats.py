"""Formats: what a file can be. One specification each; whatever differs between formats is asked of it.

This module is imported with every configuration, so what writes a file is imported by the function that makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from s3lake.encode import Disk, Encoder, Out

Rule = Literal["", "flat", "avro", "iceberg"]
"""What a format asks of columns: none that is nested (`flat`), or only names that Avro allows."""

LEVELS: dict[str, tuple[int, int]] = {
    "gzip": (1, 9),
    "zstd": (1, 19),  # those above take 170 to 670 MB for each open file
    "brotli": (1, 11),
    "deflate": (1, 9),
    "xz": (1, 9),
}
"""Lowest and highest level of the codecs that have levels."""

_NO_FRAMING = ("", "", "")
_OF_TEXTS = ("none", "gzip", "zstd", "snappy_framed")
_LINES = ("", "\n", "\n")
_ENDINGS = {"gzip": ".gz", "zstd": ".zst", "snappy_framed": ".snappy"}


@dataclass(frozen=True)
class FileFormat:
    """The format of one kind of file.

    Attributes:
        header: whether a CSV file begins with the names of its columns.
        framing: what stands before the first record of a text file, between two, and after the last.
    """

    type: str
    codec: str
    level: int | None = None
    header: bool = True
    framing: tuple[str, str, str] | None = None

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        """The framing of a text file as bytes; nothing where each object is one record."""
        opening, between, closing = self.framing or _NO_FRAMING
        return opening.encode(), between.encode(), closing.encode()


def _texts(form: FileFormat, out: Out, _disk: Disk, _chunk: int) -> Encoder:
    from s3lake.encode.text import TextEncoder

    return TextEncoder(form, out)


def _avro(form: FileFormat, out: Out, disk: Disk, _chunk: int) -> Encoder:
    from s3lake.encode.avro import AvroEncoder

    return AvroEncoder(out, form.codec, form.level, disk)


def _parquet(form: FileFormat, out: Out, disk: Disk, chunk: int) -> Encoder:
    from s3lake.encode.parquet import ParquetEncoder

    return ParquetEncoder(out, form.codec, form.level, disk, row_group_bytes=chunk)


def _as_it_is(payload: Any) -> Any:
    return payload


def _csv_rows(payload: Any) -> Any:
    import pyarrow as pa

    from s3lake.encode import csv

    return csv.prepared(payload) if isinstance(payload, pa.RecordBatch) else payload


def _avro_datums(payload: Any) -> Any:
    from s3lake.encode import avro

    return avro.prepared(payload)


@dataclass(frozen=True)
class Format:
    """What a format says of itself.

    Attributes:
        name: as a configuration says it, and a manifest.
        codecs: those that it takes; the first is its default.
        tabular: whether its records are rows of columns; those of the others are texts.
        rule: what it asks of columns.
        framing: what stands before the first record, between two, and after the last; None where the format has no
            text around records.
        packed: whether the codec is inside of the file, so that its name does not say it.
        styles: of envelopes that it can hold.
        encoder: makes the encoder of a new file.
        prepared: what can be done for a whole batch before its rows are split among files.
    """

    name: str
    codecs: tuple[str, ...] = _OF_TEXTS
    tabular: bool = False
    rule: Rule = ""
    framing: tuple[str, str, str] | None = _LINES
    packed: bool = False
    styles: tuple[str, ...] = ()
    encoder: Callable[[FileFormat, Out, Disk, int], Encoder] = _texts
    prepared: Callable[[Any], Any] = _as_it_is

    def extension(self, codec: str) -> str:
        """What names of files end with."""
        return f".{self.name.removesuffix('_array')}" + ("" if self.packed else _ENDINGS.get(codec, ""))


FORMATS = {
    format.name: format
    for format in (
        Format("json", styles=("record", "flat", "iggy")),
        Format("json_array", framing=("[\n", ",\n", "\n]"), styles=("record", "flat", "iggy")),
        Format("csv", tabular=True, rule="flat", styles=("flat",), prepared=_csv_rows),
        Format("text"),
        Format("bytes", framing=None),
        Format(
            "avro",
            codecs=("snappy", "none", "deflate", "zstd", "bzip2", "xz"),
            tabular=True,
            rule="avro",
            framing=None,
            packed=True,
            styles=("record", "flat"),
            encoder=_avro,
            prepared=_avro_datums,
        ),
        Format(
            "parquet",
            codecs=("zstd", "none", "snappy", "gzip", "lz4", "brotli"),
            tabular=True,
            framing=None,
            packed=True,
            styles=("record", "flat"),
            encoder=_parquet,
        ),
    )
}
