"""Kafka Connect's own classes, in a JVM of their own, and the JSON that they write."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from s3lake.spark import jars
from s3lake_tests import jvm

VERSION = "3.9.0"
LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = {"type": "bytes", "name": f"{LOGICAL}Decimal", "parameters": {"scale": "2"}}
LEAVES: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "int8"}, st.integers(-(2**7), 2**7 - 1)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "bytes"}, st.sampled_from(["", "AAE=", "/w=="])),
    ({"type": "int32", "name": f"{LOGICAL}Date"}, st.integers(-9, 20_000)),
    ({"type": "int32", "name": f"{LOGICAL}Time"}, st.integers(0, 86_399_999)),
    ({"type": "int64", "name": f"{LOGICAL}Timestamp"}, st.integers(-9, 2_000_000_000_000)),
]
"""Schemas of values without parts, and values of each."""


@contextmanager
def running() -> Iterator[Any]:
    """Its transforms and its JSON converter, as py4j has them."""
    parts = ("connect-transforms", "connect-json")
    with jvm.running(jars.resolve("connect", [f"org.apache.kafka:{part}:{VERSION}" for part in parts])) as java:
        yield java


def json_converter(java: Any, *, schemas: bool, **options: str) -> Any:
    """A converter of values; options have dots for underscores."""
    converter = java.org.apache.kafka.connect.json.JsonConverter()
    more = {name.replace("_", "."): option for name, option in options.items()}
    converter.configure({"schemas.enable": str(schemas).lower(), "converter.type": "value", **more})
    return converter


def told(text: Any) -> Any:
    """JSON, numbers by their worth."""
    return None if text is None else worth(json.loads(bytes(text), parse_float=Decimal))


def worth(value: Any) -> Any:
    """A decoded value whose numbers equal those of the same worth, and nothing else: 0 is not false."""
    match value:
        case dict():
            return {name: worth(inner) for name, inner in value.items()}
        case list():
            return list(map(worth, value))
        case int() | Decimal() if not isinstance(value, bool):
            return {"number": str(Decimal(value).normalize() + 0)}
    return value
