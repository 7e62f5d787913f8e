"""Integers that a double does not hold: exact in their column, or refused, at any depth and in any order."""

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory

from s3lake.index.commit.documents import Recorded
from s3lake.land.task.outcomes import Done, Grown, unite_recorded
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.keys_and_values import RecordEnvelope
from s3lake.records.schema.columns.changes import find_column_type
from s3lake.records.schema.columns.limits import HAS_LARGE, NO_LIMITS, Limits
from s3lake.records.schema.columns.types import Primitive, from_document, leaf_paths, to_document
from s3lake.records.schema.columns.union import keep_integers
from s3lake.records.schema.protobuf import compiler
from s3lake_tests.kit.avro_messages import record
from s3lake_tests.kit.connect_messages import connect_message, field, struct
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import SchemaRegistry, datum, framed, serving

ONE, TWO = 1795478431311000001, 1795478431311000002


def read(
    values: list[Any], columns: Any = None, given: Any = None, limits: Limits = NO_LIMITS
) -> object_columns.TableRows:
    texts = pa.array([json.dumps(value).encode() for value in values], pa.binary())
    return object_columns.read_objects(texts, from_document(columns or {}), from_document(given or {}), limits)


def rows(found: object_columns.TableRows) -> list[Any]:
    return [] if found.batch is None else found.batch.to_pylist()


@pytest.mark.parametrize("known", [{}, {"id": "int64"}])
@pytest.mark.parametrize("order", list(permutations([{"id": ONE}, {"id": TWO}, {"id": 0.5}])))
def test_large_integers_stay_exact_next_to_a_fraction_in_any_order(known: Any, order: list[Any]) -> None:
    found = read(order, known)
    assert rows(found) == [value for value in order if value["id"] != 0.5]
    assert list(found.refused) == [order.index({"id": 0.5})]
    assert "field 'id' is double, and its column stays one of integers" in found.refused[order.index({"id": 0.5})]
    assert to_document(found.columns) == {"id": "int64"}
    assert found.large == {"id"}


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda number: {"a": {"b": number}}, "a.b"),
        (lambda number: {"a": [number]}, "a[]"),
        (lambda number: {"a": [{"b": [number]}]}, "a[].b[]"),
    ],
)
def test_integers_are_exact_at_any_depth(wrap: Any, path: str) -> None:
    found = read([wrap(ONE), wrap(0.5), wrap(TWO)])
    assert rows(found) == [wrap(ONE), wrap(TWO)]
    assert f"field {path!r} is double" in found.refused[1]
    assert found.large == {path}
    doubles = read([wrap(0.5)]).columns
    refused = read([wrap(1), wrap(ONE)], to_document(doubles)).refused
    assert list(refused) == [1]
    assert f"field {path!r} is an integer that its column, double, does not hold exactly" in refused[1]


@pytest.mark.parametrize(
    ("type", "number"), [("double", 2**53 + 1), ("double", -(2**63) + 1), ("double", 2**64 + 1), ("float", 2**24 + 1)]
)
def test_an_integer_that_a_given_column_rounds_is_refused(type: str, number: int) -> None:
    expected = f"is an integer that its column, {type}, does not hold exactly"
    for shape, value in ((type, number), ({"list": type}, [number]), ({"map": type}, {"k": number})):
        found = read([{"n": value}, {"m": 1}], {}, {"n": shape})
        assert list(found.refused) == [0]
        assert expected in found.refused[0]


def test_an_integer_that_a_double_holds_is_one() -> None:
    numbers = [2**53, 2**60, 2**70, 1e300, -5]
    assert rows(read([{"n": number} for number in numbers], {"n": "double"})) == [{"n": float(n)} for n in numbers]


def test_an_integer_beyond_64_bits_is_a_double_or_refused_and_widens_nothing_then() -> None:
    assert to_document(read([{"n": 5}, {"n": 2**63}]).columns) == {"n": "double"}
    found = read([{"n": 5}, {"n": 2**63 + 1}])
    assert (rows(found), list(found.refused), to_document(found.columns)) == ([{"n": 5}], [1], {"n": "int64"})


# What is recorded


def grown(columns: Any, *large: str, offset: int = 0) -> Grown:
    return Grown(0, offset, columns, large=large)


def test_a_column_holds_integers_though_another_task_saw_a_fraction() -> None:
    for order in permutations([grown({"id": "double"}), grown({"id": "int64"}, "id", offset=9)]):
        found = unite_recorded(Recorded({}), order, 9)
        assert (found.columns, found.exact) == ({}, ("id",))
        again = unite_recorded(found, [grown({"id": "int64"}, "id", offset=9)], 9)  # what reads again refuses fractions
        assert (again.columns, again.exact) == ({"id": "int64"}, ("id",))


def test_large_integers_of_a_commit_are_remembered() -> None:
    done = Done([], {}, {}, large=("a.b", "id"))
    found = unite_recorded(Recorded({"id": "double", "a": {"struct": {"b": "int64"}}}), [done], 9)
    assert found.exact == ("a.b",)
    assert unite_recorded(found, [done], 9) == found


def test_a_column_that_has_held_large_integers_does_not_widen_later() -> None:
    integral = dict.fromkeys(["id"], "it has held larger ones")
    found = read([{"id": 1}, {"id": 0.5}], {"id": "int64"}, limits=Limits(integral=integral))
    assert (rows(found), to_document(found.columns)) == ([{"id": 1}], {"id": "int64"})
    assert found.refused == {1: "field 'id' is double, and its column stays one of integers: it has held larger ones"}


# Records with a schema, whose files have its types


def of_avro(registry: SchemaRegistry, type: str, value: Any) -> bytes:
    schema = record(("n", ["null", type]))
    return framed(registry.add(schema), datum(schema, {"n": value}))


def of_connect_json(_: SchemaRegistry, type: str, value: Any) -> bytes:
    kind = {"long": "int64", "int": "int32"}.get(type, type)
    return connect_message(struct(field("n", kind, optional=True)), {"n": value})


def of_json_schema(registry: SchemaRegistry, type: str, value: Any) -> bytes:
    kinds = {"long": "int64", "int": "int32", "float": "float32", "double": "float64"}
    kind = {"type": "integer" if type in ("long", "int") else "number", "connect.type": kinds[type]}
    number = registry.add({"type": "object", "properties": {"n": kind}}, "JSON")
    return framed(number, json.dumps({"n": value}).encode())


def of_protobuf(registry: SchemaRegistry, type: str, value: Any) -> bytes:
    kind = {"long": "int64", "int": "int32"}.get(type, type)
    text = f'syntax = "proto3"; message R {{ optional {kind} n = 1; }}'
    made = message_factory.GetMessageClass(compiler.compile_message(text, {}, (0,)))
    return framed(registry.add(text, "PROTOBUF"), b"\0" + made(n=value).SerializeToString())


WRITERS = {"avro": of_avro, "connect_json": of_connect_json, "json_schema": of_json_schema, "protobuf": of_protobuf}
LARGE_REASON = "field 'n' is an integer beyond 2^53, and its column, double, does not hold all of those"


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with serving() as found:
        yield found


def conversion(converter: str, registry: SchemaRegistry, format: str = "parquet", **more: Any) -> Conversion:
    return Conversion("string", converter, format, "skip", registry=registry.connection, **more)


def cells(found: Any) -> list[Any]:
    return [row["n"] for part in found.parts for row in part.streams["data"].to_pylist()]


@pytest.mark.parametrize("converter", WRITERS)
@pytest.mark.parametrize("type", ["float", "double"])
def test_fractions_of_a_schema_are_refused_where_a_column_has_large_integers(
    registry: SchemaRegistry, converter: str, type: str
) -> None:
    write, columns = WRITERS[converter], from_document({"n": "int64"})
    values = [write(registry, type, value) for value in (0.5, 3.0, None)]
    found = convert_batch(conversion(converter, registry, integral={"n": HAS_LARGE}), batch(*values), columns)
    reason = f"field 'n' is {type}, and its column stays one of integers: {HAS_LARGE}"
    assert found.refused == {0: reason, 1: reason}
    assert cells(found) == [None]
    assert cells(convert_batch(conversion(converter, registry), batch(*values), columns)) == [0.5, 3.0, None]


@pytest.mark.parametrize("converter", WRITERS)
@pytest.mark.parametrize("column", ["float", "double"])
def test_large_integers_of_a_schema_are_refused_where_a_column_has_fractions(
    registry: SchemaRegistry, converter: str, column: str
) -> None:
    numbers = [2**53 + 1, -(2**53) - 1, 2**53, -(2**53), 2**63 - 1, -(2**63), 5, None]
    values = [WRITERS[converter](registry, "long", number) for number in numbers]
    found = convert_batch(conversion(converter, registry), batch(*values), from_document({"n": column}))
    assert list(found.refused) == [0, 1, 4, 5]
    assert all(reason.startswith(LARGE_REASON) for reason in found.refused.values())
    assert cells(found) == [2**53, -(2**53), 5, None]


@pytest.mark.parametrize("converter", WRITERS)
def test_large_integers_of_a_schema_are_reported(registry: SchemaRegistry, converter: str) -> None:
    write, convert = WRITERS[converter], conversion(converter, registry)
    assert convert_batch(convert, batch(write(registry, "long", 2**53)), {}).large == set()
    assert convert_batch(convert, batch(write(registry, "long", 2**53 + 1)), {}).large == {"n"}


SHAPES: list[tuple[Any, Any, str]] = [
    ({"type": "record", "name": "I", "fields": [{"name": "b", "type": "TYPE"}]}, lambda n: {"b": n}, "n.b"),
    ({"type": "array", "items": "TYPE"}, lambda n: [0, n], "n[]"),
    ({"type": "map", "values": "TYPE"}, lambda n: {"k": n}, "n[]"),
    ({"type": "array", "items": {"type": "map", "values": "TYPE"}}, lambda n: [{}, {"k": n}], "n[][]"),
]


@pytest.mark.parametrize(("shape", "wrap", "path"), SHAPES)
def test_integers_of_a_schema_are_exact_at_any_depth(
    registry: SchemaRegistry, shape: Any, wrap: Callable[[Any], Any], path: str
) -> None:
    def write(type: str, *numbers: Any) -> list[bytes]:
        schema = record(("n", json.loads(json.dumps(shape).replace("TYPE", type))))
        number = registry.add(schema)
        return [framed(number, datum(schema, {"n": wrap(one)})) for one in numbers]

    convert = conversion("avro", registry)
    whole = convert_batch(convert, batch(*write("long", 2**53 + 1)), {})
    assert whole.large == {path}
    stays = convert_batch(
        conversion("avro", registry, integral={path: HAS_LARGE}), batch(*write("double", 0.5)), whole.seen
    )
    assert f"field {path!r} is double, and its column stays one of integers" in stays.refused[0]
    doubles = convert_batch(convert, batch(*write("double", 0.5)), {}).seen
    found = convert_batch(convert, batch(*write("long", 1, 2**53 + 1, 2)), doubles)
    assert list(found.refused) == [1]
    assert f"field {path!r} is an integer beyond 2^53" in found.refused[1]
    assert len(cells(found)) == 2


def test_keys_of_a_schema_are_judged_in_an_envelope(registry: SchemaRegistry) -> None:
    envelope = RecordEnvelope("record", ("key", "value"), "orders")
    convert = Conversion("avro", "json", "parquet", "skip", envelope, registry=registry.connection)
    keys = [of_avro(registry, "long", number) for number in (2**53 + 1, 7)]
    found = convert_batch(
        convert, batch(b'{"a":1}', b'{"a":2}', keys=keys), from_document({"key": {"struct": {"n": "double"}}})
    )
    assert list(found.refused) == [0]
    assert found.refused[0].startswith("field 'key.n' is an integer beyond 2^53")
    assert [row for part in found.parts for row in part.streams["data"].to_pylist()] == [
        {"key": {"n": 7}, "value": {"a": 2}}
    ]


@pytest.mark.parametrize("type", ["float", "double"])
def test_csv_has_no_integers_of_a_schema_next_to_fractions(registry: SchemaRegistry, type: str) -> None:
    found = convert_batch(
        conversion("avro", registry, "csv"), batch(of_avro(registry, type, 0.5)), from_document({"n": "int64"})
    )
    assert found.refused == {0: f"field 'n' is {type} by its schema, and its column is int64"}


def test_producers_bytes_are_kept_of_the_records_that_stay(registry: SchemaRegistry) -> None:
    values = [of_avro(registry, "long", number) for number in (7, 2**53 + 1, 8)]
    found = convert_batch(conversion("avro", registry, "avro"), batch(*values), from_document({"n": "double"}))
    assert list(found.refused) == [1]
    (part,) = found.parts
    assert part.streams["data"].column(0).to_pylist() == [values[0][5:], values[2][5:]]


# A path is a list of names: no two fields share one


@pytest.mark.parametrize("first", [{"a": {"b": ONE}}, {"a.b": ONE}])
def test_a_name_with_a_dot_is_not_a_nested_field(first: Any) -> None:
    other = {"a.b": 0.5} if "a" in first else {"a": {"b": 0.5}}
    found = read([first, other, {**first, **other}])
    assert found.refused == {}
    assert [{name: cell for name, cell in row.items() if cell is not None} for row in rows(found)][:2] == [first, other]
    (path,) = found.large
    assert path == ("a.b" if "a" in first else '"a.b"')
    known = unite_recorded(Recorded({}), [grown(to_document(found.columns), path)], 9)
    again = read([first, other], known.columns, limits=Limits(integral=dict.fromkeys(known.exact, HAS_LARGE)))
    assert again.refused == {}
    assert again.columns == found.columns


@pytest.mark.parametrize("name", ["a.b", "a[]", "a[].b", "", "a{}"])
def test_a_strange_name_has_a_path_of_its_own(name: str) -> None:
    inner = {"a": {"b": 0.5, "": 0.5}, "a[]": 0.5} if name != "a[]" else {"a": [0.5]}
    found = read([{name: ONE}, {**inner, name: TWO}])
    assert found.refused == {}
    (path,) = found.large
    assert find_column_type(found.columns, path) == Primitive.INT64
    kept = keep_integers({**found.columns, "z": Primitive.DOUBLE}, [path])
    assert kept == {**found.columns, "z": Primitive.DOUBLE}
    assert leaf_paths(found.columns, [Primitive.INT64]) == [path]


@pytest.mark.parametrize("value", [None, [["3f0b8a52-8f1c-4c2e-9d43-0c5d1a2b3c4d"]], []])
def test_a_list_of_what_arrow_cannot_flatten_is_looked_through(registry: SchemaRegistry, value: Any) -> None:
    texts = {"type": "array", "items": {"type": "array", "items": {"type": "string", "logicalType": "uuid"}}}
    schema = record(("a", ["null", texts]), ("b", {"type": "array", "items": ["null", "long"]}))
    number, cells = registry.add(schema), [{"a": value, "b": [1, 2**60, None]}, {"a": None, "b": []}]
    convert = Conversion("string", "avro", "parquet", "write", registry=registry.connection)
    found = convert_batch(convert, batch(*(framed(number, datum(schema, one)) for one in cells)), {})
    assert (found.refused, found.large) == ({}, {"b[]"})


DECIMAL = field("m", "bytes", optional=True, name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"})
OTHERS: dict[str, dict[str, Any]] = {
    "a default": field("m", "int32", optional=True, default=7),
    "a decimal": DECIMAL,
    "pairs": field("m", "map", optional=True, keys={"type": "int32"}, values={"type": "double"}),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("type", "integer"), [("double", 2**53 + 1), ("double", 10**22 + 1), ("float", 2**24 + 1)])
def test_an_integer_in_a_field_of_fractions_is_exact_next_to_what_is_made_of_others(
    other: str, type: str, integer: int
) -> None:
    schema = struct(field("d", type, optional=True), OTHERS[other])
    values = batch(connect_message(schema, {"d": integer}), connect_message(schema, {"d": 5}))
    found = convert_batch(Conversion("string", "connect_json", "parquet", "skip"), values, {})
    assert list(found.refused) == [0]
    assert "does not hold exactly" in found.refused[0]
    assert [row["d"] for row in found.parts[0].streams["data"].to_pylist()] == [5.0]
    lines = convert_batch(Conversion("string", "connect_json", "json", "skip"), values, {})
    read_back = [json.loads(line)["d"] for part in lines.parts for line in part.streams["data"].to_pylist()]
    assert read_back == [integer, 5]


def test_an_integer_of_a_json_schema_is_exact_next_to_a_default() -> None:
    properties = {"d": {"type": "number"}, "n": {"type": "integer", "default": 7}}
    with serving() as registry:
        number = registry.add({"type": "object", "properties": properties}, "JSON")
        conversion = Conversion("string", "json_schema", "parquet", "skip", registry=registry.connection)
        found = convert_batch(
            conversion, batch(framed(number, b'{"d":%d}' % (2**53 + 1)), framed(number, b'{"d":5}')), {}
        )
    assert list(found.refused) == [0]
    assert found.parts[0].streams["data"].to_pylist() == [{"d": 5.0, "n": 7}]
