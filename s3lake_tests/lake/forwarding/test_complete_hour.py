"""Landed hours as rows of JSON: every stage is the real one, without a server; and where others take them."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from s3lake.errors import ConfigurationError, DataLossError, FencedError
from s3lake.lake.forwarding.complete_hour import Row, read_batch_rows
from s3lake.lake.forwarding.destination import forward_hour, open_destination
from s3lake.lake.objects import ObjectShape
from s3lake.land.hour.landing import rewrite
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit.lake import START, at
from s3lake_tests.kit.plugins import install_package
from s3lake_tests.lake.forwarding.landed import VALUES, Land, hour_of


def rows(target: TopicSink) -> list[Row]:
    return [row for batch in hour_of(target).batches() for row in batch]


BARE = [{"id": 1, "at": 0.5}, {"id": 2}]
COLUMNS = [{"id": 1, "at": 0.5}, {"id": 2, "at": None}]
METADATA = {"topic": "clicks", "partition": 0, "timestamp": at(START, 10)}


@pytest.mark.parametrize(
    ("settings", "documents", "offsets"),
    [
        ("format: {type: json}", BARE, [None, None]),
        ("format: {type: json_array, codec: zstd}", BARE, [None, None]),
        ("format: {type: parquet}", COLUMNS, [None, None]),
        ("format: {type: avro}", COLUMNS, [None, None]),
        (
            "format: {type: json}, envelope: {style: record, fields: [value, metadata]}",
            [{"value": value, "metadata": {**METADATA, "offset": offset}} for offset, value in enumerate(BARE)],
            [0, 1],
        ),
        (
            "format: {type: parquet}, envelope: {style: record, fields: [value, metadata]}",
            [{"value": value, "metadata": {**METADATA, "offset": offset}} for offset, value in enumerate(COLUMNS)],
            [0, 1],
        ),
        (
            "format: {type: json}, envelope: {style: flat, fields: [offset, value]}",
            [{"offset": offset, "value": value} for offset, value in enumerate(BARE)],
            [0, 1],
        ),
        ("format: {type: text}, converter: {value: string}", [{"value": text} for text in VALUES], [None, None]),
    ],
    ids=["json", "json array", "parquet", "avro", "record in json", "record in parquet", "flat json", "text"],
)
def test_a_row_is_what_its_object_holds_of_the_record_and_has_an_offset_when_the_envelope_does(
    land: Land, settings: str, documents: list[Any], offsets: list[int | None]
) -> None:
    given = rows(land(settings=settings))
    assert [json.loads(row.document) for row in given] == documents
    assert [row.offset for row in given] == offsets
    assert [(row.partition, row.number) for row in given] == [(0, 0), (0, 1)]


def test_a_field_called_offset_is_not_taken_for_the_offset(land: Land) -> None:
    landed = land('{"offset": 7, "metadata": 1}', settings="format: {type: parquet}")
    assert [row.offset for row in rows(landed)] == [None]


def test_the_rows_of_an_hour_that_is_rewritten_meanwhile_are_none(land: Land) -> None:
    target = land(settings="format: {type: json}")
    hour = hour_of(target)
    batches = hour.batches()
    assert next(batches)
    rewrite(target, START)
    with pytest.raises(FencedError, match="rewritten while it was forwarded"):
        list(batches)
    with pytest.raises(FencedError, match="rewritten while it was forwarded"):
        list(hour.batches())


def test_an_hour_of_a_renamed_sink_has_its_former_name(land: Land) -> None:
    assert hour_of(land(settings="format: {type: json}, index: {name: former}")).sink == "former"


def test_a_missing_object_is_an_error(land: Land) -> None:
    target = land(settings="format: {type: json}")
    [row, _] = rows(target)
    target.store.delete(row.file)
    with pytest.raises(DataLossError, match="is missing"):
        rows(target)


def test_an_hour_is_refused_if_its_objects_do_not_separate_records(land: Land) -> None:
    target = land(settings="format: {type: bytes, framing: {between: '|'}}, converter: {value: bytes}")
    with pytest.raises(ConfigurationError, match="does not mark where a record ends"):
        rows(target)


def test_standard_output_gets_a_line_for_each_row(land: Land, capsys: pytest.CaptureFixture[str]) -> None:
    target = land(settings="format: {type: json}, envelope: {style: flat, fields: [offset, value]}")
    assert forward_hour(hour_of(target), open_destination("stdout", {})).outcome == "written"
    [first, second] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first == {
        "topic": "clicks",
        "hour": START,
        "partition": 0,
        "offset": 0,
        "file": first["file"],
        "number": 0,
        "document": {"offset": 0, "value": BARE[0]},
    }
    assert (second["offset"], second["number"]) == (1, 1)


class TestADestinationOfAnotherPackage:
    @pytest.fixture(autouse=True)
    def _package(self, tmp_path: Path) -> Iterator[None]:
        with install_package(tmp_path / "theirs", "hour_files", "[s3lake.forwards]\nfiles = hour_files:HourFiles\n"):
            yield

    def test_gets_each_hour_once_and_a_rewritten_one_in_its_place(self, land: Land, tmp_path: Path) -> None:
        target, files = land(settings="format: {type: json}"), tmp_path / "files"
        destination = open_destination("files", {"directory": str(files)})
        assert forward_hour(hour_of(target), destination).outcome == "written"
        assert forward_hour(hour_of(target), destination).outcome == "there already"
        rewrite(target, START)
        assert forward_hour(hour_of(target), destination).outcome == "replaced"
        [path] = [path for path in files.rglob("*") if path.is_file()]
        head, *lines = path.read_text().splitlines()
        assert path.relative_to(files).as_posix() == f"lake/events/clicks/{START}.jsonl"
        assert json.loads(head)["content"] == hour_of(target).content
        assert [json.loads(line) for line in lines] == BARE

    def test_that_is_not_installed_is_refused_with_the_names_of_all(self) -> None:
        with pytest.raises(ConfigurationError, match=r"to: no installed package brings 'kafka'; there are .*files"):
            open_destination("kafka", {})

    def test_that_does_not_know_an_option_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match=r"options of files: .*'folder'"):
            open_destination("files", {"folder": "x"})


# How values of columns are written in documents


def document(value: Any, type: pa.DataType) -> str:
    batch = pa.record_batch([pa.array([value], type)], names=["it"])
    [row] = read_batch_rows(ObjectShape("parquet"), batch, "file", 0, 0)
    return row.document.decode()


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (2**63 - 1, pa.int64(), "9223372036854775807"),
        (float("nan"), pa.float64(), "null"),
        (Decimal("12345678901234567890.10"), pa.decimal128(38, 2), "12345678901234567890.10"),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        (date(2026, 11, 20), pa.date32(), '"2026-11-20"'),
        (
            datetime(2026, 11, 20, 5, 0, 0, 1500, timezone.utc),
            pa.timestamp("us", "UTC"),
            '"2026-11-20T05:00:00.001500Z"',
        ),
        ([("a", 1), ("b", None)], pa.map_(pa.string(), pa.int32()), '{"a":1,"b":null}'),
        ([{"x": ["y"]}], pa.list_(pa.struct([("x", pa.list_(pa.string()))])), '[{"x":["y"]}]'),
        (None, pa.string(), "null"),
    ],
)
def test_a_value_keeps_all_of_its_digits_and_bytes(value: Any, type: pa.DataType, expected: str) -> None:
    assert document(value, type) == f'{{"it":{expected}}}'


def test_a_moment_after_the_year_9999_is_refused_with_its_rows() -> None:
    moment = pa.array([10**18]).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(ConfigurationError, match="file: rows 40 to 40 have a value that JSON cannot hold"):
        list(read_batch_rows(ObjectShape("parquet"), pa.record_batch([moment], names=["at"]), "file", 0, 40))
