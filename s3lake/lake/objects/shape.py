"""What the objects of one stream of a commit hold, as in its manifest: format, converters, framing, envelope."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import asdict, replace

from s3lake.index.commit.documents import EnvelopeForm, File, FileForm, Manifest
from s3lake.records.schema.columns.types import LEFT_EMPTY, UNKNOWN, Struct, fields_of, from_document

STRING, BYTES = "string", "bytes"
"""Converters of keys and values that are not JSON."""


class FramingBytes(NamedTuple):
    """The bytes before the first record of a text file, between two, and after the last."""

    opening: bytes
    between: bytes
    closing: bytes


LINE_FRAMING = FramingBytes(b"", b"\n", b"\n")


class ObjectShape(FileForm, frozen=True):
    """The form of the objects of one stream, and their columns: plain values, which travel to Spark's workers.

    Attributes:
        columns: the columns of the files by the manifest; None if it has none.
        json_as_text: True if JSON without a schema is in columns as its text, as keys are in files of their own.
        bare_column: the one column that a datum of an Avro file is; "" if it is a record of columns.
        uncompared: paths of fields that some records lack or have by default, though Kafka has another value.
        has_empty: True if some records lack lists or objects that hold nothing.
    """

    columns: Struct | None = None
    json_as_text: bool = False
    bare_column: str = ""
    uncompared: frozenset[str] = frozenset()
    has_empty: bool = False

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> ObjectShape:
        columns, counts = Struct(from_document(manifest.columns)) if manifest.columns else None, manifest.counts
        # An empty list or object without a column of its kind is compared: there must be nothing else.
        empty = {path for path in counts.fields_left_out if path.removeprefix("key:").startswith(LEFT_EMPTY)}
        uncompared = frozenset((*(counts.fields_left_out.keys() - empty), *counts.fields_filled))
        return replace(cls.from_form(manifest.form, columns, uncompared), has_empty=bool(empty))

    @classmethod
    def from_form(
        cls, form: FileForm, columns: Struct | None = None, uncompared: frozenset[str] = frozenset()
    ) -> ObjectShape:
        """Return the shape of data files of a form."""
        return cls(**asdict(form.without_transforms), columns=columns, uncompared=uncompared)

    def for_file(self, file: File) -> ObjectShape:
        """Return the shape of one of a commit's files: each may have columns of its own."""
        if file.columns is None:
            return self
        types = fields_of(self.columns)
        return replace(self, columns=Struct({name: types.get(name, UNKNOWN) for name in file.columns}))

    @property
    def frame(self) -> FramingBytes | None:
        """The framing of a text format; None if an object is one record."""
        return self.framing and FramingBytes(*map(str.encode, self.framing))

    @property
    def in_columns(self) -> bool:
        """True if a row is columns; otherwise it is one text."""
        return self.format in ("avro", "parquet") or (self.format == "csv" and self.envelope is None)

    @property
    def separable(self) -> bool:
        """True if a record is never more than one piece between separators."""
        if self.in_columns or self.framing is None or self.format.startswith("json"):
            return True
        return self.format != "bytes" and "\n" in self.framing[1]

    @property
    def spread_part(self) -> str | None:
        """The part of a record whose own fields are the columns; None if an envelope's fields are."""
        if self.envelope is None:
            return "value"
        first = self.envelope.fields[0]
        return first if self.envelope.bare and first in ("key", "value") else None

    def converter(self, part: str) -> str:
        return self.key if part == "key" else self.value

    def sidecar(self, stream: str) -> ObjectShape:
        """Return the shape of the files of keys or headers: the part alone, under its name if it can have one."""
        form = (self.sidecars.keys if stream == "keys" else self.sidecars.headers) or ""
        part, bare = ("key", form in ("json", "bytes")) if stream == "keys" else ("headers", False)
        return ObjectShape(
            form,
            self.value,
            self.key,
            codec=dict(self.sidecars.codecs).get(form, "none"),
            envelope=EnvelopeForm("flat", (part,), bare=bare),
            json_as_text=True,
            bare_column=part if form == "avro" else "",
            uncompared=self.uncompared,
            null_to_default=self.null_to_default,
        )
