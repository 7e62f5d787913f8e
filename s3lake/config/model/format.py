"""Formats, codecs and envelopes: what a file of a sink is, which combinations there are, and when files are closed."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, Size, at_least, lasts_at_least, one_of
from s3lake.records.encode.formats import CODECS, FORMATS
from s3lake.text.quantities import format_size

Codec = Annotated[str, one_of(CODECS)]
FormatType = Annotated[str, one_of(FORMATS)]

_OF_NUMBERS = frozenset("0123456789.eE")
"""Characters that continue a number of JSON."""


class Framing(ConfigModel):
    """The texts before the first record of a text file, between two, and after the last.

    Attributes:
        opening: the text before the first record.
        between: the text between two records.
        closing: the text after the last record.
    """

    opening: str = ""
    between: str = "\n"
    closing: str = "\n"


class Format(ConfigModel):
    """The file format and its compression. Each format has its own default codec (docs/formats.md).

    Attributes:
        type: the type of the files.
        codec: the compression of the whole file, or of a table's pages; without it the format's own default, which is
            `none` for json.
        level: the level of the codec, if it has levels.
        header: whether a CSV file begins with the names of its columns.
        connect_properties: whether the schema of an Avro file keeps the properties `connect.*` of the producer's.
        framing: the framing of a text format, if it is not the format's own. With it, `bytes` holds many records an
            object.
    """

    type: FormatType = "json"
    codec: Codec = "none"
    level: int | None = None
    header: bool = True
    connect_properties: bool = True
    framing: Framing | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_codec(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("codec") is None:
            name = str(data.get("type", "json"))
            return {**data, "codec": FORMATS[name].codecs[0] if name in FORMATS else "none"}
        return data

    @model_validator(mode="after")
    def _check_together(self) -> "Format":
        spec, codec = FORMATS[self.type], CODECS[self.codec]
        if self.codec not in spec.codecs:
            because = f" ({codec.refusal})" if codec.refusal else ""
            allowed = ", ".join(spec.codecs)
            raise RuleError(
                f"codec {self.codec} cannot be used with format {self.type}{because}: use one of {allowed}", "codec"
            )
        if self.level is not None:
            if codec.levels is None:
                raise RuleError(f"{self.level}: codec {self.codec} has no levels; take it out", "level")
            low, high = codec.levels
            if not low <= self.level <= high:
                raise RuleError(f"{self.level} is out of range: codec {self.codec} takes {low} to {high}", "level")
        if self.type != "csv" and not self.header:
            raise RuleError(f"a file of format {self.type} has no header line: take it out, or write csv", "header")
        if self.type != "avro" and not self.connect_properties:
            raise RuleError(
                f"a file of format {self.type} has no schema with connect.*: take it out, or write avro",
                "connect_properties",
            )
        if self.framing is not None and spec.packed:
            raise RuleError(f"format {self.type} is not a text format: take framing out", "framing")
        if self.type == "csv" and self.framing is not None and "\n" not in self.framing.between:
            raise RuleError(
                f"{self.framing.between!r} does not end a line, and each record of CSV is a line: "
                r'use "\n" or "\r\n", or take it out',
                *("framing", "between"),
            )
        self._check_framing_of_json()
        return self

    def _check_framing_of_json(self) -> None:
        """Refuse a framing next to which numbers read as others: 1 and 2 with nothing between are 12."""
        if self.framing is None or self.type not in ("json", "json_array"):
            return
        for name, text in (("between", self.framing.between), ("closing", self.framing.closing)):
            if text[:1] in _OF_NUMBERS or (name == "between" and not text):
                raise RuleError(
                    f"{text!r} does not end a number of JSON, so 1 and 2 could read as 12: "
                    r'use "\n", ",", or another text that begins with neither a digit, a dot nor an e',
                    *("framing", name),
                )

    @property
    def effective_framing(self) -> Framing | None:
        """The framing that is used; None for Avro and Parquet, and for `bytes` with one record an object."""
        framing = FORMATS[self.type].framing
        if self.framing is not None or framing is None:
            return self.framing
        opening, between, closing = framing
        return Framing(opening=opening, between=between, closing=closing)

    @property
    def one_record_an_object(self) -> bool:
        """True if every object holds exactly one record, byte for byte."""
        return self.type == "bytes" and self.framing is None

    @property
    def extension(self) -> str:
        """The file extension: text formats add the codec, Avro and Parquet keep it inside the file."""
        return FORMATS[self.type].extension(self.codec)


LARGEST_FILE = 80 * 10**9  # an upload has 10,000 parts at most, and ours of 32 MiB leave room


class Flush(ConfigModel):
    """When a file is closed (count, size, span), and when a quiet topic is landed nevertheless (interval).

    Sizes are bytes (MB is 10^6, as connectors mean it; MiB is 2^20), durations are seconds.

    Attributes:
        count: records a file; None for any number.
        size: the size of a file as it is stored, in bytes.
        interval: the longest wait of a record in the current hour.
        span: the times of a file are less than that apart: of the records, or of the field that `layout.time` reads;
            None for any.
        merge: one commit replaces an hour's small ones, once all of the hour is landed.
    """

    count: Annotated[int, at_least(1)] | None = None
    size: Annotated[Size, at_least(1, LARGEST_FILE, format_size)] = 2**27
    interval: Annotated[Duration, lasts_at_least(0)] = 300.0
    span: Annotated[Duration, lasts_at_least(0.001)] | None = None
    merge: bool = True


class Envelope(ConfigModel):
    """The parts of a record in a row, and how they are arranged.

    `record` is the structure of Lenses' documentation: `key`, `value`, `headers` and `metadata` (topic, partition,
    offset, timestamp), each of which can be left out. `flat` is Aiven's: the fields in the order given, one member or
    column each. `iggy` is the Iggy S3 sink's line.

    Attributes:
        style: `record`: named parts; `flat`: columns next to the value; `iggy`: Iggy's.
        fields: parts of the record, in order; without it all that the style has (`flat`: the value alone).
        value_encoding: how `flat` writes a value in CSV.
        bare: `flat` with one field: its value alone, without a member or column name around it.
        stream: the name that style iggy prints.
        topic: the name that style iggy prints.
    """

    style: Literal["record", "flat", "iggy"] = "record"
    fields: tuple[Literal["key", "value", "headers", "metadata", "offset", "timestamp"], ...] = ()
    value_encoding: Literal["base64", "none"] = "base64"
    bare: bool = False
    stream: str = ""
    topic: str = ""

    @model_validator(mode="before")
    @classmethod
    def _default_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("fields"):
            return {**data, "fields": _FIELDS.get(str(data.get("style", "record")), ((), ()))[1]}
        return data

    @model_validator(mode="after")
    def _check_together(self) -> "Envelope":
        allowed, _ = _FIELDS[self.style]
        for position, field in enumerate(self.fields):
            if field not in allowed:
                raise RuleError(
                    f"{field!r} is not a part of style {self.style}: use {', '.join(allowed)}", "fields", position
                )
            if field in self.fields[:position]:
                raise RuleError(f"{field!r} is named twice: take one out", "fields", position)
        if self.bare and (self.style != "flat" or len(self.fields) != 1):
            raise RuleError("bare needs style flat and exactly one field", "bare")
        if self.style != "flat" and self.value_encoding != "base64":
            raise RuleError(f"style {self.style} has no value in CSV: take it out", "value_encoding")
        for name in ("stream", "topic"):
            if self.style != "iggy" and getattr(self, name):
                raise RuleError(f"style {self.style} does not print it: take it out, or write style: iggy", name)
        return self


_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "record": (("key", "value", "headers", "metadata"), ("key", "value", "headers", "metadata")),
    "flat": (("key", "value", "headers", "offset", "timestamp"), ("value",)),
    "iggy": (("metadata", "headers", "value"), ("metadata", "value")),
}
"""Per style: the parts there are, and those without `fields`."""


class Sidecars(ConfigModel):
    """Objects next to each data object, with the same stem: the records' keys and headers (Confluent's layout).

    A file of keys or headers has as many records as its data file, in the same order.

    Attributes:
        keys: format of the keys' objects; None for none.
        headers: format of the headers' objects; None for none.
        codecs: format -> codec, if it is not the format's own default.
        extensions: format -> the ending after `.keys` and `.headers`, if it is not the format's own.
    """

    keys: Literal["avro", "json", "parquet", "bytes"] | None = None
    headers: Literal["avro", "json", "parquet"] | None = None
    codecs: dict[str, Codec] = Field(default_factory=dict)
    extensions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_together(self) -> "Sidecars":
        for type, codec in self.codecs.items():
            if type not in ("avro", "json", "parquet", "bytes"):
                raise RuleError(
                    f"{type!r} is not a format of a sidecar: use avro, json, parquet or bytes", "codecs", type
                )
            if codec not in FORMATS[type].codecs:
                allowed = ", ".join(FORMATS[type].codecs)
                raise RuleError(
                    f"codec {codec} cannot be used with format {type}: use one of {allowed}", "codecs", type
                )
        for type, extension in self.extensions.items():
            if not re.fullmatch(r"(\.[A-Za-z0-9_-]{1,16}){1,3}", extension):
                raise RuleError(f"{extension!r} is not an extension: write for example .bin", "extensions", type)
        return self

    @property
    def types(self) -> dict[str, str]:
        """Stream -> format of each configured sidecar."""
        return {stream: type for stream, type in (("keys", self.keys), ("headers", self.headers)) if type is not None}

    def format(self, type: str) -> Format:
        """Return the format of the sidecars of a type; `bytes` are lines, one for each record."""
        framing = Framing() if type == "bytes" else None
        return Format(type=type, codec=self.codecs.get(type) or FORMATS[type].codecs[0], framing=framing)

    @property
    def by_stream(self) -> dict[str, str]:
        """Stream -> the ending of its sidecars' keys."""
        return {
            stream: f".{stream}{self.extensions.get(type) or self.format(type).extension}"
            for stream, type in self.types.items()
        }

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the sidecars' keys."""
        return tuple(self.by_stream.values())
