"""Converters: how bytes become keys and values, as data. What reads them is imported when the first are read.

To add one, write its function and name it in `CONVERTERS`. This module is imported with every configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.records.schema.registry.registry_connection import Connection


@dataclass(frozen=True)
class ConverterRequest:
    """How keys or values are used after they are read.

    Attributes:
        tabular: whether they become rows of a table.
        texts: whether anybody looks at them as JSON.
        spliced: whether Avro files may hold them as they are.
        unchecked: whether JSON need not pass the gate, because all that is done with it is to read its columns.
        null_to_default: whether a null becomes the default of its schema, as what is missing does.
        exact: whether numbers that are times by their schema are columns of times.
    """

    tabular: bool
    texts: bool = True
    spliced: bool = False
    unchecked: bool = False
    registry: Connection | None = None
    null_to_default: bool = False
    exact: bool = False

    @property
    def schemas(self) -> Connection:
        """The registry of a converter that needs one."""
        assert self.registry is not None, "the sink model asks for one"
        return self.registry


ReadColumn = Callable[["pa.BinaryArray", ConverterRequest], Any]
"""Takes the bytes as Kafka has them. Returns a `keys_and_values.Column`, in which refused rows hold anything, and the
reasons by row. `keys_and_values.read_column` calls it, and has its types."""


@dataclass(frozen=True)
class ConverterSpec:
    """How bytes become a key or a value.

    Attributes:
        gives: JSON, whose objects have fields; UTF-8 texts; or the bytes themselves.
        wrapped: whether the JSON that it gives is not what Kafka has.
        enveloped: whether `{"schema": …, "payload": …}` may be around a value.
        inferred: whether columns are found in the data; else each value's own schema gives them.
        asks_registry: whether it cannot read without a Schema Registry.
        versioned: True if each value names the version of the schema that it was written with.
        has_defaults: whether schemas of values have defaults, which a null may become.
        framed: whether values are in Kafka neither texts nor taken as they are: with the id of their schema before
            them, or numbers. What looks at them before conversion does has to make them JSON.
    """

    name: str
    gives: Literal["json", "text", "bytes"]
    read: ReadColumn
    wrapped: bool = False
    enveloped: bool = False
    inferred: bool = True
    asks_registry: bool = False
    versioned: bool = False
    framed: bool = False
    has_defaults: bool = False


def _call_later(module: str, function: str, *first: Any) -> Callable[..., Any]:
    """Return what calls a function of a module of this room, which is imported then."""
    return lambda *rest: getattr(import_module(f"s3lake.records.convert.read.{module}"), function)(*first, *rest)


def _define_framed(name: str, module: str, function: str = "read", *, asks_registry: bool) -> ConverterSpec:
    """Return a converter of values with the id of a schema before them, which the module reads."""
    return ConverterSpec(
        name,
        "json",
        read=_call_later(module, function),
        wrapped=True,
        inferred=not asks_registry,
        asks_registry=asks_registry,
        versioned=True,
        framed=True,
        has_defaults=name != "protobuf",
    )


CONVERTERS: dict[str, ConverterSpec] = {
    converter.name: converter
    for converter in (
        ConverterSpec("json", "json", _call_later("without_schema", "read_json")),
        ConverterSpec(
            "connect_json",
            "json",
            _call_later("json.json_with_schema", "read"),
            wrapped=True,
            enveloped=True,
            versioned=True,
            has_defaults=True,
        ),
        ConverterSpec("string", "text", _call_later("without_schema", "read_string")),
        ConverterSpec("bytes", "bytes", _call_later("without_schema", "read_bytes")),
        _define_framed("avro", "avro.avro_values", asks_registry=True),
        _define_framed("json_schema", "json.json_with_schema", "read_framed", asks_registry=False),
        _define_framed("protobuf", "protobuf.protobuf_values", asks_registry=True),
        *(
            ConverterSpec(
                name,
                "json",
                _call_later("without_schema", "read_number", name),
                wrapped=True,
                inferred=False,
                framed=True,
            )
            for name in ("short", "integer", "long", "float", "double", "boolean")
        ),
    )
}


def has_schema_ids(converter: str, registry: Connection | None) -> bool:
    """Return whether each key or value names its schema, before it or in a header."""
    spec = CONVERTERS[converter]
    return spec.versioned and spec.framed and not (registry and (registry.avro or registry.descriptors))


def list_in_words(fits: Callable[[ConverterSpec], bool]) -> str:
    """The converters that fit, for messages: `json, connect_json or json_schema`."""
    *names, last = [name for name, converter in CONVERTERS.items() if fits(converter)]
    return f"{', '.join(names)} or {last}" if names else last
