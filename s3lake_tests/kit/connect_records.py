"""Random records with schemas of Kafka Connect, and what Connect's own classes make of them.

A case is `{"schema": …, "payload": …}`, as JsonConverter writes and reads it. The same seed gives the same cases.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from s3lake.land.spark import jars
from s3lake_tests.kit.oracles import LOGICAL, VERSION, run_jvm

Schema = dict[str, Any]

TOPIC = "orders"
_PROGRAM = Path(__file__).with_name("ConnectRecords.java")
_PARTS = ("connect-transforms", "connect-json")
_NAMES = ("a", "b", "c", "id", "d.e", "é", "class", "a-b", "_", "A", "äöü", "with space")
_TEXTS = ("", "abc", "12", "-7", "1.5", "true", "NaN", "2020-01-05T11:21:04Z", 'é"\\\u0001', "null", "日本")
_TYPES = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
_TIMES = (("int32", "Date"), ("int32", "Time"), ("int64", "Timestamp"))
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True)
class Limits:
    """What the random schemas and values have.

    Attributes:
        deep: levels of structs, lists and maps.
        defaults: whether schemas have defaults.
        scales: the scales that decimals may have.
        empty_structs: whether structs may have no fields.
        notes: whether schemas have names, versions, docs and parameters.
        roots: the types of a whole value; all types if there are none.
    """

    deep: int = 3
    defaults: bool = True
    scales: Sequence[int] = (0, 1, 2, 5, 18, 38)
    empty_structs: bool = False
    notes: bool = True
    roots: Sequence[str] = ()


@dataclass(frozen=True)
class ConnectValue:
    """A value with its schema, as JSON's Python has both; a decimal is base64 or a number."""

    schema: Schema | None
    payload: Any

    @property
    def text(self) -> bytes:
        """The bytes of the record in Kafka."""
        return _encode({"schema": self.schema, "payload": self.payload})


_encode = msgspec.json.Encoder(decimal_format="number").encode


def random_cases(seed: int, count: int, limits: Limits = Limits()) -> Iterator[ConnectValue]:
    """Yield as many cases, the same ones for a seed."""
    random = Random(seed)
    for _ in range(count):
        schema = random_schema(random, limits)
        yield ConnectValue(schema, random_value(random, schema))


def random_schema(random: Random, limits: Limits, level: int = 0) -> Schema:
    """Return a schema of Connect's JSON; one of the limits' roots at level 0."""
    leaves = (*_TYPES, "Decimal", "Time")
    kinds = (*leaves, "struct", "struct", "struct", "array", "map", "pairs") if level < limits.deep else leaves
    kind = random.choice(limits.roots if limits.roots and level == 0 else kinds)
    schema = _schema_of(random, kind, limits, level)
    if limits.notes and random.random() < 0.15:
        schema |= {"version": random.randint(1, 9), "doc": random.choice(_TEXTS)}
    if limits.notes and random.random() < 0.1:
        schema["parameters"] = {**schema.get("parameters", {}), "p": random.choice(_TEXTS)}
    if random.random() < 0.45:
        schema["optional"] = True
    elif random.random() < 0.2:
        schema["optional"] = False
    if limits.defaults and random.random() < 0.25 and not _has_struct(schema):  # Connect refuses a struct in a default
        schema["default"] = random_value(random, {**schema, "optional": False}, may_lack=False)
    return schema


def _has_struct(schema: Schema) -> bool:
    inner = [schema[part] for part in ("items", "keys", "values") if part in schema]
    return schema["type"] == "struct" or any(map(_has_struct, inner))


def _schema_of(random: Random, kind: str, limits: Limits, level: int) -> Schema:
    match kind:
        case "Decimal":
            parameters = {"scale": str(random.choice(limits.scales))}
            return {"type": "bytes", "name": f"{LOGICAL}Decimal", "version": 1, "parameters": parameters}
        case "Time":
            of, name = random.choice(_TIMES)
            return {"type": of, "name": f"{LOGICAL}{name}", "version": 1}
        case "struct":
            names = random.sample(_NAMES, random.randint(0 if limits.empty_structs else 1, 4))
            fields = [{**random_schema(random, limits, level + 1), "field": name} for name in names]
            named = {"name": f"shop.Order{random.randint(1, 3)}"} if limits.notes and random.random() < 0.5 else {}
            return {"type": "struct", "fields": fields, **named}
        case "array":
            return {"type": "array", "items": random_schema(random, limits, level + 1)}
        case "map" | "pairs":
            keys: Schema = {"type": "string"}
            if kind == "pairs":
                plain = replace(limits, defaults=False)
                keys = _schema_of(
                    random, random.choice(("int32", "int64", "boolean", "Decimal", "bytes")), plain, level
                )
            return {"type": "map", "keys": keys, "values": random_schema(random, limits, level + 1)}
    return {"type": kind}


def random_value(random: Random, schema: Schema, *, may_lack: bool = True) -> Any:
    """Return a payload of a schema: with nulls, and members that are missing, only where it may lack any."""
    if may_lack and (schema.get("optional") or schema.get("default") is not None) and random.random() < 0.25:
        return None
    match schema["type"], schema.get("name", "").removeprefix(LOGICAL):
        case "bytes", "Decimal":
            return _to_base64(_random_integer(random, random.choice((8, 16, 64, 120))))
        case "int32", "Time":
            return random.choice((0, 1, 86_399_999, 3_600_001))
        case "int32", "Date":
            return random.choice((0, -1, 18_266, random.randint(-30_000, 60_000)))
        case "int64", "Timestamp":
            return random.choice((0, -1, 1_578_223_264_123, random.randint(-(10**12), 4 * 10**12)))
        case "struct", _:
            lacks = [
                one["field"]
                for one in schema["fields"]
                if may_lack and (one.get("optional") or one.get("default") is not None) and random.random() < 0.15
            ]
            return {
                one["field"]: random_value(random, one, may_lack=may_lack)
                for one in schema["fields"]
                if one["field"] not in lacks
            }
        case "array", _:
            return [random_value(random, schema["items"], may_lack=may_lack) for _ in range(random.randint(0, 3))]
        case "map", _ if schema["keys"]["type"] == "string":
            names = random.sample(_NAMES, random.randint(0, 3))
            return {name: random_value(random, schema["values"], may_lack=may_lack) for name in names}
        case "map", _:
            keys = [random_value(random, schema["keys"], may_lack=False) for _ in range(random.randint(0, 3))]
            unique = list({json.dumps(key): key for key in keys}.values())
            return [[key, random_value(random, schema["values"], may_lack=may_lack)] for key in unique]
        case type, _:
            return _random_leaf(random, type)


def _random_leaf(random: Random, type: str) -> Any:
    match type:
        case "boolean":
            return random.random() < 0.5
        case "string":
            return random.choice(_TEXTS)
        case "bytes":
            return base64.b64encode(random.randbytes(random.randint(0, 5))).decode()
        case "float":
            number = random.choice((0.5, -1.25, 16777216.0, 0.1, 3.4028234663852886e38, random.uniform(-9, 9)))
            return struct.unpack("f", struct.pack("f", number))[0]
        case "double":
            return random.choice((0.5, 1.0, -0.1, 1e300, 5e-324, random.uniform(-1e9, 1e9)))
    return _random_integer(random, _BITS[type])


def _random_integer(random: Random, bits: int) -> int:
    most = 2 ** (bits - 1)
    return random.choice((0, 1, -1, most - 1, -most, random.randint(-most, most - 1)))


def _to_base64(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()


@dataclass(frozen=True)
class ConnectRecord:
    """A record in a chain: each side is the JSON text of a value with its schema; None means that a side is missing."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic: str = TOPIC
    partition: int | None = 3
    offset: int = 100
    timestamp: int | None = 1_578_223_264_123


@dataclass(frozen=True)
class Refused:
    """Connect threw this."""

    reason: str


@dataclass(frozen=True)
class Dropped:
    """A transform dropped the record."""


Step = tuple[str, Mapping[str, str]]
"""The class of a transform (the name of Connect's own is enough: `Cast$Value`), and its options."""

Answer = ConnectRecord | Refused | Dropped


@dataclass(frozen=True)
class Connect:
    """Connect's own classes: its JSON converter, its transforms, and the transforms of the jars next to it."""

    program: Any

    def read(self, values: Iterable[bytes | None], *, replace_nulls: bool = True) -> list[Answer]:
        """Return what JsonConverter makes of values in Kafka, with `replace.null.with.default` or without.

        Each answer's value is written with its whole schema, decimals in base64, and each null as a null.
        """
        return self.transform([(ConnectRecord(value), ()) for value in values], replace_nulls=replace_nulls)

    def write_lines(
        self, values: Iterable[bytes | None], *, replace_nulls: bool = True, decimals: str = "NUMERIC"
    ) -> list[Answer]:
        """Return the lines that a sink of JSON writes of values in Kafka, without their schemas."""
        return self._ask(
            [(ConnectRecord(value), ()) for value in values],
            reader=_options(replace_nulls=replace_nulls),
            writer=_options(schemas=False, replace_nulls=replace_nulls, decimals=decimals),
        )

    def transform(
        self,
        records: Iterable[tuple[ConnectRecord, Sequence[Step]]],
        *,
        replace_nulls: bool = True,
        key_has_schema: bool = True,
    ) -> list[Answer]:
        """Return each record behind its chain of transforms, its sides as `read` returns them.

        Args:
            replace_nulls: what the converters of the sides do; a transform's own option is in its options.
            key_has_schema: whether keys are read with `schemas.enable`.
        """
        reader, key_reader = (_options(schemas=has, replace_nulls=replace_nulls) for has in (True, key_has_schema))
        return self._ask(records, reader=reader, key_reader=key_reader, writer=_options())

    def _ask(
        self, records: Iterable[tuple[ConnectRecord, Sequence[Step]]], **converters: dict[str, str]
    ) -> list[Answer]:
        asked, converters = list(records), {"key_reader": _options(), **converters}
        lines = [json.dumps({**_request(record, chain), **converters}) for record, chain in asked]
        answers = str(self.program.answer("\n".join(lines))).splitlines() if lines else []
        return [_answer(record, json.loads(line)) for (record, _), line in zip(asked, answers, strict=True)]


def _options(*, schemas: bool = True, replace_nulls: bool = False, decimals: str = "BASE64") -> dict[str, str]:
    return {
        "schemas.enable": str(schemas).lower(),
        "replace.null.with.default": str(replace_nulls).lower(),
        "decimal.format": decimals,
    }


def _request(record: ConnectRecord, chain: Sequence[Step]) -> dict[str, Any]:
    return {
        "value": _text(record.value),
        "key": _text(record.key),
        "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "chain": [{"class": name, "options": dict(options)} for name, options in chain],
    }


def _text(side: bytes | None) -> str | None:
    return None if side is None else side.decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _answer(record: ConnectRecord, answer: dict[str, Any]) -> Answer:
    if "refused" in answer:
        return Refused(answer["refused"])
    if "dropped" in answer:
        return Dropped()
    return replace(
        record,
        value=_bytes(answer["value"]),
        key=_bytes(answer["key"]),
        headers=tuple((one["name"], _bytes(one["value"])) for one in answer["headers"]),
        topic=answer["topic"],
        partition=answer["partition"],
        timestamp=answer["timestamp"],
    )


@contextmanager
def start_connect(*coordinates: str, version: str = VERSION) -> Iterator[Connect]:
    """Connect's classes in a JVM of their own, with these `group:artifact:version` of others next to them.

    Args:
        version: of Connect; the one that the others need.
    """
    parts = [f"org.apache.kafka:{part}:{version}" for part in _PARTS]
    janino = [jar for name in ("janino", "commons-compiler") for jar in jars.pyspark_jars_dir().glob(f"{name}-3*.jar")]
    with run_jvm([*jars.resolve("connect", [*parts, *coordinates]), *janino]) as java:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_PROGRAM.read_text("utf-8"))
        yield Connect(compiler.getClassLoader().loadClass(_PROGRAM.stem).newInstance())
