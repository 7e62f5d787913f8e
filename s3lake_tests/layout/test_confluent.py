"""The key vectors of Confluent's S3 sink (reference/confluent_aiven_iggy.md 1.2 to 1.4) as native templates."""

from typing import Any

import pytest

from s3lake.layout.key import RecordColumns, Span
from s3lake_tests.layout.files import Record, files, ms, refusal, rule

LA = "America/Los_Angeles"
FILE = "{topic}#{partition}#{offset:010}"
PLAIN = "{topic}+{partition}+{offset:010}"
HOURLY = "{time:'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH}"
HOURLY_LOW = "{time:'year'=YYYY_'month'=MM_'day'=dd_'hour'=HH}"
DAILY_LOW = "{time:'year'=YYYY_'month'=MM_'day'=dd}"
DAILY = "{time:'year'=YYYY/'month'=MM/'day'=dd}"
HOUR, DAY = 3600, 86_400


def keys_of(template: str, records: list[Record], count: int = 1_000_000, /, **changes: Any) -> list[str]:
    layout = {"template": template, "missing": "null", **changes.pop("layout", {})}
    sink = {"topics": ("test-topic",), "format": {"type": "avro"}, "layout": layout, **changes}
    return files(rule(**sink), *records, count=count)


def at(*offsets: int, **record: Any) -> list[Record]:
    return [Record(offset, partition=12, **record) for offset in offsets]


def value(text: str) -> dict[str, Any]:
    return {"value": text.encode()}


def time(source: str, duration: int, **more: Any) -> dict[str, Any]:
    return {"time": {"source": source, "timezone": LA, "duration": duration, **more}}


BASE = "topics_{topic}_"


@pytest.mark.parametrize(
    ("template", "count", "names"),
    [
        pytest.param(BASE + "partition={partition}_" + FILE, 3, ["0000000000", "0000000003", "0000000006"], id="C1"),
        pytest.param(
            BASE + "partition={partition}_{topic}#{partition}#{offset:02}", 3, ["00", "03", "06"], id="C2, two digits"
        ),
    ],
)
def test_the_default_partitioner(template: str, count: int, names: list[str]) -> None:
    expected = [f"topics_test-topic_partition=12_test-topic#12#{name}.avro" for name in names]
    assert keys_of(template, at(*range(9)), count) == expected


def test_c4_without_topics_dir() -> None:
    template = "{topic}_partition={partition}_" + FILE
    assert keys_of(template, at(0)) == ["test-topic_partition=12_test-topic#12#0000000000.avro"]


def test_c5_a_field_with_files_that_fill_on_their_own() -> None:
    # Confluent counts over all directories of a topic-partition; here three records of a directory are a file.
    records = [at(offset, **value(f'{{"int":{16 + offset % 3}}}'))[0] for offset in range(18)]
    made = keys_of(BASE + "int={field:int}_" + FILE, records, 3)
    assert made == [
        f"topics_test-topic_int={number}_test-topic#12#{offset:010}.avro"
        for number, offset in [(16, 0), (16, 9), (17, 1), (17, 10), (18, 2), (18, 11)]
    ]


MARCH = ms(2017, 3, 2, 18)  # 10:00 in Los Angeles


@pytest.mark.parametrize(
    ("template", "clock", "record", "directory"),
    [
        pytest.param(DAILY_LOW, time("record", DAY), {"timestamp": MARCH}, "year=2017_month=03_day=02", id="C7"),
        pytest.param(
            HOURLY_LOW,
            time("field", HOUR),
            value(f'{{"timestamp":{MARCH}}}'),
            "year=2017_month=03_day=02_hour=10",
            id="C8, a field",
        ),
        pytest.param(
            HOURLY_LOW,
            time("record", HOUR),
            {"timestamp": MARCH - 1},
            "year=2017_month=03_day=02_hour=09",
            id="C10, an earlier hour",
        ),
        pytest.param(
            "schema_name={schema}_" + HOURLY_LOW,
            time("record", HOUR),
            {"timestamp": MARCH, "schema": "record"},
            "schema_name=record_year=2017_month=03_day=02_hour=10",
            id="C16",
        ),
        pytest.param(
            HOURLY_LOW + "_schema_name={schema}",
            time("record", HOUR),
            {"timestamp": MARCH},
            "year=2017_month=03_day=02_hour=10_schema_name=null",
            id="C16, suffix, no schema",
        ),
        pytest.param(
            "int={field:int}_boolean={field:boolean}",
            {},
            value('{"int":16,"boolean":true}'),
            "int=16_boolean=true",
            id="C13",
        ),
        pytest.param(
            "outer.inner={field:outer.inner}", {}, value('{"outer":{"inner":16}}'), "outer.inner=16", id="C19"
        ),
    ],
)
def test_a_directory(template: str, clock: dict[str, Any], record: dict[str, Any], directory: str) -> None:
    made = keys_of(BASE + template + "_" + FILE, at(0, **record), layout=clock)
    assert made == [f"topics_test-topic_{directory}_test-topic#12#0000000000.avro"]


def test_c14_wallclock_is_cut_toward_zero() -> None:
    layout = {"template": BASE + HOURLY_LOW + "_" + FILE, **time("wallclock", DAY)}
    keys = rule(wallclock_ms=3_599_000, topics=("test-topic",), format={"type": "avro"}, layout=layout)
    assert files(keys, *at(0)) == ["topics_test-topic_year=1970_month=01_day=01_hour=00_test-topic#12#0000000000.avro"]


def test_c17_tombstones_have_a_directory_of_their_own() -> None:
    layout = {
        "template": BASE + HOURLY_LOW + "_" + FILE,
        "tombstones": BASE + "tombstone_" + FILE,
        **time("record", HOUR),
    }
    keys = rule(
        topics=("test-topic",), layout=layout, nulls="write", sidecars={"keys": "avro"}, format={"type": "avro"}
    )
    assert files(keys, *at(0, timestamp=1_737_543_576_000)) == [
        "topics_test-topic_year=2025_month=01_day=22_hour=02_test-topic#12#0000000000.avro"
    ]
    (group,) = keys.tombstone_groups(12, RecordColumns(), 1)
    assert isinstance(group, str)
    stem = "topics_test-topic_tombstone_test-topic#12#0000000002"
    assert keys.sidecar_key(group, Span(2, 2, 0, 0, 1), ".keys.avro") == f"{stem}.keys.avro"


def test_c20_keys_and_headers_beside_each_file() -> None:
    keys = rule(
        topics=("test-topic",), layout={"template": BASE + "partition={partition}_" + FILE, "extension": ".avro"}
    )
    group = keys.fixed_group(12)
    assert group is not None
    stem = "topics_test-topic_partition=12_test-topic#12#0000000000"
    span = Span(0, 2, 0, 0, 3)
    assert keys.key(group, span) == f"{stem}.avro"
    assert keys.sidecar_key(group, span, ".keys.avro") == f"{stem}.keys.avro"
    assert keys.sidecar_key(group, span, ".headers.json") == f"{stem}.headers.json"


def test_c22_defaults() -> None:
    made = keys_of(
        "topics/{topic}/partition={partition}/" + PLAIN, [Record(0)], topics=("events",), format={"type": "json"}
    )
    assert made == ["topics/events/partition=0/events+0+0000000000.json"]


@pytest.mark.parametrize("extension", [".snappy.parquet", ".parquet", ".gz.parquet", ".zstd.parquet"])
def test_c23_extensions(extension: str) -> None:
    made = keys_of("topics/{topic}/" + PLAIN, [Record(0)], layout={"extension": extension}, format={"type": "parquet"})
    assert made == [f"topics/test-topic/test-topic+0+0000000000{extension}"]


def test_c25_files_begin_where_their_records_do() -> None:
    made = keys_of("{topic}/" + PLAIN, [Record(offset) for offset in range(9, 16)], 3)
    assert made == [f"test-topic/test-topic+0+{offset:010}.avro" for offset in (9, 12, 15)]


TYPES = '{"boolean":true,"int":12,"long":12,"byte":42,"short":1234,"string":"def"}'


@pytest.mark.parametrize(
    ("fields", "text", "directory"),
    [
        *[
            (name, TYPES, f"{name}={text}") for name, text in [("boolean", "true"), ("int", "12"), ("string", "def")]
        ],  # C26
        ("string", '{"string":null}', "string=null"),  # C28
        ("string,int,boolean", '{"string":"def","int":null}', "string=def/int=null/boolean=null"),
        ("string,int", TYPES, "string=def/int=12"),  # C29
        ("int,string", TYPES, "int=12/string=def"),
        ("user.address.city", '{"user":{"address":{"city":"NYC"}}}', "user.address.city=NYC"),  # C31
        ("user.address.city", '{"user":{"address":{"city":null}}}', "user.address.city=null"),
        ("user.address.city", '{"user":null}', "user.address.city=null"),
        ("absent", TYPES, "absent=null"),  # C32; Confluent's task dies
        ("string", '{"string":"test/with\\\\special:chars=and+spaces"}', "string=test/with\\special:chars=and+spaces"),
        ("string", '{"string":""}', "string="),
    ],
)
def test_the_field_partitioner(fields: str, text: str, directory: str) -> None:
    encoded = "/".join(f"{name}={{field:{name}}}" for name in fields.split(","))
    made = keys_of(f"topics/{{topic}}/{encoded}/{PLAIN}", [Record(0, **value(text))])
    assert made == [f"topics/test-topic/{directory}/test-topic+0+0000000000.avro"]


APRIL, FEBRUARY = 1_427_961_600_000, 1_391_252_400_000


@pytest.mark.parametrize(
    ("template", "clock", "record", "directory"),
    [
        pytest.param(
            "{time:'year'=YYYY/'month'=M/'day'=d/'hour'=H}",
            time("record", 2 * HOUR),
            {"timestamp": APRIL},
            "year=2015/month=4/day=2/hour=0",
            id="C34",
        ),
        *[
            pytest.param(
                "{time:'year'=YYYY/'month'=M/'day'=d/'hour'=H}",
                time("field", HOUR),
                value(f'{{"timestamp":{stamp}}}'),
                "year=2015/month=4/day=2/hour=1",
                id=f"C35 {stamp}",
            )
            for stamp in (APRIL, '"2015-04-02T01:00:00-07:00"', '"2015-04-02T01:00:00.000-07:00"', f'"{APRIL}"')
        ],
        # Confluent reads text without an offset in the JVM's zone; here layout.time.timezone is read.
        pytest.param(
            "{time:HH}", time("field", HOUR), value('{"timestamp":"2015-04-02T01:00:00"}'), "01", id="without an offset"
        ),
        *[
            pytest.param(
                "{time:'hour'=H}",
                time("field", HOUR, field=f"{parent}.timestamp"),
                value(f'{{"{parent}":{{"timestamp":{APRIL}}}}}'),
                "hour=1",
                id=f"C37 {parent}",
            )
            for parent in ("nested", "header")
        ],
        pytest.param(DAILY, time("record", DAY), {"timestamp": FEBRUARY}, "year=2014/month=02/day=01", id="C40"),
        pytest.param(
            HOURLY, time("record", HOUR), {"timestamp": FEBRUARY}, "year=2014/month=02/day=01/hour=03", id="C41"
        ),
        pytest.param(
            HOURLY,
            time("record", HOUR, timezone="UTC"),
            {"timestamp": 1_735_603_200_000},
            "year=2024/month=12/day=31/hour=00",
            id="C44",
        ),
    ],
)
def test_the_time_based_partitioner(
    template: str, clock: dict[str, Any], record: dict[str, Any], directory: str
) -> None:
    made = keys_of("{topic}/" + template + "/" + PLAIN, [Record(0, **record)], layout=clock)
    assert made == [f"test-topic/{directory}/test-topic+0+0000000000.avro"]


def test_a_timestamp_that_is_missing_is_a_record_error() -> None:
    layout = {"template": "{topic}/" + HOURLY + "/" + PLAIN, **time("field", HOUR), "missing": "null"}
    keys = rule(topics=("test-topic",), layout=layout)
    assert "time field timestamp is null or missing" in refusal(keys, Record(0, **value("{}")))


def test_the_documents_own_examples() -> None:
    sink = {"topics": ("events",), "format": {"type": "parquet"}}
    clock = {"time": {"timezone": "UTC", "locale": "en-US", "duration": HOUR}}
    name = "events+0+0000000000.parquet"
    record = Record(0, timestamp=ms(2024, 1, 15, 10, 30), **value('{"region":"us-east","event_type":"click"}'))
    for template, directory in [
        ("topics/{topic}/" + HOURLY, "year=2024/month=01/day=15/hour=10"),
        ("topics/{topic}/region={field:region}/event_type={field:event_type}", "region=us-east/event_type=click"),
        ("topics/{topic}/partition={partition}", "partition=0"),
    ]:
        assert keys_of(f"{template}/{PLAIN}", [record], layout=clock, **sink) == [f"topics/events/{directory}/{name}"]
