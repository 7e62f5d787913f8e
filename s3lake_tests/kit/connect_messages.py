"""Schemas and messages of Kafka Connect's JSON converter."""

import json
from typing import Any


def field(called: str, kind: str, /, **more: Any) -> dict[str, Any]:
    return {"field": called, "type": kind, "optional": True, **more}


def struct(*fields: dict[str, Any], name: str | None = "com.acme.Order", **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "name": name, "optional": False, **more}


def connect_message(schema: Any, payload: Any) -> bytes:
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return b'{"schema":' + json.dumps(schema).encode() + b',"payload":' + text + b"}"


def connect_texts(**payload: str) -> bytes:
    fields = [{"type": "string", "field": name} for name in payload]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()
