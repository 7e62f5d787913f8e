"""Which names of fields Avro allows."""

from __future__ import annotations

import re

from s3lake.schema.types import Columns, Struct, Type, fold
from s3lake.schema.unite import joined

LEGAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def illegal_name(columns: Columns) -> str | None:
    """The path of the first field whose name Avro forbids, None where all are allowed."""
    return fold(Struct(columns), _legal, _inside, _illegal_name, _inside)


def _legal(_leaf: Type) -> str | None:
    return None


def _inside(inner: str | None) -> str | None:
    return inner


def _illegal_name(fields: dict[str, str | None]) -> str | None:
    for name, inner in fields.items():
        if not LEGAL_NAME.fullmatch(name):
            return name or "''"
        if inner is not None:
            return joined(name, inner)
    return None
