"""Key vectors of the connectors as native templates, as far as `config/test_{confluent,lenses,aiven,iggy}` lack them.

Those tests load the connectors' own files; here are the connectors' observed names, and keys of several files.
"""

from typing import Any

import pytest

from s3lake.layout.key import RecordColumns, Span
from s3lake_tests.layout.files import Record, files, ms, refusal, rule

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


def test_a_timestamp_that_is_missing_is_a_record_error() -> None:
    layout = {"template": "{topic}/{time:HH}/" + FILE, "time": {**CLOCK, "source": "field"}, "missing": "null"}
    assert "time field timestamp is null or missing" in refusal(rule(topics=("t",), layout=layout), Record(value=b"{}"))


def test_c17_tombstones_have_a_directory_of_their_own() -> None:
    layout = {"template": "{topic}/{time:HH}/" + FILE, "tombstones": "{topic}/tombstone/" + FILE, "time": CLOCK}
    keys = rule(topics=("t",), layout=layout, nulls="write", sidecars={"keys": "avro"}, format={"type": "avro"})
    assert files(keys, Record(timestamp=1_737_543_576_000)) == ["t/02/t#0#0000000000.avro"]
    (group,) = keys.tombstone_groups(12, RecordColumns(), 1)
    assert isinstance(group, str)
    assert keys.sidecar_key(group, Span(2, 2, 0, 0, 1), ".keys.avro") == "t/tombstone/t#12#0000000002.keys.avro"


def test_c20_sidecars_are_next_to_their_file() -> None:
    keys = rule(topics=("t",), layout={"template": FILE, "extension": ".avro"})
    group, span = keys.fixed_group(12), Span(0, 2, 0, 0, 3)
    assert group is not None
    assert keys.key(group, span) == "t#12#0000000000.avro"
    assert keys.sidecar_key(group, span, ".keys.avro") == "t#12#0000000000.keys.avro"


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
        pytest.param({"extension": ".gz"}, GZIP, THREE, 3, ["t/1/000000000002_0_2.gz"], id="32, the observed ending"),
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


@pytest.mark.parametrize("format", ["avro", "parquet"])
def test_43_the_codec_of_avro_and_parquet_is_not_in_the_name(format: str) -> None:
    keys = rule(topics=("t",), layout={"connector_names": True}, format={"type": format, "codec": "zstd"})
    assert files(keys, Record()) == [f"t/0/000000000000_0_0.{format}"]


def test_44_a_missing_header_is_refused() -> None:
    keys = rule(topics=("t",), layout={"partition_by": ("_header.hair",)})
    assert refusal(keys, Record()) == "header 'hair' is not in the record"


# Aiven


def test_a16_a22_a_new_schema_begins_a_file_with_its_own_offset() -> None:
    # Staging keeps one open file per schema; each is named after the first record that it holds.
    keys = rule(topics=("t",), layout={"template": "{topic}-{partition}-{offset}", "extension": ""})
    group = keys.fixed_group(0)
    assert group is not None
    assert [keys.key(group, Span(first, first, 0, 0, 1)) for first in (1000, 1002)] == ["t-0-1000", "t-0-1002"]


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


def test_a_wallclock_time_has_its_zone() -> None:
    layout = {"template": "{time:yyyy/MM/dd}/{topic}-{partition}-{offset}", "extension": ""}
    layout["time"] = {"source": "wallclock", "timezone": "Europe/Berlin"}
    keys = rule(topics=("t",), layout=layout, wallclock_ms=ms(2024, 1, 14, 23, 30))
    assert files(keys, Record()) == ["2024/01/15/t-0-0"]
