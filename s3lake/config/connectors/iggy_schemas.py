"""Iggy's schemas and conversions between them, as converters."""

from __future__ import annotations

from typing import Any

from s3lake.config.connectors.iggy_file import File
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.setting import Place, Report, Setting

_CONVERTERS = {"json": "json", "raw": "bytes", "text": "string", "proto": "protobuf"}
_UNREAD = {
    "flat_buffer": (
        "no library reads FlatBuffers by a schema that is not compiled in, and Iggy's own conversion decodes no fields "
        "either. Write raw to land the bytes"
    ),
    "avro": (
        "messages are without a schema, and a sink's stream cannot name one: the connector reads it as bytes. Write "
        "raw to land the bytes; Avro with the id of a Schema Registry before it is read with [s3lake] converter.value"
    ),
}
CONVERSIONS = ("proto_convert", "flat_buffer_convert", "avro_convert")
_MEANINGLESS = ("include_paths", "preserve_unknown_fields", "conversion_options", "schema_registry_url")
_REMEDY = (
    "write [transforms.proto_convert] with descriptor_set, a file that protoc --include_imports --descriptor_set_out "
    "makes, message_type, source_format and target_format, or [s3lake] converter.registry.descriptor_set and message"
)


class Schemas:
    """What the conversions of one connector say of its messages."""

    def __init__(self, file: File, report: Report) -> None:
        self._file, self._report = file, report
        tables = file.data.get("transforms")
        self._tables = tables if isinstance(tables, dict) else {}

    def put(self, sink: Draft, keys: Keys, stream: int) -> None:
        """The converter of a stream's messages."""
        choices = {**_CONVERTERS, **dict.fromkeys(_UNREAD)}
        schema = keys.choice(f"streams[{stream}].schema", choices, "json")
        if schema.value is None and schema.setting is not None:
            keys.wrong(schema.setting, f"{schema.setting.shown}: {_UNREAD[schema.setting.value.lower()]}")
        sink.put("converter.value", schema.value or "json", schema.setting)
        proto = self._enabled("proto_convert")
        if schema.value == "protobuf":
            described = keys.below("s3lake.converter.registry.")
            if proto is not None:
                self._describe(sink, proto)
            elif schema.setting is not None and not described:
                keys.wrong(schema.setting, f"'proto' does not say which messages they are: {_REMEDY}")
        elif proto is not None:
            message = "messages of another schema are not read as Protobuf; write schema = 'proto', or enabled = false"
            self._wrong("proto_convert", "", message)

    def tell(self) -> None:
        """Refuse the conversions that nothing here does."""
        for name in ("flat_buffer_convert", "avro_convert"):
            if self._enabled(name) is not None:
                reason = _UNREAD["avro" if name == "avro_convert" else "flat_buffer"]
                self._wrong(name, "", f"{name} is not done here: {reason}; take it out, or write enabled = false")

    def _enabled(self, name: str) -> dict[str, Any] | None:
        table = self._tables.get(name)
        return table if isinstance(table, dict) and table.get("enabled") is True else None

    def _describe(self, sink: Draft, table: dict[str, Any]) -> None:
        for name, wanted in (("source_format", "proto"), ("target_format", "json")):
            if table.get(name) != wanted:
                self._wrong("proto_convert", name, f"messages are read from proto to json; write {name} = {wanted!r}")
        for name in ("schema_path", "field_mappings"):
            if table.get(name):
                instead = "descriptor_set" if name == "schema_path" else "sql.select of [s3lake]"
                self._wrong("proto_convert", name, f"is not read here; take it out, and use {instead}")
        for name, path in (("descriptor_set", "descriptor_set"), ("message_type", "message")):
            if not isinstance(table.get(name), str):
                self._wrong("proto_convert", name, f"{name} is missing: {_REMEDY}")
                continue
            place = self._place("proto_convert", name)
            sink.put(f"converter.registry.{path}", table[name], Setting(place.key, table[name], place))
        for name in _MEANINGLESS:
            if name in table:
                self._report.notice(self._place("proto_convert", name), "has no meaning: the descriptors say it all")

    def _wrong(self, transform: str, name: str, message: str) -> None:
        self._report.error(self._place(transform, name), message)

    def _place(self, transform: str, name: str) -> Place:
        table = self._file.places.get(("transforms", transform), Place(self._file.name))
        return self._file.places.get(("transforms", transform, name), table)
