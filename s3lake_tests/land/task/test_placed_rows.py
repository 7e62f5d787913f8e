"""Layout: which output partition each converted row is in."""

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from s3lake.config.model import Sink
from s3lake.land.request import stage_values
from s3lake.land.task.placed_rows import ConvertedRows, PlacedRows, lay_out, split_tombstones
from s3lake.records.convert.rows.parts_by_schema import Part
from s3lake.records.layout.object_keys import KeyLayout

NINE = int(datetime(2026, 11, 20, 9, tzinfo=timezone.utc).timestamp()) * 1000
HOUR_MS = 3_600_000
BY_HOUR = {"layout": {"template": "{topic}/{time:yyyy-MM-dd-HH}/{partition}-{offset}"}}
BY_FIELD = {
    "layout": {
        "template": "{topic}/{time:yyyy-MM-dd-HH}/{partition}-{offset}",
        "time": {"source": "field", "field": "at"},
    }
}


def make_layout(**changes: Any) -> KeyLayout:
    fixed = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00"}
    return stage_values.build_key_layout(Sink.model_validate({**fixed, **changes}), "t")


def make_batch(*records: tuple[int, bytes | None]) -> pa.RecordBatch:
    """Make records of these timestamps in milliseconds and values."""
    stamps, values = zip(*records, strict=True)
    return pa.record_batch(
        {
            "offset": pa.array(range(len(records)), pa.int64()),
            "timestamp": pa.array([stamp * 1000 for stamp in stamps], pa.timestamp("us", "UTC")),
            "value": pa.array(values, pa.binary()),
        }
    )


def make_part(batch: pa.RecordBatch) -> Part:
    """Convert all records to lines, as they are."""
    values = batch.column("value")
    return Part(None, {"data": values}, values=values)


def place(keys: KeyLayout, batch: pa.RecordBatch, part: Part, *, by_span: bool = False) -> PlacedRows:
    (rows,) = split_tombstones(keys, 0, batch, batch, part)
    return lay_out(keys, 0, rows, by_span=by_span)


def test_rows_of_a_layout_without_parts_of_records_have_one_group() -> None:
    batch = make_batch((NINE, b"a"), (NINE + HOUR_MS, b"b"))
    placed = place(make_layout(layout={"template": "{topic}/{partition}-{offset}"}), batch, make_part(batch))
    assert isinstance(placed.groups, str)
    assert placed.rows.offsets.to_pylist() == [0, 1]


def test_rows_of_a_layout_by_time_have_a_group_each() -> None:
    batch = make_batch((NINE, b"a"), (NINE + HOUR_MS, b"b"), (NINE, b"c"))
    placed = place(make_layout(**BY_HOUR), batch, make_part(batch))
    first, second, third = placed.groups
    assert first == third != second
    assert ("2026-11-20-09" in first, "2026-11-20-10" in second) == (True, True)


def test_rows_without_a_place_are_refused_and_the_others_placed() -> None:
    batch = make_batch((NINE, b'{"at":1}'), (NINE, b"{}"), (NINE, b'{"at":2}'))
    placed = place(make_layout(**BY_FIELD), batch, make_part(batch))
    assert placed.refused.keys() == {1}
    assert placed.rows.offsets.to_pylist() == [0, 2]
    assert len(placed.groups) == 2


@pytest.mark.parametrize(("by_span", "clock"), [(True, [1, 2]), (False, None)])
def test_files_with_a_span_count_the_time_of_the_field(by_span: bool, clock: list[int] | None) -> None:
    batch = make_batch((NINE, b'{"at":1}'), (NINE, b'{"at":2}'))
    rows = place(make_layout(**BY_FIELD), batch, make_part(batch), by_span=by_span).rows
    assert (None if rows.clock is None else rows.clock.to_pylist()) == clock


def test_rows_of_a_fixed_group_carry_only_offsets_and_timestamps() -> None:
    batch = make_batch((NINE, b"a"))
    keys = make_layout(layout={"template": "{topic}/{partition}-{offset}"})
    (rows,) = split_tombstones(keys, 0, batch, batch, make_part(batch))
    assert rows.records.schema.names == ["offset", "timestamp"]


def test_rows_with_a_true_mask_stay_in_every_column() -> None:
    batch = make_batch((NINE, b"a"), (NINE, b"b"))
    rows = ConvertedRows(
        batch,
        batch,
        {"data": batch.column("value")},
        batch.column("value"),
        names=pa.array(["x", "y"]),
        keys=pa.array([b"k", b"l"]),
        times=pa.array(["1", "2"]),
    )
    second = rows.filter(pa.array([False, True]))
    assert second.records == second.original == batch.slice(1)
    assert [second.streams["data"], second.values] == [batch.column("value").slice(1)] * 2
    columns = (second.names, second.keys, second.times)
    assert [column and column.to_pylist() for column in columns] == [["y"], [b"l"], ["2"]]


def test_tombstones_have_sidecars_only_and_a_group_of_their_own() -> None:
    layout = {"template": "{topic}/{partition}-{offset}", "tombstones": "tombstones/{partition}-{offset}"}
    keys = make_layout(layout=layout, nulls="write", sidecars={"keys": "json"})
    batch = make_batch((NINE, b"a"), (NINE, None), (NINE, b"c"))
    part = Part(None, {"data": batch.column("value"), "keys": batch.column("value")}, values=batch.column("value"))
    tombstones, rows = split_tombstones(keys, 0, batch, batch, part)
    assert (tombstones.are_tombstones, rows.are_tombstones) == (True, False)
    assert (set(tombstones.streams), set(rows.streams)) == ({"keys"}, {"data", "keys"})
    tombstones, kept = (lay_out(keys, 0, some, by_span=False) for some in (tombstones, rows))
    assert (tombstones.rows.offsets.to_pylist(), kept.rows.offsets.to_pylist()) == ([1], [0, 2])
    assert tombstones.groups != kept.groups
    assert len(tombstones.groups) == 1
