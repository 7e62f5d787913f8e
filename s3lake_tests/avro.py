"""Parts of Avro schemas that several tests write their files with."""

from typing import Any


def optional(name: str, type: Any) -> dict[str, Any]:
    """A field that may be null."""
    return {"name": name, "type": ["null", type], "default": None}


LOGICAL = [
    optional("at", {"type": "long", "logicalType": "timestamp-millis"}),
    optional("day", {"type": "int", "logicalType": "date"}),
    optional("clock", {"type": "int", "logicalType": "time-millis"}),
    optional("who", {"type": "string", "logicalType": "uuid"}),
    optional("exact", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}),
]

METADATA = optional(
    "metadata",
    {
        "type": "record",
        "name": "m",
        "fields": [
            {"name": "timestamp", "type": "long"},
            {"name": "topic", "type": "string"},
            {"name": "partition", "type": "int"},
            {"name": "offset", "type": "long"},
        ],
    },
)
