"""A sink's chain of transforms: its steps in their order, and what they look at and may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from s3lake.convert.converters import CONVERTERS
from s3lake.transform import registry
from s3lake.transform.record import Header, HeaderStep, Step
from s3lake.transform.routing import Conditional

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.schema.registry import Connection
    from s3lake.transform.chained import Transformed

_COLUMNS = frozenset({"key", "headers"})


class Picks(Protocol):
    """Which records a transform is for."""

    @property
    def type(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]: ...


class Transform(Protocol):
    """A transform as it is configured; `sink.Transform` is one."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def predicate(self) -> Picks | None: ...
    @property
    def negate(self) -> bool: ...


@dataclass(frozen=True)
class Link:
    """A step in its place."""

    step: Step
    label: str

    def constants(self, wallclock_ms: int) -> list[Header] | None:
        """The headers that it adds to every record, None where there is more to it."""
        return self.step.constants(wallclock_ms) if isinstance(self.step, HeaderStep) else None


@dataclass(frozen=True)
class Chain:
    """Transforms in the order of the configuration, as plain values: Spark's closures carry them to the workers.

    Attributes:
        links: the steps; those that can do nothing to this sink's values are left out.
        key, value: converters of what comes in; those that some step looks at have no schema's id before them any more.
        notices: what the user should know, though nothing is wrong.
        framed: column -> converter of keys and values with a schema's id before them that some step looks at.
        schemas: the registry that has those schemas.
    """

    links: tuple[Link, ...]
    key: str
    value: str
    notices: tuple[str, ...] = ()
    framed: tuple[tuple[str, str], ...] = ()
    schemas: Connection | None = None

    @classmethod
    def of(cls, transforms: Sequence[Transform], *, key: str, value: str, registry: Connection | None = None) -> Chain:
        """The chain of those transforms for keys and values as Kafka has them, in those converters."""
        converters = {"key": key, "value": value}
        framed = {side: converter for side, converter in converters.items() if CONVERTERS[converter].framed}
        chain = cls.build(transforms, **converters | dict.fromkeys(framed, "json"))
        # What no step looks at stays as Kafka has it, and keeps its schema.
        touched = chain.reads | chain.writes
        now = {"key": chain.key, "value": chain.value} | {
            s: converter for s, converter in framed.items() if s not in touched
        }
        opened = tuple((side, converter) for side, converter in framed.items() if side in touched)
        return replace(chain, key=now["key"], value=now["value"], framed=opened, schemas=registry if opened else None)

    @classmethod
    def build(cls, transforms: Sequence[Transform], *, key: str, value: str) -> Chain:
        """The same for keys and values that have no schema's id before them."""
        links: list[Link] = []
        notices: list[str] = []
        current = value
        for position, transform in enumerate(transforms):
            step, remarks = registry.build(transform.type, transform.options)
            label = _label(transform.name, transform.type)
            notices.extend(f"{label}: {notice}" for notice in remarks)
            step = step.at(position)
            if transform.predicate is not None:
                picks = registry.predicate(transform.predicate.type, transform.predicate.options).step
                step = Conditional(step, picks, transform.negate)
            if step.json_only and CONVERTERS[current].gives != "json":
                notices.append(f"{label}: it changes JSON only, and converter.value is {value}")
                continue
            if "value" in step.writes:
                current = "json"
            links.append(Link(step, label))
        return cls(tuple(links), key, value, tuple(notices))

    @property
    def reads(self) -> frozenset[str]:
        """Parts of a record that some step looks at."""
        return parts(self.links)[0]

    @property
    def writes(self) -> frozenset[str]:
        """Parts of a record that some step may change."""
        return parts(self.links)[1]

    @property
    def needs(self) -> frozenset[str]:
        """Kafka's columns that it needs beyond partition, offset, timestamp and value."""
        return (self.reads | self.writes) & _COLUMNS

    @property
    def renames(self) -> bool:
        """Whether batches come out with a column `topic`."""
        return "topic" in self.writes

    @property
    def value_converter(self) -> str:
        """What values are afterwards: a value that may have been changed is JSON."""
        return "json" if "value" in self.writes else self.value

    @property
    def key_converter(self) -> str:
        """What keys are afterwards."""
        return "json" if "key" in self.writes else self.key

    def __call__(self, batch: pa.RecordBatch, topic: str, wallclock_ms: int) -> Transformed:
        """Transform one batch of one topic; `wallclock_ms` is the micro-batch's time."""
        from s3lake.transform.chained import transformed  # what a chain is can be asked without Arrow

        return transformed(self, batch, topic, wallclock_ms)


def parts(links: Sequence[Link]) -> tuple[frozenset[str], frozenset[str]]:
    """What the links look at, and what they may change."""
    reads = frozenset[str]().union(*(link.step.reads for link in links))
    return reads, frozenset[str]().union(*(link.step.writes for link in links))


def _label(name: str, type_name: str) -> str:
    return f"transform {name!r} ({registry.short(type_name)})" if name else f"transform {registry.short(type_name)}"
