"""Records without a schema and records with their own in one commit, of a table's columns."""

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.land.preview import Preview, preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.land.task import pipeline
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.kit.sinks import make_sink

NOW_MS, HOUR_MS = 1_795_000_000_000, 3_600_000


def with_schema(schema: dict[str, Any], payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def of_a(schema: dict[str, Any], payload: Any) -> bytes:
    """A record whose schema defines what the field a is."""
    return with_schema({"type": "struct", "fields": [{"field": "a", **schema}]}, {"a": payload})


A_NUMBER = of_a({"type": "int64"}, 1)


def landed(
    *parts: list[bytes | None], before: Sequence[bytes] = (), format: str = "parquet", **changes: Any
) -> Preview:
    """Each of `parts` is a topic-partition, and so a task; the first one has `before` in the hour before."""
    records = [
        KafkaRecord("orders", partition, offset, NOW_MS - (HOUR_MS if offset < early else 0), None, value, ())
        for partition, values in enumerate(parts)
        for early in [0 if partition else len(before)]
        for offset, value in enumerate([*before[:early], *values])
    ]
    fields = {"converter": {"value": "connect_json"}, "nulls": "write", "errors": {"tolerance": "all"}, **changes}
    return preview(make_sink(format={"type": format}, **fields), "orders", records)


def rows(of: Preview) -> list[list[dict[str, Any]]]:
    data = [one.body for one in of.objects if one.file.stream == "data"]
    return [pq.read_table(io.BytesIO(body)).to_pylist() for body in data]


def all_rows(of: Preview) -> list[dict[str, Any]]:
    found: list[Any] = []
    for body in (one.body for one in of.objects if one.file.stream == "data"):
        file = io.BytesIO(body)
        found += fastavro.reader(file) if body.startswith(b"Obj") else pq.read_table(file).to_pylist()
    return found


def refused(of: Preview) -> list[tuple[int, int]]:
    return [(one.partition, one.offset) for one in of.refusals]


@pytest.mark.parametrize(
    ("format", "hollow"),
    [
        ("parquet", b"[]"),
        ("parquet", b"{}"),
        ("parquet", b"[null]"),
        ("parquet", b"[[]]"),
        ("parquet", b'{"x":null}'),
        ("avro", b"[]"),
    ],
)
def test_an_empty_list_or_object_is_null_when_the_schema_of_another_record_has_a_number(
    format: str, hollow: bytes
) -> None:
    plain = b'{"a":%b,"b":"y"}' % hollow
    of = landed([plain, A_NUMBER, plain], format=format)
    assert refused(of) == []
    assert all_rows(of) == [{"a": None, "b": "y"}] * 2 + [{"a": 1}]


def test_an_empty_list_is_null_whichever_task_read_the_schema() -> None:
    of = landed([b'{"a":[],"b":"y"}'], [A_NUMBER], before=[b'{"b":"x"}'])  # so that no task reads twice because of b
    assert refused(of) == []
    assert all_rows(of) == [{"b": "x"}, {"b": "y", "a": None}, {"a": 1}]


@pytest.mark.parametrize("key", ["json", "connect_json"])
def test_an_empty_list_is_null_inside_of_an_envelope(key: str) -> None:
    plain, more = b'{"a":[],"b":false}', {"envelope": {"style": "record"}}
    of = landed([A_NUMBER, plain], format="avro", converter={"key": key, "value": "connect_json"}, **more)
    assert refused(of) == []
    assert [row["value"] for row in all_rows(of)] == [{"a": 1}, {"a": None, "b": False}]


def test_an_empty_list_lands_as_a_list_when_the_schema_of_another_record_has_a_list() -> None:
    of = landed([b'{"a":[],"b":"y"}', of_a({"type": "array", "items": {"type": "int64"}}, [1])])
    assert (rows(of), refused(of)) == ([[{"b": "y", "a": []}], [{"a": [1]}]], [])


def test_an_object_without_a_schema_lands_next_to_a_number_with_one() -> None:
    of = landed([b'{"a":1}'], [b'{"a":2}', with_schema({"type": "int64"}, 5)])
    assert rows(of) == [[{"a": 1, "value": None}], [{"a": 2, "value": None}], [{"value": 5}]]


def test_records_that_all_bring_a_schema_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def counted(conversion: Conversion, batch: pa.RecordBatch, *args: Any) -> Any:
        reads.append(batch.num_rows)
        return convert_batch(conversion, batch, *args)

    monkeypatch.setattr(pipeline, "convert_batch", counted)
    landed([A_NUMBER, None, of_a({"type": "string"}, "x")], nulls="skip")
    assert reads == [3]


@pytest.mark.parametrize("before", [[], [b'{"b":"x"}']], ids=["no column yet", "after others"])
def test_tasks_whose_schemas_contradict_each_other_share_no_csv(before: list[bytes]) -> None:
    of = landed([A_NUMBER], [of_a({"type": "string"}, "x"), A_NUMBER], before=before, format="csv")
    assert refused(of) == [(1, 0)]
    files = [one.body for one in of.objects if one.file.stream == "data"]
    assert [body for body in files if body.startswith(b"a")] == [b"a\n1\n", b"a\n1\n"]
