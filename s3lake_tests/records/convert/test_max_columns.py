"""How many columns files may have: a record with fields of its own is refused, and costs no more than others."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from s3lake.index.commit.documents import Recorded
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.land.task.outcomes import Grown, unite_recorded
from s3lake.records.convert.read.json import object_columns
from s3lake.records.schema.columns.limits import Limits
from s3lake.records.schema.columns.types import from_document, to_document
from s3lake_tests.kit.cost import cpu_ratio
from s3lake_tests.kit.sinks import make_sink

STAMP = 1_795_290_000_000


def read(
    values: Sequence[Any], most: int, columns: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any], dict[int, str]]:
    texts = pa.array([json.dumps(value).encode() for value in values], pa.binary())
    batch, found, refused, *_ = object_columns.read_objects(
        texts, from_document(columns or {}), limits=Limits(most=most)
    )
    return (batch.num_rows if batch is not None else 0), to_document(found), refused


def test_a_record_with_one_field_too_many_is_refused_with_the_reason() -> None:
    rows, found, refused = read([{"a": 1, "b": 2}, {"a": 1, "c": 3, "d": 4}, {"c": 5}], most=3)
    assert (rows, list(found)) == (2, ["a", "b", "c"])
    assert refused == {
        1: "with its fields the files would have 4 columns, and max_columns allows 3: set a larger max_columns, or use "
        "format json, which has no columns"
    }


def test_fields_within_objects_and_lists_of_objects_count() -> None:
    rows, _, refused = read([{"a": {"b": 1, "c": {"d": 2}}}, {"l": [{"e": 1}]}], most=3)
    assert (rows, refused) == (2, {})
    assert list(read([{"a": {"b": 1, "c": {"d": 2}}}, {"l": [{"e": 1, "f": 2}]}], most=3)[2]) == [1]


def test_records_with_known_fields_are_read_also_where_more_are_known_than_allowed() -> None:
    known = dict.fromkeys("abcd", "int64")
    rows, found, refused = read([{"a": 1, "d": 2}, {"e": 1}], most=2, columns=known)
    assert (rows, found, list(refused)) == (1, known, [1])


def test_fields_that_hold_nothing_are_no_columns() -> None:
    assert read([{"a": 1, "b": None, "c": [], "d": {}}], most=1)[0] == 1


@pytest.mark.long
@pytest.mark.parametrize("format", ["avro", "parquet"])
@pytest.mark.parametrize("envelope", [{}, {"envelope": {"style": "record"}}], ids=["plain", "envelope"])
def test_the_time_for_a_record_grows_with_its_fields_and_not_with_their_square(
    format: str, envelope: dict[str, Any]
) -> None:
    limited = make_sink(format={"type": format}, max_columns=10_000, **envelope)

    def read_record(fields: int) -> None:
        value = json.dumps({f"f{n}": n for n in range(fields)}).encode()
        made = preview(limited, "orders", [KafkaRecord("orders", 0, 0, STAMP, b"k", value, ())], STAMP)
        assert [one.file.records for one in made.objects] == [1]

    read_record(10)
    assert cpu_ratio(lambda: read_record(3_000), lambda: read_record(750), enough=8) <= 8  # the square would be 16


def test_a_record_beyond_the_limit_is_a_dead_letter_in_an_envelope_too() -> None:
    limited = make_sink(format={"type": "parquet"}, envelope={}, max_columns=9, errors={"tolerance": "all"})
    records = [
        KafkaRecord("orders", 0, offset, STAMP, b"k", json.dumps(value).encode(), ())
        for offset, value in enumerate([{"a": 1, "b": 2}, dict.fromkeys("cdefghijkl", 1)])
    ]
    made = preview(limited, "orders", records, STAMP)
    assert {one.file.stream: one.file.records for one in made.objects} == {"data": 1, "dead_letters": 1}


def test_the_columns_of_an_envelope_come_on_top_of_the_values() -> None:
    limited = make_sink(format={"type": "parquet"}, envelope={}, max_columns=9)
    made = preview(
        limited,
        "orders",
        [KafkaRecord("orders", 0, 0, STAMP, b"k", json.dumps(dict.fromkeys("abcdefghi", 1)).encode(), ())],
        STAMP,
    )
    assert [one.file.records for one in made.objects] == [1]


def test_columns_of_all_tasks_together_keep_to_the_limit() -> None:
    one = Grown(0, 0, {"a": "int64", "v": {"struct": {"b": "int64", "c": "string"}}})
    other = Grown(1, 0, {"a": "int64", "v": {"struct": {"d": "int64", "e": "int64"}}, "f": "int64"})
    found = unite_recorded(Recorded({}), [one, other], most=4)
    assert found.columns == one.columns
    again = unite_recorded(found, [Grown(1, 0, {"a": "double", "z": "int64"})], most=4)
    assert again.columns == {**one.columns, "a": "double", "z": "int64"}
    assert unite_recorded(again, [Grown(2, 0, {"y": "int64"})], most=4) is again
