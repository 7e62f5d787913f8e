"""Iggy's sinks of other systems: what their keys are here, in `forwards` of a sink, or in its `table`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from s3lake.config.connectors import credentials
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Setting

BUCKET = "S3LAKE_BUCKET"
_P = "plugin_config."
_SENT = "s3lake sends hours, each with what belongs to its rows"
_NO_EFFECT = {
    **dict.fromkeys(
        ("batch_size", "max_connections", "include_metadata", "include_checksum", "include_origin_timestamp"), _SENT
    ),
    **dict.fromkeys(
        ("max_retries", "retry_delay", "retry_max_delay", "max_open_retries", "open_retry_max_delay", "timeout"),
        "errors.max_retries says how often an hour is tried",
    ),
    "timeout_seconds": "errors.max_retries says how often an hour is tried",
    **dict.fromkeys(
        ("auto_create_table", "auto_create_collection", "create_index_if_not_exists"), "what is missing is created"
    ),
    **dict.fromkeys(("verbose_logging", "print_payload"), "the run's log has each hour"),
}


@dataclass(frozen=True)
class _Plugin:
    """A plugin that is a destination here.

    Attributes:
        options: its keys, with the option of the destination and an example; an empty example if it may be left out.
        record: words of `payload_format`, with the destination's `record`; the first is the default.
    """

    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    record: Mapping[str, str] = field(default_factory=dict)


_PLUGINS = {
    "postgres": _Plugin(
        {
            "connection_string": ("conninfo", '"postgresql://localhost/lake"'),
            "target_table": ("table", '"iggy_messages"'),
        },
        {"bytea": "jsonb", "json": "jsonb", "jsonb": "jsonb", "text": "text"},
    ),
    "mongodb": _Plugin(
        {
            "connection_uri": ("uri", '"mongodb://localhost:27017"'),
            "database": ("database", '"lake"'),
            "collection": ("collection", '"messages"'),
        },
        {"binary": "document", "json": "document", "string": "text", "text": "text"},
    ),
    "elasticsearch": _Plugin(
        {
            "url": ("url", '"http://localhost:9200"'),
            "index": ("index", '"messages"'),
            "username": ("username", ""),
            "password": ("password", ""),
        }
    ),
    "quickwit": _Plugin({"url": ("url", '"http://localhost:7280"')}),
    "stdout": _Plugin(),
}
KINDS = (*_PLUGINS, "iceberg")


def read_forward(kind: str, keys: Keys, key: Value[str]) -> Draft:
    """Read a forward of a sink, named after the connector's key."""
    forward, plugin = Draft(), _PLUGINS[kind]
    forward.put("to", kind, keys.get("path"))
    forward.put("name", re.sub(r"[^A-Za-z0-9_-]+", "-", key.value), key.setting)
    for name, (option, example) in plugin.options.items():
        value = keys.required(f"{_P}{name}", example) if example else keys.text(f"{_P}{name}")
        if value.value:
            forward.put(f"options.{option}", value)
    if plugin.record:
        default = next(iter(plugin.record))
        record = keys.choice(f"{_P}payload_format", {word: word for word in plugin.record}, default)
        forward.put("options.record", plugin.record[record.value], record.setting)
        if record.setting is not None and record.value == default:
            message = f"rows are documents of JSON: they are kept as {plugin.record[default]}"
            keys.report.notice(record.setting, message)
    if kind == "quickwit":
        forward.put("options.index", _index_of_quickwit(keys))
    if kind == "elasticsearch":
        for setting in keys.with_prefix(f"{_P}index_mapping."):
            keys.report.no_effect(setting, "an index that exists keeps its mapping")
    keys.no_effect({f"{_P}{name}": reason for name, reason in _NO_EFFECT.items()})
    return forward


def _index_of_quickwit(keys: Keys) -> Value[str]:
    """Return the id of the index: the key is a configuration of Quickwit in YAML."""
    index = keys.required(f"{_P}index", '"index_id: messages"')
    try:
        content = yaml.safe_load(index.value)
    except yaml.YAMLError:
        content = None
    match content:
        case str():
            return index
        case {"index_id": str(name)}:
            if index.setting is not None and len(content) > 1:
                message = f"of the index only index_id {name!r} is used: each hour has an index with a dynamic mapping"
                keys.report.notice(index.setting, message)
            return Value(name, index.setting)
    if index.setting is not None:
        keys.wrong(index.setting, "is not an index of Quickwit; write its YAML with index_id, or its name")
    return Value("")


def put_table(keys: Keys, common: Draft, sink: Draft, config: Any) -> None:
    """Make a sink of Parquet with a table of what Iggy's Iceberg sink says; `config` is its `plugin_config`."""
    sink.put("format.type", "parquet")
    setting, tables = keys.get(f"{_P}tables"), config.get("tables") if isinstance(config, dict) else None
    routing = keys.boolean(f"{_P}dynamic_routing", False)
    keys.get(f"{_P}dynamic_route_field")
    if routing.value and routing.setting is not None:
        keys.wrong(routing.setting, "a sink has one table; write false, and a sink with sql.where for each table")
    elif not isinstance(tables, list) or len(tables) != 1 or not isinstance(tables[0], str):
        message = "a sink has one table; write a file for each" if tables else f"{_P}tables is missing"
        keys.report.error(setting, f'{message}, for example tables = ["lake.orders"]')
    else:
        sink.put("table.name", tables[0], setting)
    sink.put("table.catalog.type", keys.text(f"{_P}catalog_type", "rest"))
    sink.put("table.catalog.uri", keys.required(f"{_P}uri", '"http://localhost:8181"'))
    warehouse = keys.text(f"{_P}warehouse")
    if warehouse.value:
        sink.put("table.catalog.warehouse", warehouse)
    address, region = keys.text(f"{_P}store_url"), keys.text(f"{_P}store_region")
    if address.value:
        common.put("s3.endpoint_url", address)
        common.put("s3.path_style", True)
    if region.value:
        common.put("s3.region", region)
    credentials.pair(keys, common, f"{_P}store_access_key_id", f"{_P}store_secret_access_key")
    keys.choice(f"{_P}store_class", {"s3": "s3"}, "s3")


def attach(forward: Draft, sinks: Sequence[Draft], others: Sequence[Draft]) -> list[Draft]:
    """Add a forward to each sink in `others` that lands the same topic in the same way, else to the one of `sinks`.

    Returns:
        Those of `sinks` that have to land their topics themselves.
    """
    own = []
    for sink in sinks:
        host = next((other for other in others if _lands_the_same(other, sink)), None)
        if host is None:
            own.append(sink)
        _add(host or sink, forward)
    return own


def _lands_the_same(one: Draft, other: Draft) -> bool:
    return all(one.get(path) == other.get(path) for path in ("topics", "transforms", "converter"))


def _add(sink: Draft, forward: Draft) -> None:
    forwards = sink.values.setdefault("forwards", [])
    sink.origins |= {("forwards", len(forwards), *path): setting for path, setting in forward.origins.items()}
    forwards.append(forward.copy().values)


def require_buckets(sinks: Sequence[Draft], plugin: Setting | None, keys: Keys, environment: Mapping[str, str]) -> None:
    """Take the bucket of sinks that have none from the environment. Report an error if it is not there."""
    for sink in sinks:
        if sink.get("bucket"):
            continue
        if environment.get(BUCKET):
            sink.put("bucket", environment[BUCKET])
        else:
            keys.report.error(
                plugin,
                "names no bucket, and hours are landed in one before they are forwarded: add [s3lake] bucket, or set "
                f"{BUCKET}, or enable the S3 sink for the same stream and topic",
            )
