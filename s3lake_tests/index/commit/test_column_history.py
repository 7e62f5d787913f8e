"""How columns came to be, read from the index."""

from typing import Any

import pytest

from s3lake.index.commit.column_history import ColumnStep, list_column_steps, read_present_columns
from s3lake.index.commit.documents import Changed, Manifest, Read, Recorded, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.records.schema.columns.changes import Change
from s3lake.records.schema.columns.types import from_document

FIVE, SIX = "2026-11-20T05", "2026-11-20T06"
ID, NOTE = Change("id", None, "int64"), Change("note", None, "string")


def land(index: TopicIndex, hour: str, **columns_by_commit: dict[str, Any] | None) -> None:
    """An hour whose commits have these columns."""
    for commit, columns in columns_by_commit.items():
        index.record(Manifest(commit, "orders", hour, {0: Read(0, 5)}, columns=columns))
    index.create(index.tile_key(hour), Tile(hour, {0: TileRange(0, 5, 5)}, commits=tuple(columns_by_commit)))


def record(index: TopicIndex, *history: Changed) -> None:
    index.create(index.columns_key, Recorded({"id": "int64", "note": "string"}, history=history))


def test_present_columns_are_those_that_the_index_records(index: TopicIndex):
    record(index)

    assert read_present_columns(index) == from_document({"id": "int64", "note": "string"})


def test_columns_of_the_newest_commit_are_present_when_none_are_recorded(index: TopicIndex):
    index.create(index.head_key, TopicHead(hours=((FIVE, SIX),)))
    land(index, FIVE, c1={"id": "int32"})
    land(index, SIX, c2={"id": "int32"}, c3={"id": "int64"})

    assert read_present_columns(index) == from_document({"id": "int64"})


def test_no_columns_are_present_when_the_newest_commit_has_none(index: TopicIndex):
    index.create(index.head_key, TopicHead(hours=((FIVE, FIVE),)))
    land(index, FIVE, c1=None)

    assert read_present_columns(index) == {}


def test_a_topic_without_anything_has_no_columns_and_no_steps(index: TopicIndex):
    assert read_present_columns(index) == {}
    assert list(list_column_steps(index)) == []


def test_a_change_seen_by_an_attempt_that_came_to_nothing_is_of_the_first_commit_that_has_it(index: TopicIndex):
    land(index, FIVE, c1={"id": "int64"}, c2={"id": "int64", "note": "string"}, c3={"id": "int64", "note": "string"})
    record(index, Changed(FIVE, "deleted", (ID, NOTE)))

    assert [step.commit for step in list_column_steps(index)] == ["c2", "c2"]


def test_a_step_has_hour_commit_and_change_and_whether_columns_began_with_it(index: TopicIndex):
    land(index, FIVE, c1={"id": "int64"})
    record(index, Changed(FIVE, "c1", (ID,)), Changed(SIX, "expired", (NOTE,)))

    began, came = ColumnStep(FIVE, "c1", ID, first=True), ColumnStep(SIX, None, NOTE, first=False)
    assert list(list_column_steps(index)) == [began, came]
    assert list(list_column_steps(index, SIX)) == [came]


@pytest.mark.parametrize("columns", [None, {"id": "int64"}])
def test_a_change_that_no_commit_has_is_of_none(columns: dict[str, Any] | None, index: TopicIndex):
    land(index, FIVE, c1=columns)
    record(index, Changed(FIVE, "deleted", (NOTE,)))

    assert [step.commit for step in list_column_steps(index)] == [None]


def test_the_commit_of_a_change_is_unknown_when_its_manifest_is_deleted(index: TopicIndex):
    land(index, FIVE, c1={"id": "int64"})
    index.store.delete(index.manifest_key(FIVE, "c1"))
    record(index, Changed(FIVE, "deleted", (NOTE,)))

    assert [step.commit for step in list_column_steps(index)] == [None]
