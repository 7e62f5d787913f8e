"""Formats and codecs: what a file can be. One specification each, which has all that differs between them.

This module is imported with every configuration, so it names what writes a file, which is imported with the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from s3lake.records.schema.columns.limits import Rule

_NO_FRAMING = ("", "", "")
_TEXT_CODECS = ("none", "gzip", "zstd", "snappy_framed")
_LINES = ("", "\n", "\n")


@dataclass(frozen=True)
class CodecSpec:
    """The facts of a codec; `codecs.py` has what compresses with it.

    Attributes:
        ending: what it adds to the names of text files.
        levels: the lowest and the highest level; None if it has no levels.
        level: the default level, if it has levels.
        refusal: the reason why no format takes it.
    """

    ending: str = ""
    levels: tuple[int, int] | None = None
    level: int | None = None
    refusal: str = ""


CODECS = {
    "none": CodecSpec(),
    "gzip": CodecSpec(".gz", (1, 9), 4),  # libdeflate's 4 makes files as small as zlib's 6, for half of its CPU
    "snappy": CodecSpec(),
    "snappy_framed": CodecSpec(".snappy"),
    "zstd": CodecSpec(".zst", (1, 19), 3),  # higher levels take 170 to 670 MB for each open file
    "lz4": CodecSpec(),
    "lzo": CodecSpec(
        refusal="Arrow writes no LZO, and pyarrow, DuckDB, polars and Spark as it ships refuse a Parquet file with it"
    ),
    "brotli": CodecSpec(levels=(1, 11), level=8),
    "bzip2": CodecSpec(),
    "xz": CodecSpec(levels=(1, 9), level=6),
    "deflate": CodecSpec(levels=(1, 9), level=4),
}


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
class FormatSpec:
    """The facts of a format.

    Attributes:
        codecs: the codecs that it takes; the first is its default.
        tabular: whether its records are rows of columns; others have texts.
        rule: what it asks of columns.
        framing: the text before the first record, between two, and after the last; None if the format has no
            text around records.
        packed: whether the codec is inside of the file, so that its name does not show it.
        styles: the styles of envelopes that it can hold.
        encoder: module and class of its encoder, which takes a form, what takes the bytes, a disk, and how many bytes
            it holds back.
        prepare: module and function for what can be done for a whole batch before its rows are split among files.
    """

    name: str
    codecs: tuple[str, ...] = _TEXT_CODECS
    tabular: bool = False
    rule: Rule = ""
    framing: tuple[str, str, str] | None = _LINES
    packed: bool = False
    styles: tuple[str, ...] = ()
    encoder: str = "text_file.TextEncoder"
    prepare: str | None = None

    def extension(self, codec: str) -> str:
        return f".{self.name.removesuffix('_array')}" + ("" if self.packed else CODECS[codec].ending)


FORMATS = {
    format.name: format
    for format in (
        FormatSpec("json", styles=("record", "flat", "iggy")),
        FormatSpec("json_array", framing=("[\n", ",\n", "\n]"), styles=("record", "flat", "iggy")),
        FormatSpec("csv", tabular=True, rule="flat", styles=("flat",), prepare="csv_rows.encode_lines"),
        FormatSpec("text"),
        FormatSpec("bytes", framing=None),
        FormatSpec(
            "avro",
            codecs=("snappy", "none", "deflate", "zstd", "bzip2", "xz"),
            tabular=True,
            rule="avro",
            framing=None,
            packed=True,
            styles=("record", "flat"),
            encoder="avro_file.AvroEncoder",
            prepare="avro_file.encode_datums",
        ),
        FormatSpec(
            "parquet",
            codecs=("zstd", "none", "snappy", "gzip", "lz4", "brotli"),
            tabular=True,
            framing=None,
            packed=True,
            styles=("record", "flat"),
            encoder="parquet_file.ParquetEncoder",
        ),
    )
}
