"""What a producer's schema has of columns besides their types: what is never null, defaults, names of records.

Files contain the same, so that a connector's and ours are one table.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from s3lake.records.schema.columns.types import Type, fields_of

NAME_SPACE = "io.confluent.connect.avro"
"""Of records that Confluent's AvroData names, where a schema does not."""

MAP_ENTRY = f"{NAME_SPACE}.MapEntry"
"""Of an entry of a map whose keys are not strings."""

NAME = b"s3lake.name"
"""Metadata of a schema or of a field: the full name of the record."""

DEFAULT = b"s3lake.default"
"""Metadata of a field: its default, as Avro's JSON writes it."""

ALONE = b"s3lake.alone"
"""Metadata of a schema of one column: Avro files hold its values, without a record round each."""

PROPERTIES = b"s3lake.properties"
"""Metadata of a schema or of a field: properties of Avro's schema of the type that only its readers know, as JSON."""

FIELD_PROPERTIES = b"s3lake.field_properties"
"""Metadata of a field: the same of the field itself."""

DETAIL = b"s3lake.detail"
"""Metadata of a schema: tells apart what differs in names and defaults alone."""


class Detail(msgspec.Struct, frozen=True):
    """The detail of one column.

    Attributes:
        required: it is never null.
        default: the default as Avro's JSON writes it; None for none, and for null.
        name: the name of a record, with its namespace; None if it has no name.
        inner: the details of a list's items, a map's values, a struct's fields in order.
        doc: its description, if Connect's schema has one.
        version: the version of Connect's schema, if it has one.
        properties: the properties in Avro's schema of the type for its readers, such as `connect.name`: a JSON object.
        field_properties: the same of the field itself, its `order` among them.
        time: the type with the unit of numbers that are times by their schema: `timestamp_us`.
    """

    required: bool = False
    default: str | None = None
    name: str | None = None
    inner: tuple[Detail, ...] = ()
    doc: str | None = None
    version: int | None = None
    properties: str | None = None
    field_properties: str | None = None
    time: str | None = None


REQUIRED = Detail(required=True)


@functools.lru_cache(maxsize=4096)
def strip_to_nullability(detail: Detail) -> Detail:
    """Return what Parquet has of it: a column is optional or required, and nothing else."""
    return Detail(detail.required, inner=tuple(map(strip_to_nullability, detail.inner)))


@functools.lru_cache(maxsize=4096)
def drop_connect_detail(detail: Detail) -> Detail:
    """Return a detail without the properties that only Connect reads."""
    return structs.replace(
        detail,
        properties=_drop_connect(detail.properties),
        field_properties=_drop_connect(detail.field_properties),
        inner=tuple(map(drop_connect_detail, detail.inner)),
    )


def is_of_connect(property: str) -> bool:
    """Return whether a property of an Avro schema is one that Confluent's AvroData writes for Connect."""
    return property.startswith("connect.")


def set_property(detail: Detail, name: str, value: Any) -> Detail:
    """Return a detail in which a property has another value; it gets none that it did not have."""
    properties = json.loads(detail.properties or "{}")
    if name not in properties:
        return detail
    return structs.replace(detail, properties=format_properties(properties | {name: value}))


def format_properties(properties: Mapping[str, Any]) -> str | None:
    """Return properties as a detail has them."""
    return json.dumps(properties, sort_keys=True, separators=(",", ":")) if properties else None


def _drop_connect(properties: str | None) -> str | None:
    if properties is None:
        return None
    return format_properties({name: one for name, one in json.loads(properties).items() if not is_of_connect(name)})


@functools.lru_cache(maxsize=4096)
def list_names(detail: Detail) -> tuple[str, ...]:
    """Return the names of the records of a column, at any depth."""
    own = () if detail.name is None else (detail.name,)
    return own + tuple(name for inner in detail.inner for name in list_names(inner))


@functools.lru_cache(maxsize=4096)
def list_descriptions(type: Type, detail: Detail | None) -> Mapping[str, str]:
    """Return the descriptions of a struct's fields, if Connect's schema has them."""
    inner = zip(fields_of(type), detail.inner if detail else (), strict=False)
    return {name: each.doc.strip() for name, each in inner if each.doc and each.doc.strip()}
