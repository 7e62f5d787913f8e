"""Iggy's schemas and conversions between them, as converters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3lake.config.connectors.iggy_file import File
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Place, Report, Setting

CONVERSIONS = ("proto_convert", "avro_convert", "flat_buffer_convert")
_CONVERTERS = {"json": "json", "raw": "bytes", "text": "string", "proto": "protobuf", "avro": "avro"}
_FLAT_BUFFER = (
    "FlatBuffers' own library reads them by classes that its compiler made of a schema, and by nothing else, and "
    "Iggy's own conversion decodes no fields either. Write schema = 'raw' to land the bytes"
)
_NO_EFFECT = ("include_paths", "preserve_unknown_fields", "conversion_options", "schema_registry_url")


@dataclass(frozen=True)
class _Conversion:
    """The description of a schema's messages, which a connector's stream does not have.

    Attributes:
        described: by an option of the conversion: the setting of `converter.registry` that it is here.
        unread: option -> what to use instead.
        remedy: what to write.
    """

    schema: str
    described: Mapping[str, str]
    unread: Mapping[str, str]
    remedy: str

    @property
    def name(self) -> str:
        return f"{self.schema}_convert"


_READ = {
    conversion.schema: conversion
    for conversion in (
        _Conversion(
            "proto",
            {"descriptor_set": "descriptor_set", "message_type": "message"},
            {"schema_path": "descriptor_set", "field_mappings": "sql.select of [s3lake]"},
            "write [transforms.proto_convert] with descriptor_set, a file that protoc --include_imports "
            "--descriptor_set_out makes, message_type, source_format and target_format, or [s3lake] "
            "converter.registry.descriptor_set and message",
        ),
        _Conversion(
            "avro",
            {"schema_path": "schema_file"},
            {"schema_json": "a file and schema_path", "field_mappings": "sql.select of [s3lake]"},
            "write [transforms.avro_convert] with schema_path, source_format and target_format, or [s3lake] "
            "converter.registry.schema_file",
        ),
    )
}


class PayloadSchemas:
    """The conversions of one connector's messages."""

    def __init__(self, file: File, report: Report) -> None:
        self._file, self._report = file, report
        tables = file.data.get("transforms")
        self._tables = tables if isinstance(tables, dict) else {}
        if self._enabled("flat_buffer_convert") is not None:
            self._wrong("flat_buffer_convert", "", f"{_FLAT_BUFFER}, and take the conversion out")

    def put(self, sink: Draft, keys: Keys, stream: int) -> None:
        """Put the converter of a stream's messages."""
        names = {name: name for name in (*_CONVERTERS, "flat_buffer")}
        schema = keys.choice(f"streams[{stream}].schema", names, "json")
        if schema.value == "flat_buffer" and schema.setting is not None:
            keys.wrong(schema.setting, f"{schema.setting.masked_value}: {_FLAT_BUFFER}")
        sink.put("converter.value", _CONVERTERS.get(schema.value, "json"), schema.setting)
        for conversion in _READ.values():
            table = self._enabled(conversion.name)
            if table is not None and schema.value != conversion.schema:
                message = f"messages of another schema are not read so; write schema = {conversion.schema!r}"
                self._wrong(conversion.name, "", f"{message}, or enabled = false")
            elif table is not None:
                self._describe(sink, conversion, table)
            elif schema.value == conversion.schema and not keys.with_prefix("s3lake.converter.registry."):
                message = f"{schema.value!r} does not say how messages are read: {conversion.remedy}"
                self._report.error(schema.setting, message)

    def _enabled(self, name: str) -> dict[str, Any] | None:
        table = self._tables.get(name)
        return table if isinstance(table, dict) and table.get("enabled") is True else None

    def _describe(self, sink: Draft, conversion: _Conversion, table: dict[str, Any]) -> None:
        for name, wanted in (("source_format", conversion.schema), ("target_format", "json")):
            if table.get(name) != wanted:
                message = f"only {conversion.schema} to json is read; write {name} = {wanted!r}"
                self._wrong(conversion.name, name, message)
        for name, instead in conversion.unread.items():
            if table.get(name):
                self._wrong(conversion.name, name, f"is not read here; take it out, and use {instead}")
        for name, setting in conversion.described.items():
            if not isinstance(table.get(name), str):
                self._wrong(conversion.name, name, f"{name} is missing: {conversion.remedy}")
                continue
            place = self._place(conversion.name, name)
            sink.put(f"converter.registry.{setting}", table[name], Setting(place.key, table[name], place))
        for name in _NO_EFFECT:
            if name in table:
                self._report.no_effect(self._place(conversion.name, name), "the schema says it all")

    def _wrong(self, transform: str, name: str, message: str) -> None:
        self._report.error(self._place(transform, name), message)

    def _place(self, transform: str, name: str) -> Place:
        table = self._file.places.get(("transforms", transform), Place(self._file.name))
        return self._file.places.get(("transforms", transform, name), table)
