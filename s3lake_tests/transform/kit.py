"""Records in, records out: what tests of transforms say and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from s3lake.sink.transforms import Predicate, Transform
from s3lake.transform.batch import Transformed, apply_chain
from s3lake.transform.chain import Chain
from s3lake_tests.convert.records import batch

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


def chain(*transforms: Transform, key: str = "string", value: str = "json") -> Chain:
    return Chain(tuple(one.model_dump() for one in transforms), key, value)


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
        _decoded(row["value"], links.value_converter),
        _decoded(row["key"], links.key_converter),
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
    assert done.dropped == 0
    return done.refused[0]


def _decoded(data: bytes | None, converter: str) -> Any:
    return json.loads(data) if data is not None and converter == "json" else data
