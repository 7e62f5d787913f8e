"""Iggy's sinks of other systems: what their keys are here, in `forwards` of a sink, or in its `table`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from s3lake.config.connector_keys import ConnectorKey, Keys, same
from s3lake.config.connectors import s3_credentials
from s3lake.config.draft import Draft
from s3lake.config.report import Setting, Value

BUCKET = "S3LAKE_BUCKET"
_P = "plugin_config."
_SENT = "s3lake sends hours, each with what belongs to its rows"
_TRIED = "errors.max_retries sets how often an hour is tried"
_CREATED = "what is missing is created"
_NO_EFFECT = {
    **dict.fromkeys(("batch_size", "max_connections"), _SENT),
    **dict.fromkeys(("include_metadata", "include_checksum", "include_origin_timestamp"), _SENT),
    **dict.fromkeys(("max_retries", "retry_delay", "retry_max_delay", "timeout", "timeout_seconds"), _TRIED),
    **dict.fromkeys(("max_open_retries", "open_retry_max_delay"), _TRIED),
    **dict.fromkeys(("auto_create_table", "auto_create_collection", "create_index_if_not_exists"), _CREATED),
    **dict.fromkeys(("verbose_logging", "print_payload"), "the run's log has each hour"),
}


_PLUGIN_KEYS = {
    "postgres": (
        ConnectorKey(f"{_P}connection_string", "options.conninfo", example='"postgresql://localhost/lake"'),
        ConnectorKey(f"{_P}target_table", "options.table", example='"iggy_messages"'),
    ),
    "mongodb": (
        ConnectorKey(f"{_P}connection_uri", "options.uri", example='"mongodb://localhost:27017"'),
        ConnectorKey(f"{_P}database", "options.database", example='"lake"'),
        ConnectorKey(f"{_P}collection", "options.collection", example='"messages"'),
    ),
    "elasticsearch": (
        ConnectorKey(f"{_P}url", "options.url", example='"http://localhost:9200"'),
        ConnectorKey(f"{_P}index", "options.index", example='"messages"'),
        ConnectorKey(f"{_P}username", "options.username"),
        ConnectorKey(f"{_P}password", "options.password"),
    ),
    "quickwit": (ConnectorKey(f"{_P}url", "options.url", example='"http://localhost:7280"'),),
    "stdout": (),
}
_RECORDS = {
    "postgres": {"bytea": "jsonb", "json": "jsonb", "jsonb": "jsonb", "text": "text"},
    "mongodb": {"binary": "document", "json": "document", "string": "text", "text": "text"},
}
"""Words of `payload_format`, with the destination's `record`; the first is the default."""
PLUGINS = (*_PLUGIN_KEYS, "iceberg")


def read_forward(destination: str, keys: Keys, key: Value[str]) -> Draft:
    """Read a forward of a sink, named after the connector's key."""
    forward = Draft()
    forward.put("to", destination, keys.get("path"))
    forward.put("name", re.sub(r"[^A-Za-z0-9_-]+", "-", key.value), key.setting)
    keys.put(forward, _PLUGIN_KEYS[destination])
    if destination in _RECORDS:
        default, words = next(iter(_RECORDS[destination])), _RECORDS[destination]
        record = keys.choice(f"{_P}payload_format", same(*words), default)
        forward.put("options.record", record.map(words.__getitem__))
        if record.value == default:
            keys.note(f"rows are documents of JSON: they are kept as {words[default]}", record)
    if destination == "quickwit":
        forward.put("options.index", _index_of_quickwit(keys))
    if destination == "elasticsearch":
        for setting in keys.with_prefix(f"{_P}index_mapping."):
            keys.report.no_effect(setting, "an index that exists keeps its mapping")
    keys.no_effect({f"{_P}{name}": reason for name, reason in _NO_EFFECT.items()})
    return forward


def _index_of_quickwit(keys: Keys) -> Value[str]:
    """Return the id of the index: the key is a configuration of Quickwit in YAML."""
    index = keys.require(f"{_P}index", '"index_id: messages"')
    try:
        content = yaml.safe_load(index.value)
    except yaml.YAMLError:
        content = None
    match content:
        case str():
            return index
        case {"index_id": str(name)}:
            if len(content) > 1:
                message = f"of the index only index_id {name!r} is used: each hour has an index with a dynamic mapping"
                keys.note(message, index)
            return Value(name, index.setting)
    if index.setting is not None:
        keys.error(index.setting, "is not an index of Quickwit; write its YAML with index_id, or its name")
    return Value("")


_TABLE = (
    ConnectorKey(f"{_P}catalog_type", "table.catalog.type", default="rest"),
    ConnectorKey(f"{_P}uri", "table.catalog.uri", example='"http://localhost:8181"'),
    ConnectorKey(f"{_P}warehouse", "table.catalog.warehouse"),
    ConnectorKey(f"{_P}store_url", "s3.endpoint_url"),
    ConnectorKey(f"{_P}store_region", "s3.region"),
)


def put_table(keys: Keys, sink: Draft, config: Any) -> None:
    """Make a sink of Parquet with the table of Iggy's Iceberg sink; `config` is its `plugin_config`."""
    sink.put("format.type", "parquet")
    setting, tables = keys.get(f"{_P}tables"), config.get("tables") if isinstance(config, dict) else None
    routing = keys.boolean(f"{_P}dynamic_routing", False)
    keys.no_effect({f"{_P}dynamic_route_field": "a sink has one table", f"{_P}store_class": "the store is S3"})
    if routing.value:
        keys.error(routing.setting, "a sink has one table; write false, and a sink with sql.where for each table")
    elif not isinstance(tables, list) or len(tables) != 1 or not isinstance(tables[0], str):
        message = "a sink has one table; write a file for each" if tables else f"{_P}tables is missing"
        keys.error(setting, f'{message}, for example tables = ["lake.orders"]')
    else:
        sink.put("table.name", tables[0], setting)
    keys.put(sink, _TABLE)
    if sink.get("s3.endpoint_url"):
        sink.put("s3.path_style", True)
    s3_credentials.put_pair(keys, sink, f"{_P}store_access_key_id", f"{_P}store_secret_access_key")
    keys.choice(f"{_P}store_class", same("s3"), "s3")


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
        (host or sink).append("forwards", forward)
    return own


def _lands_the_same(sink: Draft, other: Draft) -> bool:
    return all(sink.get(path) == other.get(path) for path in ("topics", "transforms", "converter"))


def require_buckets(sinks: Sequence[Draft], plugin: Setting | None, keys: Keys, environment: Mapping[str, str]) -> None:
    """Take the bucket of sinks that have none from the environment. Report an error if it is not there."""
    for sink in sinks:
        if sink.get("bucket"):
            continue
        if environment.get(BUCKET):
            sink.put("bucket", environment[BUCKET])
        else:
            message = "names no bucket, and hours are landed in one before they are forwarded"
            remedy = f"add [s3lake] bucket, or set {BUCKET}, or enable the S3 sink for the same stream and topic"
            keys.error(plugin, f"{message}: {remedy}")
