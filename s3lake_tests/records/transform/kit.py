"""Records in, records out: what tests of transforms write and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from s3lake.config.model import Sink
from s3lake.config.model.transforms import Predicate, Transform
from s3lake.records.schema.columns.types import Struct
from s3lake.records.transform.chain.apply import Transformed, apply_chain
from s3lake.records.transform.chain.chain import Chain
from s3lake_tests.records.convert.batches import batch

CLOCK = 1_578_223_264_123  # 2020-01-05T11:21:04.123Z
TOPIC = "orders"


@dataclass(frozen=True)
class Message:
    """One record; a value or key that is neither bytes nor None is written as JSON."""

    value: Any = None
    key: Any = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = CLOCK
    partition: int = 3
    offset: int = 100


def raw(one: Any) -> bytes | None:
    return one if one is None or isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode()


def batch_of(messages: Sequence[Message]) -> pa.RecordBatch:
    return batch(
        *(raw(one.value) for one in messages),
        keys=[raw(one.key) for one in messages],
        headers=[one.headers or None for one in messages],
        timestamps=[one.timestamp for one in messages],
        first=messages[0].offset if messages else 0,
    )


def smt(type: str, options: dict[str, Any] | None = None, **more: Any) -> Transform:
    return Transform(type=type, options=options or {}, **more)


def when(type: str, **options: Any) -> Predicate:
    return Predicate(type=type, options=options)


def chain(*transforms: Transform, key: str = "string", value: str = "json", **more: Any) -> Chain:
    return Chain(tuple(one.model_dump() for one in transforms), key, value, **more)


def run(chain: Chain, *messages: Message) -> Transformed:
    return apply_chain(chain, batch_of(messages), TOPIC, CLOCK)


@dataclass(frozen=True)
class After:
    """One record after its chain, its value and key decoded where they are JSON."""

    value: Any
    key: Any
    headers: list[tuple[str, bytes | None]]
    topic: str


def after(message: Message, *transforms: Transform, key: str = "string", value: str = "json") -> After:
    """What a record is after those transforms; it must not be refused or dropped."""
    links = chain(*transforms, key=key, value=value)
    done = run(links, message)
    assert done.refused == {}
    assert done.rows.to_pylist() == [0]
    row = done.batch.to_pylist()[0]
    return After(
        _decoded(done, "value", links.value_converter),
        _decoded(done, "key", links.key_converter),
        [(one["key"], one["value"]) for one in row["headers"] or ()],
        row.get("topic", TOPIC),
    )


def value_after(value: Any, *transforms: Transform) -> Any:
    return after(Message(value), *transforms).value


def headers_after(
    message: Message, *transforms: Transform, key: str = "string", value: str = "json"
) -> list[tuple[str, bytes | None]]:
    done = run(chain(*transforms, key=key, value=value), message)
    assert done.refused == {}
    (headers,) = done.batch.column("headers").to_pylist()
    return [(one["key"], one["value"]) for one in headers or ()]


def refusal(message: Message, *transforms: Transform, key: str = "string", value: str = "json") -> str:
    """Why the record is refused."""
    done = run(chain(*transforms, key=key, value=value), message)
    assert done.rows.to_pylist() == []
    assert done.filtered == 0
    return done.refused[0]


def texts_of(done: Transformed, side: str) -> list[bytes | None]:
    """Keys or values as files of lines have them."""
    if side not in done.columns:
        return done.batch.column(side).to_pylist()
    column, refused = done.columns[side].finish(texts=True)
    assert refused == {}
    return column.data.to_pylist()


def _decoded(done: Transformed, side: str, converter: str) -> Any:
    (data,) = texts_of(done, side)
    return json.loads(data) if data is not None and (side in done.columns or converter == "json") else data


# Records with a schema of Connect, of which a file's types show what became of it

LOGICAL = "org.apache.kafka.connect.data."


def field(name: str, type: str, logical: str | None = None, **more: Any) -> dict[str, Any]:
    """A field of Connect's schema."""
    return {"field": name, "type": type, **({"name": LOGICAL + logical, "version": 1} if logical else {}), **more}


def struct(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema of Connect; with `field`, `optional` and `type` of its own it is a field."""
    return {"type": "struct", "fields": list(fields), **more}


@dataclass(frozen=True)
class Described:
    """Keys or values after their chain, all with one schema.

    Attributes:
        name, version: of the schema.
        types: of the fields; one that is never null has a "!" behind its type.
        rows: decoded as Arrow has them.
    """

    name: str | None
    version: int | None
    types: dict[str, str] | str
    rows: list[Any]


def described(
    schema: dict[str, Any],
    payloads: Sequence[Any],
    *transforms: Transform,
    side: str = "value",
    key: str = "string",
    **more: Any,
) -> Described:
    """What values with a schema become; none of them is refused or dropped."""
    done = run_described(schema, payloads, *transforms, key=key, **more)
    assert (done.refused, done.filtered) == ({}, 0)
    schemas = done.columns[side].schemas
    assert schemas is not None
    (one,), (array,) = schemas.distinct, schemas.arrays
    detail = one.detail
    types: dict[str, str] | str = str(one.type)
    if isinstance(one.type, Struct):
        details = detail.inner if detail is not None else ()
        pairs = zip(one.type.fields.items(), details, strict=True)
        types = {name: f"{of}{'!' if each.required else ''}" for (name, of), each in pairs}
    return Described(one.name, detail and detail.version, types, array.take(pa.array(schemas.at)).to_pylist())


def run_described(
    schema: dict[str, Any], payloads: Sequence[Any], *transforms: Transform, key: str = "string", **more: Any
) -> Transformed:
    messages = [Message({"schema": schema, "payload": payload}, key=b"k") for payload in payloads]
    return run(chain(*transforms, key=key, value="connect_json", **more), *messages)


def refusal_described(schema: dict[str, Any], payload: Any, *transforms: Transform, **more: Any) -> str:
    """Why a value with a schema is refused."""
    done = run_described(schema, [payload], *transforms, **more)
    assert (done.rows.to_pylist(), done.filtered) == ([], 0)
    return done.refused[0]


def make_registry_sink(url: str, *transforms: dict[str, object], **more: object) -> Sink:
    fixed = {"name": "e", "topics": ("t",), "bucket": "lake", "start": "2026-01-01T00", **more}
    converter = {"value": "avro", "key": "json_schema", "registry": {"url": url}}
    return Sink.model_validate({**fixed, "converter": converter, "transforms": transforms})
