"""A converter is a line that describes it, and a function that reads: everything else asks it."""

import datetime
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from s3lake.config.model import Sink
from s3lake.land.preview import preview
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.records.convert.read import keys_and_values
from s3lake.records.convert.read.converters import CONVERTERS, ConverterRequest, ConverterSpec
from s3lake.records.convert.read.value_checks import Refusals

STAMP = int(datetime.datetime(2026, 11, 20, tzinfo=datetime.timezone.utc).timestamp() * 1000)


def read(raw: pa.BinaryArray, _wanted: ConverterRequest) -> tuple[keys_and_values.Column, Refusals]:
    """`a=1;b=x` as a JSON object of texts."""
    pairs = [None if value is None else [part.split(b"=") for part in value.split(b";")] for value in raw.to_pylist()]
    refused = {row: "a pair has no '='" for row, found in enumerate(pairs) if any(len(one) < 2 for one in found or ())}
    texts = [
        None if found is None or row in refused else b"{%s}" % b",".join(b'"%s":"%s"' % tuple(one) for one in found)
        for row, found in enumerate(pairs)
    ]
    return keys_and_values.Column("pairs", pa.array(texts, pa.binary())), refused


@pytest.fixture(autouse=True)
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONVERTERS, "pairs", ConverterSpec("pairs", "json", read, wrapped=True))


def sink(**changes: Any) -> Sink:
    fixed = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", "converter": {"value": "pairs"}}
    return Sink(**{**fixed, **changes})


def landed(sink: Sink, *values: bytes) -> dict[str, bytes]:
    records = [KafkaRecord("t", 0, offset, STAMP, b"k", value, ()) for offset, value in enumerate(values)]
    return {made.file.key: made.body for made in preview(sink, "t", records, STAMP).objects}


def test_its_values_are_rows_of_a_table() -> None:
    (body,) = landed(sink(format={"type": "parquet"}), b"a=1;b=x", b"a=2").values()
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"a": "1", "b": "x"}, {"a": "2", "b": None}]


def test_its_values_are_lines_of_json() -> None:
    (body,) = landed(sink(), b"a=1;b=x").values()
    assert body == b'{"a":"1","b":"x"}\n'


def test_a_layout_finds_their_fields() -> None:
    made = landed(sink(layout={"partition_by": ["a"]}), b"a=1", b"a=2")
    assert list(made) == ["t/a=1/t(0_000000000000).json", "t/a=2/t(0_000000000001).json"]


def test_the_model_lists_all_converters() -> None:
    with pytest.raises(ValidationError, match="'boolean' or 'pairs'"):
        sink(converter={"value": "pears"})
