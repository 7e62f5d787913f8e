"""Random schemas with references, and values of each: what a producer is given, and the row that lands of it.

Each maker takes a seeded `Random`. A drawn type is its schema and a function that draws a value: the pair of what the
producer gets and what the column holds.
"""

import datetime
import struct
import uuid
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

Draw = Callable[[], tuple[Any, Any]]
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS = 'aé\U0001f600"\\\n z9'


@dataclass
class MadeSchema:
    """A schema with what it refers to.

    Attributes:
        schema: a document of Avro or JSON Schema, or the text of a .proto file.
        references: name -> schema, each after the ones that it needs itself.
        draw: a value of the schema.
    """

    schema: Any
    draw: Draw
    references: dict[str, Any] = field(default_factory=dict)


def text(random: Random) -> str:
    return "".join(random.choices(_TEXTS, k=random.randrange(6)))


def data(random: Random) -> bytes:
    return random.randbytes(random.randrange(6))


def single(random: Random) -> float:
    return float(struct.unpack(">f", struct.pack(">f", random.uniform(-1e6, 1e6)))[0])


def whole(random: Random, bits: int) -> int:
    """An integer of so many bits, often at their ends."""
    ends = [0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return random.choice([*ends, random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))])


def _same(draw: Callable[[], Any]) -> Draw:
    def both() -> tuple[Any, Any]:
        value = draw()
        return value, value

    return both


def _list_of(random: Random, item: Draw) -> Draw:
    def draw() -> tuple[Any, Any]:
        drawn = [item() for _ in range(random.randrange(4))]
        return [given for given, _ in drawn], [row for _, row in drawn]

    return draw


def _map_of(random: Random, value: Draw) -> Draw:
    def draw() -> tuple[Any, Any]:
        drawn = {key: value() for key in random.sample("abc", random.randrange(4))}
        return {key: given for key, (given, _) in drawn.items()}, {key: row for key, (_, row) in drawn.items()}

    return draw


def _maybe(random: Random, inner: Draw) -> Draw:
    return lambda: (None, None) if random.random() < 0.3 else inner()


def _members(fields: dict[str, Draw]) -> Draw:
    def draw() -> tuple[Any, Any]:
        drawn = {name: member() for name, member in fields.items()}
        return {name: given for name, (given, _) in drawn.items()}, {name: row for name, (_, row) in drawn.items()}

    return draw


# Avro


def avro(random: Random, most: float = 1e300) -> MadeSchema:
    """A record, of which some types are records of other subjects; no double is beyond `most`.

    Up to 1e6 all doubles are floats too: Avro's own Java makes floats of the doubles in an array.
    """
    maker = _Avro(random, most)
    schema, draw = maker.record(0)
    return MadeSchema(schema, draw, maker.references)


class _Avro:
    def __init__(self, random: Random, most: float) -> None:
        self.random, self.most = random, most
        self.references: dict[str, Any] = {}
        self._names = 0

    def name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def record(self, level: int) -> tuple[Any, Draw]:
        made = {f"f{at}": self.type(level + 1) for at in range(self.random.randint(1, 4))}
        fields = [{"name": name, "type": schema} for name, (schema, _) in made.items()]
        schema = {"type": "record", "name": self.name(), "namespace": "com.acme", "fields": fields}
        return schema, _members({name: draw for name, (_, draw) in made.items()})

    def type(self, level: int) -> tuple[Any, Draw]:
        kinds = [self._leaf, self._leaf, self._optional, self._array, self._map, self._nested]
        return (self._leaf if level > 3 else self.random.choice(kinds))(level)

    def _leaf(self, _: int) -> tuple[Any, Draw]:
        random = self.random
        leaves: list[tuple[Any, Callable[[], Any]]] = [
            ("boolean", lambda: random.random() < 0.5),
            ("int", lambda: whole(random, 32)),
            ("long", lambda: whole(random, 64)),
            ("float", lambda: single(random)),
            ("double", lambda: random.uniform(-self.most, self.most) if self.most > 1e6 else single(random)),
            ("string", lambda: text(random)),
            ("bytes", lambda: data(random)),
            ({"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}, lambda: random.choice("ABC")),
            ({"type": "fixed", "name": self.name(), "size": 3}, lambda: random.randbytes(3)),
            (
                {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
                lambda: Decimal(random.randrange(-(10**20) + 1, 10**20)).scaleb(-4),
            ),
            (
                {"type": "int", "logicalType": "date"},
                lambda: datetime.date(1970, 1, 1) + datetime.timedelta(random.randrange(-9_000, 40_000)),
            ),
            (
                {"type": "long", "logicalType": "timestamp-millis"},
                lambda: EPOCH + datetime.timedelta(milliseconds=random.randrange(-(10**12), 3 * 10**12)),
            ),
            (
                {"type": "int", "logicalType": "time-millis"},
                lambda: (EPOCH + datetime.timedelta(milliseconds=random.randrange(86_400_000))).time(),
            ),
            ({"type": "string", "logicalType": "uuid"}, lambda: uuid.UUID(bytes=random.randbytes(16))),
        ]
        schema, draw = random.choice(leaves)
        return schema, _same(draw)

    def _optional(self, level: int) -> tuple[Any, Draw]:
        schema, draw = self._leaf(level) if level > 2 else self.random.choice([self._leaf, self._array])(level)
        return ["null", schema], _maybe(self.random, draw)

    def _array(self, level: int) -> tuple[Any, Draw]:
        schema, draw = self.type(level + 1)
        return {"type": "array", "items": schema}, _list_of(self.random, draw)

    def _map(self, level: int) -> tuple[Any, Draw]:
        schema, draw = self.type(level + 1)
        return {"type": "map", "values": schema}, _map_of(self.random, draw)

    def _nested(self, level: int) -> tuple[Any, Draw]:
        schema, draw = self.record(level)
        if self.random.random() < 0.5:
            return schema, draw
        name = f"com.acme.{schema['name']}"  # a subject of its own, which the ones around it refer to
        self.references[name] = schema
        return name, draw


# JSON Schema


def json_schema(random: Random) -> MadeSchema:
    """An object, of which some properties are objects of other subjects."""
    references: dict[str, Any] = {}
    schema, draw = _object(random, 0, references)
    return MadeSchema({"title": "R", **schema}, draw, references)


def _object(random: Random, level: int, references: dict[str, Any]) -> tuple[Any, Draw]:
    made = {f"p{at}": _property(random, level + 1, references) for at in range(random.randint(1, 4))}
    required = [name for name in made if random.random() < 0.5]

    def draw() -> tuple[Any, Any]:
        drawn = {name: member() for name, (_, member) in made.items()}
        missing = {name for name in made if name not in required and random.random() < 0.3}
        given = {name: value for name, (value, _) in drawn.items() if name not in missing}
        return given, {name: None if name in missing else row for name, (_, row) in drawn.items()}

    properties = {name: schema for name, (schema, _) in made.items()}
    return {"type": "object", "properties": properties, "required": required}, draw


def _property(random: Random, level: int, references: dict[str, Any]) -> tuple[Any, Draw]:
    match random.randrange(10 if level < 4 else 6):
        case 6:
            schema, draw = _property(random, level + 1, references)
            return {"type": "array", "items": schema}, _list_of(random, draw)
        case 7:
            schema, draw = _property(random, level + 1, references)
            return {"type": "object", "additionalProperties": schema}, _map_of(random, draw)
        case 8:
            return _object(random, level, references)
        case 9:
            schema, draw = _object(random, level, references)
            name = f"R{len(references)}.json"
            references[name] = schema
            return {"$ref": name}, draw
    return _json_leaf(random)


def _json_leaf(random: Random) -> tuple[Any, Draw]:
    def encoded() -> tuple[Any, Any]:
        value = data(random)
        return b64encode(value).decode(), value

    leaves: list[tuple[Any, Draw]] = [
        ({"type": "integer"}, _same(lambda: whole(random, 64))),
        ({"type": "integer", "connect.type": "int32"}, _same(lambda: whole(random, 32))),
        ({"type": "number"}, _same(lambda: random.uniform(-1e9, 1e9))),
        ({"type": "string"}, _same(lambda: text(random))),
        ({"type": "boolean"}, _same(lambda: random.random() < 0.5)),
        ({"type": "string", "connect.type": "bytes"}, encoded),
    ]
    schema, draw = random.choice(leaves)
    if random.random() < 0.3:
        return {"oneOf": [{"type": "null"}, schema]}, _maybe(random, draw)
    return schema, draw


# Protobuf


def protobuf(random: Random) -> MadeSchema:
    """A message, of which some fields are messages of a file that it imports."""
    nested, of_nested = _message(random, "Far", {})
    imported = f'syntax = "proto3"; package far; {nested}'
    near, of_near = _message(random, "Near", {})
    main, draw = _message(random, "Main", {"far.Far": of_nested, "Near": of_near})
    references = {"far.proto": imported} if "far.Far" in main else {}
    imports = "".join(f'import "{name}"; ' for name in references)
    return MadeSchema(f'syntax = "proto3"; package acme; {imports}{near} {main}', draw, references)


def _message(random: Random, name: str, messages: dict[str, Draw]) -> tuple[str, Draw]:
    fields: dict[str, Draw] = {}
    lines = []
    for number in range(1, random.randint(2, 6)):
        kind, draw, default = _proto_kind(random, messages)
        field, shape = f"f{number}", random.randrange(4)
        if shape == 0:
            lines.append(f"repeated {kind} {field} = {number};")
            fields[field] = _list_of(random, draw)
        elif shape == 1:
            lines.append(f"map<string, {kind}> {field} = {number};")
            fields[field] = _map_of(random, draw)
        elif shape == 2 or default is None:
            lines.append(f"optional {kind} {field} = {number};")
            fields[field] = _maybe(random, draw)
        else:
            lines.append(f"{kind} {field} = {number};")
            fields[field] = _or_default(random, draw, default)
    return f"message {name} {{ enum Kind {{ NONE = 0; A = 1; }} {' '.join(lines)} }}", _members(fields)


def _or_default(random: Random, draw: Draw, default: Any) -> Draw:
    return lambda: (None, default) if random.random() < 0.3 else draw()


def _proto_kind(random: Random, messages: dict[str, Draw]) -> tuple[str, Draw, Any]:
    """A type, values of it, and what an unset field without presence holds; None if it always has presence."""
    kinds: list[tuple[str, Draw, Any]] = [
        *((kind, _same(lambda: whole(random, 32)), 0) for kind in ("int32", "sint32", "sfixed32")),
        *((kind, _same(lambda: whole(random, 64)), 0) for kind in ("int64", "sint64", "sfixed64")),
        *((kind, _same(lambda: random.randrange(2**32)), 0) for kind in ("uint32", "fixed32")),
        *((kind, _same(lambda: random.randrange(2**63)), 0) for kind in ("uint64", "fixed64")),
        ("float", _same(lambda: single(random)), 0.0),
        ("double", _same(lambda: random.uniform(-1e300, 1e300)), 0.0),
        ("bool", _same(lambda: random.random() < 0.5), False),
        ("string", _same(lambda: text(random)), ""),
        ("bytes", _same(lambda: data(random)), b""),
        ("Kind", _same(lambda: random.choice(["NONE", "A"])), "NONE"),
    ]
    if messages and random.random() < 0.4:
        name = random.choice(list(messages))
        return name, messages[name], None
    return random.choice(kinds)
