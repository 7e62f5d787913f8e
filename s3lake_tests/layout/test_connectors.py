"""Key vectors of the connectors as native templates, as far as `config/test_{confluent,lenses,aiven,iggy}` lack them.

Those tests load the connectors' own files; here are the connectors' observed names, and keys of several files.
"""

from typing import Any

import pytest

from s3lake.layout.key import RecordColumns
from s3lake_tests.layout.files import Record, files, rule

# Confluent

FILE = "{topic}#{partition}#{offset:010}"
CLOCK = {"timezone": "America/Los_Angeles", "duration": 3600}
APRIL = 1_427_961_600_000


def confluent(template: str, *records: Record, count: int = 1_000_000, **layout: Any) -> list[str]:
    layout = {"template": f"{{topic}}/{template}/{FILE}", "missing": "null", **layout}
    return files(rule(topics=("t",), format={"type": "avro"}, layout=layout), *records, count=count)


def test_c5_files_of_each_directory_fill_on_their_own() -> None:
    # Confluent counts over all directories of a topic-partition; here three records of a directory are a file.
    records = [Record(offset, value=b'{"int":%d}' % (16 + offset % 3)) for offset in range(18)]
    assert confluent("int={field:int}", *records, count=3) == [
        f"t/int={number}/t#0#{offset:010}.avro"
        for number, offset in [(16, 0), (16, 9), (17, 1), (17, 10), (18, 2), (18, 11)]
    ]


@pytest.mark.parametrize(
    ("text", "directory"),
    [("test/with\\\\special:chars=and+spaces", "test/with\\special:chars=and+spaces"), ("", "")],
)
def test_a_field_keeps_its_characters(text: str, directory: str) -> None:
    record = Record(value=f'{{"string":"{text}"}}'.encode())
    assert confluent("string={field:string}", record) == [f"t/string={directory}/t#0#0000000000.avro"]


@pytest.mark.parametrize(
    ("time", "value", "directory"),
    [
        pytest.param({"source": "record", "duration": 7200}, "{}", "2015/4/2/0", id="C34"),
        *[
            pytest.param({"source": "field"}, f'{{"timestamp":{stamp}}}', "2015/4/2/1", id=f"C35 {stamp}")
            for stamp in (APRIL, '"2015-04-02T01:00:00-07:00"', '"2015-04-02T01:00:00.000-07:00"', f'"{APRIL}"')
        ],
        # Confluent reads text without an offset in the JVM's zone; here layout.time.timezone is read.
        pytest.param({"source": "field"}, '{"timestamp":"2015-04-02T01:00:00"}', "2015/4/2/1", id="without an offset"),
        pytest.param(
            {"source": "field", "field": "nested.timestamp"},
            f'{{"nested":{{"timestamp":{APRIL}}}}}',
            "2015/4/2/1",
            id="C37",
        ),
    ],
)
def test_a_time_of_the_record_or_of_a_field(time: dict[str, Any], value: str, directory: str) -> None:
    record = Record(timestamp=APRIL, value=value.encode())
    made = confluent("{time:YYYY/M/d/H}", record, time={**CLOCK, **time})
    assert made == [f"t/{directory}/t#0#0000000000.avro"]


# Lenses: the names that the connector really gives (reference/lenses.md 1.6)

GZIP = {"format": {"codec": "gzip"}}
JSON_KEY = {"converter": {"key": "json"}}
THREE = [Record(offset, offset, b"{}", partition=1) for offset in range(3)]
NESTED_KEY = Record(key=b'{"favourites":{"band":"the strokes"},"cost.centre.id":200}', partition=1)
SIX = [
    Record(offset, value=b'{"name":"%s","title":"%s"}' % pair, partition=1)
    for offset, pair in enumerate([(b"a", b"x"), (b"a", b"y"), (b"a", b"x"), (b"b", b"y"), (b"b", b"x"), (b"b", b"y")])
]


@pytest.mark.parametrize(
    ("layout", "changes", "records", "count", "expected"),
    [
        pytest.param({}, {}, THREE, 9, ["t/1/000000000002_0_2.json"], id="1"),
        pytest.param({}, {}, THREE, 1, [f"t/1/00000000000{n}_{n}_{n}.json" for n in range(3)], id="2, every record"),
        pytest.param({}, GZIP, THREE, 3, ["t/1/000000000002_0_2.json.gz"], id="32, gzip"),
        pytest.param({"suffix": "-x"}, {}, THREE, 3, ["t/1/000000000002_0_2-x.json"], id="34"),
        pytest.param({"include_keys": True}, {}, THREE, 3, ["topic=t/partition=1/000000000002_0_2.json"], id="37"),
        # compatibility.md: each length has its default on its own; the real connector stops padding the offset.
        pytest.param({"padding": {"partition": 3}}, {}, THREE, 3, ["t/001/000000000002_0_2.json"], id="38"),
        pytest.param({}, {}, [Record(timestamp=-1)], 1, ["t/0/000000000000_-1_-1.json"], id="without a timestamp"),
        # The real connector drags a directory's siblings along; here each file fills on its own.
        pytest.param(
            {"partition_by": ("name", "title")},
            {},
            SIX,
            2,
            [f"name={n}/title={t}/t(1_{at:012}).json" for n, t, at in zip("aabb", "xyxy", (2, 1, 4, 5), strict=True)],
            id="11",
        ),
        pytest.param(
            {"partition_by": ("_header.h", "_value.name")},
            {},
            [Record(value=b'{"name":"a"}', headers=(("h", b"0"),))],
            1,
            ["h=0/name=a/t(0_000000000000).json"],
            id="14",
        ),
        pytest.param(
            {"partition_by": ("_key.favourites.band", "_key.`cost.centre.id`")},
            JSON_KEY,
            [NESTED_KEY],
            1,
            ["favourites.band=the strokes/cost.centre.id=200/t(1_000000000000).json"],
            id="26",
        ),
        pytest.param(
            {"partition_by": ("_key.favourites.band",)},
            JSON_KEY,
            [Record(key=b'{"favourites":{}}')],
            1,
            ["favourites.band=[missing]/t(0_000000000000).json"],
            id="26, not in the map",
        ),
    ],
)
def test_lenses_names(
    layout: dict[str, Any], changes: dict[str, Any], records: list[Record], count: int, expected: list[str]
) -> None:
    keys = rule(topics=("t",), layout={**layout, "connector_names": True}, **changes)
    assert keys.deferred
    assert files(keys, *records, count=count) == expected


# Aiven


def test_a17_a_file_of_a_key_is_replaced_over_all_topic_partitions() -> None:
    layout = {"template": "{key}", "missing": "null", "extension": ""}
    keys = rule(topics=("t",), layout=layout, exactly_once=False)
    assert keys.replaces
    assert files(keys, *[Record(n, key=key) for n, key in enumerate([b"a", b"b", None, b"a"])]) == ["a", "b", "null"]
    one, other = (keys.groups(partition, RecordColumns(keys=[b"a"]), 1) for partition in (0, 1))
    assert one == other


def test_a_file_of_a_key_and_topic_partition_is_replaced_in_it() -> None:
    layout = {"template": "{key}-{topic}-{partition}", "extension": ""}
    keys = rule(topics=("t",), layout=layout, exactly_once=False)
    assert keys.replaces
    records = [Record(0, key=b"a"), Record(1, key=b"a"), Record(5, key=b"a", partition=1)]
    assert files(keys, *records) == ["a-t-0", "a-t-1"]
