"""Two derivations of one format: whatever the pipeline stages of any values, verifying finds nothing that differs.

And the other way round: with any one record taken out of Kafka or put twice into it, it does.
"""

import json
from itertools import permutations
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.index.store import Store
from s3lake.lake.form import form_of
from s3lake.land import binding
from s3lake.land.task.outcomes import with_seen
from s3lake.records.schema.columns.types import Columns, to_document
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.oracles import DECIMAL, LEAVES
from s3lake_tests.lake.verify.sinks import sinks
from s3lake_tests.lake.verify.world import HOUR, IN_TIME, TOPIC, VerifiedTopic
from s3lake_tests.land.task.settled import settled

numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=8)
scalars = st.none() | st.booleans() | numbers | text
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)
objects = st.dictionaries(st.sampled_from(["a", "b", "c", "é"]), documents, max_size=4)


def to_json(value: Any, indent: int | None, ascii: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=ascii).encode()


values = st.builds(to_json, objects, st.none() | st.just(1), st.booleans())
packed = st.sampled_from([b"\0", b"\1", b"\0\1", b"\0\0\0\1", b"?\xf0" + bytes(6), b"\x7f\xc0\0\0", b"\xff" * 8])
strange = st.sampled_from([b' {"a": 1}\n', b'\t"a" ', b'{"a": 1e400}', b'{"a": [1, "b"]}'])
anything = (
    st.none()
    | st.binary(max_size=12)
    | packed
    | strange
    | values
    | st.builds(to_json, documents, st.none(), st.booleans())
)
connect = st.builds(
    lambda payload, optional: json.dumps(
        {
            "schema": {
                "type": "struct",
                "fields": [
                    {"type": "int64", "field": "a", "optional": optional},
                    {"type": "string", "field": "b", "optional": True, "default": "none"},
                    {"type": "array", "field": "c", "optional": True, "items": {"type": "double"}},
                ],
            },
            "payload": payload,
        }
    ).encode(),
    st.fixed_dictionaries(
        {"a": st.integers(-9, 9)},
        optional={"b": st.none() | text, "c": st.lists(st.floats(-9, 9), max_size=2)},
    ),
    st.booleans(),
)
_MISFITS = st.sampled_from([None, "x", True, 0.5, [], {}, 2**70])
_TYPED = [
    *LEAVES,
    ({"type": "float"}, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ({"type": "double", "default": 0.5}, st.floats(allow_nan=False, allow_infinity=False)),
    (DECIMAL, st.sampled_from(["BNI=", "/w==", "AA==", 12.34, -7])),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, st.just([[5, 1], [7, 2]])),
    ({"type": "array", "items": {"type": "string", "optional": True}}, st.lists(st.none() | text, max_size=2)),
]


@st.composite
def _typed(draw: st.DrawFn) -> bytes:
    """A value of Connect's whose fields are of any type, and now and then no such values."""
    fields, payload = [], {}
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)):
        schema, values = draw(st.sampled_from(_TYPED))
        fields.append({**schema, "field": name, "optional": draw(st.booleans())})
        payload[name] = draw(_MISFITS if draw(st.integers(0, 9)) == 0 else values)
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


keys = st.none() | st.binary(max_size=3) | packed | text.map(str.encode) | st.sampled_from([b'{"k":1}', b"1", b"null"])
header = st.tuples(st.sampled_from(["a", "b-c", "\u00e9"]), st.none() | st.binary(max_size=3))
headers = st.lists(header, max_size=3)
Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
records = st.tuples(keys, anything | connect | _typed(), headers)
CLOCK_MS = 1_795_150_812_345


def staged(world: VerifiedTopic, records: list[Record], held_to: Columns | None = None) -> None:
    """Land records with the writer's own code, in one commit; `held_to` are columns of commits before it."""
    for key, value, headers in records:
        world.record(value, key, headers)
    given = [value for _, value, _ in records]
    listed = [[{"key": name, "value": one} for name, one in headers] or None for _, _, headers in records]

    def stores(_: str) -> Store:
        return world.store

    batch = pa.record_batch(
        {
            "partition": pa.array([0] * len(given), pa.int32()),
            "offset": pa.array(range(len(given)), pa.int64()),
            "timestamp": pa.array([IN_TIME * 1000] * len(given), pa.timestamp("us", "UTC")),
            "value": pa.array(given, pa.binary()),
            "key": pa.array([key for key, _, _ in records], pa.binary()),
            "headers": pa.array(listed, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )
    work = binding.build_work(world.sink, TOPIC, stores, HOUR, commit="c1", wallclock_ms=CLOCK_MS)
    work = work.with_contract(held_to or {}).with_columns(held_to or {})
    outcome, work = settled(work, batch)
    for file in outcome.files:
        world.store.complete_upload(file.key, file.upload, file.parts)
    done = msgspec.structs.replace(outcome.reads[0], start=0, end=len(given))
    world.commit("c1", outcome.files, {0: done})
    landed = world.sink.after_transforms
    world.change(
        "c1",
        clocks=((0, len(given), CLOCK_MS),) if landed.transforms else (),
        form=form_of(landed),
        nulls=landed.nulls,
        columns=None if work.file_columns is None else to_document(with_seen(work.file_columns, [outcome])),
    )


@settings(max_examples=100 * EXAMPLES)
@given(sink=sinks(), given=st.lists(records, min_size=1, max_size=8), touched=st.integers(0, 7))
def test_writer_and_verifier_agree_whatever_is_configured(
    sink: dict[str, Any], given: list[Record], touched: int
) -> None:
    agree(VerifiedTopic(**sink), given, touched)


def agree(world: VerifiedTopic, given: list[Record], touched: int) -> None:
    """Whether verifying finds nothing where nothing is wrong, and a record that is missing or there twice."""
    staged(world, given)
    report = world.verify()
    assert report.clean, (report.differences, report.checked)
    assert report.kafka_records == report.landed + report.dead_letters + report.skipped == len(given)
    if report.counted_reasons:  # files overlap, and nothing separates their rows
        return

    log = world.log.records[0]
    offset = touched % len(given)
    saved = log.pop(offset)
    assert not world.verify().clean
    log[offset] = log[len(given)] = saved
    world.log.more[0, len(given)] = world.log.more[0, offset]
    world.log.end[0] = len(given) + 1
    world.change("c1", partitions={0: msgspec.structs.replace(world.manifests["c1"].partitions[0], end=len(given) + 1)})
    world.span(0, len(given) + 1, None)
    assert not world.verify().clean


def connect_value(**payload: str) -> bytes:
    fields = [{"type": "string", "field": name} for name in payload]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


@pytest.mark.parametrize("second", [{"b": "2", "a": "1"}, {"a": "1", "c": "3"}, {"a": "1"}], ids=" ".join)
@pytest.mark.parametrize("touched", [0, 1])
def test_records_of_two_schemas_in_csv_without_header_lines_are_compared(second: dict[str, str], touched: int) -> None:
    world = VerifiedTopic(format={"type": "csv", "header": False}, converter={"value": "connect_json"})
    agree(world, [(None, connect_value(a="x", b="y"), []), (None, connect_value(**second), [])], touched)


@pytest.mark.parametrize("value_type", ["boolean", "double"])
def test_a_record_whose_schema_has_another_type_than_a_declared_column_is_refused_in_csv(value_type: str) -> None:
    world = VerifiedTopic(
        format={"type": "csv"},
        converter={"value": "connect_json"},
        columns={"a": "int32"},
        nulls="write",
        errors={"tolerance": "all"},
    )
    schema = {"type": "struct", "fields": [{"type": value_type, "field": "a"}]}
    value = json.dumps({"schema": schema, "payload": {"a": False if value_type == "boolean" else 0.5}}).encode()
    agree(world, [(None, None, []), (None, value, [])], 0)
    assert world.verify().checked[0].dead_letters == 1


_SCALARS = {"int64": 2**53 + 1, "double": 0.5, "boolean": True, "string": "1", "bytes": "AQ=="}


@pytest.mark.parametrize("shape", ["field", "value"])
@pytest.mark.parametrize(("first", "second"), list(permutations(_SCALARS, 2)))
def test_schemas_that_contradict_each_other_for_the_first_time_in_one_commit_share_no_csv(
    shape: str, first: str, second: str
) -> None:
    world = VerifiedTopic(format={"type": "csv"}, converter={"value": "connect_json"}, errors={"tolerance": "all"})
    values = []
    for scalar in (first, second):
        schema: dict[str, Any] = {"type": scalar}
        payload: Any = _SCALARS[scalar]
        if shape == "field":
            schema, payload = {"type": "struct", "fields": [{**schema, "field": "a"}]}, {"a": payload}
        values.append(json.dumps({"schema": schema, "payload": payload}).encode())
    agree(world, [(None, value, []) for value in values], 0)
    assert world.verify().checked[0].dead_letters == 1


@pytest.mark.parametrize("form", ["avro", "parquet", "json"])
@pytest.mark.parametrize("converter", ["json", "connect_json"])
def test_blanks_around_a_key_are_in_a_sidecar_or_between_its_lines(form: str, converter: str) -> None:
    world = VerifiedTopic(
        format={"type": "avro"}, converter={"key": converter, "value": "bytes"}, sidecars={"keys": form}
    )
    agree(world, [(key, b"x", []) for key in (b' {"a":1}', b'"b"\n', b"\t[1] ")], 0)
