"""The last objects in the bucket."""

import io
import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from s3lake.land.adopt import objects
from s3lake.land.adopt.counts import records
from s3lake.land.adopt.names import LensesNames, TemplateNames
from s3lake.layout import template
from s3lake.sink import Padding, Time
from s3lake_tests.land.adopt.buckets import BY_FIELD, CONFLUENT, bucket, lines, named, ours

PLAIN, FIELDS = named("topics/", CONFLUENT), named("topics/", BY_FIELD)


def said(store, naming, topic="t", more=()):
    return {
        partition: (one.next, one.low, one.high)
        for partition, one in objects.claims(store, naming, topic, more).items()
    }


def note(store, naming):
    return objects.claims(store, naming, "t")[0].note


# Lenses: the last record's offset


def test_the_last_name_of_each_partition_tells():
    store = bucket(["p/t/0/000000000049_1_5.json", "p/t/0/000000000099_6_9.json", "p/t/1/000000000007_1_2.gz"])
    assert said(store, LensesNames("p/")) == {0: (100, 100, 100), 1: (8, 8, 8)}


def test_names_of_versions_without_timestamps_tell_too():
    assert said(bucket(["t/0/000000000049.json", "t/0/000000000099_6_9.json"]), LensesNames()) == {0: (100, 100, 100)}


def test_numbers_are_compared_not_texts():
    assert said(bucket(["t/0/9_1_1.json", "t/0/10_1_1.json"]), LensesNames()) == {0: (11, 11, 11)}


def test_names_with_partition_values_only_tell_how_far_it_came():
    store = bucket(["p/name=a/t(0_000000000099).json", "p/name=b/t(0_000000000120).json"])
    assert said(store, LensesNames("p/", True)) == {0: (121, 0, 121)}
    assert "not whether every partition value came as far" in note(store, LensesNames("p/", True))


def test_without_partition_values_there_is_one_run_of_files():
    assert said(bucket(["p//t(0_000000000099).json"]), named("p/", "{topic}({partition}_{offset:012})", last=True)) == {
        0: (100, 100, 100)
    }


def test_objects_that_are_still_to_be_copied_count():
    store = bucket(["t/0/000000000049_1_5.json"])
    assert said(store, LensesNames(), more=["t/0/000000000059_1_5.json"]) == {0: (60, 60, 60)}


def test_other_topics_and_other_objects_say_nothing():
    assert said(bucket(["t/0/readme.md", "u/0/000000000049_1_5.json"]), LensesNames()) == {}


# s3lake: the first record's offset


def test_objects_of_s3lake_are_known_by_their_metadata():
    store = bucket()
    ours(store, "t/0/000000000100.json", 20)
    assert said(store, LensesNames()) == {0: (120, 120, 120)}


def test_with_connector_names_s3lake_names_the_last_record_too():
    store = bucket()
    ours(store, "t/0/000000000100_1_2.json", 20)
    ours(store, "q/name=a/t(0_000000000100).json", 20)
    assert said(store, LensesNames(observed=True)) == {0: (101, 101, 101)}
    assert said(store, LensesNames("q/", True, observed=True)) == {0: (101, 0, 101)}


# Confluent: the first record's offset


def test_the_records_of_the_last_file_are_counted():
    store = bucket({"topics/t/partition=0/t+0+0000000000.json": 100, "topics/t/partition=0/t+0+0000000100.json.gz": 30})
    assert said(store, PLAIN) == {0: (130, 130, 130)}


def test_a_hole_between_the_last_files_makes_the_count_the_least():
    store = bucket({"topics/t/partition=0/t+0+0000000000.json": 99, "topics/t/partition=0/t+0+0000000100.json": 30})
    assert said(store, PLAIN) == {0: (130, 130, None)}
    assert "has fewer or more records than lead to 100" in note(store, PLAIN)


def test_directories_by_field_make_the_count_the_least():
    store = bucket({"topics/t/type=a/t+0+0000000100.json": 30, "topics/t/type=b/t+0+0000000090.json": 70})
    assert said(store, FIELDS) == {0: (130, 130, None)}


def test_tombstones_of_their_own_make_the_count_the_least():
    store = bucket({"topics/t/partition=0/t+0+0000000000.json": 9, "topics/t/tombstone/t+0+0000000009.keys.json": 1})
    assert said(store, named("topics/", CONFLUENT, alone=False)) == {0: (9, 9, None)}


def test_sidecars_are_not_counted_beside_their_data():
    directory = "topics/t/partition=0/t+0+0000000000"
    store = bucket({f"{directory}.headers.json": 9, f"{directory}.json": 10, f"{directory}.keys.json": 8})
    assert said(store, PLAIN) == {0: (10, 10, 10)}


def test_a_format_that_does_not_tell_only_bounds_the_offset():
    store = bucket({"topics/t/partition=0/t+0+0000000100.bin": b"\x00\x01"})
    assert said(store, PLAIN) == {0: (None, 101, None)}
    assert note(store, PLAIN) == (
        "names hold the first offset, and topics/t/partition=0/t+0+0000000100.bin does not tell how many records "
        "follow it"
    )


def test_an_object_too_large_to_read_only_bounds_the_offset(monkeypatch):
    monkeypatch.setattr(objects, "_LARGEST", 5)
    store = bucket({"topics/t/partition=0/t+0+0000000100.json": 30})
    assert said(store, PLAIN) == {0: (None, 101, None)}


# Aiven: the first offset of a flush


def test_files_of_one_flush_count_together():
    pieces = template.parse_template("{topic}/{time:HH}/{partition}-{offset}.gz", Time(source="wallclock"), Padding())
    naming = TemplateNames("", pieces, lines=True)
    store = bucket({"t/01/0-100.gz": 20, "t/02/0-100.gz": 5, "t/01/0-90.gz": 10})
    assert said(store, naming) == {0: (125, 125, 125)}


def test_names_without_offset_say_nothing():
    assert said(bucket({"a-key": 1}), named("", "{key}")) == {}


# Records in an object


def parquet(count):
    out = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(count))}), out)
    return out.getvalue()


def avro(count):
    out = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    fastavro.writer(out, schema, [{"a": one} for one in range(count)], codec="deflate", sync_interval=10)
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "key", "count"),
    [
        (parquet(7), "a.snappy.parquet", 7),
        (avro(300), "a.avro", 300),
        (lines(3), "a.json", 3),
        (lines(3)[:-1], "a.json", 3),
        (b"", "a.json", 0),
        (zstandard.ZstdCompressor().compress(lines(4)), "a.json.zst", 4),
        (b"[\n" + b",\n".join([b"{}"] * 5) + b"\n]", "a.json", 5),
        (b"[\n\n]", "a.json", 0),
        (lines(3), "a.csv", None),
        (lines(3), "a", None),
        (b"PAR1 broken", "a.parquet", None),
        (b"Obj\x01 broken", "a.avro", None),
        (b"\x1f\x8b broken", "a.json.gz", None),
        (b"\x28\xb5\x2f\xfd broken", "a.json.zst", None),
        (b"[\n broken ]", "a.json", None),
    ],
)
def test_records_in_an_object(body, key, count):
    assert records(body, key, lines=False) == count


def test_lines_without_an_extension_are_counted_where_the_connector_writes_lines():
    assert records(b"a,b\nc,d", "logs-0-0", lines=True) == 2
    assert records(json.dumps({"a": 1}).encode(), "logs-0-0", lines=True) == 1
