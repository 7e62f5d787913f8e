"""Options of Confluent's converters with a Schema Registry: where it is, and how to get in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Setting
from s3lake.text.options import find_nearest

_PREFIX = "schema.registry."
_BOTH = ("ssl.", "basic.auth.", "bearer.auth.")  # names that stand with the prefix or without it
_PEM = "a Java keystore cannot be read here; export it as PEM, name that file, and write {key}=PEM"
_REFUSED: tuple[tuple[str, str], ...] = (
    (r"rules?\..+", "rules, encryption of fields among them, are not run by s3lake; take it out"),
    (r"schema\.id\.deserializer", "the id of the schema is read from the value, nowhere else; take it out"),
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
_KNOWN = re.compile(
    r"(ssl|json|avro|protobuf)\..+|auto\.register\.schemas|use\.(latest\.(version|with\.metadata)|schema\.id)|"
    r"latest\.compatibility\.strict|normalize\.schemas|id\.compatibility\.strict|max\.schemas\.per\.subject|"
    r"((key|value)\.)?subject\.name\.strategy|schema\.(reflection|format)|enhanced\.(avro|protobuf)\.schema\.support|"
    r"connect\.meta\.data|schemas\.cache\.(config|size)|discard\.type\.doc\.default|allow\.optional\.map\.keys|"
    r"scrub\.invalid\.names|generalized\.sum\.type\.support|flatten\.(singleton\.)?unions|generate\.index\.for\.unions|"
    r"int\.for\.enums|optional\.for\.nullables|wrapper\.for\.(nullables|raw\.primitives)|decimal\.format|"
    r"object\.additional\.properties|use\.optional\.for\.nonrequired|http\.connect\.timeout\.ms|"
    r"missing\.(id|version|schema)\.cache\..+|latest\.cache\..+|schema\.registry\.request\.header\..+"
)
_LATEST = re.compile(r"use\.(latest\.(version|with\.metadata)|schema\.id)")
_AS_WRITTEN = (
    "is not followed: a value has the fields of the schema that it was written with, and columns of all versions are "
    "united; s3lake.schema.compatibility=backward writes older ones with the newest's fields"
)
_NO_EFFECT = "schemas are only read, by their ids, and all they say is kept"
_READ = frozenset(
    {
        *(f"{_PREFIX}url", "basic.auth.credentials.source", "basic.auth.user.info", "http.read.timeout.ms"),
        *("bearer.auth.credentials.source", "bearer.auth.token"),
        *("ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.type"),
    }
)
_Said = dict[str, tuple[Any, Setting]]


def put_registry(keys: Keys, part: str, converter: Setting, options: Mapping[str, Setting], sink: Draft) -> None:
    """Put where the registry of the converter of `part` (key or value) is; key and value have one together."""
    own = _by_name(keys, options)
    options_read: dict[str, tuple[Any, Setting]] = {}
    for read in (_address, _basic, _token, _files, _timeout):
        options_read |= read(keys, own)
    for name, option in own.items():
        reason = next((reason for pattern, reason in _REFUSED if re.fullmatch(pattern, name)), None)
        if name in _READ:
            continue
        if reason is not None and option.value.lower() not in ("", "false"):
            keys.wrong(option, reason)
        elif reason is not None or _KNOWN.fullmatch(name):
            is_followed = _LATEST.fullmatch(name) is None or option.value.lower() in ("", "false")
            if is_followed:
                keys.report.no_effect(option, _NO_EFFECT)
            else:
                keys.report.notice(option, _AS_WRITTEN)
        else:
            near = None if name == "schemas.enable" else find_nearest(name, sorted(_READ))
            hint = f"; did you mean {near}?" if near else ""
            keys.report.notice(option, f"{_class(converter)} has no option {name!r} and does not read it{hint}")
    if "url" not in options_read and _class(converter) != "JsonSchemaConverter":
        name = f"{part}.converter.schema.registry.url"
        keys.wrong(converter, f"{_class(converter)} needs its registry; add {name}=http://HOST:8081")
    before = sink.get("converter.registry")
    if before is not None and options_read and before != {name: value for name, (value, _) in options_read.items()}:
        name = next(name for name in (*options_read, *before) if before.get(name) != options_read.get(name, (None,))[0])
        where = options_read[name][1] if name in options_read else converter
        keys.wrong(where, f"key and value have one registry; its {name} is another one for key.converter")
        return
    for name, (value, setting) in options_read.items():
        sink.put(f"converter.registry.{name}", value, setting)


def _class(converter: Setting) -> str:
    return converter.value.rpartition(".")[2]


def _by_name(keys: Keys, options: Mapping[str, Setting]) -> dict[str, Setting]:
    by_name: dict[str, Setting] = {}
    for name, setting in options.items():
        plain = name.removeprefix(_PREFIX)
        short = plain if plain.startswith(_BOTH) else name
        if short in by_name:
            keys.wrong(setting, f"says the same as {by_name[short].key}; take one of them out")
        by_name.setdefault(short, setting)
    return by_name


def _address(keys: Keys, own: Mapping[str, Setting]) -> _Said:
    """The address; user and password in it are taken out of it."""
    url = own.get(f"{_PREFIX}url")
    if url is None or not url.value:
        return {}
    plain, users = [], set()
    for address in url.value.split(","):
        before, at, host = address.strip().rpartition("@")
        scheme, slashes, user = before.partition("://")
        if at and slashes:
            users.add(user)
            keys.report.secrets |= {user, user.partition(":")[2], unquote(user.partition(":")[2])} - {""}
        plain.append(f"{scheme}://{host}" if at and slashes else address.strip())
    access: _Said = {"url": (",".join(plain), url)}
    source = own.get("basic.auth.credentials.source")
    if len(users) > 1:
        keys.wrong(url, "the addresses have different users; they are one registry, so write the same ones")
    elif users and source is not None and source.value.upper() != "URL":
        keys.wrong(url, f"has a user, and {source.key} says that another one is taken; take one of them out")
    elif users:
        user, _, password = users.pop().partition(":")
        access |= {"user": (unquote(user), url), "password": (unquote(password), url)}
    return access


def _basic(keys: Keys, own: Mapping[str, Setting]) -> _Said:
    source, info = own.get("basic.auth.credentials.source"), own.get("basic.auth.user.info")
    source_name = source.value.upper() if source is not None else "URL"
    if source is not None and source_name not in ("URL", "USER_INFO"):
        keys.wrong(source, "this source is not supported; write USER_INFO, and basic.auth.user.info=USER:PASSWORD")
    elif source_name == "USER_INFO" and source is not None and (info is None or ":" not in info.value):
        keys.wrong(info or source, "this source needs user and password; write basic.auth.user.info=USER:PASSWORD")
    elif source_name == "URL" and info is not None:
        keys.wrong(info, "is not used: write basic.auth.credentials.source=USER_INFO to use it, or take it out")
    elif info is not None:
        user, _, password = info.value.partition(":")
        keys.report.secrets.add(password)
        return {"user": (user, info), "password": (password, info)}
    return {}


def _token(keys: Keys, own: Mapping[str, Setting]) -> _Said:
    source, token = own.get("bearer.auth.credentials.source"), own.get("bearer.auth.token")
    if source is not None and source.value.upper() != "STATIC_TOKEN":
        keys.wrong(source, "this source is not supported; write STATIC_TOKEN, and bearer.auth.token=TOKEN")
    elif source is not None and (token is None or not token.value):
        keys.wrong(token or source, "this source needs the token; write bearer.auth.token=TOKEN")
    elif token is not None and source is None:
        keys.wrong(token, "is not used: write bearer.auth.credentials.source=STATIC_TOKEN to use it, or take it out")
    elif token is not None:
        return {"token": (token.value, token)}
    return {}


def _files(keys: Keys, own: Mapping[str, Setting]) -> _Said:
    files: _Said = {}
    for store, name in (("truststore", "ca_file"), ("keystore", "cert_file")):
        location, store_type = own.get(f"ssl.{store}.location"), own.get(f"ssl.{store}.type")
        if location is None:
            continue
        if store_type is None or store_type.value.upper() != "PEM":
            key = re.sub(r"location$", "type", location.key)
            keys.wrong(store_type or location, _PEM.format(key=key))
        else:
            files[name] = (location.value, location)
    return files


def _timeout(keys: Keys, own: Mapping[str, Setting]) -> _Said:
    setting = own.get("http.read.timeout.ms")
    if setting is None:
        return {}
    if not setting.value.isascii() or not setting.value.isdigit() or int(setting.value) == 0:
        keys.wrong(setting, f"{setting.masked_value} is not allowed; write a whole number of at least 1")
        return {}
    return {"timeout": (int(setting.value) / 1000, setting)}
