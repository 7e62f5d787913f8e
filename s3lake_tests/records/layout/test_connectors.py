"""Key vectors of the connectors as native templates, as far as `config/test_{confluent,lenses,aiven,iggy}` lack them.

Those tests load the connectors' own files; here are the connectors' observed names, and keys of several files.
"""

import json
from typing import Any

import pytest

from s3lake.records.layout.object_keys import RecordColumns
from s3lake_tests.kit.tables import read_settings, rows
from s3lake_tests.records.layout.files import LaidOutRecord, files, read_records, rule


def keys_of(settings: str, records: list[LaidOutRecord], **layout: Any) -> str:
    """The keys of the records' files, in a row's form; `count` closes a file."""
    changes = read_settings(settings)
    count = changes.pop("count", 1_000_000)
    changes["layout"] = {**layout, **changes.get("layout", {})}
    return ", ".join(files(rule(topics=("t",), **changes), *records, count=count))


# Confluent

FILE = "{topic}#{partition}#{offset:010}"
# C34, 35 and 37. Confluent reads text without an offset in the JVM's zone; here layout.time.timezone is read.
TIMES = """
layout.time.source: record, layout.time.duration: 7200 | timestamp: 1427961600000 => 2015/4/2/0
layout.time.source: field | value: '{"timestamp":1427961600000}' => 2015/4/2/1
layout.time.source: field | value: '{"timestamp":"2015-04-02T01:00:00-07:00"}' => 2015/4/2/1
layout.time.source: field | value: '{"timestamp":"2015-04-02T01:00:00.000-07:00"}' => 2015/4/2/1
layout.time.source: field | value: '{"timestamp":"1427961600000"}' => 2015/4/2/1
layout.time.source: field | value: '{"timestamp":"2015-04-02T01:00:00"}' => 2015/4/2/1
layout.time.source: field, layout.time.field: nested.timestamp | value: '{"nested":{"timestamp":1427961600000}}' =>
    2015/4/2/1
"""


@pytest.mark.parametrize(("given", "directory"), rows(TIMES))
def test_a_directory_has_the_time_of_the_record_or_of_a_field(given: str, directory: str) -> None:
    settings, _, record = given.partition("|")
    clock = "layout.time.timezone: America/Los_Angeles, layout.time.duration: 3600, "
    template = f"{{topic}}/{{time:YYYY/M/d/H}}/{FILE}"
    made = keys_of(f"{clock}format.type: avro, {settings}", read_records(record), template=template)
    assert made == f"t/{directory}/t#0#0000000000.avro"


def test_c5_files_of_each_directory_fill_on_their_own() -> None:
    # Confluent counts over all directories of a topic-partition; here three records of a directory are a file.
    records = [LaidOutRecord(offset, value=b'{"int":%d}' % (16 + offset % 3)) for offset in range(18)]
    expected = [(16, 0), (16, 9), (17, 1), (17, 10), (18, 2), (18, 11)]
    assert keys_of("format.type: avro, count: 3", records, template=f"{{topic}}/int={{field:int}}/{FILE}") == ", ".join(
        f"t/int={number}/t#0#{offset:010}.avro" for number, offset in expected
    )


@pytest.mark.parametrize("text", ["test/with\\special:chars=and+spaces", ""])
def test_a_field_keeps_its_characters(text: str) -> None:
    record = LaidOutRecord(value=json.dumps({"string": text}).encode())
    made = keys_of("format.type: avro", [record], template=f"{{topic}}/string={{field:string}}/{FILE}")
    assert made == f"t/string={text}/t#0#0000000000.avro"


# Lenses: the names that the connector really gives, but 38: each length has its default on its own, and 11: each file
# fills on its own; the connector drags a directory's siblings along.

THREE = "; ".join(f"offset: {n}, timestamp: {n}, partition: 1" for n in range(3))
SIX = "; ".join(
    f"""offset: {n}, partition: 1, value: '{{"name":"{name}","title":"{title}"}}'"""
    for n, (name, title) in enumerate(zip("aaabbb", "xyxyxy", strict=True))
)
NAMES = f"""
| {THREE} => t/1/000000000002_0_2.json
count: 1 | {THREE} => t/1/000000000000_0_0.json, t/1/000000000001_1_1.json, t/1/000000000002_2_2.json
format.codec: gzip | {THREE} => t/1/000000000002_0_2.json.gz
layout.suffix: -x | {THREE} => t/1/000000000002_0_2-x.json
layout.include_keys: true | {THREE} => topic=t/partition=1/000000000002_0_2.json
layout.padding.partition: 3 | {THREE} => t/001/000000000002_0_2.json
| timestamp: -1 => t/0/000000000000_-1_-1.json
layout.partition_by: [name, title], count: 2 | {SIX} =>
    name=a/title=x/t(1_000000000002).json, name=a/title=y/t(1_000000000001).json,
    name=b/title=x/t(1_000000000004).json, name=b/title=y/t(1_000000000005).json
layout.partition_by: [_header.h, _value.name] | headers: {{h: 0}}, value: '{{"name":"a"}}' =>
    h=0/name=a/t(0_000000000000).json
layout.partition_by: [_key.favourites.band, _key.`cost.centre.id`], converter.key: json |
    partition: 1, key: '{{"favourites":{{"band":"the strokes"}},"cost.centre.id":200}}' =>
    favourites.band=the strokes/cost.centre.id=200/t(1_000000000000).json
layout.partition_by: [_key.favourites.band], converter.key: json | key: '{{"favourites":{{}}}}' =>
    favourites.band=[missing]/t(0_000000000000).json
"""


@pytest.mark.parametrize(("given", "expected"), rows(NAMES))
def test_files_have_the_names_of_lenses_connector(given: str, expected: str) -> None:
    settings, _, records = given.partition("|")
    assert keys_of(settings, read_records(records), connector_names=True, template=None) == expected


def test_lenses_names_are_known_when_a_file_is_closed() -> None:
    assert rule(topics=("t",), layout={"connector_names": True}).deferred


# Aiven


def test_a17_a_file_of_a_key_is_replaced_over_all_topic_partitions() -> None:
    layout = {"template": "{key}", "missing": "null", "extension": ""}
    keys = rule(topics=("t",), layout=layout, exactly_once=False)
    assert keys.replaces
    assert files(keys, *[LaidOutRecord(n, key=key) for n, key in enumerate([b"a", b"b", None, b"a"])]) == [
        "a",
        "b",
        "null",
    ]
    one, other = (keys.groups(partition, RecordColumns(keys=[b"a"]), 1) for partition in (0, 1))
    assert one == other


def test_a_file_of_a_key_and_topic_partition_is_replaced_in_it() -> None:
    layout = {"template": "{key}-{topic}-{partition}", "extension": ""}
    keys = rule(topics=("t",), layout=layout, exactly_once=False)
    assert keys.replaces
    records = [LaidOutRecord(0, key=b"a"), LaidOutRecord(1, key=b"a"), LaidOutRecord(5, key=b"a", partition=1)]
    assert files(keys, *records) == ["a-t-0", "a-t-1"]
