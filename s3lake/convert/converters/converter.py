"""What a converter says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.convert.cells import Column
    from s3lake.convert.framed import Read as Unframed
    from s3lake.convert.gate import Refusals
    from s3lake.schema.registry import Connection


@dataclass(frozen=True)
class Wanted:
    """What is done with the keys or values that are read.

    Attributes:
        tabular: whether they become rows of a table.
        texts: whether anybody looks at them as JSON.
        spliced: whether Avro files may hold them as they are.
        registry: where schemas are.
    """

    tabular: bool
    texts: bool = True
    spliced: bool = False
    registry: Connection | None = None


Read = Callable[["pa.BinaryArray", Wanted], "tuple[Column, Refusals]"]
"""Takes the bytes as Kafka has them; refused rows hold anything."""

Unframe = Callable[["pa.BinaryArray", "Connection | None"], "Unframed"]
"""Makes bytes that are no texts plain JSON, for what looks at them before conversion does."""


@dataclass(frozen=True)
class Converter:
    """How bytes become a key or a value.

    Attributes:
        name: as a configuration says it, and a manifest.
        gives: JSON, whose objects have fields; UTF-8 texts; or the bytes themselves.
        wrapped: whether the JSON that it gives is not what Kafka has.
        enveloped: whether `{"schema": …, "payload": …}` may stand round a value.
        inferred: whether columns are found in the data; else each value's own schema gives them.
        asks_registry: whether it cannot read without a Schema Registry.
        versioned: whether each value says which version of a schema it was written with.
        unframe: of values that are in Kafka neither texts nor taken as they are: with the id of their schema before
            them, or numbers; None for others.
    """

    name: str
    gives: Literal["json", "text", "bytes"]
    read: Read
    wrapped: bool = False
    enveloped: bool = False
    inferred: bool = True
    asks_registry: bool = False
    versioned: bool = False
    unframe: Unframe | None = None

    @property
    def framed(self) -> bool:
        """Whether what looks at them before conversion does has to make them plain."""
        return self.unframe is not None
