"""Formats: what a file can be. One specification each; whatever differs between formats is asked of it.

This module is imported with every configuration, so it names what writes a file, which is imported with the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        framing: the text before the first record of a text file, between two, and after the last.
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


@dataclass(frozen=True)
class Format:
    """The facts of a format.

    Attributes:
        name: as a configuration says it, and a manifest.
        codecs: that it takes; the first is its default.
        tabular: whether its records are rows of columns; others have texts.
        rule: what it asks of columns.
        framing: the text before the first record, between two, and after the last; None if the format has no
            text around records.
        packed: whether the codec is inside of the file, so that its name does not say it.
        styles: of envelopes that it can hold.
        encoder: module and class of its encoder, which takes a form, what takes the bytes, a disk, and how many bytes
            it holds back.
        prepare: module and function for what can be done for a whole batch before its rows are split among files.
    """

    name: str
    codecs: tuple[str, ...] = _OF_TEXTS
    tabular: bool = False
    rule: Rule = ""
    framing: tuple[str, str, str] | None = _LINES
    packed: bool = False
    styles: tuple[str, ...] = ()
    encoder: str = "text.TextEncoder"
    prepare: str | None = None

    def extension(self, codec: str) -> str:
        """Return the ending of file names."""
        return f".{self.name.removesuffix('_array')}" + ("" if self.packed else _ENDINGS.get(codec, ""))


FORMATS = {
    format.name: format
    for format in (
        Format("json", styles=("record", "flat", "iggy")),
        Format("json_array", framing=("[\n", ",\n", "\n]"), styles=("record", "flat", "iggy")),
        Format("csv", tabular=True, rule="flat", styles=("flat",), prepare="csv.prepare"),
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
            encoder="avro.AvroEncoder",
            prepare="avro.prepare",
        ),
        Format(
            "parquet",
            codecs=("zstd", "none", "snappy", "gzip", "lz4", "brotli"),
            tabular=True,
            framing=None,
            packed=True,
            styles=("record", "flat"),
            encoder="parquet.ParquetEncoder",
        ),
    )
}
