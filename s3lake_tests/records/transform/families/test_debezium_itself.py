"""Random change events through Debezium's own ExtractNewRecordState: ours makes the same of them.

Value, schema, key, headers and topic are compared. Debezium leaves values without a schema alone: what ours makes of
those is compared with the row that Debezium takes out of the same event with its schema. What ours does otherwise on
purpose is listed in docs/transforms.md.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest

from s3lake_tests.kit.connect_messages import connect_message
from s3lake_tests.kit.connect_records import (
    Answer,
    Connect,
    ConnectRecord,
    Dropped,
    Refused,
    random_schema,
    random_value,
    start_connect,
)
from s3lake_tests.kit.oracles import read_json
from s3lake_tests.records.transform.families.connect_values import describe_column, read_connect_value
from s3lake_tests.records.transform.families.random_debezium_events import ROWS, random_event
from s3lake_tests.records.transform.kit import TOPIC, Message, chain, run, smt, texts_of

pytestmark = pytest.mark.usefixtures("jvm")

PLUGINS = "io.debezium:debezium-connect-plugins:3.6.1.Final"
CONNECT = "4.3.0"
"""The version of Kafka Connect that Debezium needs."""
CLASS = "io.debezium.transforms.ExtractNewRecordState"
_MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone", "Rewrite ")
_OLD = {
    ("drop", "true"): "drop",
    ("rewrite", "true"): "rewrite",
    ("rewrite", "false"): "rewrite-with-tombstone",
    ("none", "true"): "tombstone",
}
"""delete.handling.mode and drop.tombstones, which the newest Debezium does not have, as its one option."""
_ADDED = (
    *("op", "ts_ms", "ts_us", "table", "lsn", "nope", "snapshot", "id", "total_order", "source.ts_ms"),
    *("source.db:database", "transaction.id:tx", "transaction.nope", "source.op"),
)


class DebeziumCase(NamedTuple):
    """A record, and the options of ours and of theirs, which have no old names."""

    record: ConnectRecord
    listed: list[str] | None
    ours: dict[str, str]
    theirs: dict[str, str]


def random_case(random: Random) -> DebeziumCase:
    row = random_schema(random, ROWS) | {"name": "srv.db.t.Value", "optional": True}
    row["fields"] += [{"field": "route", "type": "string", "optional": True}] if random.random() < 0.5 else []
    if random.random() < 0.05:
        row["fields"] += [{"field": random.choice(("__deleted", "__op")), "type": "string", "optional": True}]
    names = [one["field"] for one in row["fields"]]
    ours = _random_options(random)
    theirs = dict(ours)
    if random.random() < 0.3:
        (mode, drops), theirs["delete.tombstone.handling.mode"] = random.choice(list(_OLD.items()))
        del ours["delete.tombstone.handling.mode"]
        ours |= {"delete.handling.mode": mode, "drop.tombstones": drops}
    listed = random.sample([*names, "k", "__op"], 2) if random.random() < 0.5 else None
    listed = [] if listed and random.random() < 0.1 else listed
    key: dict[str, Any] = {
        "type": "struct",
        "fields": [{"field": "k", "type": "int32", "optional": random.random() < 0.5}],
        "name": "K",
    }
    key["fields"] += [{"field": "id", "type": "string"}]
    header = None if listed is None else connect_message({"type": "array", "items": {"type": "string"}}, listed)
    record = ConnectRecord(
        value=random_event(random, row),
        key=connect_message(key, {"k": 1, "id": "x"}) if random.random() < 0.9 else None,
        headers=(
            ("h", connect_message({"type": "string"}, "x")),
            *([("dropped", header)] if header is not None else []),
        ),
        topic=TOPIC,
    )
    return DebeziumCase(record, listed, ours, theirs)


def _random_options(random: Random) -> dict[str, str]:
    options: dict[str, str] = {"delete.tombstone.handling.mode": random.choice(_MODES)}
    for name in ("add.fields", "add.headers"):
        if random.random() < 0.6:
            options[name] = random.choice((",", ", ")).join(random.sample(_ADDED, random.randint(1, 4)))
        if random.random() < 0.2:
            options[f"{name}.prefix"] = random.choice(("_", "", "x."))
    if random.random() < 0.3:
        options["route.by.field"] = "route"
    if random.random() < 0.4:
        options["drop.fields.header.name"] = "dropped"
        for name in ("drop.fields.from.key", "drop.fields.keep.schema.compatible"):
            if random.random() < 0.5:
                options[name] = random.choice(("true", "false"))
    # The default of Debezium puts defaults for nulls. The events have none.
    return options | ({"replace.null.with.default": "true"} if random.random() < 0.2 else {})


STRICTER = re.compile(
    r"the topic would be called"  # no object key holds it
    r"|is not a Connect schema"
)
"""Why ours refuses what Debezium takes."""
KINDER = re.compile(
    r'"org.apache.kafka.connect.data.Schema.field\(String\)" is null|Schema.schema\(\)|NullPointerException'  # of a
    # struct that the event does not have: here its fields are missing
)
"""Why Debezium refuses what ours takes."""


def compare(seed: int, count: int, connect: Connect) -> Counter[str]:
    """Compare as many random events. Return how many were compared, and how many each side refused."""
    random = Random(seed)
    cases = [random_case(random) for _ in range(count)]
    answers = connect.transform([(case.record, [(CLASS, case.theirs)]) for case in cases])
    return Counter(compare_one(case, answer) for case, answer in zip(cases, answers, strict=True))


def compare_one(case: DebeziumCase, answer: Answer) -> str:
    links = chain(smt(CLASS, dict(case.ours)), key="connect_json", value="connect_json")
    headers = (("h", b"x"), *([("dropped", json.dumps(case.listed).encode())] if case.listed is not None else []))
    message = Message(case.record.value, case.record.key, headers)
    done = run(links, message)
    what = (case, answer, done.refused)
    if done.refused:
        assert isinstance(answer, Refused) or STRICTER.search(done.refused[0]), what
        return "refused by both" if isinstance(answer, Refused) else "refused by ours"
    if isinstance(answer, Refused):
        assert KINDER.search(answer.reason), what
        return "refused by Debezium"
    if isinstance(answer, Dropped):
        assert done.filtered == 1, what
        return "dropped"
    assert done.filtered == 0, what
    (row,) = done.batch.to_pylist()
    assert row.get("topic", TOPIC) == answer.topic, what
    _compare_headers([(one["key"], one["value"]) for one in row["headers"]], answer, what)
    for side, text in (("value", answer.value), ("key", answer.key)):
        if b'"fields":[]' in (text or b""):
            assert texts_of(done, side) == [b"{}"], (side, what)  # the reader of tables refuses such a schema
        elif side in done.columns:
            column, refused = done.columns[side].finish(texts=False)
            assert refused == {}
            assert describe_column(column) == read_connect_value(text), (side, what)
        else:
            assert (row[side] is None) == (text is None or read_connect_value(text)[1] is None), (side, what)
    return "compared, also without its schema" if _compare_plain(case, answer, message, what) else "compared"


def _compare_headers(ours: list[tuple[str, bytes | None]], answer: ConnectRecord, what: Any) -> None:
    assert [name for name, _ in ours] == [name for name, _ in answer.headers], what
    for (name, text), (_, theirs) in zip(ours, answer.headers, strict=True):
        value = None if theirs is None else json.loads(theirs)["payload"]
        if name != "dropped":
            assert text == (None if value is None else str(value).encode()), what


def _compare_plain(case: DebeziumCase, answer: ConnectRecord, message: Message, what: Any) -> bool:
    """Compare what ours makes of the same event without its schema, if Debezium unwraps it. Return whether it does."""
    envelope = None if case.record.value is None else json.loads(case.record.value)
    if envelope is None or envelope["payload"] is None or not envelope["schema"]["name"].endswith(".Envelope"):
        return False
    if re.search(r'"float"|data.Decimal"|"keys"', json.dumps(envelope["schema"])):
        return False  # Connect prints these with other digits, or in another order
    options = dict(case.ours) | {"drop.fields.keep.schema.compatible": "false"}
    if case.ours.get("drop.fields.header.name") and case.ours.get("drop.fields.keep.schema.compatible") != "false":
        return False  # without a schema each column is optional
    plain = replace(message, value=envelope["payload"], key=None)
    done = run(chain(smt(CLASS, options)), plain)
    assert done.refused == {}, what
    (text,) = texts_of(done, "value")
    theirs = read_json(json.dumps(read_payload(answer.value)).encode())
    assert _without_nulls(read_json(text)) == _without_nulls(theirs), what
    return True


def read_payload(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)["payload"]


def _without_nulls(value: Any) -> Any:
    """Return an object without its nulls: without a schema, no reader knows which fields there could be."""
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}


def compare_headers(seed: int, count: int, connect: Connect) -> Counter[str]:
    """Compare records whose headers become fields. Return how many were compared, and how many both refused."""
    random = Random(seed)
    counts = Counter[str]()
    for number in range(count):
        schema = random_schema(random, ROWS)
        # A dot makes a path, and Debezium takes no blank.
        names = [one["field"] for one in schema["fields"] if not {" ", "."} & set(one["field"])] or ["z"]
        # Debezium remembers the first schema that an instance made of a value's: each case has its own.
        fields = random.choice((f"n{number},m{number}", f"{random.choice(names)},n{number}", f"x.y,n{number}"))
        options = {"headers": "h,i", "fields": fields, "operation": random.choice(("move", "copy"))}
        headers = [("h", "1"), ("j", "x")] if random.random() < 0.7 else [("j", "x"), ("i", "true")]
        value = (
            None
            if random.random() < 0.1
            else connect_message(schema, random_value(random, schema | {"optional": False}))
        )
        typed = tuple((name, connect_message({"type": "string"}, text)) for name, text in headers)
        record, step = (
            ConnectRecord(value, headers=typed, topic=TOPIC),
            ("io.debezium.transforms.HeaderToValue", options),
        )
        (answer,) = connect.transform([(record, [step])])
        message = Message(value, headers=tuple((name, text.encode()) for name, text in headers))
        done = run(chain(smt(*step), value="connect_json"), message)
        what = (value, step, answer, done.refused)
        if isinstance(answer, ConnectRecord) and done.refused:
            assert "a struct is needed for 'x.y'" in done.refused[0], what  # Debezium loses this header
            counts["refused by ours"] += 1
            continue
        assert isinstance(answer, Refused) == bool(done.refused), what
        if isinstance(answer, ConnectRecord):
            (row,) = done.batch.to_pylist()
            _compare_headers([(one["key"], one["value"]) for one in row["headers"]], answer, what)
            if "value" in done.columns and value is not None:
                column, _ = done.columns["value"].finish(texts=False)
                assert describe_column(column)[1] == read_connect_value(answer.value)[1], what
                ours, theirs = describe_column(column)[0], read_connect_value(answer.value)[0]
                assert ours is not None
                assert theirs is not None
                assert ours.type == theirs.type, what
        counts["refused by both" if done.refused else "compared"] += 1
    return counts


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    """Debezium's classes next to Connect's."""
    with start_connect(PLUGINS, version=CONNECT) as connect:
        yield connect


def test_some_change_events_become_what_debezium_makes_of_them(connect: Connect) -> None:
    counts = compare(1, 50, connect)
    print(counts)
    assert counts["compared"] > 15
    assert counts["compared, also without its schema"] > 3


@pytest.mark.slow("2,500 random change events; `make test` compares 50")
def test_change_events_become_what_debezium_makes_of_them(connect: Connect) -> None:
    counts = compare(2, 2_500, connect)
    print(counts)
    assert counts["compared"] > 1_000
    assert counts["compared, also without its schema"] > 150


@pytest.mark.slow("300 random records; test_debezium.py has one of each kind")
def test_headers_become_the_fields_that_debezium_makes_of_them(connect: Connect) -> None:
    counts = compare_headers(3, 300, connect)
    print(counts)
    assert counts["compared"] > 150
