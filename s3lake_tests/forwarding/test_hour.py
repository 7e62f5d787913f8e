"""Landed hours as rows of JSON: every stage is the real one, without a server; and where others take them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from s3lake.errors import ConfigurationError, DataLossError, FencedError
from s3lake.forwarding.destination import open_destination
from s3lake.forwarding.hour import Row, forward_hour
from s3lake.land.landing import Landing
from s3lake_tests.forwarding.landed import VALUES, Land, hour_of
from s3lake_tests.lake import START, at
from s3lake_tests.plugins import installed


def rows(lander: Landing) -> list[Row]:
    return [row for batch in hour_of(lander).batches() for row in batch]


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
)
def test_a_row_is_what_its_object_holds_of_the_record_and_has_an_offset_where_the_envelope_says_it(
    land: Land, settings: str, documents: list[Any], offsets: list[int | None]
) -> None:
    given = rows(land(settings=settings))
    assert [json.loads(row.document) for row in given] == documents
    assert [row.offset for row in given] == offsets
    assert [(row.partition, row.number) for row in given] == [(0, 0), (0, 1)]


def test_a_field_that_is_called_offset_is_no_offset(land: Land) -> None:
    landed = land('{"offset": 7, "metadata": 1}', settings="format: {type: parquet}")
    assert [row.offset for row in rows(landed)] == [None]


def test_the_rows_of_an_hour_that_is_rewritten_meanwhile_are_none(land: Land) -> None:
    lander = land(settings="format: {type: json}")
    hour = hour_of(lander)
    batches = hour.batches()
    assert next(batches)
    lander.rewrite(START)
    with pytest.raises(FencedError, match="rewritten while it was forwarded"):
        list(batches)
    with pytest.raises(FencedError, match="rewritten while it was forwarded"):
        list(hour.batches())


def test_an_object_that_is_gone_is_told(land: Land) -> None:
    lander = land(settings="format: {type: json}")
    [row, _] = rows(lander)
    lander.store.delete(row.file)
    with pytest.raises(DataLossError, match="is gone"):
        rows(lander)


def test_where_nothing_tells_records_apart_none_are_made_up(land: Land) -> None:
    lander = land(settings="format: {type: bytes, framing: {between: '|'}}, converter: {value: bytes}")
    with pytest.raises(ConfigurationError, match="does not mark where a record ends"):
        rows(lander)


def test_standard_output_gets_a_line_for_each_row(land: Land, capsys: pytest.CaptureFixture[str]) -> None:
    lander = land(settings="format: {type: json}, envelope: {style: flat, fields: [offset, value]}")
    assert forward_hour(hour_of(lander), open_destination("stdout", {})).outcome == "written"
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
        with installed(tmp_path / "theirs", "hour_files", "[s3lake.forwards]\nfiles = hour_files:HourFiles\n"):
            yield

    def test_gets_each_hour_once_and_a_rewritten_one_in_its_place(self, land: Land, tmp_path: Path) -> None:
        lander, files = land(settings="format: {type: json}"), tmp_path / "files"
        destination = open_destination("files", {"directory": str(files)})
        assert forward_hour(hour_of(lander), destination).outcome == "written"
        assert forward_hour(hour_of(lander), destination).outcome == "there already"
        lander.rewrite(START)
        assert forward_hour(hour_of(lander), destination).outcome == "replaced"
        [path] = [path for path in files.rglob("*") if path.is_file()]
        head, *lines = path.read_text().splitlines()
        assert path.relative_to(files).as_posix() == f"lake/events/clicks/{START}.jsonl"
        assert json.loads(head)["content"] == hour_of(lander).content
        assert [json.loads(line) for line in lines] == BARE

    def test_that_nobody_brings_is_refused_with_those_that_there_are(self) -> None:
        with pytest.raises(ConfigurationError, match=r"to: no installed package brings 'kafka'; there are .*files"):
            open_destination("kafka", {})

    def test_that_does_not_know_an_option_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match=r"options of files: .*'folder'"):
            open_destination("files", {"folder": "x"})
