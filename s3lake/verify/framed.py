"""Keys and values with the id of their schema before them, told as Kafka Connect's JSON with a schema.

So all that compares `connect_json` compares these too. What cannot be read stays as it is, and equals no row.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from s3lake.objects.shape import BYTES, Shape
from s3lake.schema.registry import Connection, UnknownSchema, client
from s3lake.verify import avro, connect, parts, projection
from s3lake.verify.left_out import LeftOut
from s3lake.verify.log import Records

if TYPE_CHECKING:
    from s3lake.sink import Registry

_NUMBERS = {
    "short": (">h", "int16"),
    "integer": (">i", "int32"),
    "long": (">q", "int64"),
    "float": (">f", "float"),
    "double": (">d", "double"),
    "boolean": (">?", "boolean"),
}
_FRAMED = (parts.AVRO, parts.JSON_SCHEMA, parts.PROTOBUF, *_NUMBERS)
_HEADER = 5
_Told = Callable[[bytes], bytes | None]


class Telling:
    """How records of a commit are told.

    Attributes:
        shape: of its files, for records that were told.
        problem: why they cannot be compared; None where they can.
        unknown: what is said of each schema that the registry does not have, of the records told so far.
    """

    def __init__(self, shape: Shape, registry: Registry | None) -> None:
        kept = {"key": shape.sidecars.keys == "bytes", "value": shape.format == "bytes"}
        framed = {part: shape.converter(part) for part in kept if shape.converter(part) in _FRAMED}
        in_rows = shape.envelope.fields if shape.envelope else ()
        now = {part: BYTES if kept[part] else parts.CONNECT for part in framed}
        self.shape = replace(shape, key=now.get("key", shape.key), value=now.get("value", shape.value))
        self.problem = None
        self.unknown: set[str] = set()
        self._left_out = LeftOut(shape.uncompared)
        if {parts.AVRO, parts.PROTOBUF} & set(framed.values()) and registry is None:
            self.problem = "its records need a Schema Registry, and the sink has no converter.registry any more"
        elif "key" in framed and kept["key"] and "key" in in_rows:
            self.problem = "its keys stand in its rows as JSON and beside them as bytes"
        elif shape.format == "text" and self.shape.value == parts.CONNECT and not shape.separable:
            self.problem = (
                "its rows are JSON that s3lake wrote, in which what separates them may stand: use format json"
            )
        connection = registry.connection if registry else None
        typed = connection if shape.format in ("avro", "parquet", "csv") else None
        self._translations = {
            part: _translations(kind, typed if kind == parts.JSON_SCHEMA else connection, shape.shortest_floats)
            for part, kind in framed.items()
            if not kept[part]
        }

    def __call__(self, records: Records) -> Records:
        """Records as Connect's JSON has them, without those of schemas that are `unknown`."""
        unknown: set[int] = set()
        if value := self._translations.get("value"):
            records = records._replace(values=self._each(value, records.values, unknown))
        if self.shape.uncompared and self.shape.in_columns:
            records = records._replace(values=list(map(self._left_out.of_kafka, records.values)))
        if (key := self._translations.get("key")) and records.keys:
            records = records._replace(keys=self._each(key, records.keys, unknown))
        return records.only([row for row in range(len(records.offsets)) if row not in unknown]) if unknown else records

    def _each(self, translate: _Told, values: Sequence[bytes | None], unknown: set[int]) -> list[bytes | None]:
        told: list[bytes | None] = []
        for row, value in enumerate(values):
            try:
                told.append(None if value is None else translate(value))
            except UnknownSchema as error:
                self.unknown.add(str(error))
                unknown.add(row)
                told.append(None)
        return told


def _translations(kind: str, registry: Connection | None, shortest_floats: bool) -> _Told:
    if kind in _NUMBERS:
        return partial(_number, *_NUMBERS[kind])
    if kind == parts.JSON_SCHEMA and registry is not None:
        return partial(_of_json_schema, registry)
    if kind == parts.JSON_SCHEMA:
        return lambda value: b'{"schema":null,"payload":%s}' % value[_HEADER:] if value[:1] == b"\0" else value
    if registry is None:
        return lambda value: value

    if kind == parts.PROTOBUF:
        return partial(_of_protobuf, registry, shortest_floats)

    def of_avro(value: bytes) -> bytes | None:
        if not registry.avro and (value[:1] != b"\0" or len(value) < _HEADER):
            return value
        try:
            registered = client(registry).schema(int.from_bytes(value[1:_HEADER], "big"))
            references = tuple(registered.references.values())
            schema, compiled = _compiled(registered.text, references, registry.exact, shortest_floats)
            datum = avro.datum(compiled, value if registry.avro else value[_HEADER:])
        except UnknownSchema:
            raise
        except (LookupError, TypeError, ValueError, RecursionError):
            return value
        return None if datum is None else b'{"schema":%s,"payload":%s}' % (schema, json.dumps(datum).encode())

    return of_avro


def _of_protobuf(registry: Connection, shortest_floats: bool, value: bytes) -> bytes:
    """A message of Protobuf; what is none stays as it is."""
    from s3lake.verify import protobuf

    try:
        return protobuf.told(registry, value, shortest_floats=shortest_floats)
    except UnknownSchema:
        raise
    except (LookupError, TypeError, ValueError, RecursionError):
        return value


def _of_json_schema(registry: Connection, value: bytes) -> bytes:
    """A value with a JSON Schema; what has none that fits stays as it is."""
    from s3lake.verify import json_schema

    try:
        return json_schema.told(registry, value)
    except UnknownSchema:
        raise
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError, StopIteration):
        return value


def _number(encoding: str, name: str, value: bytes) -> bytes:
    """A number of Kafka's; what is none stays as it is."""
    try:
        (number,) = struct.unpack(encoding, value)
    except struct.error:
        return value
    schema = connect.with_shortest_floats({"type": name, "optional": True})
    return json.dumps({"schema": schema, "payload": projection.plain(number)}).encode()


@lru_cache(4096)
def _compiled(
    text: str, references: tuple[str, ...], exact: bool, shortest_floats: bool
) -> tuple[bytes, avro.Compiled]:
    compiled = avro.compiled(text, references, exact=exact)
    schema = connect.with_shortest_floats(compiled.schema) if shortest_floats else compiled.schema
    return json.dumps(schema).encode(), compiled
