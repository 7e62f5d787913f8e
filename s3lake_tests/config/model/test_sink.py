"""The sink model: defaults, rules, and the same classes through Dagster's Resolvable."""

import base64
import pickle
import re
from typing import Any

import pytest
from pydantic import ValidationError

from s3lake.config.model import S3, Config, Format, Kafka, Sink
from s3lake.config.model.error_handling import Threshold
from s3lake_tests.kit.sinks import make_config, make_sink
from s3lake_tests.kit.tables import read_each, read_settings, rows


def sink(**changes: Any) -> Sink:
    return make_sink(**{"topics": ["events"], **changes})


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        sink(**changes)
    return str(refused.value)


# Defaults


def test_the_default_codec_is_the_formats() -> None:
    assert (sink().format.codec, Format(type="parquet").codec) == ("none", "zstd")


def test_directories_have_names_by_default_with_partition_by() -> None:
    assert sink().layout.include_keys is False
    assert sink(layout={"partition_by": ["type"]}).layout.include_keys is True
    assert sink(layout={"partition_by": ["type"], "include_keys": False}).layout.include_keys is False


def test_parts_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        sink().name = "other"  # type: ignore[misc]


def test_a_sink_that_joins_a_configuration_stays_as_it_was() -> None:
    logs, views = sink(name="logs", index={"prefix": "a"}), sink(name="views", index={"prefix": "b"}, prefix="views")
    config = Config(kafka=Kafka(bootstrap_servers="h:1"), sinks=(logs, views))

    assert [each.other_indexes for each in config.sinks] == [("b",), ("a",)]
    assert (logs.other_indexes, views.other_indexes) == ((), ())


def test_a_sink_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(sink(layout={"partition_by": ["type"]}))) == sink(
        layout={"partition_by": ["type"]}
    )


# Quantities


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500MB", 500_000_000), ("5 MiB", 5 * 2**20), ("1000", 1000), ("2GB", 2 * 10**9), ("7kB", 7000), (1234, 1234)],
)
def test_sizes_are_bytes_or_have_a_unit(text: str | int, expected: int) -> None:
    assert sink(flush={"size": text}).flush.size == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("1h", 3600.0), ("5m", 300.0), ("90s", 90.0), ("250ms", 0.25), ("1d", 86400.0), (2.5, 2.5)]
)
def test_durations_are_seconds_or_have_a_unit(text: str | float, expected: float) -> None:
    assert sink(flush={"interval": text}).flush.interval == expected


# Names and keys


@pytest.mark.parametrize(("prefix", "root"), [("", ""), ("raw", "raw/"), ("raw/", "raw/"), ("a/b", "a/b/")])
def test_the_root_is_empty_or_ends_in_one_slash(prefix: str, root: str) -> None:
    assert sink(prefix=prefix).root == root


def test_right_padding_takes_another_character_than_zero() -> None:
    assert sink(layout={"padding": {"type": "right", "char": "_"}}).layout.padding.char == "_"


# Combinations


def test_an_expression_matches_whole_names() -> None:
    made = sink(topics=[], topics_regex="ev.*")
    assert (made.reads("events"), made.reads("old-events")) == (True, False)


def test_bytes_count_to_one() -> None:
    assert sink(format={"type": "bytes"}).flush.count == 1
    assert sink(format={"type": "bytes", "framing": {}}).flush.count is None
    assert "writes one record an object: set flush.count to 1" in refusal(format={"type": "bytes"}, flush={"count": 2})


@pytest.mark.parametrize(
    "layout",
    [
        {"template": None},
        {"partition_by": ["type"]},
        {"include_keys": True},
        {"padding": {"offset": 20}},
        {"suffix": "-a"},
        {"connector_names": True},
    ],
)
def test_an_option_of_lenses_replaces_the_default_template(layout: dict[str, Any]) -> None:
    made = sink(layout=layout)
    assert made.layout.template is None
    assert Sink.model_validate_json(made.model_dump_json(by_alias=True)) == made


def test_an_extension_alone_keeps_the_default_template() -> None:
    made = sink(layout={"extension": ".jsonl", "missing": "none"})
    assert made.layout.template == sink().layout.template


def test_tombstones_keep_only_their_key() -> None:
    layout = {"template": "{topic}/{partition}/{offset}", "tombstones": "{topic}/tombstone/{partition}+{offset}"}
    assert "set nulls: write and sidecars.keys" in refusal(layout=layout)
    assert sink(layout=layout, nulls="write", sidecars={"keys": "avro"}).layout.tombstones is not None


@pytest.mark.parametrize(
    ("format", "extension"),
    [
        ({"type": "json"}, ".json"),
        ({"type": "json", "codec": "gzip"}, ".json.gz"),
        ({"type": "json", "codec": "zstd"}, ".json.zst"),
        ({"type": "text"}, ".text"),
        ({"type": "text", "codec": "gzip"}, ".text.gz"),
        ({"type": "parquet"}, ".parquet"),
        ({"type": "parquet", "codec": "gzip"}, ".parquet"),
    ],
)
def test_the_extension_names_the_codec_of_text_only(format: dict[str, str], extension: str) -> None:
    assert Format(**format).extension == extension  # type: ignore[arg-type]


def test_a_whole_key_names_directories_with_any_converter() -> None:
    for converter in ("string", "bytes", "json"):
        assert sink(converter={"key": converter}, layout={"partition_by": ["_key"]}).layout.partition_by == ("_key",)


# What is refused

TABLE = 'format.type: parquet, table.name: lake.t, table.catalog: {type: sql, uri: "sqlite:////data/catalog.db"}'
DEAD_LETTERS = "errors.tolerance: all, errors.dead_letter_topic.name: dead"
REFUSED = rf"""
flush.size => each flush.size: [5XB, "-1", 1.5GB, "", "0", 0, -1, true, 81GB]
flush.interval => each flush.interval: [1 hour, -1s, "", -1, true, .inf, .nan]
batch_records => each batch_records: [0, true]
hours_per_run => hours_per_run: 0
memory_budget => memory_budget: 63MB
close_grace => close_grace: -1
name => each name: ["", two words, dotted.name, ümlaut, {"x" * 101}]
a bucket has 3 to 63 =>
    each bucket: ["", ab, Upper, under_score, dot..dot, -lake, lake-, {"x" * 64}, "s3://lake"]
a topic has letters, digits =>
    each topics: [[a, ""], [a, .], [a, ..], [a, two words], [a, a/b], [a, "*"], [a, {"x" * 250}]]
'events' is named twice => topics: [events, events]
take one of them out => topics_regex: events
'(' is not a regular expression => topics: [], topics_regex: (
prefix => each prefix: [/raw, raw//kafka, ../up, a/./b, raw/_dead_letters, raw/.probe, "a\tb", {"x" * 481}]
index.prefix => each index.prefix: ["", /, //]
is not an hour: write it as YYYY-MM-DDTHH in UTC =>
    each start: ["2026-11-20", 2026-11-20T24, "2026-11-20T00:00", yesterday]
layout.suffix => each layout.suffix: [a/b, a~b, "a\nb", {"x" * 65}]
layout.padding.char => each layout.padding.char: ["", "00", /, "~", "\\", é, "\n"]
layout.padding.offset => each layout.padding.offset: [-1, 65]
can make one key of two offsets => layout.padding.type: right, layout.padding.char: "0"
can make one key of two offsets => layout.padding.type: right, layout.padding.char: "9"
can make one key of two offsets => layout.padding.type: left, layout.padding.char: "1"
give layout.template too => layout.time.timezone: "+02:00"
does not give => converter.value: string, layout.partition_by: [type]
does not give => converter.value: bytes, layout.partition_by: [_value.a.b]
does not give => layout.partition_by: [_key.region]
1 => format.type: parquet, format.codec: snappy, format.level: 1
1 => format.type: parquet, format.codec: none, format.level: 1
a file of format parquet has no header line => format.type: parquet, format.header: false
a file of format json has no schema with connect.* => format.connect_properties: false
style record has no value in CSV => envelope.style: record, envelope.value_encoding: none
style record does not print it => envelope.style: record, envelope.stream: events
style flat does not print it => envelope.style: flat, envelope.topic: events
envelope record is not supported for format csv => envelope.style: record, format.type: csv
envelope record is not supported for format text; use format json, json_array, avro, parquet, or take =>
    envelope.style: record, format.type: text
envelope record is not supported for format bytes => envelope.style: record, format.type: bytes
envelope iggy is not supported for format avro; use format json, json_array, or take it out =>
    envelope.style: iggy, format.type: avro
envelope flat is not supported for format text => envelope.style: flat, format.type: text
'offset' is not a part of style record: use key, value, headers, metadata => envelope.fields: [offset]
'key' is named twice => envelope.fields: [key, key]
bare needs style flat and exactly one field => envelope: {{style: flat, fields: [key, value], bare: true}}
bare needs style flat and exactly one field => envelope.bare: true
columns need format avro, parquet or csv => columns: {{a: int32}}
converter.value json, connect_json => format.type: avro, converter.value: string, columns: {{a: int32}}
select 'a b c' is not Spark SQL => sql.select: a b c
where 'a =' is not Spark SQL => sql.where: a =
'user' needs a field of the value, which converter.value string does not give =>
    converter.value: string, sql.select: user
SQL does not read the values of converter.value connect_json: set it to json, and take the payload =>
    converter.value: connect_json, sql.select: a
SQL does not read the values of converter.value connect_json: set it to json, and take the payload =>
    converter.value: connect_json, sql.where: a > 1
-1 is out of range => errors.max_retries: -1
-1s is out of range: at least 0s => errors.retry_interval: -1
-1s is out of range: at least 0s => errors.retry_timeout: -1
-1s is out of range: at least 0s => errors.retry_delay: -1
-1s is out of range: at least 0s => flush.interval: -1
-1s is out of range: at least 0s => close_grace: -1
0s is out of range: at least 1ms => flush.span: 0
0s is out of range: at least 1ms => layout.time.duration: 0
0s is out of range: at least 1s => sealed.within: 0
10m is out of range: at least 1h => retention: 10m
its own dead letters; name another topic => {DEAD_LETTERS}, errors.dead_letter_topic.name: events
a dead letter topic needs errors.tolerance: all => errors.dead_letter_topic.name: dead
letters, digits => each errors.dead_letter_topic.name: ["", ., .., a b, a/b, {"x" * 250}], errors.tolerance: all
is out of range: at least 1, or -1 => {DEAD_LETTERS}, errors.dead_letter_topic.replication_factor: 0
is out of range: at least 1, or -1 => {DEAD_LETTERS}, errors.dead_letter_topic.replication_factor: -2
a table lists files of parquet, this sink writes json; write format.type: parquet, or take => {TABLE}, format.type: json
a table needs exactly_once => {TABLE}, exactly_once: false
a table of its own with {{topic}} => {TABLE}, topics: [a, b]
a table of its own with {{topic}} => {TABLE}, topics: []
namespace.table => {TABLE}, table.name: events
take the '/' at the template's beginning => {TABLE}, layout.template: "/{{topic}}-{{partition}}-{{offset}}"
'type': a file has one value only of a field in layout.partition_by => {TABLE}, table.partition: [hour, type]
hour is missing => {TABLE}, table.partition: []
needs a uri => {TABLE}, table.catalog: {{type: sql}}
None is not a catalog: use one of rest, glue, sql, hive => {TABLE}, table.catalog: {{uri: x}}
write s3://BUCKET/PREFIX => {TABLE}, table.location: /tmp/here
is inside an index => {TABLE}, table.location: "s3://lake/.indexes/s"
is inside an index => {TABLE}, table.location: "s3://other/raw/.indexes/"
is inside an index => {TABLE}, table.location: "s3a://lake/ix/", index.prefix: ix
"""


@pytest.mark.parametrize(("message", "settings"), rows(REFUSED))
def test_a_contradictory_sink_is_refused_with_the_reason(message: str, settings: str) -> None:
    for changes in read_each(settings):
        assert message in refusal(**changes)


# Several sinks


def test_a_renamed_sink_keeps_its_index_by_its_former_name() -> None:
    assert (sink().index_root, sink(index={"name": "former"}).index_root) == (".indexes/events", ".indexes/former")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "renamed", "prefix": "other", "index": {"name": "events"}}, "would share the index .indexes/events:"),
        ({"bucket": "other"}, "two sinks are called 'a-b'"),
        ({"name": "a_b", "bucket": "other"}, "get one name in Dagster"),
        ({"name": "copy"}, "can write the same object keys in bucket 'lake'"),
        (
            {"name": "inside", "prefix": ".indexes/events", "index": {"prefix": "own"}},
            "is in the index of sink 'a-b'",
        ),
    ],
)
def test_two_sinks_that_would_meet_are_refused(other: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        make_config(sink(name="a-b", index={"name": "events"}), sink(**{"name": "a-b", **other}))


def test_a_sink_is_found_by_its_name() -> None:
    assert make_config(sink()).sink("events") == sink()
    with pytest.raises(KeyError, match="there are events"):
        make_config(sink()).sink("clicks")


# S3


@pytest.mark.parametrize("url", ["minio:9000", "ftp://minio", "http://minio/bucket", "http://minio?x=1", ""])
def test_an_endpoint_is_an_address_without_a_path(url: str) -> None:
    with pytest.raises(ValidationError, match="is not an endpoint"):
        Config(kafka=Kafka(bootstrap_servers="a:1"), s3={"endpoint_url": url}, sinks=(sink(),))  # type: ignore[arg-type]


MINE = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.mark.parametrize(
    ("s3", "why"),
    [
        ({"objects": {"customer_key": "c2hvcnQ="}}, "is not a key of 32 bytes in base64"),
        ({"objects": {"customer_key": MINE, "encryption": "AES256"}}, "take encryption or customer_key out"),
        ({"objects": {"customer_key": MINE}, "endpoint_url": "http://minio:9000"}, "travel in the clear"),
        ({"objects": {"kms_key_id": "k"}}, "write encryption: aws:kms"),
        ({"objects": {"tags": {str(number): "" for number in range(11)}}}, "11 tags are too many"),
        ({"objects": {"tags": {"aws:x": "y"}}}, "does not begin with aws:"),
        ({"objects": {"storage_class": "DEEP_ARCHIVE"}}, "'GLACIER_IR'"),
        ({"objects": {"acl": "everybody"}}, "bucket-owner-full-control"),
        ({"accelerate": True}, "path_style: false"),
        ({"region": "eu central 1"}, "a region is a part of a host name"),
        ({"region": ""}, "a region is a part of a host name"),
        ({"credentials": "instance", "profile": "lake"}, "credentials: profile"),
        ({"credentials": "anonymous", "role": {"arn": "arn:aws:iam::1:role/a"}}, "cannot assume a role"),
        ({"role": {"arn": "arn:aws:iam::1:role/a", "token_file": "t", "external_id": "e"}}, "no external id"),
        ({"role": {"arn": "lake"}}, "not allowed: an ARN, arn:aws:iam::ACCOUNT:role/NAME"),
        ({"role": {"arn": "arn:aws:iam::1:role/a", "duration": "1m"}}, "out of range: 15m to 12h"),
        ({"role": {"arn": "arn:aws:iam::1:role/a", "session_name": "a b"}}, "2 to 64 of"),
        ({"retries": {"patience": -1}}, "-1s is out of range: at least 0s"),
        ({"proxy": {"url": "http://me:hush@proxy:3128"}}, "user and password are settings next to it"),
    ],
)
def test_an_invalid_setting_of_s3_is_refused_with_the_remedy(s3: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        S3.model_validate(s3)
    assert "c2hvcnQ" not in str(refused.value)
    assert MINE not in str(refused.value)


def test_offset_tags_leave_room_for_seven_tags() -> None:
    tags = {f"tag {number}": "x" for number in range(8)}
    with pytest.raises(ValueError, match="8 tags are too many next to offset_tags: an object has at most 10"):
        S3.model_validate({"objects": {"tags": tags, "offset_tags": "tried"}})


# Errors


def test_replicas_may_be_left_to_the_brokers() -> None:
    assert sink(**read_settings(f"{DEAD_LETTERS}, errors.dead_letter_topic.replication_factor: -1"))


def test_retries_are_a_number_and_a_duration() -> None:
    errors = sink(errors={"max_retries": 20, "retry_interval": "1m"}).errors
    assert (errors.max_retries, errors.retry_interval) == (20, 60.0)
    assert errors.model_dump(mode="json")["retry_interval"] == "1m"


def test_sql_of_values_without_fields_reads_the_whole_value() -> None:
    whole = {"select": "split(value, ',')[0] AS a, _key AS k"}
    assert sink(converter={"value": "string"}, sql=whole).sql is not None


def test_sql_of_values_with_a_schema_reads_what_transforms_took_out_of_them() -> None:
    unwrap = {"type": "iggy.unwrap_envelope", "options": {"field": "payload"}}
    assert sink(converter={"value": "connect_json"}, transforms=[unwrap], sql={"select": "a"}).sql is not None
    assert sink(converter={"value": "connect_json"}, sql={"where": "_offset > 5"}).sql is not None


def test_a_table_is_named_after_sink_and_topic() -> None:
    table = sink(**read_settings(f"{TABLE}, table.name: 'lake_{{sink}}.{{topic}}_raw'")).table
    assert table is not None
    assert table.identifier("my-events", "a.b-c") == "lake_my_events.a_b_c_raw"


@pytest.mark.parametrize(
    ("threshold", "dead", "exceeded"),
    [
        ({}, 0, False),
        ({}, 1, True),
        ({"number": 5}, 5, False),
        ({"number": 5}, 6, True),
        ({"share": 0.01}, 10, False),
        ({"share": 0.01}, 11, True),
        ({"share": 0.01, "number": 5}, 6, True),
    ],
)
def test_a_threshold_is_exceeded_by_more_than_its_number_or_its_share(
    threshold: dict[str, Any], dead: int, exceeded: bool
) -> None:
    assert Threshold.model_validate(threshold).is_exceeded(dead, 1_000) is exceeded


def test_a_share_is_at_most_one() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        Threshold(share=1.5)
