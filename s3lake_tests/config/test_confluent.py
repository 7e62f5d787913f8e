"""Confluent's S3 sink: what each key becomes, and the keys of objects of its own tests (C1 to C44)."""

from typing import Any

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.land import binding
from s3lake_tests.config import bases
from s3lake_tests.layout.files import Record

PARTITIONER = "io.confluent.connect.storage.partitioner."
FORMAT = "io.confluent.connect.s3.format."
TIME: dict[str, str | None] = {
    "partitioner.class": f"{PARTITIONER}TimeBasedPartitioner",
    "path.format": "'year'=YYYY_'month'=MM_'day'=dd_'hour'=HH",
    "partition.duration.ms": "3600000",
    "timezone": "America/Los_Angeles",
    "locale": "en",
    "timestamp.extractor": "Record",
}
ODD: dict[str, str | None] = {
    "directory.delim": "_",
    "file.delim": "#",
    "topics": "test-topic",
    "flush.size": "3",
    "format.class": f"{FORMAT}avro.AvroFormat",
}
"""Base configuration B of the reference: delimiters that show who forgets them."""


def load(changes: dict[str, str | None]) -> LoadedConfig:
    return bases.load(bases.CONFLUENT, changes)


_UNUSED = "changes nothing next to the other settings of this file"


def twelve(count: int, **fields: Any) -> list[Record]:
    return [Record(offset, partition=12, **fields) for offset in range(count)]


STAMP = 1_488_480_000_000  # 2017-03-02T10:40 in Los Angeles


@pytest.mark.parametrize(
    ("changes", "records", "expected"),
    [
        pytest.param(
            {},
            twelve(9),
            [f"topics_test-topic_partition=12_test-topic#12#{start:010}.avro" for start in (0, 3, 6)],
            id="C1",
        ),
        pytest.param(
            {"filename.offset.zero.pad.width": "2"},
            twelve(9),
            [f"topics_test-topic_partition=12_test-topic#12#{start:02}.avro" for start in (0, 3, 6)],
            id="C2",
        ),
        pytest.param(
            {"filename.offset.zero.pad.width": "0"},
            twelve(3),
            ["topics_test-topic_partition=12_test-topic#12#0.avro"],
            id="no padding",
        ),
        pytest.param({"topics.dir": ""}, twelve(3), ["test-topic_partition=12_test-topic#12#0000000000.avro"], id="C4"),
        pytest.param(
            {"topics.dir": "  "}, twelve(3), ["test-topic_partition=12_test-topic#12#0000000000.avro"], id="C4, blank"
        ),
        pytest.param(
            {"partitioner.class": f"{PARTITIONER}FieldPartitioner", "partition.field.name": "int,boolean"},
            twelve(3, value=b'{"int":16,"boolean":true}'),
            ["topics_test-topic_int=16_boolean=true_test-topic#12#0000000000.avro"],
            id="C13",
        ),
        pytest.param(
            {"partitioner.class": f"{PARTITIONER}DailyPartitioner", "timestamp.extractor": "Record"}
            | {"timezone": "America/Los_Angeles", "locale": "en"},
            twelve(3, timestamp=STAMP),
            ["topics_test-topic_year=2017_month=03_day=02_test-topic#12#0000000000.avro"],
            id="C7",
        ),
        pytest.param(
            {"partitioner.class": f"{PARTITIONER}HourlyPartitioner", "timestamp.extractor": "RecordField"}
            | {"timezone": "America/Los_Angeles", "locale": "en"},
            twelve(3, value=b'{"timestamp":1488480000000}'),
            ["topics_test-topic_year=2017_month=03_day=02_hour=10_test-topic#12#0000000000.avro"],
            id="C8",
        ),
        pytest.param(
            {**TIME, "s3.schema.partition.affix.type": "PREFIX"},
            twelve(3, timestamp=STAMP, schema="record"),
            ["topics_test-topic_schema_name=record_year=2017_month=03_day=02_hour=10_test-topic#12#0000000000.avro"],
            id="C16",
        ),
        pytest.param(
            {"s3.schema.partition.affix.type": "SUFFIX"},
            twelve(3),
            ["topics_test-topic_partition=12_schema_name=null_test-topic#12#0000000000.avro"],
            id="suffix",
        ),
        pytest.param(
            {"partitioner.class": f"{PARTITIONER}FieldPartitioner", "partition.field.name": "outer.inner"},
            twelve(3, value=b'{"outer":{"inner":16}}'),
            ["topics_test-topic_outer.inner=16_test-topic#12#0000000000.avro"],
            id="C19",
        ),
    ],
)
def test_keys_with_odd_delimiters(changes: dict[str, str | None], records: list[Record], expected: list[str]) -> None:
    assert bases.keys_of(load({**ODD, **changes}), *records) == expected


@pytest.mark.parametrize(
    ("fields", "value", "expected"),
    [
        ("boolean", b'{"boolean":true}', "boolean=true"),
        ("string", b'{"string":"def"}', "string=def"),
        ("string", b'{"string":null}', "string=null"),
        ("string", b"{}", "string=null"),
        ("string,int", b'{"string":"def","int":12}', "string=def/int=12"),
        ("int , string", b'{"string":"def","int":12}', "int=12/string=def"),
        ("user.address.city", b'{"user":{"address":{"city":"NYC"}}}', "user.address.city=NYC"),
        ("user.address.city", b'{"user":null}', "user.address.city=null"),
    ],
)
def test_c26_to_c31_fields(fields: str, value: bytes, expected: str) -> None:
    loaded = load({"partitioner.class": f"{PARTITIONER}FieldPartitioner", "partition.field.name": fields})
    assert bases.keys_of(loaded, Record(value=value)) == [f"topics/demo/{expected}/demo+0+0000000000.json"]


@pytest.mark.parametrize("end", ["/", ""])
def test_one_delimiter_at_the_end_of_a_pattern_is_dropped(end: str) -> None:
    loaded = load({**TIME, "path.format": f"'y'=YYYY/'b'{end}"})
    assert bases.keys_of(loaded, Record(timestamp=STAMP)) == ["topics/demo/y=2017/b/demo+0+0000000000.json"]


def test_c14_wallclock_is_the_default_and_frozen() -> None:
    loaded = load({**TIME, "timestamp.extractor": None, "partition.duration.ms": "86400000"})
    assert bases.keys_of(loaded, *twelve(2), wallclock_ms=3_599_000) == [
        "topics/demo/year=1970_month=01_day=01_hour=00/demo+12+0000000000.json"
    ]


def test_braces_in_names_are_text() -> None:
    loaded = load({"topics.dir": "a{b}", "tombstone.encoded.partition": "{x}", "directory.delim": "_"})
    assert bases.keys_of(loaded, Record()) == ["a{b}_demo_partition=0_demo+0+0000000000.json"]


# Extensions


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"format.class": f"{FORMAT}avro.AvroFormat", "avro.codec": "snappy"}, ".avro"),
        ({"format.class": f"{FORMAT}parquet.ParquetFormat"}, ".parquet"),
        (
            {"format.class": f"{FORMAT}parquet.ParquetFormat", "s3lake.layout.extension": ".snappy.parquet"},
            ".snappy.parquet",
        ),
        ({"s3.compression.type": "gzip"}, ".json.gz"),
        ({"format.class": f"{FORMAT}bytearray.ByteArrayFormat"}, ".bin"),
        ({"format.class": f"{FORMAT}bytearray.ByteArrayFormat", "s3.compression.type": "gzip"}, ".bin.gz"),
        ({"format.class": f"{FORMAT}bytearray.ByteArrayFormat", "format.bytearray.extension": ".raw"}, ".raw"),
    ],
)
def test_extensions(changes: dict[str, str | None], expected: str) -> None:
    (key,) = bases.keys_of(load(changes), Record())
    assert key.removeprefix("topics/demo/partition=0/demo+0+0000000000") == expected


@pytest.mark.parametrize(("separator", "expected"), [(None, "\n"), ("|", "|")])
def test_raw_records_are_separated(separator: str | None, expected: str) -> None:
    loaded = load({"format.class": f"{FORMAT}bytearray.ByteArrayFormat", "format.bytearray.separator": separator})
    frame = loaded.config.sinks[0].format.effective_framing
    assert frame is not None
    assert (frame.opening, frame.between, frame.closing) == ("", expected, expected)


# Everything else

HOURLY = {**TIME, "partitioner.class": f"{PARTITIONER}HourlyPartitioner", "path.format": None}
SIDECARS: dict[str, str | None] = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
LINES, RAW = f"{FORMAT}json.JsonFormat", f"{FORMAT}bytearray.ByteArrayFormat"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"json.decimal.format": "NUMERIC"}, {"nulls": "fail", "s3.region": "us-west-2"}),
        (
            {"store.url": "http://minio:9000", "s3.path.style.access.enabled": "false", "s3.part.retries": "0"},
            {
                "s3.endpoint_url": "http://minio:9000",
                "s3.path_style": False,
                "s3.retries.max_attempts": 1,
                "s3.retries.backoff_ms": 200,
            },
        ),
        ({}, {"flush.count": 1000, "flush.size": 80 * 10**9, "flush.span": None, "flush.interval": 3600}),
        (
            {**TIME, "rotate.interval.ms": "60000", "rotate.schedule.interval.ms": "120000", "s3.part.size": "5242880"},
            {"flush.span": 60, "flush.interval": 120, "flush.size": 5_242_880},
        ),
        ({"behavior.on.null.values": "fail"}, {"nulls": "fail"}),
        ({"behavior.on.null.values": "IGNORE"}, {"nulls": "skip"}),
        (
            {**SIDECARS, "behavior.on.null.values": "write"},
            {
                "nulls": "write",
                "sidecars.keys": "avro",
                "sidecars.headers": "avro",
                "layout.tombstones": "{topic}/tombstone/{topic}+{partition}+{offset:010}",
            },
        ),
        (
            {**SIDECARS, "keys.format.class": RAW},
            {"sidecars.keys": "bytes", "sidecars.endings": (".keys.bin", ".headers.avro")},
        ),
        (
            {**SIDECARS, "headers.format.class": LINES},
            {"sidecars.headers": "json", "sidecars.endings": (".keys.avro", ".headers.json")},
        ),
        (
            {**SIDECARS, "keys.format.class": RAW, "headers.format.class": LINES, "s3.compression.type": "gzip"},
            {"sidecars.endings": (".keys.bin.gz", ".headers.json.gz")},
        ),
        ({**TIME, "timestamp.extractor": "Wallclock"}, {"layout.time.source": "wallclock"}),
        ({**TIME, "timestamp.extractor": "Record"}, {"layout.time.source": "record"}),
        (
            {**TIME, "timestamp.extractor": "RecordField", "timestamp.field": "meta.at"},
            {
                "layout.time.source": "field",
                "layout.time.field": "meta.at",
                "layout.time.timezone": "America/Los_Angeles",
                "layout.time.locale": "en",
                "layout.time.duration": 3600,
            },
        ),
        *(
            ({**HOURLY, "rotate.interval.ms": "60000", "timestamp.extractor": clock, **more}, flush)
            for clock in ("Wallclock", None)  # a backlog is not cut by the time of its records
            for more, flush in (
                ({}, {"flush.span": None, "flush.interval": 60}),
                ({"rotate.schedule.interval.ms": "30000"}, {"flush.span": None, "flush.interval": 30}),
            )
        ),
    ],
)
def test_keys_are_native_settings(changes: dict[str, str | None], expected: dict[str, object]) -> None:
    assert bases.values(load(changes), *expected) == expected


def test_r10_rotation_by_time_needs_a_time_based_partitioner() -> None:
    loaded = load({"rotate.interval.ms": "60000"})
    assert loaded.config.sinks[0].flush.span is None
    assert bases.remarks_by_key(loaded)["rotate.interval.ms"] == _UNUSED


def test_sidecars_have_the_connectors_codecs() -> None:
    asked = {
        "store.kafka.keys": "true",
        "store.kafka.headers": "true",
        "headers.format.class": f"{FORMAT}json.JsonFormat",
    }
    sidecars = load({**asked, "avro.codec": "deflate", "s3.compression.type": "gzip"}).config.sinks[0].sidecars
    assert (sidecars.format("avro").codec, sidecars.format("json").codec) == ("deflate", "gzip")
    assert load(asked).config.sinks[0].sidecars.format("avro").codec == "none"


@pytest.mark.parametrize("extractor", ["Record", "RecordField"])
def test_rotation_by_the_records_time_is_a_span(extractor: str) -> None:
    loaded = load({**TIME, "rotate.interval.ms": "60000", "timestamp.extractor": extractor})
    assert loaded.config.sinks[0].flush.span == 60
    assert "rotate.interval.ms" not in bases.remarks_by_key(loaded)


def test_how_files_with_sidecars_are_written_can_be_hashed() -> None:
    """Commits whose files are alike are read together, and are found by that."""
    sink = load({"store.kafka.keys": "true"}).config.sinks[0]
    assert hash(binding.form_of(sink)) == hash(binding.form_of(sink))


SCHEMAS: dict[str, str | None] = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
    "format.class": f"{FORMAT}parquet.ParquetFormat",
}


@pytest.mark.parametrize("mode", ["NONE", "BACKWARD", "FORWARD", "FULL"])
def test_compatibility_says_which_schemas_share_files(mode: str) -> None:
    loaded = load({**SCHEMAS, "schema.compatibility": mode})
    assert loaded.config.sinks[0].schema_policy.compatibility == mode.lower()
    lossy = "fields that an older schema lacks are left out, as the connector does, and counted in each hour"
    assert bases.remarks_by_key(loaded).get("schema.compatibility") == (lossy if mode == "FORWARD" else None)


def test_compatibility_without_schemas_is_noted() -> None:
    plain: dict[str, str | None] = {
        **SCHEMAS,
        "schema.compatibility": "FULL",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "value.converter.schema.registry.url": None,
    }
    loaded = load(plain)
    assert loaded.config.sinks[0].schema_policy.compatibility == "none"
    assert bases.remarks_by_key(loaded)["schema.compatibility"] == _UNUSED
