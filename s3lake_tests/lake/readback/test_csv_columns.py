"""CSV without header lines: a file's own columns, where its records' schema brought others than its commit has."""

import json
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
import pytest

from s3lake.index.commit.documents import Recorded, collect_files
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.forwarding.complete_hour import CompleteHour
from s3lake.lake.objects import ObjectShape
from s3lake.lake.readback.arrow_dataset import open_dataset
from s3lake.lake.readback.committed import list_committed_files
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.records.schema.columns.types import to_document
from s3lake_tests.kit.connect_messages import connect_texts
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.parts import Parts, holding

RECORDS = [{"a": "1", "b": "2"}, {"b": "4", "a": "3"}, {"a": "5", "c": "6"}, {"a": "7"}, {"d,": "8", "a": "9"}]


@pytest.fixture
def world() -> Parts:
    world = Parts(format={"type": "csv", "header": False}, converter={"value": "connect_json"})
    world.land(*(connect_texts(**one) for one in RECORDS[:3]))
    world.land(*(connect_texts(**one) for one in RECORDS[3:]))
    world.store.put(world.index.columns_key, msgspec.json.encode(Recorded(to_document(world.columns))))
    return world


def rows(world: Parts) -> list[dict[str, Any]]:
    """What an input gets, without what is null."""
    found = open_dataset(world.sink, TOPIC, world.stores, S3Connection(), [HOUR]).to_table().to_pylist()
    found.sort(key=itemgetter("a"))
    return [{name: text for name, text in row.items() if text is not None} for row in found]


def test_an_input_has_each_value_in_its_own_column(world: Parts) -> None:
    assert rows(world) == RECORDS


def test_a_person_is_erased_by_the_column_that_identifies_the_person(world: Parts) -> None:
    erase_hour(holding(world), HOUR, EraseConditions(Condition("a = '3' OR c = '6'"), None))
    assert rows(world) == [RECORDS[0], *RECORDS[3:]]
    assert world.verified().clean


def test_a_forwarded_row_has_each_value_under_its_own_name(world: Parts) -> None:
    forwarded = chain.from_iterable(CompleteHour.from_index(world.sink, TOPIC, HOUR, world.store).batches())
    documents = [json.loads(row.document) for row in forwarded]
    documents.sort(key=itemgetter("a"))
    assert [{name: text for name, text in row.items() if text is not None} for row in documents] == RECORDS


def test_files_have_their_columns_in_order(world: Parts) -> None:
    listed = list_committed_files("lake", holding(world).manifests(HOUR) or [], {})
    assert [one.schema.names for one in listed] == [list(one) for one in RECORDS]


def test_files_of_one_schema_list_no_columns_of_their_own() -> None:
    world = Parts(format={"type": "csv"}, converter={"value": "connect_json"}, flush={"count": 1})
    world.land(*(connect_texts(**one) for one in RECORDS))
    assert {file.columns for file in collect_files(world.manifests.values())} == {None}
    shapes = [(ObjectShape.from_manifest(one), one.files[0]) for one in world.manifests.values()]
    assert [shape.for_file(file) for shape, file in shapes] == [shape for shape, _ in shapes]
