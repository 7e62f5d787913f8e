"""Random Avro schemas and values, and what Apache Avro's own Java reads of them.

The same seed gives the same cases. A value is as fastavro writes it: a branch of a union is its name with the value.
"""

from __future__ import annotations

import io
import json
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import fastavro

from s3lake.land.spark import jars
from s3lake_tests.kit.oracles import run_jvm

_PROGRAM = Path(__file__).with_name("AvroRecords.java")
_AVRO = "org.apache.avro:avro:1.12.1"  # 1.12.0 reads arrays of doubles as floats
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL = (
    *(("int", "date"), ("int", "time-millis"), ("long", "time-micros"), ("string", "uuid"), ("fixed", "uuid")),
    *(("long", f"{local}timestamp-{unit}") for local in ("", "local-") for unit in ("millis", "micros", "nanos")),
    *(("fixed", "duration"), ("string", "colour"), ("int", "colour")),
)
_INVALID: tuple[dict[str, Any], ...] = (
    {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 127},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -1},
    {"type": "bytes", "logicalType": "decimal", "precision": 0},
    {"type": "bytes", "logicalType": "decimal"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": "2"},
    {"type": "long", "logicalType": "date"},
    {"type": "string", "logicalType": "timestamp-millis"},
    {"type": "int", "logicalType": "uuid"},
)
_TEXTS = ("", "abc", "-7", "é\u0000\n", '"\\', "日本", "NaN", "x" * 70)
_INTEGERS = (0, 1, -1, 63, 64, -65, 300, 2**31 - 1, -(2**31))
_LONGS = (*_INTEGERS, 2**53 + 1, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1.0, 0.1, -2.5e-7, 3.0e38, float("inf"), float("-inf"), float("nan"))
_PROPERTIES: tuple[dict[str, Any], ...] = (
    {"connect.name": "a.B", "connect.version": 1},
    {"connect.parameters": {"scale": "1"}},
    {"pii": True},
    {"of": [1, {"x": None}]},
    {"java.string": "String"},
)


@dataclass(frozen=True)
class AvroCase:
    """A schema, and values of it."""

    schema: dict[str, Any]
    values: list[Any]

    def without_logical(self) -> Any:
        """Return the schema that fastavro writes the values with: it takes dates for dates."""
        return _strip(self.schema)


@dataclass
class _Schemas:
    random: Random
    deep: int = 3
    named: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        space = self.random.choice(("shop.", "a.b.", "c."))
        return f"{space}{self.random.choice(string.ascii_uppercase)}{self.count}"

    def record(self, level: int) -> dict[str, Any]:
        fields = [self.member(at, level) for at in range(self.random.randint(0 if level else 1, 4))]
        name = "shop.Order" if level == 0 else self.name()
        return self.decorate({"type": "record", "name": name, "fields": fields})

    def member(self, at: int, level: int) -> dict[str, Any]:
        described = {"name": f"f{at}", "type": self.any(level + 1), **self.properties()}
        match described["type"]:
            case ["null", *_] if self.random.random() < 0.5:
                described["default"] = None
            case "int" | "long" if self.random.random() < 0.3:
                described["default"] = 7
            case "double" if self.random.random() < 0.5:
                described["default"] = self.random.choice((0.5, 3))
            case "string" if self.random.random() < 0.3:
                described["default"] = "é"
        if self.random.random() < 0.1:
            described["order"] = self.random.choice(("ignore", "descending"))
        if self.random.random() < 0.1:
            described["doc"] = "what it is"
        return described

    def any(self, level: int) -> Any:
        kinds = ["primitive"] * 5 + ["logical"] * 3 + ["decimal", "invalid", "enum", "fixed"]
        kinds += ["record", "array", "map", "optional", "optional", "union", "again"] if level < self.deep else []
        match self.random.choice(kinds):
            case "primitive":
                name = self.random.choice(_PRIMITIVES)
                return self.decorate({"type": name}) if self.random.random() < 0.2 and name != "null" else name
            case "logical":
                physical, logical = self.random.choice(_LOGICAL)
                if physical == "fixed":
                    size = 16 if logical == "uuid" else 12
                    return self.decorate({"type": "fixed", "name": self.name(), "size": size, "logicalType": logical})
                return self.decorate({"type": physical, "logicalType": logical})
            case "decimal":
                return self.decimal()
            case "invalid":
                return self.decorate(dict(self.random.choice(_INVALID)))
            case "enum":
                enum = {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}
                return self.keep(enum | ({"default": "B"} if self.random.random() < 0.3 else {}))
            case "fixed":
                return self.keep({"type": "fixed", "name": self.name(), "size": self.random.choice((1, 3))})
            case "record":
                return self.keep(self.record(level))
            case "array":
                return self.decorate({"type": "array", "items": self.any(level + 1)})
            case "map":
                return self.decorate({"type": "map", "values": self.any(level + 1)})
            case "optional":
                return self.union(level, 1)
            case "union":
                return self.union(level, self.random.randint(1, 4))
        return self.random.choice(self.named)[0] if self.named else "string"

    def union(self, level: int, most: int) -> Any:
        branches: dict[str, Any] = {}
        for _ in range(most):
            before, one = len(self.named), self.any(level + 1)
            if isinstance(one, list) or one == "null" or _branch_name(one) in branches:
                del self.named[before:]  # the types in it are defined nowhere
            else:
                branches[_branch_name(one)] = one
        nulls = ["null"] if self.random.random() < 0.8 or not branches else []
        return [*nulls, *branches.values()] if self.random.random() < 0.8 else [*branches.values(), *nulls]

    def decimal(self) -> dict[str, Any]:
        precision = self.random.choice((1, 4, 9, 18, 38, 50))
        scale = self.random.choice((0, precision // 2, precision))
        described = {"logicalType": "decimal", "precision": precision, "scale": scale}
        if self.random.random() < 0.5:
            return self.decorate({"type": "bytes", **described})
        return self.decorate({"type": "fixed", "name": self.name(), "size": 24, **described})

    def keep(self, named: dict[str, Any]) -> dict[str, Any]:
        """Remember a type, which may be named again; only once it is whole, so that no schema is recursive."""
        decorated = self.decorate(named)
        self.named.append((decorated["name"], decorated))
        return decorated

    def decorate(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self.properties() | schema

    def properties(self) -> dict[str, Any]:
        return dict(self.random.choice(_PROPERTIES)) if self.random.random() < 0.15 else {}


def random_cases(seed: int, count: int) -> Iterator[AvroCase]:
    """Yield as many cases, the same ones for a seed."""
    random = Random(seed)
    for _ in range(count):
        schemas = _Schemas(random)
        schema = schemas.record(0)
        named = dict(schemas.named)
        yield AvroCase(schema, [_random_value(random, schema, named) for _ in range(random.randint(1, 3))])


def is_valid(schema: dict[str, Any]) -> bool:
    """Return whether a logical type of these cases is not an invalid one."""
    return not any(invalid.items() <= schema.items() and _has_all(invalid, schema) for invalid in _INVALID)


def _has_all(invalid: dict[str, Any], schema: dict[str, Any]) -> bool:
    return "precision" in invalid or "precision" not in schema


def _branch_name(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema.get("name", schema["type"]))


def _random_value(random: Random, schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        branch = random.choice(schema)
        value = _random_value(random, branch, named)
        return None if branch == "null" else (_branch_name(branch), value)
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    logical = schema.get("logicalType")
    match schema["type"]:
        case "record":
            return {one["name"]: _random_value(random, one["type"], named) for one in schema["fields"]}
        case "array":
            return [_random_value(random, schema["items"], named) for _ in range(random.choice((0, 1, 2, 5)))]
        case "map":
            names = random.sample(_TEXTS, random.choice((0, 1, 3)))
            return {name: _random_value(random, schema["values"], named) for name in names}
        case "enum":
            return random.choice(schema["symbols"])
        case "bytes" | "fixed" if logical == "decimal" and is_valid(schema):
            return _random_decimal(random, schema)
        case "fixed":
            return random.randbytes(schema["size"])
        case "bytes":
            return random.randbytes(random.choice((0, 1, 5)))
        case "string":
            return _random_text(random, logical)
        case "int" | "long" if logical in ("time-millis", "time-micros"):
            return random.randrange(86_400_000)
        case "int":
            return random.choice(_INTEGERS)
        case "long":
            return random.choice(_LONGS)
        case "float" | "double":
            return random.choice(_FLOATS)
        case "boolean":
            return random.random() < 0.5
    return None


def _random_text(random: Random, logical: Any) -> str:
    if logical == "uuid":
        digits = f"{random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return random.choice(_TEXTS)


def _random_decimal(random: Random, schema: dict[str, Any]) -> bytes:
    most = 10 ** schema["precision"] - 1
    unscaled = random.choice((0, 1, -1, most, -most, random.randint(-most, most)))
    size = schema.get("size", random.choice((0, 2)) + (unscaled.bit_length() + 8) // 8)
    return unscaled.to_bytes(size, "big", signed=True)


def _strip(schema: Any) -> Any:
    if isinstance(schema, list):
        return list(map(_strip, schema))
    if isinstance(schema, dict):
        return {name: _strip(one) for name, one in schema.items() if name not in ("logicalType", "default")}
    return schema


def write_datum(case: AvroCase, value: Any) -> bytes:
    """Return a value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(case.without_logical()), value)
    return out.getvalue()


@dataclass(frozen=True)
class Avro:
    """Apache Avro's own classes."""

    program: Any

    def read(self, schema: Any, datums: Sequence[bytes], *, blocks: bool = False) -> list[dict[str, Any]]:
        """Return of each datum its `value`, and the `datum` as Java writes it, or why it is `refused`."""
        text = json.dumps(schema)
        return self._ask([{"schema": text, "datum": data.decode("latin-1"), "blocks": blocks} for data in datums])

    def read_file(self, body: bytes, expected: Any = None) -> dict[str, Any]:
        """Return the `rows` and the `schema` of a file, and whether it is `equal` to an expected one."""
        more = {} if expected is None else {"expected": json.dumps(expected)}
        (answer,) = self._ask([{"file": body.decode("latin-1"), **more}])
        return answer

    def _ask(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        answers = self.program.answer("\n".join(map(json.dumps, requests)))
        return [json.loads(line) for line in answers.split("\n") if line]


@contextmanager
def start_avro() -> Iterator[Avro]:
    """Avro's classes in a JVM of their own."""
    janino = [jar for name in ("janino", "commons-compiler") for jar in jars.pyspark_jars_dir().glob(f"{name}-3*.jar")]
    with run_jvm([*jars.resolve("avro", [_AVRO]), *janino]) as java:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_PROGRAM.read_text("utf-8"))
        yield Avro(compiler.getClassLoader().loadClass(_PROGRAM.stem).newInstance())
