"""What a producer's schema says of columns beside their types: what is never null, defaults, names of records.

Files say the same, so that those of a connector and ours are one table.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

import msgspec
import pyarrow as pa
from msgspec import structs

from s3lake.schema.arrow import arrow_type, type_of
from s3lake.schema.types import List, Map, Struct, Type, fields_of

NAME_SPACE = "io.confluent.connect.avro"
"""Of records that Confluent's AvroData names, where a schema does not."""


NAME = b"s3lake.name"
"""Metadata of a schema or of a field: the full name of the record."""

DEFAULT = b"s3lake.default"
"""Metadata of a field: its default, as Avro's JSON spells it."""

ALONE = b"s3lake.alone"
"""Metadata of a schema of one column: Avro files hold its values, without a record round each."""

DETAIL = b"s3lake.detail"
"""Metadata of a schema: tells apart what differs in names and defaults alone."""


class Detail(msgspec.Struct, frozen=True):
    """Of one column.

    Attributes:
        required: it is never null.
        default: as Avro's JSON spells it; None for none, and for null.
        name: of a record, with its namespace; None where it has none.
        inner: of a list's items, a map's values, a struct's fields in order.
        doc: what it is in words, where Connect's schema says it.
    """

    required: bool = False
    default: str | None = None
    name: str | None = None
    inner: tuple[Detail, ...] = ()
    doc: str | None = None


REQUIRED = Detail(required=True)


@functools.lru_cache(maxsize=4096)
def nullability(detail: Detail) -> Detail:
    """What Parquet has of it: a column is optional or required, and nothing else is said."""
    return Detail(detail.required, inner=tuple(map(nullability, detail.inner)))


@functools.lru_cache(maxsize=4096)
def words(type: Type, detail: Detail | None) -> Mapping[str, str]:
    """What a struct's fields are in words, where Connect's schema says it."""
    inner = zip(fields_of(type), detail.inner if detail else (), strict=False)
    return {name: each.doc.strip() for name, each in inner if each.doc and each.doc.strip()}


def applied(batch: pa.RecordBatch, detail: Detail, name: str | None) -> pa.RecordBatch:
    """The same rows; `detail` is that of the record that each row is, `name` the record's."""
    fields = zip(batch.schema, batch.columns, detail.inner, strict=True)
    columns = [column(field.name, array, type_of(field.type), inner) for field, array, inner in fields]
    marks = {DETAIL: _mark(detail)} if detail != nullability(detail) else {}
    metadata = marks | (_metadata(Detail(name=name or None)) or {})
    schema = pa.schema([field for field, _ in columns], metadata or None)
    return pa.RecordBatch.from_arrays([array for _, array in columns], schema=schema)


@functools.lru_cache(maxsize=4096)
def _mark(detail: Detail) -> bytes:
    return hashlib.blake2b(repr(_strip_doc(detail)).encode(), digest_size=8).hexdigest().encode()


def _strip_doc(detail: Detail) -> Detail:
    return structs.replace(detail, doc=None, inner=tuple(map(_strip_doc, detail.inner)))


def column(name: str, array: pa.Array, type: Type, detail: Detail) -> tuple[pa.Field, pa.Array]:
    """A column of its own: its field and its values; a record without a value has nulls, whatever its schema says."""
    field = _field(name, type, structs.replace(detail, required=False) if array.null_count else detail)
    return field, _retyped(array, field)


@functools.lru_cache(maxsize=4096)
def _field(name: str, type: Type, detail: Detail) -> pa.Field:
    inner, arrow = detail.inner, arrow_type(type)
    match type:
        case List(item) if inner:
            arrow = pa.list_(_field(arrow.value_field.name, item, inner[0]))
        case Map(value) if inner:
            arrow = pa.map_(pa.string(), _field(arrow.item_field.name, value, inner[0]))
        case Struct(fields) if inner:
            members = zip(fields.items(), inner, strict=True)
            arrow = pa.struct([_field(member, of, each) for (member, of), each in members])
    return pa.field(name, arrow, nullable=not detail.required, metadata=_metadata(detail))


def _metadata(detail: Detail) -> dict[bytes, bytes] | None:
    facts = {NAME: detail.name, DEFAULT: detail.default}
    return {key: text.encode() for key, text in facts.items() if text is not None} or None


def _retyped(array: pa.Array, field: pa.Field) -> pa.Array:
    """The same values in a type that differs in what its fields say of themselves.

    What is never null is null within a null struct alone; there it becomes anything, because Parquet's writer minds.
    """
    type = field.type
    if not pa.types.is_nested(type):
        if field.nullable or not array.null_count:
            return array
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        buffers = [None, *storage.buffers()[1:]]
        plain = pa.Array.from_buffers(storage.type, len(storage), buffers, 0, storage.offset)
        return pa.ExtensionArray.from_storage(type, plain) if isinstance(array, pa.ExtensionArray) else plain
    if array.offset:
        array = pa.concat_arrays([array])  # no mask goes with what is cut out of a list
    nulls = array.is_null() if field.nullable and array.null_count else None
    if pa.types.is_struct(type):
        children = [_retyped(array.field(at), member) for at, member in enumerate(type)]
        return pa.StructArray.from_arrays(children, fields=list(type), mask=nulls)
    if pa.types.is_map(type):
        items = _retyped(array.items, type.item_field)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=type, mask=nulls)
    return pa.ListArray.from_arrays(array.offsets, _retyped(array.values, type.value_field), type=type, mask=nulls)
