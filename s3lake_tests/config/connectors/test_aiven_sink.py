"""Aiven's S3 sink: what each key becomes, and the keys of objects of its own tests (A1 to A22)."""

import pytest

from s3lake.config.draft import Draft, LoadedConfig
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows
from s3lake_tests.records.layout.files import ms, read_records


def load(changes: str) -> LoadedConfig:
    own: dict[str, str | None] = {"file.max.records": "0", "file.name.timestamp.source": "event"}
    unset = dict.fromkeys(["key.converter", "value.converter", "value.converter.schemas.enable"])
    named = {"OWN": own, "DATED": {**own, **DATED}, "WITHOUT_CONVERTERS": unset, "AVRO": AVRO}
    return bases.load(bases.AIVEN, bases.changes(changes, **named))


AVRO: dict[str, str | None] = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
    "value.converter.schemas.enable": None,
}
DAY = "{{timestamp:unit=yyyy}}{{timestamp:unit=MM}}{{timestamp:unit=dd}}"
DATED = {"file.name.template": f"{{{{topic}}}}-{{{{partition}}}}-{{{{start_offset}}}}-{DAY}"}
KEYS = """
aws.s3.prefix=aiven-- + file.compression.type=none | offset: 100 => aiven--demo-0-00000000000000000100
aws.s3.prefix=aiven-- + file.compression.type=gzip | offset: 100 => aiven--demo-0-00000000000000000100.gz
aws.s3.prefix=aiven-- + file.compression.type=snappy | offset: 100 => aiven--demo-0-00000000000000000100.snappy
aws.s3.prefix=aiven-- + file.compression.type=zstd | offset: 100 => aiven--demo-0-00000000000000000100.zst
aws.s3.prefix={{timestamp:unit=YYYY}}/{{ timestamp:unit=MM }}/{{timestamp:unit=dd}}/ + timestamp.timezone=Europe/Berlin
    | => 2024/01/15/demo-0-00000000000000000000.gz
| offset: 10 => demo-0-10.gz
| offset: [0, 1]; partition: 1, offset: 10 => demo-0-0.gz, demo-1-10.gz
file.max.records=2 | offset: [0, 1, 2, 3, 4] => demo-0-0.gz, demo-0-2.gz, demo-0-4.gz
OWN + file.name.template={{topic}}-{{ partition:padding=true }}-{{start_offset:padding=true}}.csv
    | partition: 1, offset: 4 => demo-0000000001-00000000000000000004.csv
DATED | partition: 1, offset: 2000, timestamp: 1635292800000; partition: 1, offset: 2001, timestamp: 1635379200000;
    partition: 1, offset: [2002, 2003], timestamp: 1635465600000
    => demo-1-2000-20211027, demo-1-2001-20211028, demo-1-2002-20211029
OWN + file.name.template={{topic}}-{{partition}}-{{start_offset}}-{{timestamp:unit=YYYY}}
    | offset: 7, timestamp: 1735560000000
    => demo-0-7-2024
OWN + file.name.template={{key}} | offset: [0, 1], key: a; offset: 2, key: b; offset: 3 => a, b, null
OWN + file.name.template={{topic}}/{{partition}}/{{key}}.json + file.max.records=1 | offset: 7, key: a => demo/0/a.json
OWN + file.name.template={{topic}}-{{partition}}-{{start_offset}}-{{key}} | offset: 7, key: a => demo-0-7-a
OWN + file.name.template={{topic}}-{{partition}}-{{start_offset}} + file.compression.type=gzip | => demo-0-0
format.output.type=csv | => demo-0-0.gz
format.output.type=avro | => demo-0-0.avro
format.output.type=avro + file.compression.type=none | => demo-0-0.avro
format.output.type=parquet | => demo-0-0
format.output.type=parquet + file.compression.type=zstd | => demo-0-0.zst
format.output.type=json + file.compression.type=snappy | => demo-0-0.snappy
"""


@pytest.mark.parametrize(("given", "expected"), rows(KEYS))
def test_objects_have_the_keys_of_the_connector(given: str, expected: str) -> None:
    settings, _, records = given.partition("|")
    found = bases.keys_of(load(settings), *read_records(records), wallclock_ms=ms(2024, 1, 14, 23, 30))
    assert ", ".join(found) == expected


SETTINGS = r"""
format.output.type=csv =>
    format.type: csv, format.header: false, format.framing: {opening: "", between: "\n", closing: ""}
format.output.type=jsonl =>
    format.type: json, format.header: true, format.framing: {opening: "", between: "\n", closing: ""}
format.output.type=json =>
    format.type: json_array, format.header: true, format.framing: {opening: "[\n", between: ",\n", closing: "\n]"}
aws.s3.prefix=a/b/c-{{ utc_date }}/ =>
    prefix: a/b, layout.template: "c-{time:yyyy-MM-dd}/{topic}-{partition}-{offset:020}"
aws.s3.prefix={{ utc_date }}/ + timestamp.timezone=Asia/Tokyo =>
    layout.time.source: wallclock, layout.time.timezone: UTC
aws.s3.prefix={{ local_date }}/ + timestamp.timezone=Asia/Tokyo =>
    layout.time.source: wallclock, layout.time.timezone: Asia/Tokyo
file.name.template={{key}} => exactly_once: false
file.name.template={{key}} => remark: exactly_once is false
file.name.template={{topic}}-{{partition}}-{{start_offset}} => exactly_once: true
file.name.template={{topic}}-{{partition}}-{{start_offset}} => remark: file.name.template:
AVRO + format.output.type=jsonl => remark: format.output.type: decimals are numbers; the connector writes them as base64
AVRO + format.output.type=json => remark: format.output.type: decimals are numbers; the connector writes them as base64
AVRO + format.output.type=parquet => no remark: decimals
format.output.type=jsonl => no remark: decimals
format.output.type=csv => format.codec: gzip
format.output.type=json + file.compression.type=zstd => format.codec: zstd
format.output.type=jsonl + file.compression.type=snappy => format.codec: snappy_framed
format.output.type=parquet => format.codec: none
format.output.type=parquet + file.compression.type=snappy => format.codec: snappy
format.output.type=avro => format.codec: none
format.output.type=avro + avro.codec=null => format.codec: none
format.output.type=avro + avro.codec=deflate => format.codec: deflate
format.output.type=avro + avro.codec=zstandard => format.codec: zstd
format.output.fields=timestamp, value,key + format.output.fields.value.encoding=none =>
    envelope.style: flat, envelope.fields: [timestamp, value, key], envelope.value_encoding: none, envelope.bare: false
format.output.fields=key + format.output.envelope=false => envelope.fields: [key], envelope.bare: true
format.output.envelope=true => envelope.fields: [value], envelope.bare: false
format.output.envelope=false => envelope.fields: [value], envelope.bare: true
format.output.type=csv + WITHOUT_CONVERTERS => converter.value: bytes
format.output.type=jsonl + WITHOUT_CONVERTERS => converter.value: json
=> flush.count: null, flush.size: 80000000000, flush.interval: 60
file.max.records=5 + offset.flush.interval.ms=10000 => flush.count: 5, flush.interval: 10
aws.s3.endpoint=http://minio:9000 => s3.endpoint_url: "http://minio:9000", s3.path_style: true, s3.region: us-east-1
aws.s3.backoff.max.retries=7 + aws.s3.backoff.delay.ms=9 => s3.retries.max_attempts: 7, s3.retries.backoff_ms: 9
"""


@pytest.mark.parametrize(("changes", "expected"), rows(SETTINGS))
def test_keys_are_native_settings(changes: str, expected: str) -> None:
    bases.check(load(changes), expected)


def test_a_setting_changed_afterwards_changes_nothing_for_the_next_configuration() -> None:
    constant = {"opening": "", "between": "\n"}
    draft = Draft()
    draft.put("format.framing", constant)
    draft.put("format.framing.opening", "null")
    assert draft.values["format"]["framing"]["opening"] == "null"
    assert constant == {"opening": "", "between": "\n"}
