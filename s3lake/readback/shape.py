"""What the files of a commit are, as plain values that travel to the workers, and the columns they are read into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from s3lake.convert.converters import CONVERTERS
from s3lake.schema.arrow import arrow_type
from s3lake.schema.types import Columns

if TYPE_CHECKING:
    from s3lake.commit.index import Manifest
    from s3lake.sink import Sink


class Frame(NamedTuple):
    """What stands before the first record of a text file, between two, and after the last."""

    opening: bytes
    between: bytes
    closing: bytes


LINES = Frame(b"", b"\n", b"\n")
_FRAMES = {"json": LINES, "text": LINES, "csv": LINES, "json_array": Frame(b"[\n", b",\n", b"\n]")}
_JSON = tuple(name for name, converter in CONVERTERS.items() if converter.gives == "json")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
METADATA = pa.struct(
    [("timestamp", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
)
STAMP = pa.timestamp("us", "UTC")
_FIXED = {"headers": HEADERS, "metadata": METADATA, "offset": pa.int64(), "timestamp": STAMP}


@dataclass(frozen=True)
class Shape:
    """What the data files of one commit hold.

    Attributes:
        codec: of a text format; None where only a file's name tells, as in commits that recorded no shape.
        frame: of a text format; None where an object is one record.
        style: of the envelope; empty where there is none.
        fields: of the envelope.
        columns: names of the files' columns, where they do not say them.
    """

    format: str
    value: str
    key: str = "string"
    codec: str | None = None
    header: bool = True
    frame: Frame | None = None
    style: str = ""
    fields: tuple[str, ...] = ()
    bare: bool = False
    value_encoding: str = "base64"
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, manifest: Manifest) -> Shape:
        """The shape of a commit."""
        return cls._of(manifest.format, manifest.converter or "json", manifest.shape, manifest.columns)

    @classmethod
    def of_sink(cls, sink: Sink) -> Shape:
        """The shape of what a sink lands now."""
        landed = sink.landed
        return cls._of(landed.format.type, landed.converter.value, landed.shape, None)

    @classmethod
    def _of(cls, form: str, value: str, written: dict[str, Any], columns: dict[str, Any] | None) -> Shape:
        envelope, framing = written.get("envelope") or {}, written.get("framing", ())
        if framing == ():
            frame = _FRAMES.get(form)
        else:
            frame = Frame(*(part.encode() for part in framing)) if framing is not None else None
        return cls(
            format=form,
            value=value,
            key=written.get("key", "string"),
            codec=written.get("codec"),
            header=written.get("header", True),
            frame=frame,
            style=envelope.get("style", ""),
            fields=tuple(envelope.get("fields", ())),
            bare=envelope.get("bare", False),
            value_encoding=envelope.get("value_encoding", "base64"),
            columns=tuple(columns or ()),
        )

    @property
    def in_columns(self) -> bool:
        """Whether a file's rows are columns; otherwise each is one text."""
        return self.format in ("avro", "parquet") or (self.format == "csv" and not self.style)

    @property
    def rows(self) -> tuple[Any, ...]:
        """What must be the same in all commits that are read together: it decides the columns."""
        return self.format, self.value, self.key, self.style, self.fields, self.bare, self.value_encoding

    def schema(self, recorded: Columns) -> pa.Schema:
        """The columns that files are read into; `recorded` are the sink's."""
        if self.style in ("", "iggy") or (self.in_columns and self._spread):
            return self._value_alone(recorded)
        return pa.schema([(field, self._column(field, recorded)) for field in self.fields])

    @property
    def _spread(self) -> bool:
        """Whether a bare key's or value's own fields are the columns."""
        converters = {"key": self.key, "value": self.value}
        return self.bare and converters.get(self.fields[0]) in _JSON

    def _value_alone(self, recorded: Columns) -> pa.Schema:
        if self.in_columns and (self.value in _JSON or self._spread):
            return pa.schema([(name, readable(arrow_type(type))) for name, type in recorded.items()])
        if self.format == "bytes" or (self.format not in ("json", "json_array") and self.value == "bytes"):
            return pa.schema([("value", pa.binary())])
        return pa.schema([("value", pa.string())])

    def _column(self, field: str, recorded: Columns) -> pa.DataType:
        if field in _FIXED:
            return _FIXED[field]
        converter = self.key if field == "key" else self.value
        if self.in_columns and converter in _JSON and field in recorded:
            return readable(arrow_type(recorded[field]))
        in_base64 = self.format == "csv" and (field == "key" or self.value_encoding == "base64")
        return pa.binary() if converter == "bytes" or in_base64 else pa.string()


def readable(type: pa.DataType) -> pa.DataType:
    """The type of Spark's that holds a file's: it has no UUIDs, no times of day, and microseconds only."""
    of = pa.types
    if of.is_struct(type):
        return pa.struct([(field.name, readable(field.type)) for field in type])
    if of.is_map(type):
        return pa.map_(readable(type.key_type), readable(type.item_type))
    if of.is_list(type):
        return pa.list_(readable(type.value_type))
    if of.is_timestamp(type):
        return STAMP
    return pa.string() if of.is_time(type) or type == pa.uuid() else type
