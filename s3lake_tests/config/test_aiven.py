"""Aiven's S3 sink: what each key becomes, and the keys of objects of its own tests (A1 to A22)."""

from typing import Any

import pytest

from s3lake.config.draft import Draft, LoadedConfig
from s3lake_tests.config import bases
from s3lake_tests.layout.files import Record, ms

FULL = "{{topic}}-{{partition}}-{{start_offset}}"
DAY = "{{timestamp:unit=yyyy}}{{timestamp:unit=MM}}{{timestamp:unit=dd}}"


def load(changes: dict[str, str | None] | None = None) -> LoadedConfig:
    return bases.load(bases.AIVEN, changes)


def at(partition: int, *offsets: int, **fields: Any) -> list[Record]:
    return [Record(offset, partition=partition, **fields) for offset in offsets]


@pytest.mark.parametrize(
    ("codec", "extension"), [("none", ""), ("gzip", ".gz"), ("snappy", ".snappy"), ("zstd", ".zst")]
)
def test_a1_prefix_mode(codec: str, extension: str) -> None:
    loaded = load({"aws.s3.prefix": "aiven--", "file.compression.type": codec})
    assert bases.keys_of(loaded, *at(0, 100)) == [f"aiven--demo-0-00000000000000000100{extension}"]


def test_a4_times_in_the_prefix() -> None:
    prefix = "{{timestamp:unit=YYYY}}/{{ timestamp:unit=MM }}/{{timestamp:unit=dd}}/"
    loaded = load({"aws.s3.prefix": prefix, "timestamp.timezone": "Europe/Berlin"})
    made = bases.keys_of(loaded, Record(), wallclock_ms=ms(2024, 1, 14, 23, 30))
    assert made == ["2024/01/15/demo-0-00000000000000000000.gz"]


def test_a_prefix_up_to_a_slash_is_the_sinks_prefix() -> None:
    sink = load({"aws.s3.prefix": "a/b/c-{{ utc_date }}/"}).config.sinks[0]
    assert (sink.prefix, sink.layout.template) == ("a/b", "c-{time:yyyy-MM-dd}/{topic}-{partition}-{offset:020}")


@pytest.mark.parametrize(("variable", "zone"), [("utc_date", "UTC"), ("local_date", "Asia/Tokyo")])
def test_dates_of_the_flush(variable: str, zone: str) -> None:
    loaded = load({"aws.s3.prefix": f"{{{{ {variable} }}}}/", "timestamp.timezone": "Asia/Tokyo"})
    time = loaded.config.sinks[0].layout.time
    assert (time.source, time.timezone) == ("wallclock", zone)


@pytest.mark.parametrize(
    ("template", "records", "most", "expected"),
    [
        pytest.param(None, at(0, 10), "0", ["demo-0-10.gz"], id="A8"),
        pytest.param(None, [*at(0, 0, 1), *at(1, 10)], "0", ["demo-0-0.gz", "demo-1-10.gz"], id="A10"),
        pytest.param(None, at(0, 0, 1, 2, 3, 4), "2", ["demo-0-0.gz", "demo-0-2.gz", "demo-0-4.gz"], id="A11"),
        pytest.param(
            "{{topic}}-{{ partition:padding=true }}-{{start_offset:padding=true}}.csv",
            at(1, 4),
            "0",
            ["demo-0000000001-00000000000000000004.csv"],
            id="A13",
        ),
        pytest.param(
            f"{FULL}-{DAY}",
            [
                *at(1, 2000, timestamp=ms(2021, 10, 27)),
                *at(1, 2001, timestamp=ms(2021, 10, 28)),
                *at(1, 2002, 2003, timestamp=ms(2021, 10, 29)),
            ],
            "0",
            ["demo-1-2000-20211027", "demo-1-2001-20211028", "demo-1-2002-20211029"],
            id="A14, but start_offset is the file's",
        ),
        pytest.param(
            "{{key}}", [*at(0, 0, 1, key=b"a"), *at(0, 2, key=b"b"), *at(0, 3)], "0", ["a", "b", "null"], id="A17"
        ),
        pytest.param(
            "{{topic}}/{{partition}}/{{key}}.json", at(0, 7, key=b"a"), "1", ["demo/0/a.json"], id="key and partition"
        ),
        pytest.param(f"{FULL}-{{{{key}}}}", at(0, 7, key=b"a"), "0", ["demo-0-7-a"], id="key and offset"),
    ],
)
def test_keys_of_templates(template: str | None, records: list[Record], most: str, expected: list[str]) -> None:
    loaded = load({"file.name.template": template, "file.max.records": most, "file.name.timestamp.source": "event"})
    assert bases.keys_of(loaded, *records) == expected


def test_a_name_of_a_key_replaces_and_says_so() -> None:
    loaded = load({"file.name.template": "{{key}}"})
    assert loaded.config.sinks[0].exactly_once is False
    assert "exactly_once is false" in bases.remarks_text(loaded)
    assert load({"file.name.template": FULL}).config.sinks[0].exactly_once is True


def test_a20_a_template_is_rendered_as_it_is() -> None:
    loaded = load({"file.name.template": FULL, "file.compression.type": "gzip"})
    assert bases.keys_of(loaded, Record()) == ["demo-0-0"]
    assert "file.name.template" in bases.remarks_by_key(loaded)


@pytest.mark.parametrize(
    ("kind", "codec", "expected"),
    [
        ("csv", None, "demo-0-0.gz"),
        ("avro", None, "demo-0-0.avro"),
        ("avro", "none", "demo-0-0.avro"),
        ("parquet", None, "demo-0-0"),
        ("parquet", "zstd", "demo-0-0.zst"),
        ("json", "snappy", "demo-0-0.snappy"),
    ],
)
def test_extensions(kind: str, codec: str | None, expected: str) -> None:
    assert bases.keys_of(load({"format.output.type": kind, "file.compression.type": codec}), Record()) == [expected]


# Formats


@pytest.mark.parametrize(
    ("kind", "native", "frame"),
    [
        ("csv", "csv", ("", "\n", "")),
        ("jsonl", "json", ("", "\n", "")),
        ("json", "json_array", ("[\n", ",\n", "\n]")),
    ],
)
def test_text_formats_end_without_a_newline(kind: str, native: str, frame: tuple[str, str, str]) -> None:
    form = load({"format.output.type": kind}).config.sinks[0].format
    assert form.type == native
    assert form.effective_framing is not None
    assert (form.effective_framing.opening, form.effective_framing.between, form.effective_framing.closing) == frame
    assert form.header is (kind != "csv")


# Everything else

MISSING = dict.fromkeys(["key.converter", "value.converter", "value.converter.schemas.enable"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"format.output.type": "csv"}, {"format.codec": "gzip"}),
        ({"format.output.type": "json", "file.compression.type": "zstd"}, {"format.codec": "zstd"}),
        ({"format.output.type": "jsonl", "file.compression.type": "snappy"}, {"format.codec": "snappy_framed"}),
        ({"format.output.type": "parquet"}, {"format.codec": "none"}),
        ({"format.output.type": "parquet", "file.compression.type": "snappy"}, {"format.codec": "snappy"}),
        ({"format.output.type": "avro"}, {"format.codec": "none"}),
        ({"format.output.type": "avro", "avro.codec": "null"}, {"format.codec": "none"}),
        ({"format.output.type": "avro", "avro.codec": "deflate"}, {"format.codec": "deflate"}),
        ({"format.output.type": "avro", "avro.codec": "zstandard"}, {"format.codec": "zstd"}),
        (
            {"format.output.fields": "timestamp, value,key", "format.output.fields.value.encoding": "none"},
            {
                "envelope.style": "flat",
                "envelope.fields": ("timestamp", "value", "key"),
                "envelope.value_encoding": "none",
                "envelope.bare": False,
            },
        ),
        (
            {"format.output.fields": "key", "format.output.envelope": "false"},
            {"envelope.fields": ("key",), "envelope.bare": True},
        ),
        ({"format.output.envelope": "true"}, {"envelope.fields": ("value",), "envelope.bare": False}),
        ({"format.output.envelope": "false"}, {"envelope.fields": ("value",), "envelope.bare": True}),
        ({"format.output.type": "csv", **MISSING}, {"converter.value": "bytes"}),
        ({"format.output.type": "jsonl", **MISSING}, {"converter.value": "json"}),
        ({}, {"flush.count": None, "flush.size": 80 * 10**9, "flush.interval": 60}),
        (
            {"file.max.records": "5", "offset.flush.interval.ms": "10000"},
            {"flush.count": 5, "flush.interval": 10},
        ),
        (
            {"aws.s3.endpoint": "http://minio:9000"},
            {"s3.endpoint_url": "http://minio:9000", "s3.path_style": True, "s3.region": "us-east-1"},
        ),
        (
            {"aws.s3.backoff.max.retries": "7", "aws.s3.backoff.delay.ms": "9"},
            {"s3.retries.max_attempts": 7, "s3.retries.backoff_ms": 9},
        ),
    ],
)
def test_keys_are_native_settings(changes: dict[str, str | None], expected: dict[str, object]) -> None:
    assert bases.values(load(changes), *expected) == expected


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("aws_s3_bucket", "aws.s3.bucket.name", "other"),
        ("aws_s3_region", "aws.s3.region", "eu-west-1"),
        ("aws_s3_endpoint", "aws.s3.endpoint", "http://minio:9000"),
        ("aws_s3_prefix", "aws.s3.prefix", "x/"),
        ("output_fields", "format.output.fields", "key,value"),
        ("output_compression", "file.compression.type", "zstd"),
    ],
)
def test_old_names_are_taken_with_a_warning(old: str, new: str, value: str) -> None:
    loaded = load({"aws.s3.bucket.name": "lake", new: None, old: value} if new != old else {})
    assert loaded.config == load({"aws.s3.bucket.name": "lake", new: value}).config
    assert f"is an old name: write {new}" in {notice.message for notice in bases.remarks(loaded)}


def test_old_names_of_credentials() -> None:
    loaded = load({"aws_access_key_id": "AKIA", "aws_secret_access_key": "hush-hush"})
    assert loaded.config.s3.credentials != "default"
    assert "hush" not in bases.remarks_text(loaded)


def test_a_setting_changed_afterwards_changes_nothing_for_the_next_configuration() -> None:
    constant = {"opening": "", "between": "\n"}
    draft = Draft()
    draft.put("format.framing", constant)
    draft.put("format.framing.opening", "null")
    assert draft.values["format"]["framing"]["opening"] == "null"
    assert constant == {"opening": "", "between": "\n"}
