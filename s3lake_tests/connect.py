"""Kafka Connect's own classes, in a JVM of their own, and the JSON that they write."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from s3lake.land.spark import jars
from s3lake_tests import jvm

VERSION = "3.9.0"


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
