"""What the files of one commit are, as its manifest says: format, converters, framing, envelope, sidecars."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from s3lake.schema.types import Columns, from_document

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
_TABLES = ("avro", "parquet", "csv")
_OFFSET = re.compile(r"\{(?:last_)?offset[:}]")


@dataclass(frozen=True)
class Envelope:
    """Which parts of a record a row holds: see `s3lake.sink.Envelope`."""

    style: str
    fields: tuple[str, ...]
    value_encoding: str = "base64"
    bare: bool = False
    stream: str = ""
    topic: str = ""


@dataclass(frozen=True)
class Shape:
    """What the objects of one stream hold.

    Attributes:
        codec: of a text format; None where only the object's name tells, as in commits that recorded no shape.
        frame: of a text format; None where an object is one record.
        header: whether a CSV file begins with the names of its columns.
        sidecars: stream -> format.
        columns: that the manifest says the files have; None where it does not.
        topic: whose records they are.
        spelled: whether JSON stands in columns as its text, as keys do in files of their own.
        changed: whether values are no longer what Kafka has, after transforms or SQL.
    """

    format: str
    value: str = "json"
    key: str = "string"
    nulls: str = "skip"
    codec: str | None = None
    frame: Frame | None = LINES
    header: bool = True
    envelope: Envelope | None = None
    sidecars: tuple[tuple[str, str], ...] = ()
    columns: Columns | None = None
    topic: str = ""
    spelled: bool = False
    changed: bool = False

    @classmethod
    def of(cls, manifest: Manifest | None, sink: Sink, topic: str) -> Shape:
        """The shape of a commit; the sink's own where there is none, or where the commit recorded nothing."""
        written: Mapping[str, Any] = manifest.shape if manifest else sink.shape
        form = (manifest.format if manifest else "") or sink.format.type
        envelope, framing = written.get("envelope"), written.get("framing", ())
        return cls(
            format=form,
            value=(manifest.converter if manifest else "") or sink.converter.value,
            key=written.get("key", sink.converter.key),
            nulls=(manifest.nulls if manifest else "") or sink.nulls,
            codec=written.get("codec"),
            frame=_FRAMES.get(form) if framing == () else _frame(framing),
            header=written.get("header", True),
            envelope=Envelope(**{**envelope, "fields": tuple(envelope["fields"])}) if envelope else None,
            sidecars=tuple((stream, kind) for stream, kind in (written.get("sidecars") or {}).items() if kind),
            columns=from_document(manifest.columns) if manifest and manifest.columns else None,
            topic=topic,
            changed=written.get("changed", False),
        )

    @property
    def needs(self) -> frozenset[str]:
        """What must be known of Kafka's records beside their values: "key", "headers"."""
        fields = self.envelope.fields if self.envelope else ()
        streams = dict(self.sidecars)
        return frozenset(
            part for part, stream in (("key", "keys"), ("headers", "headers")) if part in fields or stream in streams
        )

    @property
    def in_columns(self) -> bool:
        """Whether a row is columns; otherwise it is one text."""
        return self.format in _TABLES and not (self.format == "csv" and self.envelope)

    def sidecar(self, stream: str) -> Shape:
        """The shape of the files that hold keys or headers: the part alone, under its name where that can be."""
        form = dict(self.sidecars)[stream]
        field, bare = ("key", form in ("json", "bytes")) if stream == "keys" else ("headers", False)
        return replace(
            self,
            format=form,
            codec="none",
            frame=None if form in ("avro", "parquet") else LINES,
            envelope=Envelope("flat", (field,), bare=bare),
            sidecars=(),
            columns=None,
            spelled=True,
        )


def keeps_last(sink: Sink) -> bool:
    """Whether a later record replaces an earlier one's file, because the sink's keys say no offset."""
    template = sink.layout.template
    return not sink.exactly_once and template is not None and _OFFSET.search(template.replace("{{", "")) is None


def _frame(framing: Any) -> Frame | None:
    return Frame(*(part.encode() for part in framing)) if framing is not None else None
