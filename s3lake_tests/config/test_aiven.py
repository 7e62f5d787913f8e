"""Aiven's S3 sink: what each key becomes, and the keys of objects of its own tests (A1 to A22)."""

from typing import Any

import pytest

from s3lake.config.draft import Draft, LoadedConfig
from s3lake.sink import Framing
from s3lake_tests.config import bases
from s3lake_tests.layout.files import Record, ms

FULL = "{{topic}}-{{partition}}-{{start_offset}}"
DAY = "{{timestamp:unit=yyyy}}{{timestamp:unit=MM}}{{timestamp:unit=dd}}"


def load(changes: dict[str, str | None] | None = None) -> LoadedConfig:
    return bases.load(bases.AIVEN, changes)


def at(partition: int, *offsets: int, **fields: Any) -> list[Record]:
    return [Record(offset, partition=partition, **fields) for offset in offsets]


def named(template: str, most: str = "0") -> dict[str, str | None]:
    return {"file.name.template": template, "file.max.records": most, "file.name.timestamp.source": "event"}


def formatted(kind: str, codec: str | None = None) -> dict[str, str | None]:
    return {"format.output.type": kind, "file.compression.type": codec}


@pytest.mark.parametrize(
    ("changes", "records", "expected"),
    [
        *(
            pytest.param(
                {"aws.s3.prefix": "aiven--", "file.compression.type": codec},
                at(0, 100),
                [f"aiven--demo-0-00000000000000000100{extension}"],
                id=f"A1 {codec}",
            )
            for codec, extension in (("none", ""), ("gzip", ".gz"), ("snappy", ".snappy"), ("zstd", ".zst"))
        ),
        pytest.param(
            {
                "aws.s3.prefix": "{{timestamp:unit=YYYY}}/{{ timestamp:unit=MM }}/{{timestamp:unit=dd}}/",
                "timestamp.timezone": "Europe/Berlin",
            },
            at(0, 0),
            ["2024/01/15/demo-0-00000000000000000000.gz"],
            id="A4",
        ),
        pytest.param({}, at(0, 10), ["demo-0-10.gz"], id="A8"),
        pytest.param({}, [*at(0, 0, 1), *at(1, 10)], ["demo-0-0.gz", "demo-1-10.gz"], id="A10"),
        pytest.param(
            {"file.max.records": "2"}, at(0, 0, 1, 2, 3, 4), ["demo-0-0.gz", "demo-0-2.gz", "demo-0-4.gz"], id="A11"
        ),
        pytest.param(
            named("{{topic}}-{{ partition:padding=true }}-{{start_offset:padding=true}}.csv"),
            at(1, 4),
            ["demo-0000000001-00000000000000000004.csv"],
            id="A13",
        ),
        pytest.param(
            named(f"{FULL}-{DAY}"),
            [
                *at(1, 2000, timestamp=ms(2021, 10, 27)),
                *at(1, 2001, timestamp=ms(2021, 10, 28)),
                *at(1, 2002, 2003, timestamp=ms(2021, 10, 29)),
            ],
            ["demo-1-2000-20211027", "demo-1-2001-20211028", "demo-1-2002-20211029"],
            id="A14, but start_offset is the file's",
        ),
        pytest.param(
            named("{{key}}"),
            [*at(0, 0, 1, key=b"a"), *at(0, 2, key=b"b"), *at(0, 3)],
            ["a", "b", "null"],
            id="A17",
        ),
        pytest.param(
            named("{{topic}}/{{partition}}/{{key}}.json", "1"),
            at(0, 7, key=b"a"),
            ["demo/0/a.json"],
            id="key and partition",
        ),
        pytest.param(named(f"{FULL}-{{{{key}}}}"), at(0, 7, key=b"a"), ["demo-0-7-a"], id="key and offset"),
        pytest.param({**named(FULL), "file.compression.type": "gzip"}, at(0, 0), ["demo-0-0"], id="A20"),
        (formatted("csv"), at(0, 0), ["demo-0-0.gz"]),
        (formatted("avro"), at(0, 0), ["demo-0-0.avro"]),
        (formatted("avro", "none"), at(0, 0), ["demo-0-0.avro"]),
        (formatted("parquet"), at(0, 0), ["demo-0-0"]),
        (formatted("parquet", "zstd"), at(0, 0), ["demo-0-0.zst"]),
        (formatted("json", "snappy"), at(0, 0), ["demo-0-0.snappy"]),
    ],
)
def test_keys_of_objects(changes: dict[str, str | None], records: list[Record], expected: list[str]) -> None:
    made = bases.keys_of(load(changes), *records, wallclock_ms=ms(2024, 1, 14, 23, 30))
    assert made == expected


def test_a_name_that_replaces_or_hides_its_codec_is_noted() -> None:
    assert "exactly_once is false" in bases.remarks_text(load({"file.name.template": "{{key}}"}))
    gzip: dict[str, str | None] = {"file.name.template": FULL, "file.compression.type": "gzip"}
    assert "file.name.template" in bases.remarks_by_key(load(gzip))


# Everything else

MISSING = dict.fromkeys(["key.converter", "value.converter", "value.converter.schemas.enable"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(
            (
                {"format.output.type": kind},
                {
                    "format.type": native,
                    "format.header": kind != "csv",
                    "format.framing": Framing(opening=opening, between=between, closing=closing),
                },
            )
            for kind, native, opening, between, closing in (
                ("csv", "csv", "", "\n", ""),
                ("jsonl", "json", "", "\n", ""),
                ("json", "json_array", "[\n", ",\n", "\n]"),
            )
        ),
        (
            {"aws.s3.prefix": "a/b/c-{{ utc_date }}/"},
            {"prefix": "a/b", "layout.template": "c-{time:yyyy-MM-dd}/{topic}-{partition}-{offset:020}"},
        ),
        *(
            (
                {"aws.s3.prefix": f"{{{{ {variable} }}}}/", "timestamp.timezone": "Asia/Tokyo"},
                {"layout.time.source": "wallclock", "layout.time.timezone": zone},
            )
            for variable, zone in (("utc_date", "UTC"), ("local_date", "Asia/Tokyo"))
        ),
        ({"file.name.template": "{{key}}"}, {"exactly_once": False}),
        ({"file.name.template": FULL}, {"exactly_once": True}),
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


def test_a_setting_changed_afterwards_changes_nothing_for_the_next_configuration() -> None:
    constant = {"opening": "", "between": "\n"}
    draft = Draft()
    draft.put("format.framing", constant)
    draft.put("format.framing.opening", "null")
    assert draft.values["format"]["framing"]["opening"] == "null"
    assert constant == {"opening": "", "between": "\n"}
