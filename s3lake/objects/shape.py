"""What the objects of one stream of a commit hold, as its manifest says: format, converters, framing, envelope."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import UNSET

from s3lake.commit.index import File, Manifest
from s3lake.commit.written import Envelope, Sidecars, Written
from s3lake.schema.types import UNKNOWN, Struct, fields_of, from_document

TEXT, BYTES = "string", "bytes"
"""Converters of keys and values that are no JSON."""


class Frame(NamedTuple):
    """What stands before the first record of a text file, between two, and after the last."""

    opening: bytes
    between: bytes
    closing: bytes


LINES = Frame(b"", b"\n", b"\n")
_FRAMES = {"json": LINES, "text": LINES, "csv": LINES, "json_array": Frame(b"[\n", b",\n", b"\n]")}


@dataclass(frozen=True)
class Shape:
    """What the objects of one stream hold: plain values, which travel to Spark's workers.

    Attributes:
        codec: of a text format; None where only the object's name tells, as in commits that recorded none.
        frame: of a text format; None where an object is one record.
        header: whether a CSV file begins with the names of its columns.
        sidecars: formats of the files of keys and headers.
        columns: that the manifest says the files have; None where it does not.
        spelled: whether JSON stands in columns as its text, as keys do in files of their own.
        typed: whether that is only JSON without a schema.
        base64_decimals: whether decimals of schemas are base64 in JSON; else they are numbers.
        shortest_floats: whether floats of Avro and Protobuf have the fewest digits in JSON; else those of doubles.
        uncompared: paths of fields that some records lack or have by default, though Kafka says otherwise.
        alone: the one column that a datum of an Avro file is; "" where it is a record of columns.
    """

    format: str
    value: str = "json"
    key: str = "string"
    codec: str | None = None
    frame: Frame | None = LINES
    header: bool = True
    envelope: Envelope | None = None
    sidecars: Sidecars = field(default_factory=Sidecars)
    columns: Struct | None = None
    spelled: bool = False
    typed: bool = False
    alone: str = ""
    base64_decimals: bool = False
    shortest_floats: bool = False
    uncompared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifest: Manifest, *, key: str = "string", value: str = "json") -> Shape:
        """The shape of a commit's data; `key` and `value` are the converters of one that recorded none."""
        columns = Struct(from_document(manifest.columns)) if manifest.columns else None
        shape = cls.written(
            manifest.shape, manifest.format, key=key, value=manifest.converter or value, columns=columns
        )
        return replace(shape, uncompared=frozenset((*manifest.dropped, *manifest.filled)))

    @classmethod
    def written(cls, written: Written, form: str, *, value: str, key: str = "string", columns: Struct | None) -> Shape:
        """The shape of files that are written so."""
        framing = written.framing
        return cls(
            format=form,
            value=value,
            key=key if written.key is UNSET else written.key,
            codec=None if written.codec is UNSET else written.codec,
            frame=_FRAMES.get(form) if framing is UNSET else framing and Frame(*map(str.encode, framing)),
            header=written.header is not False,
            envelope=written.envelope or None,
            sidecars=written.sidecars or Sidecars(),
            columns=columns,
            base64_decimals=written.decimals == "base64",
            shortest_floats=written.floats == "shortest",
        )

    def of_file(self, file: File) -> Shape:
        """The shape of one of a commit's files of this one: each may have columns of its own."""
        if file.columns is None:
            return self
        known = fields_of(self.columns)
        return replace(self, columns=Struct({name: known.get(name, UNKNOWN) for name in file.columns}))

    @property
    def in_columns(self) -> bool:
        """Whether a row is columns; otherwise it is one text."""
        return self.format in ("avro", "parquet") or (self.format == "csv" and self.envelope is None)

    @property
    def nameless(self) -> bool:
        """Whether no file says itself which columns it has: CSV without a header line."""
        return self.format == "csv" and self.in_columns and not self.header

    @property
    def separable(self) -> bool:
        """Whether a record is never more than one piece between separators."""
        if self.in_columns or self.frame is None or self.format.startswith("json"):
            return True
        return self.format != "bytes" and b"\n" in self.frame.between

    @property
    def spread(self) -> str | None:
        """The part of a record whose own fields are the columns; None where an envelope's fields are."""
        if self.envelope is None:
            return "value"
        first = self.envelope.fields[0]
        return first if self.envelope.bare and first in ("key", "value") else None

    def converter(self, part: str) -> str:
        """Of a record's `key` or `value`."""
        return self.key if part == "key" else self.value

    def sidecar(self, stream: str) -> Shape:
        """The shape of the files that hold keys or headers: the part alone, under its name where that can be."""
        form = self.sidecars.keys if stream == "keys" else self.sidecars.headers
        part, bare = ("key", form in ("json", "bytes")) if stream == "keys" else ("headers", False)
        typed = self.sidecars.typed is True
        return replace(
            self,
            format=form or "",
            codec=dict(self.sidecars.codecs or ()).get(form or "", "none"),
            frame=None if form in ("avro", "parquet") else LINES,
            envelope=Envelope("flat", (part,), bare=bare),
            sidecars=Sidecars(),
            columns=None,
            spelled=True,
            typed=typed,
            alone=part if typed and form == "avro" else "",
        )
