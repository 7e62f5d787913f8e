"""A sink's conversion as plain values, and what follows from them: columns, and what Kafka has to be asked for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from s3lake.records.convert.fit.contract import Contract
from s3lake.records.convert.fit.schema_projection import SchemaProjector
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.convert.rows.tables import TableShape
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.columns.limits import Limits, Rule
from s3lake.records.schema.columns.types import Columns, fields_of
from s3lake.records.schema.registry.registry_connection import Connection


@dataclass(frozen=True)
class Conversion:
    """A sink's conversion, as plain values: Spark's closures carry it to the workers.

    Attributes:
        declared: columns whose types the user declares.
        keys, headers: formats of the sidecars.
        apart: whether records without a value land apart, with their sidecars only.
        keyed: whether the layout reads keys.
        valued: whether it reads values.
        max_columns: a record whose new fields would make more is refused.
        contract: what values have to be; by itself they can be anything.
        integral: path of a column that stays one of integers -> why.
        table: what the sink's table asks of columns; empty without a table.
        integers_of_table: paths of its columns of integers when the micro-batch began.
        null_to_default: the sides, `key` and `value`, whose nulls become the defaults of their schemas.
        connect_properties: whether Avro's files keep the properties of schemas that only Connect reads.
        exact: whether numbers that are times by their schema are columns of times.
        time_path: the field of values whose time the layout reads; empty if it reads none.
        compatibility: the files that a record with a schema goes into: `none`, files of that schema; `forward`, of one
            that lacks some
            of its fields; `backward` and `full`, of one that has them all.
    """

    key: str
    value: str
    format: str
    nulls: str
    envelope: RecordEnvelope | None = None
    declared: Columns = field(default_factory=dict)
    keys: str | None = None
    headers: str | None = None
    apart: bool = False
    registry: Connection | None = None
    keyed: bool = False
    valued: bool = True
    max_columns: int = sys.maxsize
    contract: Contract = field(default_factory=Contract)
    connect_properties: bool = True
    compatibility: str = "none"
    integral: Mapping[str, str] = field(default_factory=dict)
    table: Rule = ""
    integers_of_table: tuple[str, ...] = ()
    null_to_default: tuple[str, ...] = ()
    exact: bool = False
    time_path: tuple[str, ...] = ()

    def make_projector(self) -> SchemaProjector | None:
        """Return the memory of a task for its files' schemas; None if each schema has files of its own."""
        if self.compatibility == "none" or self.shape is None:
            return None
        return SchemaProjector(is_forward=self.compatibility == "forward")

    @functools.cached_property
    def needs(self) -> frozenset[str]:
        """Kafka columns beyond partition, offset, timestamp and value: of `key` and `headers`."""
        fields = self.envelope.fields if self.envelope else ()
        needed = {"key": "key" in fields or self.keys or self.keyed, "headers": "headers" in fields or self.headers}
        return frozenset(name for name, is_needed in needed.items() if is_needed)

    @property
    def has_columns(self) -> bool:
        """True if files have columns that grow with the data."""
        shape = self.shape
        return shape is not None and bool(shape.spread or shape.json_parts)

    @property
    def fixed_columns(self) -> Columns | None:
        """Columns of files that do not grow; None if they do, and for text formats."""
        shape = self.shape
        return None if shape is None or self.has_columns else shape.fixed

    def of_values(self, columns: Columns) -> Columns:
        """The columns of files that are fields of values."""
        shape = self.shape
        if shape is None or shape.spread is None:
            return fields_of(columns.get("value"))
        return columns if shape.spread == "value" else {}

    def of_parts(self, parts: Collection[str], columns: Columns) -> Columns:
        """The columns that hold such parts, `key` or `value`, of records."""
        spread = self.shape is not None and self.shape.spread
        return {name: type for name, type in columns.items() if (spread or name) in parts}

    @functools.cached_property
    def shape(self) -> TableShape | None:
        """The columns of the files; None if the data is text."""
        envelope = self.envelope
        spec = FORMATS[self.format]
        if not spec.tabular or (envelope and spec.rule == "flat"):
            return None
        parts = envelope.fields if envelope else ("value",)
        converters = {"key": self.key, "value": self.value}
        alone = envelope is None or envelope.bare
        return TableShape(
            spread=parts[0]
            if alone and parts[0] in converters and CONVERTERS[converters[parts[0]]].gives == "json"
            else None,
            parts=parts,
            converters=converters,
            declared=self.declared,
            limits=Limits(self.table or spec.rule, self.max_columns, self.integral),
            envelope=envelope,
        )
