"""Iggy's schemas and conversions between them, as converters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys, same
from s3lake.config.report import Setting
from s3lake.config.syntax.toml import File

CONVERSIONS = ("proto_convert", "avro_convert", "flat_buffer_convert")
_CONVERTERS = {"json": "json", "raw": "bytes", "text": "string", "proto": "protobuf", "avro": "avro"}
_FLAT_BUFFER = (
    "FlatBuffers' own library reads them by classes that its compiler made of a schema, and by nothing else, and "
    "Iggy's own conversion decodes no fields either. Write schema = 'raw' to land the bytes"
)
_NO_EFFECT = ("include_paths", "preserve_unknown_fields", "conversion_options", "schema_registry_url")


class _Conversion(NamedTuple):
    """The description of a schema's messages, which a connector's stream does not have.

    Attributes:
        described: by an option of the conversion: the setting of `converter.registry` that it is here.
        unread: option -> what to use instead.
        remedy: what to write.
    """

    described: Mapping[str, str]
    unread: Mapping[str, str]
    remedy: str


_READ = {
    "proto": _Conversion(
        {"descriptor_set": "descriptor_set", "message_type": "message"},
        {"schema_path": "descriptor_set", "field_mappings": "sql.select of [s3lake]"},
        "write [transforms.proto_convert] with descriptor_set, a file that protoc --include_imports "
        "--descriptor_set_out makes, message_type, source_format and target_format, or [s3lake] "
        "converter.registry.descriptor_set and message",
    ),
    "avro": _Conversion(
        {"schema_path": "schema_file"},
        {"schema_json": "a file and schema_path", "field_mappings": "sql.select of [s3lake]"},
        "write [transforms.avro_convert] with schema_path, source_format and target_format, or [s3lake] "
        "converter.registry.schema_file",
    ),
}


def put_schema(file: File, sink: Draft, keys: Keys, stream: int) -> None:
    """Put the converter of a stream's messages."""
    schema = keys.choice(f"streams[{stream}].schema", same(*_CONVERTERS, "flat_buffer"), "json")
    if schema.value == "flat_buffer":
        keys.wrong(schema.setting, f"'flat_buffer': {_FLAT_BUFFER}")
    if _enabled(file, "flat_buffer_convert") is not None:
        message = f"{_FLAT_BUFFER}, and take the conversion out"
        keys.report.error(file.place("transforms", "flat_buffer_convert"), message)
    sink.put("converter.value", _CONVERTERS.get(schema.value, "json"), schema.setting)
    for name, conversion in _READ.items():
        table = _enabled(file, f"{name}_convert")
        if table is not None and schema.value != name:
            message = f"messages of another schema are not read so; write schema = {name!r}, or enabled = false"
            keys.report.error(file.place("transforms", f"{name}_convert"), message)
        elif table is not None:
            _put_description(file, sink, keys, name, table)
        elif schema.value == name and not keys.with_prefix("s3lake.converter.registry."):
            keys.wrong(schema.setting, f"{name!r} does not say how messages are read: {conversion.remedy}")


def _enabled(file: File, name: str) -> dict[str, Any] | None:
    tables = file.data.get("transforms")
    table = tables.get(name) if isinstance(tables, dict) else None
    return table if isinstance(table, dict) and table.get("enabled") is True else None


def _put_description(file: File, sink: Draft, keys: Keys, schema: str, table: Mapping[str, Any]) -> None:
    def wrong(option: str, message: str) -> None:
        keys.report.error(file.place("transforms", f"{schema}_convert", option), message)

    conversion = _READ[schema]
    for option, wanted in (("source_format", schema), ("target_format", "json")):
        if table.get(option) != wanted:
            wrong(option, f"only {schema} to json is read; write {option} = {wanted!r}")
    for option, instead in conversion.unread.items():
        if table.get(option):
            wrong(option, f"is not read here; take it out, and use {instead}")
    for option, setting in conversion.described.items():
        if isinstance(table.get(option), str):
            place = file.place("transforms", f"{schema}_convert", option)
            sink.put(f"converter.registry.{setting}", table[option], Setting(place.key, table[option], place))
        else:
            wrong(option, f"{option} is missing: {conversion.remedy}")
    for option in filter(table.__contains__, _NO_EFFECT):
        keys.report.no_effect(file.place("transforms", f"{schema}_convert", option), "the schema says it all")
