"""Random change events of Debezium, and whatever else its topics have."""

from random import Random
from typing import Any

from s3lake_tests.kit.connect_messages import connect_message
from s3lake_tests.kit.connect_records import Limits, random_value

ROWS = Limits(deep=1, defaults=False, scales=(0, 2, 5), roots=("struct",))
_SOURCE = [
    {"field": "db", "type": "string"},
    {"field": "table", "type": "string"},
    {"field": "ts_ms", "type": "int64"},
    {"field": "lsn", "type": "int64", "optional": True},
    {"field": "snapshot", "type": "string", "optional": True, "default": "false"},
]
_TRANSACTION = [
    {"field": "id", "type": "string"},
    {"field": "total_order", "type": "int64"},
    {"field": "data_collection_order", "type": "int64"},
]


def random_event(random: Random, row: dict[str, Any]) -> bytes | None:
    """Return a change event, or what else a topic of Debezium has."""
    kind = random.choice(("c", "c", "u", "u", "r", "d", "d", "d", "t", "none", "null", "heartbeat", "other"))
    if kind == "none":
        return None
    if kind == "heartbeat":
        beat = {"type": "struct", "name": "io.debezium.connector.common.Heartbeat"}
        return connect_message(beat | {"fields": [{"field": "ts_ms", "type": "int64"}]}, {"ts_ms": 5})
    schema: dict[str, Any] = {
        "type": "struct",
        "name": random.choice(("x", "srv.db.t.Envelopes", "Envelope")) if kind == "other" else "srv.db.t.Envelope",
        "optional": kind == "null" or random.random() < 0.2,
        "version": 1,
        "fields": [
            row | {"field": "before"},
            row | {"field": "after"},
            {"field": "source", "type": "struct", "name": "io.debezium.connector.x.Source", "fields": _SOURCE},
            {"field": "op", "type": "string"},
            {"field": "ts_ms", "type": "int64", "optional": True},
        ],
    }
    if has_transaction := random.random() < 0.8:
        transaction = {"field": "transaction", "type": "struct", "name": "event.block", "fields": _TRANSACTION}
        schema["fields"] += [transaction | {"optional": True}]
    if kind == "null":
        return connect_message(schema, None)
    before = _random_row(random, row) if kind in "ud" and random.random() < 0.9 else None
    after = _random_row(random, row) if kind in ("c", "u", "r", "other") else None
    lsn = random.choice((None, 9))
    source = {"db": "d", "table": "t", "ts_ms": 5, "lsn": lsn, "snapshot": random.choice(("true", "last"))}
    payload = {"before": before, "after": after, "source": source, "op": "c" if kind == "other" else kind}
    payload["ts_ms"] = 7 if random.random() < 0.95 else None
    if has_transaction:
        payload["transaction"] = random.choice(
            (None, {"id": "t:1", "total_order": 2, "data_collection_order": 1}),
        )
    return connect_message(schema, payload)


def _random_row(random: Random, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all its columns, as Connect writes it."""
    some = random_value(random, row | {"optional": False})
    return {one["field"]: some.get(one["field"]) for one in row["fields"]}
