"""Confluent's S3 sink: what each key becomes, and the keys of objects of its own tests (C1 to C44)."""

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake.lake.form import form_of
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows
from s3lake_tests.records.layout.files import LaidOutRecord, read_records

FORMAT = "io.confluent.connect.s3.format."
TIME: dict[str, str | None] = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path.format": "'year'=YYYY_'month'=MM_'day'=dd_'hour'=HH",
    "partition.duration.ms": "3600000",
    "timezone": "America/Los_Angeles",
    "locale": "en",
    "timestamp.extractor": "Record",
}
NAMED: dict[str, dict[str, str | None]] = {
    "TIME": TIME,
    "LOS_ANGELES": {"timezone": "America/Los_Angeles", "locale": "en"},
    "HOURLY": {**TIME, "partitioner.class": "HourlyPartitioner", "path.format": None},
    "SIDECARS": {"store.kafka.keys": "true", "store.kafka.headers": "true"},
    "SCHEMAS": {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://registry:8081",
        "format.class": f"{FORMAT}parquet.ParquetFormat",
    },
    # Base configuration B of the reference: delimiters that show who forgets them.
    "ODD": {
        "directory.delim": "_",
        "file.delim": "#",
        "topics": "test-topic",
        "flush.size": "3",
        "format.class": f"{FORMAT}avro.AvroFormat",
    },
}
STAMP = 1_488_480_000_000
"""2017-03-02T10:40 in Los Angeles."""


def load(changes: str) -> LoadedConfig:
    return bases.load(bases.CONFLUENT, bases.changes(changes, **NAMED))


# C1, 2, 4, 13, 7, 8, 16, 19, 14 and extensions.
KEYS = f"""
ODD | offset: [0, 1, 2, 3, 4] => topics_test-topic_partition=0_test-topic#0#0000000000.avro,
    topics_test-topic_partition=0_test-topic#0#0000000003.avro
ODD + filename.offset.zero.pad.width=2 | offset: [12] => topics_test-topic_partition=0_test-topic#0#12.avro
ODD + filename.offset.zero.pad.width=0 | partition: 12 => topics_test-topic_partition=12_test-topic#12#0.avro
topics.dir=raw/ | => raw/demo/partition=0/demo+0+0000000000.json
ODD + topics.dir= | partition: 12 => test-topic_partition=12_test-topic#12#0000000000.avro
ODD + partitioner.class=FieldPartitioner + partition.field.name=int,boolean | value: '{{"int":16,"boolean":true}}'
    => topics_test-topic_int=16_boolean=true_test-topic#0#0000000000.avro
ODD + partitioner.class=com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner + partition.field.name=app,o.country
    + path.format='dt'=YYYY-MM-dd + LOS_ANGELES + partition.duration.ms=86400000 + timestamp.extractor=Record
    | timestamp: {STAMP}, value: '{{"app":"a","o":{{"country":"CH"}}}}' =>
    topics_test-topic_app=a/o.country=CH_dt=2017-03-02_test-topic#0#0000000000.avro
ODD + partitioner.class=com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner + partition.field.name=app,country
    + path.format='dt'=YYYY-MM-dd + LOS_ANGELES + partition.duration.ms=86400000 + timestamp.extractor=Record
    + partition.field.format.path=false | timestamp: {STAMP}, value: '{{"app":"a"}}' =>
    topics_test-topic_a/null_dt=2017-03-02_test-topic#0#0000000000.avro
ODD + LOS_ANGELES + partitioner.class=DailyPartitioner + timestamp.extractor=Record | timestamp: {STAMP}
    => topics_test-topic_year=2017_month=03_day=02_test-topic#0#0000000000.avro
ODD + LOS_ANGELES + partitioner.class=HourlyPartitioner + timestamp.extractor=RecordField
    | value: '{{"timestamp":{STAMP}}}' =>
    topics_test-topic_year=2017_month=03_day=02_hour=10_test-topic#0#0000000000.avro
ODD + TIME + s3.schema.partition.affix.type=PREFIX | timestamp: {STAMP}, schema: record
    => topics_test-topic_schema_name=record_year=2017_month=03_day=02_hour=10_test-topic#0#0000000000.avro
ODD + s3.schema.partition.affix.type=SUFFIX |
    => topics_test-topic_partition=0_schema_name=null_test-topic#0#0000000000.avro
ODD + partitioner.class=FieldPartitioner + partition.field.name=outer.inner | value: '{{"outer":{{"inner":16}}}}'
    => topics_test-topic_outer.inner=16_test-topic#0#0000000000.avro
TIME + path.format='y'=YYYY/'b'/ | timestamp: {STAMP} => topics/demo/y=2017/b/demo+0+0000000000.json
TIME + path.format='y'=YYYY/'b' | timestamp: {STAMP} => topics/demo/y=2017/b/demo+0+0000000000.json
TIME + -timestamp.extractor + partition.duration.ms=86400000 | offset: [0, 1]
    => topics/demo/year=1969_month=12_day=31_hour=00/demo+0+0000000000.json
topics.dir=a{{b}} + tombstone.encoded.partition={{x}} + directory.delim=_ |
    => a{{b}}_demo_partition=0_demo+0+0000000000.json
format.class={FORMAT}avro.AvroFormat + avro.codec=snappy | => topics/demo/partition=0/demo+0+0000000000.avro
format.class={FORMAT}parquet.ParquetFormat | => topics/demo/partition=0/demo+0+0000000000.parquet
format.class={FORMAT}parquet.ParquetFormat + s3lake.layout.extension=.snappy.parquet |
    => topics/demo/partition=0/demo+0+0000000000.snappy.parquet
s3.compression.type=gzip | => topics/demo/partition=0/demo+0+0000000000.json.gz
format.class=ByteArrayFormat | => topics/demo/partition=0/demo+0+0000000000.bin
format.class=ByteArrayFormat + s3.compression.type=gzip | => topics/demo/partition=0/demo+0+0000000000.bin.gz
format.class=ByteArrayFormat + format.bytearray.extension=.raw | => topics/demo/partition=0/demo+0+0000000000.raw
"""


@pytest.mark.parametrize(("given", "expected"), rows(KEYS))
def test_objects_have_the_keys_of_the_connector(given: str, expected: str) -> None:
    settings, _, records = given.partition("|")
    found = bases.keys_of(load(settings), *read_records(records), wallclock_ms=3_599_000)
    assert ", ".join(found) == expected


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
def test_a_partition_by_a_field_has_its_value_in_the_key_c26_to_c31(fields: str, value: bytes, expected: str) -> None:
    loaded = load(f"partitioner.class=FieldPartitioner + partition.field.name={fields}")
    assert bases.keys_of(loaded, LaidOutRecord(value=value)) == [f"topics/demo/{expected}/demo+0+0000000000.json"]


DECIMALS = "decimals are numbers; the connector writes them as base64 by default: write json.decimal.format=NUMERIC"
SLASH = "ends with '/': the connector writes its objects below '//', and here it is one '/'; take it out"
UNUSED = "changes nothing next to the other settings of this file"
LOSSY = "fields that an older schema lacks are left out, as the connector does, and counted in each hour"
SETTINGS = rf"""
json.decimal.format=NUMERIC => nulls: fail, s3.region: us-west-2
store.url=http://minio:9000 + s3.path.style.access.enabled=false =>
    s3.endpoint_url: "http://minio:9000", s3.path_style: false
s3.part.retries=0 => s3.retries.max_attempts: 1, s3.retries.backoff_ms: 200
=> flush.count: 1000, flush.size: 80000000000, flush.span: null, flush.interval: 3600
TIME + rotate.interval.ms=60000 + rotate.schedule.interval.ms=120000 + s3.part.size=5242880 =>
    flush.span: 60, flush.interval: 120, flush.size: 5242880
TIME + rotate.interval.ms=60000 + timestamp.extractor=Record => flush.span: 60
TIME + rotate.interval.ms=60000 + timestamp.extractor=Record => no remark: rotate.interval.ms
TIME + rotate.interval.ms=60000 + timestamp.extractor=RecordField => flush.span: 60
TIME + rotate.interval.ms=60000 + timestamp.extractor=RecordField => no remark: rotate.interval.ms
HOURLY + rotate.interval.ms=60000 + timestamp.extractor=Wallclock => flush.span: null, flush.interval: 60
HOURLY + rotate.interval.ms=60000 + -timestamp.extractor => flush.span: null, flush.interval: 60
HOURLY + rotate.interval.ms=60000 + timestamp.extractor=Wallclock + rotate.schedule.interval.ms=30000 =>
    flush.span: null, flush.interval: 30
HOURLY + rotate.interval.ms=60000 + -timestamp.extractor + rotate.schedule.interval.ms=30000 =>
    flush.span: null, flush.interval: 30
rotate.interval.ms=60000 => flush.span: null
rotate.interval.ms=60000 => remark: rotate.interval.ms: {UNUSED}
behavior.on.null.values=fail => nulls: fail
behavior.on.null.values=IGNORE => nulls: skip
SIDECARS + behavior.on.null.values=write => nulls: write, sidecars.keys: avro, sidecars.headers: avro,
    layout.tombstones: "{{topic}}/tombstone/{{topic}}+{{partition}}+{{offset:010}}"
SIDECARS + keys.format.class=ByteArrayFormat => sidecars.keys: bytes, sidecars.endings: [.keys.bin, .headers.avro]
SIDECARS + headers.format.class=JsonFormat => sidecars.headers: json, sidecars.endings: [.keys.avro, .headers.json]
SIDECARS + keys.format.class=ByteArrayFormat + headers.format.class=JsonFormat + s3.compression.type=gzip =>
    sidecars.endings: [.keys.bin.gz, .headers.json.gz]
TIME + timestamp.extractor=Wallclock => layout.time.source: wallclock
TIME + timestamp.extractor=Record => layout.time.source: record
TIME + timestamp.extractor=RecordField + timestamp.field=meta.at =>
    layout.time.source: field, layout.time.field: meta.at, layout.time.timezone: America/Los_Angeles,
    layout.time.locale: en, layout.time.duration: 3600
format.class=ByteArrayFormat => format.effective_framing: {{opening: "", between: "\n", closing: "\n"}}
format.class=ByteArrayFormat + format.bytearray.separator=| =>
    format.effective_framing: {{opening: "", between: "|", closing: "|"}}
SCHEMAS + schema.compatibility=NONE => schema_policy.compatibility: none
SCHEMAS + schema.compatibility=NONE => no remark: schema.compatibility
SCHEMAS + schema.compatibility=BACKWARD => schema_policy.compatibility: backward
SCHEMAS + schema.compatibility=BACKWARD => no remark: schema.compatibility
SCHEMAS + schema.compatibility=FORWARD => schema_policy.compatibility: forward
SCHEMAS + schema.compatibility=FORWARD => remark: schema.compatibility: {LOSSY}
SCHEMAS + schema.compatibility=FULL => schema_policy.compatibility: full
SCHEMAS + schema.compatibility=FULL => no remark: schema.compatibility
format.class=ParquetFormat + schema.compatibility=FULL => schema_policy.compatibility: none
format.class=ParquetFormat + schema.compatibility=FULL => remark: schema.compatibility: {UNUSED}
SCHEMAS + format.class=JsonFormat => remark: format.class: {DECIMALS}
value.converter.schemas.enable=true => remark: format.class: {DECIMALS}
SCHEMAS + format.class=JsonFormat + json.decimal.format=NUMERIC => no remark: decimals
SCHEMAS + json.decimal.format=BASE64 => no remark: decimals
format.class=JsonFormat => no remark: decimals
json.decimal.format=BASE64 => remark: json.decimal.format: {UNUSED}
topics.dir=raw/ => remark: topics.dir: {SLASH}
topics.dir=raw => no remark: topics.dir
topics.dir= => no remark: topics.dir
TIME + path.format='y'=YYYY/ => remark: path.format: {SLASH}
TIME + path.format='y'=YYYY => no remark: path.format
TIME + directory.delim=_ + path.format='y'=YYYY_ => no remark: path.format
"""


@pytest.mark.parametrize(("changes", "expected"), rows(SETTINGS))
def test_keys_are_native_settings(changes: str, expected: str) -> None:
    bases.check(load(changes), expected)


def test_decimals_in_base64_are_refused_if_values_can_have_decimals() -> None:
    with pytest.raises(ConfigurationError, match="'BASE64' is not supported: decimals of JSON are numbers; write NUM"):
        load("SCHEMAS + format.class=JsonFormat + json.decimal.format=BASE64")


def test_sidecars_have_the_connectors_codecs() -> None:
    asked = "SIDECARS + headers.format.class=JsonFormat"
    sidecars = load(f"{asked} + avro.codec=deflate + s3.compression.type=gzip").config.sinks[0].sidecars
    assert (sidecars.format("avro").codec, sidecars.format("json").codec) == ("deflate", "gzip")
    assert load(asked).config.sinks[0].sidecars.format("avro").codec == "none"


def test_how_files_with_sidecars_are_written_can_be_hashed() -> None:
    """Commits whose files are alike are read together, and are found by that."""
    sink = load("store.kafka.keys=true").config.sinks[0]
    assert hash(form_of(sink)) == hash(form_of(sink))


def test_a_time_field_before_1970_has_a_notice_and_a_key_for_the_connector_s_way() -> None:
    settings = "TIME + timezone=UTC + timestamp.extractor=RecordField + partition.duration.ms=86400000"
    record = LaidOutRecord(value=b'{"timestamp":"1955-07-01T10:30:00Z"}')
    other = f"{settings} + s3lake.layout.time.before_1970=toward_zero"
    days = {"year=1955_month=07_day=01_hour=00": settings, "year=1955_month=07_day=02_hour=00": other}
    for day, text in days.items():
        assert bases.keys_of(load(text), record) == [f"topics/demo/{day}/demo+0+0000000000.json"]
    assert "write s3lake.layout.time.before_1970=toward_zero for that" in bases.remarks_text(load(settings))
    assert "before_1970" not in bases.remarks_text(load(other))
