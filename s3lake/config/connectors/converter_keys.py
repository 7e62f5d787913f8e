"""Kafka Connect's converters of keys and values, and the Schema Registry of converters that have one."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from s3lake.config.connector_keys import ConnectorKey, Keys, milliseconds
from s3lake.config.draft import Draft
from s3lake.config.report import Setting, Value
from s3lake.config.variable_names import WORKER
from s3lake.text.option_values import find_nearest, suggest

_WITH_REGISTRY = {"AvroConverter": "avro", "ProtobufConverter": "protobuf", "JsonSchemaConverter": "json_schema"}
_NUMBERS = {
    f"{name.capitalize()}Converter": name for name in ("short", "integer", "long", "float", "double", "boolean")
}
_PLAIN = {"JsonConverter": "json", "StringConverter": "string", "ByteArrayConverter": "bytes", **_NUMBERS}
CONVERTER_CLASSES = (*_PLAIN, *_WITH_REGISTRY)
"""Every class of converters that is known, by its short name."""

_TAKEN = {"json": "JsonConverter with schemas.enable=false", "string": "StringConverter", "bytes": "ByteArrayConverter"}
_HEADERS = "headers are read as text, or as bytes if they are not text"
_JSON_OPTIONS = ("schemas.cache.size", "decimal.format")
_REPLACE_NULL = "replace.null.with.default"
_IGNORE_DEFAULT = "ignore.default.for.nullables"
_OF_OTHERS = ("schemas.enable", "plugin.version")
_OPTIONS = {
    "JsonConverter": ("schemas.enable", _REPLACE_NULL, *_JSON_OPTIONS),
    "StringConverter": ("encoding", "converter.encoding"),
}
_PREFIX = "schema.registry."
_WITH_OR_WITHOUT = ("ssl.", "basic.auth.", "bearer.auth.")  # names with the prefix or without it
_PEM = "a Java keystore cannot be read here; export it as PEM, name that file, and write {key}=PEM"
_REFUSED: tuple[tuple[str, str], ...] = (
    (r"rules?\..+", "rules, encryption of fields among them, are not run by s3lake; take it out"),
    (r"context(\..+)?", "write the context into the address instead, URL/contexts/.NAME, and take it out"),
    (r"proxy\..+", "a proxy is set by the environment variable HTTPS_PROXY; take it out"),
    (r"ssl\.(keystore\.(certificate\.chain|key)|truststore\.certificates)", "name a PEM file in ….location instead"),
    (r"ssl\.(key|keystore)\.password", "a key with a password is not supported; write the key without one"),
    (r"ssl\.endpoint\.identification\.algorithm", "host names are always verified; take it out"),
    (
        r"bearer\.auth\.(?!token$|credentials\.source$).+",
        "tokens are not fetched; write bearer.auth.token=TOKEN",
    ),
)
_OF_WRITERS = re.compile(
    r"(ssl|json|avro|protobuf)\..+|auto\.register\.schemas|use\.(latest\.(version|with\.metadata)|schema\.id)|"
    r"latest\.compatibility\.strict|normalize\.schemas|id\.compatibility\.strict|max\.schemas\.per\.subject|"
    r"((key|value)\.)?subject\.name\.strategy|(key|value)\.schema\.id\.serializer|schema\.(reflection|format)|"
    r"enhanced\.(avro|protobuf)\.schema\.support|"
    r"connect\.meta\.data|schemas\.cache\.(config|size)|discard\.type\.doc\.default|allow\.optional\.map\.keys|"
    r"scrub\.invalid\.names|generalized\.sum\.type\.support|flatten\.(singleton\.)?unions|generate\.index\.for\.unions|"
    r"int\.for\.enums|optional\.for\.nullables|wrapper\.for\.(nullables|raw\.primitives)|decimal\.format|"
    r"object\.additional\.properties|use\.optional\.for\.nonrequired|http\.connect\.timeout\.ms|"
    r"missing\.(id|version|schema)\.cache\..+|latest\.cache\..+|schema\.registry\.request\.header\..+"
)
_LATEST = re.compile(r"use\.(latest\.(version|with\.metadata)|schema\.id)")
_SCHEMA_ID = re.compile(r"(key|value)\.schema\.id\.deserializer")
_HEADER_FIRST = "a header that names the schema is read first, and otherwise what is before the data"
_AS_WRITTEN = (
    "is not followed: a value has the fields of the schema that it was written with, and columns of all versions are "
    "united; s3lake.schema.compatibility=backward writes older ones with the newest's fields"
)
_OTHER_COLUMNS = {
    "flatten.unions": (True, "the members of a oneof o are fields of one object, o_0, and not of their message"),
    "generate.index.for.unions": (False, "a oneof o has its number in its name, o_0"),
    "int.for.enums": (True, "an enum is the name of its value, and not the number"),
    "wrapper.for.raw.primitives": (False, "google.protobuf.StringValue and its like are their values, and no objects"),
    "flatten.singleton.unions": (False, "a union of one type is that type, and no object"),
    "generalized.sum.type.support": (True, "the members of a union are named after their types, and not numbered"),
}
"""Options that give other columns, or other lines: the value that does, and what s3lake writes with it too."""
_ONLY_READ = "schemas are only read, by their ids, and all of their content is kept"
_REGISTRY_OPTIONS = (
    *(f"{_PREFIX}url", "basic.auth.credentials.source", "basic.auth.user.info", "http.read.timeout.ms"),
    *("bearer.auth.credentials.source", "bearer.auth.token"),
    *("ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.type"),
)


def put_converters(keys: Keys, sink: Draft, key: str = "string", value: str = "json") -> None:
    """`key.converter` and `value.converter` with their options; where they are missing, the two defaults."""
    for part, default in (("key", key), ("value", value)):
        _converter(keys, sink, part, default)
    headers = keys.get("header.converter")
    for option in keys.with_prefix("header.converter."):
        keys.report.no_effect(option, _HEADERS)
    if headers is not None and _find_class_name(headers.value) != "StringConverter":
        keys.report.no_effect(headers, _HEADERS)


def _converter(keys: Keys, sink: Draft, part: str, default: str) -> None:
    converter, prefix = keys.get(f"{part}.converter"), f"{part}.converter."
    options = {option.key.removeprefix(prefix): option for option in keys.with_prefix(prefix)}
    sink.put(f"converter.{part}", default)
    if converter is None or not converter.value:
        message = (
            f"{part}.converter is missing; {_TAKEN[default]} is guessed: give the worker's file with --worker "
            f"(or {WORKER}), or add it"
        )
        keys.report.notice(converter, message)
        for option in options.values():
            keys.report.notice(option, f"Kafka Connect does not read it without {part}.converter; add that")
        return
    class_name = _find_class_name(converter.value)
    if class_name in _WITH_REGISTRY:
        sink.put(f"converter.{part}", _WITH_REGISTRY[class_name], converter)
        _put_registry(keys, part, converter, options, sink)
    elif class_name in _PLAIN:
        schemas = class_name == "JsonConverter" and keys.boolean(f"{part}.converter.schemas.enable", True).value
        sink.put(f"converter.{part}", "connect_json" if schemas else _PLAIN[class_name], converter)
        if schemas:
            _put_null_rule(sink, part, keys.boolean(f"{prefix}{_REPLACE_NULL}", True))
        elif class_name == "JsonConverter" and _REPLACE_NULL in options:
            keys.report.no_effect(options.pop(_REPLACE_NULL), "values without a schema have no defaults")
        _options(keys, class_name, options)
    else:
        keys.error(converter, f"{converter.masked_value} is not known; {suggest(class_name, CONVERTER_CLASSES)}")


def _find_class_name(name: str) -> str:
    """Return the short name of a converter's class; Kafka Connect also knows it by that without `Converter`."""
    full = f"{name}Converter"
    return full if full in CONVERTER_CLASSES else name.rpartition(".")[2]


def _put_null_rule(sink: Draft, part: str, replaced: Value[bool]) -> None:
    """Put whether nulls of `part` become the defaults of their schemas, as Connect's converters do by default."""
    if replaced.value:
        sides = [*(sink.get("converter.null_to_default") or ()), part]
        sink.put("converter.null_to_default", sides, replaced.setting)


def _options(keys: Keys, class_name: str, options: Mapping[str, Setting]) -> None:
    known_options = _OPTIONS.get(class_name, ())
    for name, option in options.items():
        if name not in known_options:
            near = None if name in _OF_OTHERS else find_nearest(name, known_options)
            hint = f"; did you mean {near}?" if near else ""
            keys.report.notice(option, f"{class_name} has no option {name!r} and does not read it{hint}")
        elif class_name == "StringConverter" and option.value.upper().replace("-", "") != "UTF8":
            keys.error(option, f"{option.masked_value} is not allowed; text is UTF-8")
        elif name in _JSON_OPTIONS:
            keys.report.no_effect(option, "values are read as they are written")


# Confluent's converters with a Schema Registry: where it is, and how to get in


def _put_registry(keys: Keys, part: str, converter: Setting, options: Mapping[str, Setting], sink: Draft) -> None:
    """Put where the registry of the converter of `part` (key or value) is; key and value have one together."""
    settings = [replace(setting, key=_shorten(name)) for name, setting in options.items()]
    own, registry = Keys(settings, keys.report), Draft()
    class_name = _find_class_name(converter.value)
    for put in (_put_address, _put_login, _put_token, _put_files):
        put(own, registry)
    own.put(registry, [ConnectorKey("http.read.timeout.ms", "timeout", milliseconds(1))])
    ignored = own.boolean(_IGNORE_DEFAULT, False)
    if class_name != "ProtobufConverter":
        _put_null_rule(sink, part, ignored.map(operator.not_))
    elif ignored.setting is not None:
        keys.report.no_effect(
            ignored.setting, "what a message of Protobuf does not set is null, with it and without it"
        )
    for option in own.with_prefix(""):
        if option.key not in (*_REGISTRY_OPTIONS, _IGNORE_DEFAULT):
            _note_option(option, class_name, keys)
    if "url" not in registry.values and class_name != "JsonSchemaConverter":
        name = f"{part}.converter.schema.registry.url"
        keys.error(converter, f"{class_name} needs its registry; add {name}=http://HOST:8081")
    before = sink.get("converter.registry")
    if before is not None and registry.values and before != registry.values:
        name = next(name for name in (*registry.values, *before) if before.get(name) != registry.values.get(name))
        message = f"key and value have one registry; its {name} is another one for key.converter"
        keys.error(registry.origins.get((name,), converter), message)
        return
    for name, value in registry.values.items():
        sink.put(f"converter.registry.{name}", value, registry.origins[name,])


def _shorten(name: str) -> str:
    """Return the name of an option without the registry's prefix, if it may have it or not."""
    plain = name.removeprefix(_PREFIX)
    return plain if plain.startswith(_WITH_OR_WITHOUT) else name


def _note_option(option: Setting, class_name: str, keys: Keys) -> None:
    """Note, or refuse, an option that is not applied."""
    reason = next((reason for pattern, reason in _REFUSED if re.fullmatch(pattern, option.key)), None)
    other_with, is_written = _OTHER_COLUMNS.get(option.key, (None, ""))
    is_off = option.value.lower() in ("", "false")
    if reason is not None and not is_off:
        keys.error(option, reason)
    elif _LATEST.fullmatch(option.key) and not is_off:
        keys.report.notice(option, _AS_WRITTEN)
    elif _SCHEMA_ID.fullmatch(option.key):
        if option.value.endswith(".DualSchemaIdDeserializer"):
            keys.report.no_effect(option, _HEADER_FIRST)
        else:
            keys.report.notice(option, f"is not followed: {_HEADER_FIRST}")
    elif option.value.lower() == str(other_with).lower():
        keys.report.notice(option, f"is not followed: {is_written}")
    elif reason is not None or _OF_WRITERS.fullmatch(option.key):
        keys.report.no_effect(option, _ONLY_READ)
    else:
        near = None if option.key == "schemas.enable" else find_nearest(option.key, sorted(_REGISTRY_OPTIONS))
        hint = f"; did you mean {near}?" if near else ""
        keys.report.notice(option, f"{class_name} has no option {option.key!r} and does not read it{hint}")


def _put_address(own: Keys, registry: Draft) -> None:
    """Put the address; user and password in it are taken out of it."""
    url = own.text(f"{_PREFIX}url")
    if not url.value:
        return
    plain, users = [], set()
    for address in map(str.strip, url.value.split(",")):
        scheme, _, rest = address.partition("://")
        user, at, host = rest.rpartition("@")
        plain.append(f"{scheme}://{host}" if at else address)
        if at:
            users.add(user)
            own.report.secrets.add(unquote(user.partition(":")[2]))  # as it is in the address it is known already
    registry.put("url", ",".join(plain), url.setting)
    if len(users) > 1:
        own.error(url.setting, "the addresses have different users; they are one registry, so write the same ones")
    elif users:
        user, _, password = users.pop().partition(":")
        _put_user(registry, unquote(user), unquote(password), url.setting)


def _put_user(registry: Draft, user: str, password: str, setting: Setting | None) -> None:
    registry.put("user", user, setting)
    registry.put("password", password, setting)


def _put_login(own: Keys, registry: Draft) -> None:
    source, login = own.text("basic.auth.credentials.source", "URL"), own.text("basic.auth.user.info")
    user, colon, password = login.value.partition(":")
    if source.value.upper() == "USER_INFO" and colon:
        own.report.secrets.add(password)
        _put_user(registry, user, password, login.setting)
    elif source.value.upper() != "URL":
        words = "" if source.value.upper() == "USER_INFO" else "USER_INFO, and "  # a text of the file would be masked
        own.error(source.setting, f"is read with a user only; write {words}basic.auth.user.info=USER:PASSWORD")


def _put_token(own: Keys, registry: Draft) -> None:
    source, token = own.text("bearer.auth.credentials.source"), own.text("bearer.auth.token")
    if source.value.upper() == "STATIC_TOKEN" and token.value:
        registry.put("token", token)
    elif source.setting is not None:
        own.error(source.setting, "is read with a token only; write STATIC_TOKEN, and bearer.auth.token=TOKEN")


def _put_files(own: Keys, registry: Draft) -> None:
    for store, name in (("truststore", "ca_file"), ("keystore", "cert_file")):
        location, store_type = own.get(f"ssl.{store}.location"), own.get(f"ssl.{store}.type")
        if location is None:
            continue
        if store_type is None or store_type.value.upper() != "PEM":
            key = location.place.key.removesuffix("location") + "type"
            own.error(store_type or location, _PEM.format(key=key))
        else:
            registry.put(name, location.value, location)
