"""A sink's chain of transforms: its steps in their order, and what they read and may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.transform.families.class_names import PREDICATES, build_step, shorten
from s3lake.records.transform.step.record import Step, apply_if

if TYPE_CHECKING:
    from s3lake.records.schema.registry.registry_connection import Connection


class Link(NamedTuple):
    """A step, and its name in messages."""

    step: Step
    label: str


@dataclass(frozen=True)
class Chain:
    """Transforms in their order, as plain values that travel to Spark's workers; each process makes its own steps.

    Attributes:
        transforms: the transforms as `sink.Transform.model_dump()` has them.
        key, value: converters of keys and values as Kafka has them.
        registry: schemas of keys and values with a schema's id before them.
        keeps_schemas: whether keys and values that come with a schema have one after the chain too; else they are JSON.
        tabular: whether values become rows of a table. As lines, JSON with a JSON Schema is JSON without a schema.
        null_to_default: the sides, `key` and `value`, whose nulls become the defaults of their schemas.
        exact: whether numbers that are times by their schema are columns of times.
    """

    transforms: tuple[Mapping[str, Any], ...]
    key: str
    value: str
    registry: Connection | None = None
    keeps_schemas: bool = True
    tabular: bool = True
    null_to_default: tuple[str, ...] = ()
    exact: bool = False

    @cached_property
    def _built(self) -> tuple[list[Link], list[str]]:
        """Return the steps that can change something in this sink's values, and the notices."""
        links, notices = list[Link](), list[str]()
        is_json = CONVERTERS[self.value].gives == "json"
        described = {side for side in ("key", "value") if self.has_schema(side)}
        for position, transform in enumerate(self.transforms):
            step, remarks = build_step(
                transform["type"], transform["options"], position=position, exact=self.exact and bool(described)
            )
            short = shorten(transform["type"])
            label = f"transform {transform['name']!r} ({short})" if transform["name"] else f"transform {short}"
            notices.extend(f"{label}: {notice}" for notice in remarks)
            if predicate := transform["predicate"]:
                selects, _ = build_step(predicate["type"], predicate["options"], PREDICATES)
                step = apply_if(step, selects, transform["negate"])
            if step.json_only and not is_json:
                notices.append(f"{label}: it changes JSON only, and converter.value is {self.value}")
                continue
            if step.without_schema and not (described & {"value"} and self._reads_schemas):
                notices.append(f"{label}: {step.without_schema}")
            if step.schema_only and not described & step.reads:
                notices.append(f"{label}: it changes schemas only, and this sink's {min(step.reads)}s have none")
                continue
            is_json |= "value" in step.writes
            if step.typed is not None:
                described = described - step.writes | (step.writes if described & step.reads else frozenset())
            links.append(Link(step, label))
        return links, notices

    def __getstate__(self) -> dict[str, Any]:
        """Return the plain values alone: functions do not travel."""
        return {name: value for name, value in vars(self).items() if name != "_built"}

    @property
    def links(self) -> list[Link]:
        return self._built[0]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user; they are not errors."""
        return tuple(self._built[1])

    @property
    def nulls_from(self) -> str:
        """The first step that makes null of values, as messages call it; empty if none does."""
        return next((link.label for link in self.links if link.step.makes_nulls), "")

    @property
    def reads(self) -> frozenset[str]:
        """The parts of a record that some step reads."""
        return frozenset[str]().union(*(link.step.reads for link in self.links))

    @property
    def writes(self) -> frozenset[str]:
        """The parts of a record that some step may change."""
        return frozenset[str]().union(*(link.step.writes for link in self.links))

    @property
    def needs(self) -> frozenset[str]:
        """Kafka's columns that it needs in addition to partition, offset, timestamp and value."""
        return (self.reads | self.writes) & {"key", "headers"}

    @property
    def renames(self) -> bool:
        """True if batches have a column `topic` after the chain."""
        return "topic" in self.writes

    @property
    def wrapped(self) -> dict[str, str]:
        """The converters of keys and values that some step reads or writes and whose JSON is not what Kafka has.

        A value with a schema may be null, although Kafka has bytes of it.
        """
        sides = {"key": self.key, "value": self.value}.items()
        touched = self.reads | self.writes | ({"value"} if "tombstone" in self.reads else set())
        return {side: name for side, name in sides if side in touched and CONVERTERS[name].wrapped}

    @property
    def value_converter(self) -> str:
        """The converter of values after the chain."""
        return self._converter_after("value", self.value)

    @property
    def key_converter(self) -> str:
        """The converter of keys after the chain."""
        return self._converter_after("key", self.key)

    def has_schema(self, side: str) -> bool:
        """Return whether keys or values come with a schema, which transforms change as well."""
        return self.keeps_schemas and CONVERTERS[self.key if side == "key" else self.value].wrapped

    @property
    def _reads_schemas(self) -> bool:
        """True if values come with their schema. Values of a JSON Schema have theirs only in tables."""
        return self.tabular or self.value != "json_schema"

    def _converter_after(self, side: str, converter: str) -> str:
        return "json" if self.gives_json(side) and not self.has_schema(side) else converter

    def gives_json(self, side: str) -> bool:
        """Return whether keys or values are JSON after the chain: if a step may change them, or reads framed ones."""
        wrapped = self.wrapped.get(side)
        return side in self.writes or (wrapped is not None and CONVERTERS[wrapped].framed)
