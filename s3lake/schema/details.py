"""What a producer's schema says of columns beside their types: what is never null, defaults, names of records.

Files say the same, so that those of a connector and ours are one table.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

import msgspec

from s3lake.schema.types import Type, fields_of

NAME_SPACE = "io.confluent.connect.avro"
"""Of records that Confluent's AvroData names, where a schema does not."""


class Detail(msgspec.Struct, frozen=True):
    """Of one column.

    Attributes:
        required: it is never null.
        default: as Avro's JSON spells it; None for none, and for null.
        name: of a record, with its namespace; None where it has none.
        inner: of a list's items, a map's values, a struct's fields in order.
        connect: what else Connect's schema says, as JSON of the `connect.*` properties of Avro's.
    """

    required: bool = False
    default: str | None = None
    name: str | None = None
    inner: tuple[Detail, ...] = ()
    connect: str | None = None


REQUIRED = Detail(required=True)


@functools.lru_cache(maxsize=4096)
def nullability(detail: Detail) -> Detail:
    """What Parquet has of it: a column is optional or required, and nothing else is said."""
    return Detail(detail.required, inner=tuple(map(nullability, detail.inner)))


@functools.lru_cache(maxsize=4096)
def words(type: Type, detail: Detail | None) -> Mapping[str, str]:
    """What a struct's fields are in words, where Connect's schema says it."""
    inner = zip(fields_of(type), detail.inner if detail else (), strict=False)
    texts = {name: json.loads(each.connect).get("connect.doc") for name, each in inner if each.connect}
    return {name: text.strip() for name, text in texts.items() if isinstance(text, str) and text.strip()}
