"""Kafka Connect's converters of keys and values: which there are, and their options."""

from __future__ import annotations

from collections.abc import Mapping

from s3lake.config.connectors import registry, worker
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Setting
from s3lake.text.options import did_you_mean, find_nearest

_WITH_REGISTRY = {"AvroConverter": "avro", "ProtobufConverter": "protobuf", "JsonSchemaConverter": "json_schema"}
_NUMBERS = {
    f"{name.capitalize()}Converter": name for name in ("short", "integer", "long", "float", "double", "boolean")
}
_PLAIN = {"JsonConverter": "json", "StringConverter": "string", "ByteArrayConverter": "bytes", **_NUMBERS}
_CONVERTERS = (*_PLAIN, *_WITH_REGISTRY)
_TAKEN = {"json": "JsonConverter with schemas.enable=false", "string": "StringConverter", "bytes": "ByteArrayConverter"}
_HEADERS = "headers are read as text, or as bytes if they are not text"
_JSON_OPTIONS = ("schemas.cache.size", "decimal.format", "replace.null.with.default")
_OF_OTHERS = ("schemas.enable", "plugin.version")
_OPTIONS = {"JsonConverter": ("schemas.enable", *_JSON_OPTIONS), "StringConverter": ("encoding", "converter.encoding")}


def put_converters(keys: Keys, sink: Draft, key: str = "string", value: str = "json") -> None:
    """`key.converter` and `value.converter` with their options; where they are missing, the two defaults."""
    for part, default in (("key", key), ("value", value)):
        _converter(keys, sink, part, default)
    headers = keys.get("header.converter")
    for option in keys.with_prefix("header.converter."):
        keys.report.no_effect(option, _HEADERS)
    if headers is not None and headers.value.rpartition(".")[2] != "StringConverter":
        keys.report.no_effect(headers, _HEADERS)


def _converter(keys: Keys, sink: Draft, part: str, default: str) -> None:
    converter, prefix = keys.get(f"{part}.converter"), f"{part}.converter."
    options = {option.key.removeprefix(prefix): option for option in keys.with_prefix(prefix)}
    sink.put(f"converter.{part}", default)
    if converter is None or not converter.value:
        message = (
            f"{part}.converter is missing; {_TAKEN[default]} is guessed: give the worker's file with --worker "
            f"(or {worker.WORKER}), or say it"
        )
        keys.report.notice(converter, message)
        for option in options.values():
            keys.report.notice(option, f"Kafka Connect does not read it without {part}.converter; add that")
        return
    class_name = converter.value.rpartition(".")[2]
    if class_name in _WITH_REGISTRY:
        sink.put(f"converter.{part}", _WITH_REGISTRY[class_name], converter)
        registry.put_registry(keys, part, converter, options, sink)
    elif class_name in _PLAIN:
        schemas = class_name == "JsonConverter" and keys.boolean(f"{part}.converter.schemas.enable", True).value
        sink.put(f"converter.{part}", "connect_json" if schemas else _PLAIN[class_name], converter)
        _options(keys, class_name, options)
    else:
        near = did_you_mean(class_name, _CONVERTERS)
        keys.wrong(converter, f"{converter.masked_value} is not known; {near}use one of: {', '.join(_CONVERTERS)}")


def _options(keys: Keys, class_name: str, options: Mapping[str, Setting]) -> None:
    known_options = _OPTIONS.get(class_name, ())
    for name, option in options.items():
        if name not in known_options:
            near = None if name in _OF_OTHERS else find_nearest(name, known_options)
            hint = f"; did you mean {near}?" if near else ""
            keys.report.notice(option, f"{class_name} has no option {name!r} and does not read it{hint}")
        elif class_name == "StringConverter" and option.value.upper().replace("-", "") != "UTF8":
            keys.wrong(option, f"{option.masked_value} is not allowed; text is UTF-8")
        elif name in _JSON_OPTIONS:
            keys.report.no_effect(option, "values are read as they are written")
