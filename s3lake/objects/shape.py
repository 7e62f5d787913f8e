"""What the objects of one stream of a commit hold, as its manifest says: format, converters, framing, envelope."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from s3lake.commit.documents import Envelope, File, Manifest, Sidecars, Written
from s3lake.schema.types import UNKNOWN, Struct, fields_of, from_document

TEXT, BYTES = "string", "bytes"
"""Converters of keys and values that are not JSON."""


class Frame(NamedTuple):
    """What is before the first record of a text file, between two, and after the last."""

    opening: bytes
    between: bytes
    closing: bytes


LINES = Frame(b"", b"\n", b"\n")


@dataclass(frozen=True)
class Shape:
    """What the objects of one stream hold: plain values, which travel to Spark's workers.

    Attributes:
        codec: of a text format.
        frame: of a text format; None if an object is one record.
        header: True if a CSV file begins with the names of its columns.
        sidecars: formats of the files of keys and headers.
        columns: that the manifest says the files have; None if it does not.
        spelled: True if JSON without a schema is in columns as its text, as keys are in files of their own.
        alone: the one column that a datum of an Avro file is; "" if it is a record of columns.
        uncompared: paths of fields that some records lack or have by default, though Kafka says otherwise.
    """

    format: str
    value: str = "json"
    key: str = "string"
    codec: str = "none"
    frame: Frame | None = LINES
    header: bool = True
    envelope: Envelope | None = None
    sidecars: Sidecars = field(default_factory=Sidecars)
    columns: Struct | None = None
    spelled: bool = False
    alone: str = ""
    uncompared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifest: Manifest) -> Shape:
        """Return the shape of a commit's data."""
        return cls.written(
            manifest.shape,
            format=manifest.format,
            value=manifest.converter or "json",
            columns=Struct(from_document(manifest.columns)) if manifest.columns else None,
            uncompared=frozenset((*manifest.dropped, *manifest.filled)),
        )

    @classmethod
    def written(cls, written: Written, **more: Any) -> Shape:
        """Return the shape of files that are written so; `more` are the other attributes, `format` among them."""
        return cls(
            key=written.key,
            codec=written.codec,
            frame=written.framing and Frame(*map(str.encode, written.framing)),
            header=written.header,
            envelope=written.envelope,
            sidecars=written.sidecars,
            **more,
        )

    def of_file(self, file: File) -> Shape:
        """Return the shape of one of a commit's files: each may have columns of its own."""
        if file.columns is None:
            return self
        known = fields_of(self.columns)
        return replace(self, columns=Struct({name: known.get(name, UNKNOWN) for name in file.columns}))

    @property
    def in_columns(self) -> bool:
        """True if a row is columns; otherwise it is one text."""
        return self.format in ("avro", "parquet") or (self.format == "csv" and self.envelope is None)

    @property
    def nameless(self) -> bool:
        """True if no file says itself which columns it has: CSV without a header line."""
        return self.format == "csv" and self.in_columns and not self.header

    @property
    def separable(self) -> bool:
        """True if a record is never more than one piece between separators."""
        if self.in_columns or self.frame is None or self.format.startswith("json"):
            return True
        return self.format != "bytes" and b"\n" in self.frame.between

    @property
    def spread(self) -> str | None:
        """The part of a record whose own fields are the columns; None if an envelope's fields are."""
        if self.envelope is None:
            return "value"
        first = self.envelope.fields[0]
        return first if self.envelope.bare and first in ("key", "value") else None

    def converter(self, part: str) -> str:
        """Return the converter of a record's `key` or `value`."""
        return self.key if part == "key" else self.value

    def sidecar(self, stream: str) -> Shape:
        """Return the shape of the files of keys or headers: the part alone, under its name if it can have one."""
        form = (self.sidecars.keys if stream == "keys" else self.sidecars.headers) or ""
        part, bare = ("key", form in ("json", "bytes")) if stream == "keys" else ("headers", False)
        return replace(
            self,
            format=form,
            codec=dict(self.sidecars.codecs).get(form, "none"),
            frame=None if form in ("avro", "parquet") else LINES,
            envelope=Envelope("flat", (part,), bare=bare),
            sidecars=Sidecars(),
            columns=None,
            spelled=True,
            alone=part if form == "avro" else "",
        )
