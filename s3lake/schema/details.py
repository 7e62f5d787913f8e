"""What a producer's schema says of columns besides their types: what is never null, defaults, names of records.

Files say the same, so that a connector's and ours are one table.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import msgspec

from s3lake.schema.types import Type, fields_of

NAME_SPACE = "io.confluent.connect.avro"
"""Of records that Confluent's AvroData names, where a schema does not."""

MAP_ENTRY = f"{NAME_SPACE}.MapEntry"
"""Of an entry of a map whose keys are not strings."""

NAME = b"s3lake.name"
"""Metadata of a schema or of a field: the full name of the record."""

DEFAULT = b"s3lake.default"
"""Metadata of a field: its default, as Avro's JSON spells it."""

ALONE = b"s3lake.alone"
"""Metadata of a schema of one column: Avro files hold its values, without a record round each."""

DETAIL = b"s3lake.detail"
"""Metadata of a schema: tells apart what differs in names and defaults alone."""


class Detail(msgspec.Struct, frozen=True):
    """The detail of one column.

    Attributes:
        required: it is never null.
        default: as Avro's JSON spells it; None for none, and for null.
        name: of a record, with its namespace; None if it has no name.
        inner: of a list's items, a map's values, a struct's fields in order.
        doc: what it is in words, where Connect's schema says it.
        version: of Connect's schema, where it says one.
    """

    required: bool = False
    default: str | None = None
    name: str | None = None
    inner: tuple[Detail, ...] = ()
    doc: str | None = None
    version: int | None = None


REQUIRED = Detail(required=True)


@functools.lru_cache(maxsize=4096)
def strip_to_nullability(detail: Detail) -> Detail:
    """Return what Parquet has of it: a column is optional or required, and nothing else is said."""
    return Detail(detail.required, inner=tuple(map(strip_to_nullability, detail.inner)))


@functools.lru_cache(maxsize=4096)
def list_names(detail: Detail) -> tuple[str, ...]:
    """Return the names of the records of a column, at any depth."""
    own = () if detail.name is None else (detail.name,)
    return own + tuple(name for inner in detail.inner for name in list_names(inner))


@functools.lru_cache(maxsize=4096)
def list_descriptions(type: Type, detail: Detail | None) -> Mapping[str, str]:
    """Return what a struct's fields are in words, if Connect's schema says it."""
    inner = zip(fields_of(type), detail.inner if detail else (), strict=False)
    return {name: each.doc.strip() for name, each in inner if each.doc and each.doc.strip()}
