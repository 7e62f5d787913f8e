"""The chain itself: what comes in, what goes out, and that nothing is ever lost."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model.transforms import Transform
from s3lake.records.transform.chain.apply import apply_chain
from s3lake_tests.records.transform.kit import (
    CLOCK,
    TOPIC,
    Message,
    after,
    batch_of,
    chain,
    refusal,
    run,
    smt,
    texts_of,
    when,
)

WALLCLOCK = smt("InsertWallclock", {"header.name": "w", "format": "yyyy-MM-dd"})
ADD = smt("iggy.add_fields", {"fields": [{"key": "a", "value": {"static": 1}}]})


def test_a_chain_without_transforms_changes_nothing() -> None:
    given = batch_of([Message({"a": 1}), Message(None)])
    done = apply_chain(chain(), given, TOPIC, CLOCK)
    assert done.batch.equals(given)
    assert (done.rows.to_pylist(), done.refused, done.filtered) == ([0, 1], {}, 0)


def test_transforms_run_in_the_order_of_the_configuration() -> None:
    rename = smt("ReplaceField$Value", {"renames": "a:b"})
    assert after(Message({}), ADD, rename).value == {"b": 1}
    assert after(Message({}), rename, ADD).value == {"a": 1}


def test_a_batch_is_split_into_kept_refused_and_dropped() -> None:
    drop = smt("Filter", predicate=when("RecordIsTombstone"))
    done = run(chain(drop, smt("MaskField$Value", {"fields": "a"})), *map(Message, ({"a": 1}, None, [1], {"a": 2})))
    assert done.rows.to_pylist() == [0, 3]
    assert done.refused == {2: "transform MaskField$Value: the value is a list, a JSON object is needed"}
    assert done.filtered == 1
    assert done.batch.column("value").to_pylist() == [b'{"a":0}', b'{"a":0}']
    assert done.batch.column("offset").to_pylist() == [100, 103]


@pytest.mark.parametrize(
    ("transforms", "needs", "renames"),
    [
        ((), set(), False),
        ((ADD,), set(), False),
        ((WALLCLOCK,), {"headers"}, False),
        ((smt("Flatten$Key"),), {"key"}, False),
        ((smt("ValueToKey", {"fields": "a"}),), {"key"}, False),
        ((smt("TimestampRouter"),), set(), True),
        ((smt("Filter", predicate=when("HasHeaderKey", name="a")),), {"headers"}, False),
        ((smt("Filter", predicate=when("RecordIsTombstone")),), set(), False),
    ],
)
def test_a_chain_needs_the_fields_of_kafka_that_its_steps_read(
    transforms: tuple[Transform, ...], needs: set[str], renames: bool
) -> None:
    links = chain(*transforms)
    assert (links.needs, links.renames) == (needs, renames)


@pytest.mark.parametrize(
    ("transforms", "given", "converters"),
    [
        ((ADD,), ("string", "json"), ("string", "json")),
        ((WALLCLOCK,), ("bytes", "connect_json"), ("bytes", "connect_json")),
        ((smt("HoistField$Value", {"field": "a"}),), ("string", "bytes"), ("string", "json")),
        ((smt("HoistField$Value", {"field": "a"}), ADD), ("string", "string"), ("string", "json")),
        ((smt("ValueToKey", {"fields": "a"}),), ("string", "json"), ("json", "json")),
        ((smt("Flatten$Value"),), ("string", "connect_json"), ("string", "connect_json")),
        ((smt("ValueToKey", {"fields": "a"}),), ("string", "avro"), ("json", "avro")),
    ],
)
def test_a_chain_names_the_converters_of_the_keys_and_values_that_it_returns(
    transforms: tuple[Transform, ...], given: tuple[str, str], converters: tuple[str, str]
) -> None:
    links = chain(*transforms, key=given[0], value=given[1])
    assert (links.key_converter, links.value_converter) == converters


def test_iggys_transforms_work_on_what_an_earlier_one_made_json() -> None:
    done = after(Message(b"line"), smt("HoistField$Value", {"field": "text"}), ADD, value="string")
    assert done.value == {"text": "line", "a": 1}


def test_only_the_parts_that_are_changed_get_new_bytes() -> None:
    messages = (Message(b'{ "a" : 1.50 }', key=b"k\xff"), Message(b"no json at all"))
    done = run(chain(WALLCLOCK, smt("TimestampRouter")), *messages)
    assert done.batch.column("value").to_pylist() == [b'{ "a" : 1.50 }', b"no json at all"]
    assert done.batch.column("key").to_pylist() == [b"k\xff", None]


def test_values_of_connects_json_change_with_and_without_their_schemas() -> None:
    value = {
        "schema": {
            "type": "struct",
            "fields": [
                {"field": "id", "type": "int32"},
                {
                    "field": "price",
                    "type": "bytes",
                    "name": "org.apache.kafka.connect.data.Decimal",
                    "parameters": {"scale": "2"},
                },
            ],
        },
        "payload": {"id": 7, "price": "MDk="},
    }
    without_schema = Message({"schema": None, "payload": {"b": 1}})
    done = run(chain(ADD, value="connect_json"), Message(value), Message({"plain": True}), without_schema)
    assert texts_of(done, "value") == [b'{"id":7,"price":123.45,"a":1}', b'{"plain":true,"a":1}', b'{"b":1,"a":1}']


@pytest.mark.parametrize("data", [b"{", b"", b"\xff", b'{"a":1}{"b":2}', b"[" * 100_000])
def test_a_value_that_is_not_json_refuses_its_record(data: bytes) -> None:
    assert refusal(Message(data), ADD).startswith("the value: ")
    unfit = Message({"schema": {"type": "int32"}, "payload": "x"})
    assert "the payload does not fit its schema" in refusal(unfit, ADD, value="connect_json")


def test_headers_stay_in_order_whichever_way_they_are_added() -> None:
    def insert(name: str) -> Transform:
        return smt("InsertHeader", {"header": name, "value.literal": name})

    copy = smt("HeaderFrom$Value", {"fields": "a", "headers": "c", "operation": "copy"})
    done = run(chain(insert("x"), copy, insert("y"), copy, insert("z")), Message({"a": 1}, headers=(("o", b""),)))
    ((found),) = done.batch.column("headers").to_pylist()
    assert [one["key"] for one in found] == ["o", "x", "c", "y", "c", "z"]


def test_slices_of_batches_are_transformed_as_they_are() -> None:
    messages = [Message({"n": n}, headers=((f"h{n}", b"1"),) if n % 2 else ()) for n in range(6)]
    part = batch_of(messages).slice(1, 4)
    done = apply_chain(chain(WALLCLOCK, ADD, smt("TimestampRouter")), part, TOPIC, CLOCK)
    names = [[one["key"] for one in row] for row in done.batch.column("headers").to_pylist()]
    assert names == [["h1", "w"], ["w"], ["h3", "w"], ["w"]]
    dropped = apply_chain(chain(smt("DropHeaders", {"headers": "h1"})), part, TOPIC, CLOCK)
    assert dropped.batch.column("headers").to_pylist() == [None, None, [{"key": "h3", "value": b"1"}], None]


def test_a_chain_is_plain_values_that_travel() -> None:
    links = chain(
        WALLCLOCK,
        ADD,
        smt("RegexRouter", {"regex": "(.*)", "replacement": "$1"}, predicate=when("TopicNameMatches", pattern=".*")),
        smt("iggy.filter_fields", {"patterns": [{"key_pattern": {"regex": "a"}}]}),
        smt("InsertFieldTimestampHeaders", {"field": "a", "locale": "de"}),
    )
    run(links, Message({}))
    assert pickle.loads(pickle.dumps(links)) == links


HEADERS = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=3)), max_size=3)


# Nothing is ever raised, and nothing lost

ALL = [
    ADD,
    WALLCLOCK,
    smt("InsertField$Value", {"topic.field": "t", "timestamp.field": "ts"}),
    smt("InsertField$Key", {"offset.field": "o"}),
    smt("ReplaceField$Value", {"exclude": "a", "renames": "b:c"}),
    smt("MaskField$Value", {"fields": "a,b"}),
    smt("MaskField$Key", {"fields": "a", "replacement": "7"}),
    smt("ValueToKey", {"fields": "a"}),
    smt("ExtractField$Value", {"field": "a.b", "field.syntax.version": "V2"}),
    smt("ExtractField$Key", {"field": "a"}),
    smt("HoistField$Value", {"field": "a"}),
    smt("HoistField$Key", {"field": "a"}),
    smt("Flatten$Value"),
    smt("Cast$Value", {"spec": "a:int8,b:float32"}),
    smt("Cast$Value", {"spec": "string"}),
    smt("Cast$Key", {"spec": "int64"}),
    smt("TimestampConverter$Value", {"field": "a", "target.type": "string", "format": "yyyy-MM-dd"}),
    smt("TimestampConverter$Key", {"target.type": "Date"}),
    smt("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "move"}),
    smt("InsertHeader", {"header": "h", "value.literal": "1"}),
    smt("DropHeaders", {"headers": "a"}),
    smt("RenameHeader", {"header.name.old": "h", "header.name.new": "a"}),
    smt("Filter", predicate=when("RecordIsTombstone")),
    smt("Filter", predicate=when("HasHeaderKey", name="h"), negate=True),
    smt("RegexRouter", {"regex": "o(.*)", "replacement": "$1"}),
    smt("TimestampRouter"),
    smt("SetSchemaMetadata$Value", {"schema.name": "a"}),
    smt("io.lenses.connect.smt.header.TimestampConverter", {"header.name": "h", "field": "a", "target.type": "time"}),
    smt("InsertFieldTimestampHeaders", {"field": "_key.a"}),
    smt("InsertRollingRecordTimestampHeaders"),
    smt("iggy.delete_fields", {"fields": ["a", "a.b"]}),
    smt(
        "iggy.update_fields", {"fields": [{"key": "a.b", "value": {"computed": "uuid_v7"}, "condition": "key_exists"}]}
    ),
    smt("iggy.filter_fields", {"keep_fields": ["a.b"], "patterns": [{"value_pattern": {"greater_than": 1}}]}),
    smt("iggy.unwrap_envelope", {"field": "a"}),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner, max_size=3),
    max_leaves=6,
)
DATA = st.none() | st.binary(max_size=6) | JSON.map(lambda one: json.dumps(one).encode())
MESSAGES = st.builds(
    Message,
    value=DATA,
    key=DATA,
    headers=HEADERS.map(tuple),
    timestamp=st.sampled_from([-1, 0, CLOCK, 10**12]),
)
CONVERTERS = st.sampled_from(["json", "connect_json", "string", "bytes"])


@given(st.lists(MESSAGES, max_size=4), st.lists(st.sampled_from(ALL), max_size=5), CONVERTERS, CONVERTERS)
def test_every_record_is_kept_refused_or_dropped(
    messages: list[Message], transforms: list[Transform], key: str, value: str
) -> None:
    links = chain(*transforms, key=key, value=value)
    given_batch = batch_of(messages)
    done = apply_chain(links, given_batch, TOPIC, CLOCK)
    rows = done.rows.to_pylist()
    assert rows == sorted(set(rows))
    assert not set(rows) & done.refused.keys()
    assert len(rows) + len(done.refused) + done.filtered == len(messages)
    assert done.batch.column("offset").to_pylist() == [given_batch.column("offset")[row].as_py() for row in rows]
    for side, converter in (("value", links.value_converter), ("key", links.key_converter)):
        assert done.batch.schema.field(side).type == pa.binary()
        if side in links.writes and converter == "json":
            for one in done.batch.column(side).to_pylist():
                assert one is None or json.loads(one) is not NotImplemented
    assert done.batch.equals(apply_chain(links, given_batch, TOPIC, CLOCK).batch)
