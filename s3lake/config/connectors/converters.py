"""Kafka Connect's converters of keys and values: which there are, and their options."""

from __future__ import annotations

from collections.abc import Mapping

from s3lake.config.connectors import registry, worker
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.setting import Setting
from s3lake.options import meant, nearest

_WITH_REGISTRY = {"AvroConverter": "avro", "ProtobufConverter": "protobuf", "JsonSchemaConverter": "json_schema"}
_PLAIN = {"JsonConverter": "json", "StringConverter": "string", "ByteArrayConverter": "bytes"}
_CONVERTERS = (*_PLAIN, *_WITH_REGISTRY)
_TAKEN = {"json": "JsonConverter with schemas.enable=false", "string": "StringConverter", "bytes": "ByteArrayConverter"}
_JSON_OPTIONS = ("schemas.cache.size", "decimal.format", "replace.null.with.default")
_OF_OTHERS = ("schemas.enable", "plugin.version")
_OPTIONS = {"JsonConverter": ("schemas.enable", *_JSON_OPTIONS), "StringConverter": ("encoding", "converter.encoding")}


def put(keys: Keys, sink: Draft, key: str = "string", value: str = "json") -> None:
    """`key.converter` and `value.converter` with their options; where they are missing, the two defaults."""
    for part, default in (("key", key), ("value", value)):
        _converter(keys, sink, part, default)
    headers = keys.get("header.converter")
    keys.below("header.converter.")
    if headers is not None and headers.value.rpartition(".")[2] != "StringConverter":
        keys.report.notice(headers, "has no meaning: headers are taken as text, or as bytes where they are no text")


def _converter(keys: Keys, sink: Draft, part: str, default: str) -> None:
    found = keys.get(f"{part}.converter")
    options = {one.key.removeprefix(f"{part}.converter."): one for one in keys.below(f"{part}.converter.")}
    sink.put(f"converter.{part}", default)
    if found is None or not found.value:
        told = (
            f"{part}.converter is missing; {_TAKEN[default]} is guessed: give the worker's file with --worker "
            f"(or {worker.WORKER}), or say it"
        )
        keys.report.notice(found, told)
        for one in options.values():
            keys.report.unread(one, f"Kafka Connect does not read it without {part}.converter; add that")
        return
    kind = found.value.rpartition(".")[2]
    if kind in _WITH_REGISTRY:
        sink.put(f"converter.{part}", _WITH_REGISTRY[kind], found)
        registry.put(keys, part, found, options, sink)
    elif kind in _PLAIN:
        schemas = kind == "JsonConverter" and keys.boolean(f"{part}.converter.schemas.enable", True).value
        sink.put(f"converter.{part}", "connect_json" if schemas else _PLAIN[kind], found)
        _options(keys, kind, options)
    else:
        near = meant(kind, _CONVERTERS)
        keys.wrong(found, f"{found.shown} is not known; {near}use one of: {', '.join(_CONVERTERS)}")


def _options(keys: Keys, kind: str, options: Mapping[str, Setting]) -> None:
    known = _OPTIONS.get(kind, ())
    for name, one in options.items():
        near = None if name in known or name in _OF_OTHERS else nearest(name, known)
        if near is not None:
            keys.wrong(one, f"{kind} has no option {name!r}; did you mean {near}? take it out")
        elif name not in known:
            keys.report.unread(one, f"{kind} has no option {name!r} and does not read it")
        elif kind == "StringConverter" and one.value.upper().replace("-", "") != "UTF8":
            keys.wrong(one, f"{one.shown} is not allowed; text is UTF-8")
        elif name in _JSON_OPTIONS:
            keys.report.notice(one, "has no meaning here")
