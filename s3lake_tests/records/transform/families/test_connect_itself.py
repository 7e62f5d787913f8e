"""Kafka Connect's own transforms and predicates, in Java: what they make of a record ours make of it, or refuse it.

Left out is what ours mean to do otherwise (docs/transforms.md), and how Java writes floats and the days before 1970.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.oracles import LOGICAL, json_converter, normalize_numbers, read_json, run_connect
from s3lake_tests.records.transform.kit import CLOCK, TOPIC, Message, chain, raw, run, smt, texts_of, when

pytestmark = [pytest.mark.slow("an oracle: what Kafka Connect itself does, in a JVM"), pytest.mark.usefixtures("jvm")]


names = st.sampled_from(["a", "b", "c", "d.e", "é"])
some_names = st.lists(names, min_size=1, max_size=3, unique=True).map(",".join)
numbers = st.sampled_from([0, 1, -1, 127, 300, 2**31, 2**63 - 1, 0.5, 1.0, 123.25])
texts = st.sampled_from(["", "abc", "12", "-7", "1.5", "true", "no", "2020-01-05", "2020-01-05T11:21:04Z", "é\u0001"])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(names, values, max_size=4)
types = st.sampled_from(["int8", "int16", "int32", "int64", "float64", "boolean", "string"])


def options(**some: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Options, whose names have dots for underscores: each may be left out."""
    named = {name.replace("_", "."): option for name, option in some.items()}
    return st.fixed_dictionaries({}, optional=named)


_TIMES = options(
    field=st.sampled_from(["a", "b"]),
    target_type=st.sampled_from(["string", "unix", "Date", "Time", "Timestamp"]),
    format=st.sampled_from(["yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ssX", "EEE, d MMM yyyy"]),
    unix_precision=st.sampled_from(["seconds", "milliseconds", "microseconds", "nanoseconds"]),
)
_INSERTED = st.sampled_from(["n", "a", "m!", "o?"])
STEPS: dict[str, st.SearchStrategy[dict[str, str]]] = {
    "Cast": st.one_of(
        st.fixed_dictionaries({"spec": types}),
        st.dictionaries(names, types, min_size=1, max_size=3).map(
            lambda fields: {"spec": ",".join(f"{name}:{type}" for name, type in fields.items())}
        ),
    ),
    "ExtractField": options(
        field=st.sampled_from(["a", "a.b", "`d.e`.a"]), field_syntax_version=st.sampled_from(["V1", "V2"])
    ),
    "Flatten": options(delimiter=st.sampled_from([".", "_", "->"])),
    "HeaderFrom": options(fields=st.just("a,b"), headers=st.just("h,i"), operation=st.sampled_from(["copy", "move"])),
    "HoistField": options(field=names),
    "InsertField": options(
        offset_field=_INSERTED,
        partition_field=_INSERTED,
        topic_field=_INSERTED,
        timestamp_field=_INSERTED,
        static_field=_INSERTED,
        static_value=st.sampled_from(["x", "1"]),
    ),
    "MaskField": options(fields=some_names, replacement=st.sampled_from(["***", "12", "1.5"])),
    "ReplaceField": st.one_of(
        options(exclude=some_names, include=some_names),
        options(renames=st.sampled_from(["a:z", "a:z,b:y"]), exclude=st.just("c")),
    ),
    "TimestampConverter": _TIMES,
    "ValueToKey": options(fields=some_names),
    "InsertHeader": options(header=st.just("h"), value_literal=st.sampled_from(["x", "1", "true", "null", '"q"', "é"])),
    "DropHeaders": options(headers=st.sampled_from(["h", "h,i"])),
    "RegexRouter": options(
        regex=st.sampled_from(["(.*)", "ord(.*)", "or", "o(?<n>.*)"]),
        replacement=st.sampled_from(["$1", "x-$1", "${n}-x", "y"]),
    ),
    "TimestampRouter": options(
        topic_format=st.sampled_from(["${topic}-${timestamp}", "${timestamp}/x"]),
        timestamp_format=st.sampled_from(["yyyyMMdd", "yyyy-MM-dd-HH", "EEE"]),
    ),
}
_UNSIDED = {"ValueToKey", "InsertHeader", "DropHeaders", "RegexRouter", "TimestampRouter"}


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """A transform of either side, and options that may be none."""
    name = draw(st.sampled_from(sorted(STEPS)))
    side = "" if name in _UNSIDED else draw(st.sampled_from(["$Key", "$Value"]))
    return name + side, draw(STEPS[name])


FIELDS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "int8"}, -128),
    ({"type": "int32"}, 7),
    ({"type": "int64"}, 1_578_223_264_123),
    ({"type": "double"}, 0.5),
    ({"type": "boolean"}, True),
    ({"type": "string"}, "2020-01-05"),
    ({"type": "bytes"}, "AAE="),
    ({"type": "int32", "name": f"{LOGICAL}Date"}, 18_266),
    ({"type": "int32", "name": f"{LOGICAL}Time"}, 3_600_001),
    ({"type": "int64", "name": f"{LOGICAL}Timestamp"}, CLOCK),
    ({"type": "int64", "name": f"{LOGICAL}Timestamp"}, 18_266 * 86_400_000),
    ({"type": "array", "items": {"type": "int32"}}, [1, 2]),
    ({"type": "struct", "fields": [{"field": "b", "type": "int32", "name": f"{LOGICAL}Date"}]}, {"b": 18_266}),
]


@st.composite
def with_schema(draw: st.DrawFn) -> dict[str, Any]:
    """A struct of Connect's JSON, with its schema."""
    fields, payload = [], {}
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        schema, value = draw(st.sampled_from(FIELDS))
        fields.append({**schema, "field": name, "optional": draw(st.booleans())})
        payload[name] = value
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


class Result(NamedTuple):
    """A record after its transform: JSON by its worth."""

    value: Any
    key: Any
    headers: list[tuple[str, Any]]
    topic: str


class ConnectItself:
    """Its transforms, and its JSON converter with schemas and without."""

    def __init__(self, java: Any) -> None:
        self._java = java
        self._converters = {schemas: json_converter(java, schemas=schemas) for schemas in (False, True)}

    def after(self, message: Message, name: str, options: dict[str, str], *, schemas: bool) -> Result | None:
        """Return the record after a transform of Connect, None if it refuses the record or the options."""
        from py4j.protocol import Py4JJavaError

        step = getattr(self._java.org.apache.kafka.connect.transforms, name)()
        try:
            step.configure(options)
            done = step.apply(self._record(message, schemas=schemas))
            return Result(
                self._decode(done.valueSchema(), done.value()),
                self._decode(done.keySchema(), done.key()),
                [(one.key(), self._decode(one.schema(), one.value())) for one in done.headers().iterator()],
                done.topic(),
            )
        except Py4JJavaError:
            return None

    def picked(self, message: Message, name: str, options: dict[str, str]) -> bool | None:
        """Return whether a predicate selects a record, None if Connect refuses the options."""
        from py4j.protocol import Py4JJavaError

        predicate = getattr(self._java.org.apache.kafka.connect.transforms.predicates, name)()
        try:
            predicate.configure(options)
        except Py4JJavaError:
            return None
        return bool(predicate.test(self._record(message, schemas=False)))

    def _record(self, message: Message, *, schemas: bool) -> Any:
        key = self._converters[False].toConnectData(TOPIC, raw(message.key))
        value = self._converters[schemas].toConnectData(TOPIC, raw(message.value))
        headers = self._java.org.apache.kafka.connect.header.ConnectHeaders()
        for header, text in message.headers:
            headers.addString(header, (text or b"").decode())
        sides = (key.schema(), key.value(), value.schema(), value.value())
        times = (message.offset, message.timestamp, self._java.org.apache.kafka.common.record.TimestampType.CREATE_TIME)
        return self._java.org.apache.kafka.connect.sink.SinkRecord(TOPIC, message.partition, *sides, *times, headers)

    def _decode(self, schema: Any, value: Any) -> Any:
        return read_json(self._converters[False].fromConnectData(TOPIC, schema, value))


def ours(message: Message, name: str, options: dict[str, str], *, schemas: bool) -> Result | None:
    """Return the record after the transform of s3lake, None if it refuses the record or the options."""
    try:
        links = chain(smt(name, options), key="json", value="connect_json" if schemas else "json")
    except ValueError:
        return None
    done = run(links, message)
    if done.refused:
        return None
    (row,) = done.batch.to_pylist()
    value = read_json(texts_of(done, "value")[0])
    if schemas and "value" not in done.columns:  # as Kafka has it
        value = value["payload"]
    headers = [(one["key"], one["value"]) for one in row["headers"] or ()]
    return Result(value, read_json(row["key"]), headers, row.get("topic", TOPIC))


def agree(mine: Result | None, theirs: Result | None) -> None:
    """Compare two results. If either side refuses the record, there is nothing to compare."""
    if mine is None or theirs is None:
        return
    assert mine._replace(headers=[]) == theirs._replace(headers=[])
    assert [name for name, _ in mine.headers] == [name for name, _ in theirs.headers]
    for (_, text), (_, value) in zip(mine.headers, theirs.headers, strict=True):
        # Our headers are texts; objects and lists are JSON.
        assert text is None if value is None else value in (text.decode(), _json_or_text(text))


def _json_or_text(text: bytes) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text.decode()


@pytest.fixture(scope="module")
def connect() -> Iterator[ConnectItself]:
    """Connect's own classes."""
    with run_connect() as java:
        yield ConnectItself(java)


@settings(max_examples=300 * EXAMPLES)
@given(step=steps(), value=st.none() | objects | scalars, key=st.none() | objects, header=st.booleans())
def test_a_record_without_a_schema_is_what_connect_makes_of_it(
    connect: ConnectItself, step: tuple[str, dict[str, str]], value: Any, key: Any, header: bool
) -> None:
    message = Message(value, key, (("h", b"x"),) if header else ())
    agree(ours(message, *step, schemas=False), connect.after(message, *step, schemas=False))


@settings(max_examples=300 * EXAMPLES)
@given(step=steps(), value=with_schema())
def test_a_record_with_a_schema_is_what_connect_makes_of_it(
    connect: ConnectItself, step: tuple[str, dict[str, str]], value: Any
) -> None:
    mine = ours(Message(value), *step, schemas=True)
    theirs = connect.after(Message(value), *step, schemas=True)
    if mine is not None and theirs is not None and isinstance(mine.value, dict) and isinstance(theirs.value, dict):
        # A field that the schema does not name is null with us, and missing with Connect.
        named = {name: one for name, one in mine.value.items() if one is not None or name in theirs.value}
        mine = mine._replace(value=named)
    agree(mine, theirs)


PREDICATES: dict[str, st.SearchStrategy[dict[str, str]]] = {
    "HasHeaderKey": options(name=st.sampled_from(["h", "H", "", "é"])),
    "RecordIsTombstone": st.just({}),
    "TopicNameMatches": options(
        pattern=st.sampled_from(["orders", "ord", "ord.*", "(?i)ORD.+", "(?!x)o.*", "", ".*s$", "[^o]*"])
    ),
}


@pytest.mark.parametrize("name", PREDICATES)
@settings(max_examples=50 * EXAMPLES)
@given(data=st.data(), value=st.none() | objects | scalars, header=st.sampled_from(["h", "H", "é", None]))
def test_a_predicate_picks_what_connect_picks(
    connect: ConnectItself, name: str, data: st.DataObject, value: Any, header: str | None
) -> None:
    chosen = data.draw(PREDICATES[name])
    message = Message(value, None, ((header, b"x"),) if header else ())
    theirs = connect.picked(message, name, chosen)
    try:
        links = chain(smt("Filter", predicate=when(name, **chosen)))
    except ValueError:
        assert theirs is None or "" in chosen.values()
        return
    assert bool(run(links, message).filtered) is theirs


ONE_OF_EACH = {
    "Cast$Value": {"spec": "a:string"},
    "DropHeaders": {"headers": "h"},
    "ExtractField$Value": {"field": "a"},
    "Flatten$Value": {},
    "HeaderFrom$Value": {"fields": "a", "headers": "i", "operation": "move"},
    "HoistField$Value": {"field": "z"},
    "InsertField$Value": {"offset.field": "n"},
    "InsertHeader": {"header": "i", "value.literal": "x"},
    "MaskField$Value": {"fields": "a", "replacement": "9"},
    "RegexRouter": {"regex": "(.*)", "replacement": "$1-x"},
    "ReplaceField$Value": {"renames": "a:z"},
    "TimestampConverter$Value": {"field": "a", "target.type": "string", "format": "yyyy-MM-dd"},
    "TimestampRouter": {},
    "ValueToKey": {"fields": "a"},
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_each_of_them_is_compared(connect: ConnectItself, name: str) -> None:
    message = Message({"a": CLOCK, "b": {"c": "x"}}, {"k": 1}, (("h", b"x"),))
    theirs = connect.after(message, name, ONE_OF_EACH[name], schemas=False)
    before = Result(normalize_numbers(message.value), normalize_numbers(message.key), [("h", "x")], TOPIC)
    assert theirs not in (None, before)
    mine = ours(message, name, ONE_OF_EACH[name], schemas=False)
    assert mine is not None
    agree(mine, theirs)


def test_every_transform_of_connect_is_tried() -> None:
    assert {name.partition("$")[0] for name in ONE_OF_EACH} == STEPS.keys()
