"""Lenses' S3 sink: what each key and property becomes, and the keys of objects of reference/lenses.md 1.6."""

from typing import Any

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.sink import Errors, Sink
from s3lake_tests.config import bases
from s3lake_tests.layout.files import Record

JSON_KEY: dict[str, str | None] = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
}


def load(rest: str = "", topics: str = "demo", target: str = "lake:raw", **settings: str) -> LoadedConfig:
    """The base with a KCQL tail and settings, whose dots are underscores."""
    changes: dict[str, str | None] = {key.replace("__", "."): value for key, value in settings.items()}
    query = f"INSERT INTO {target} SELECT * FROM demo {rest}"
    return bases.load(bases.LENSES, {"topics": topics, "connect.s3.kcql": query, **changes})


def sink(rest: str = "", **settings: str) -> Sink:
    (found,) = load(rest, **settings).config.sinks
    return found


def s3(key: str, value: str) -> LoadedConfig:
    return bases.load(bases.LENSES, {f"connect.s3.{key}": value})


def noticed(loaded: LoadedConfig) -> set[str]:
    return {notice.place.key for notice in bases.remarks(loaded)}


# Keys of objects: rows 1 to 38 of the table, with the first record's offset and the topic directory that the document
# promises (compatibility.md, Object keys)

PAD = "'padding.length.partition'=12,'padding.length.offset'=12"
KEYED = b'{"region":8,"phonePrefix":"+44"}'


@pytest.mark.parametrize(
    ("rest", "record", "expected"),
    [
        pytest.param("PROPERTIES('flush.count'=1)", {}, "raw/demo/1/000000000002.json", id="2"),
        pytest.param("STOREAS `Parquet`", {}, "raw/demo/1/000000000002.parquet", id="4"),
        pytest.param("STOREAS `AVRO`", {}, "raw/demo/1/000000000002.avro", id="5"),
        pytest.param("STOREAS `CSV_WITHHEADERS`", {}, "raw/demo/1/000000000002.csv", id="7"),
        pytest.param("STOREAS `BYTES` PROPERTIES('flush.count'=1)", {}, "raw/demo/1/000000000002.bytes", id="8"),
        pytest.param("STOREAS TEXT", {}, "raw/demo/1/000000000002.text", id="text"),
        pytest.param(
            "PARTITIONBY name,title,salary",
            {"value": b'{"name":"first","title":null,"salary":200.0}'},
            "raw/demo/name=first/title=[missing]/salary=200.0/demo(1_000000000002).json",
            id="10",
        ),
        pytest.param(
            "PARTITIONBY _header.phonePrefix,_header.region STOREAS `CSV`",
            {"headers": (("phonePrefix", b"+44"), ("region", b"8"))},
            "raw/demo/phonePrefix=+44/region=8/demo(1_000000000002).csv",
            id="13",
        ),
        pytest.param("PARTITIONBY _key", {"key": b"0"}, "raw/demo/key=0/demo(1_000000000002).json", id="16"),
        pytest.param(
            "PARTITIONBY _key PROPERTIES('partition.include.keys'=false)",
            {"key": b"1"},
            "raw/demo/1/demo(1_000000000002).json",
            id="17",
        ),
        pytest.param(
            f"PARTITIONBY _topic, _partition PROPERTIES({PAD}, 'partition.include.keys'=false)",
            {},
            "raw/demo/demo/000000000001/demo(000000000001_000000000002).json",
            id="19",
        ),
        pytest.param(
            "PARTITIONBY _value.user.name",
            {"value": b'{"user":{"name":"laura"}}'},
            "raw/demo/user.name=laura/demo(1_000000000002).json",
            id="25",
        ),
        pytest.param(f"PROPERTIES({PAD})", {}, "raw/demo/000000000001/000000000002.json", id="28"),
        pytest.param(
            "PARTITIONBY _date.uuuu,_date.LL,_date.dd PROPERTIES('partition.include.keys'=false)",
            {"timestamp": 1_270_188_000_000},
            "raw/demo/2010/04/02/demo(1_000000000002).json",
            id="29",
        ),
        pytest.param("NOPARTITION", {}, "raw/demo(1_000000000002).json", id="31"),
        pytest.param(f"NOPARTITION PROPERTIES({PAD})", {}, "raw/demo(000000000001_000000000002).json", id="31, padded"),
        pytest.param(
            "NOPARTITION PROPERTIES('padding.type'=NoOp,'key.suffix'='-x')", {}, "raw/demo(1_2)-x.json", id="31, suffix"
        ),
        pytest.param(
            "NOPARTITION PROPERTIES('padding.type'=RightPad,'padding.char'='_','padding.length.offset'=3)",
            {},
            "raw/demo(1_2__).json",
            id="31, right",
        ),
        pytest.param("PROPERTIES('key.suffix'='-my-suffix')", {}, "raw/demo/1/000000000002-my-suffix.json", id="34"),
        pytest.param(
            "PROPERTIES('partition.include.keys'=true)", {}, "raw/topic=demo/partition=1/000000000002.json", id="37"
        ),
        pytest.param(
            "PROPERTIES('padding.length.partition'='12')", {}, "raw/demo/000000000001/000000000002.json", id="38"
        ),
        pytest.param(
            "PARTITIONBY _headers.x, fieldA",
            {"headers": (("x", b"1"),), "value": b'{"fieldA":2}'},
            "raw/demo/x=1/fieldA=2/demo(1_000000000002).json",
            id="40",
        ),
    ],
)
def test_keys(rest: str, record: dict[str, Any], expected: str) -> None:
    assert bases.keys_of(load(rest), Record(2, partition=1, **record)) == [expected]


def test_keys_of_fields_of_the_key() -> None:
    query = "INSERT INTO lake SELECT * FROM demo PARTITIONBY _key.region, _key.`phonePrefix`"
    loaded = bases.load(bases.LENSES, {"connect.s3.kcql": query, **JSON_KEY})
    assert bases.keys_of(loaded, Record(key=KEYED)) == ["demo/region=8/phonePrefix=+44/demo(0_000000000000).json"]


def test_a_codec_is_in_the_name_of_text_files() -> None:
    loaded = load(connect__s3__compression__codec="GZIP")
    assert bases.keys_of(loaded, Record()) == ["raw/demo/0/000000000000.json.gz"]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("", "raw/demo/1/000000000003_100_300.gz"),
        ("STOREAS AVRO", "raw/demo/1/000000000003_100_300.avro"),
        ("PARTITIONBY _key", "raw/key=a/demo(1_000000000003).gz"),
        ("NOPARTITION", "raw/demo(1_000000000003).gz"),
    ],
)
def test_connector_names_are_those_that_the_connector_really_gives(rest: str, expected: str) -> None:
    codec = {} if "AVRO" in rest else {"connect__s3__compression__codec": "GZIP"}
    if rest == "NOPARTITION":
        names = {"s3lake__layout__template": "{topic}({partition}_{last_offset:12})"}
    else:
        names = {"s3lake__layout__connector_names": "true"}
    if codec:
        names["s3lake__layout__extension"] = ".gz"
    loaded = load(rest, **names, **codec)
    records = [Record(offset, timestamp=stamp, key=b"a", partition=1) for offset, stamp in ((2, 300), (3, 100))]
    assert bases.keys_of(loaded, *records) == [expected]


# Topics


def test_several_statements_are_several_sinks() -> None:
    query = "INSERT INTO one SELECT * FROM a; INSERT INTO two:p SELECT * FROM b STOREAS CSV; "
    query += "INSERT INTO two:q SELECT * FROM b"
    loaded = bases.load(bases.LENSES, {"topics": "a,b", "connect.s3.kcql": query})
    found = [(sink.name, sink.bucket, sink.prefix, sink.topics) for sink in loaded.config.sinks]
    assert found == [
        ("demo-a", "one", "", ("a",)),
        ("demo-b", "two", "p", ("b",)),
        ("demo-b-2", "two", "q", ("b",)),
    ]
    assert any("each statement is a sink with an index of its own" in str(notice) for notice in bases.remarks(loaded))


def test_a_topic_of_its_own_beats_the_wildcard() -> None:
    query = "INSERT INTO one SELECT * FROM `*`; INSERT INTO two SELECT * FROM b"
    loaded = bases.load(bases.LENSES, {"topics": "a,b,c", "connect.s3.kcql": query})
    assert [(sink.name, sink.topics) for sink in loaded.config.sinks] == [("demo-all", ("a", "c")), ("demo-b", ("b",))]


def test_a_topic_of_its_own_beats_the_wildcard_of_an_expression() -> None:
    query = "INSERT INTO one SELECT * FROM `*`; INSERT INTO two SELECT * FROM sensor.1"
    changes = {"topics": None, "topics.regex": "sensor[.].*|x", "connect.s3.kcql": query}
    rest, own = bases.load(bases.LENSES, changes).config.sinks
    assert own.topics == ("sensor.1",)
    assert [rest.reads(topic) for topic in ("sensor.1", "sensor.11", "sensor.2", "x", "y")] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_a_projection_and_a_condition_change_nothing_and_the_notice_names_the_settings_that_do() -> None:
    query = "INSERT INTO lake SELECT a, b.c AS d FROM demo WHERE a > 1"
    loaded = bases.load(bases.LENSES, {"connect.s3.kcql": query})
    assert loaded.config.sinks[0].sql is None
    told = "\n".join(notice.message for notice in loaded.notices)
    assert "SELECT leaves no field out" in told
    assert "write s3lake.sql.select=a, b.c AS d" in told
    assert "write s3lake.sql.where=a > 1" in told
    wanted: dict[str, str | None] = {"s3lake.sql.select": "a", "s3lake.sql.where": "a > 1"}
    loaded = bases.load(bases.LENSES, {"connect.s3.kcql": query, **wanted})
    sql = loaded.config.sinks[0].sql
    assert sql is not None
    assert (sql.select, sql.where) == ("a", "a > 1")
    assert not any("leaves no" in notice.message for notice in loaded.notices)


def test_one_of_several_statements_is_projected_by_its_variable() -> None:
    changes: dict[str, str | None] = {
        "topics": "a,b",
        "connect.s3.kcql": "INSERT INTO one SELECT x FROM a; INSERT INTO two SELECT x FROM b",
    }
    loaded = bases.load(bases.LENSES, changes, S3LAKE_SINKS_DEMO_A_SQL_SELECT="x")
    first, second = loaded.config.sinks
    assert (first.sql and first.sql.select, second.sql) == ("x", None)
    (told,) = [notice.message for notice in loaded.notices if "SELECT leaves no field out" in notice.message]
    assert told.endswith("to have it, write S3LAKE_SINKS_DEMO_B_SQL_SELECT=x")


def test_a_connectors_name_becomes_a_sinks_name() -> None:
    loaded = bases.load(bases.LENSES, {"name": "my connector.v2"})
    assert loaded.config.sinks[0].name == "my-connector-v2"
    assert "name" in noticed(loaded)


# Properties


def test_flush_defaults_are_the_documents() -> None:
    flush = sink().flush
    assert (flush.count, flush.size, flush.interval) == (50_000, 500_000_000, 3_600)


def test_flush() -> None:
    flush = sink("PROPERTIES('flush.count'='7', 'flush.size'=8, 'FLUSH.INTERVAL'=9)").flush
    assert (flush.count, flush.size, flush.interval) == (7, 8, 9)


def test_without_a_count() -> None:
    assert sink(connect__s3__disable__flush__count="true").flush.count is None


def test_bytes_is_one_record_an_object() -> None:
    assert sink("STOREAS BYTES").flush.count == 1


@pytest.mark.parametrize(("rest", "header"), [("STOREAS CSV", True), ("STOREAS CSV_WITHHEADERS", True)])
def test_csv_has_a_header(rest: str, header: bool) -> None:
    assert sink(rest).format.header is header
    assert sink(rest, s3lake__format__header="false").format.header is False


def test_the_envelope() -> None:
    envelope = sink("PROPERTIES('store.envelope'=true)").envelope
    assert envelope is not None
    assert (envelope.style, envelope.fields) == ("record", ("key", "value", "headers", "metadata"))
    fields = {"key": "true", "value": "false", "headers": "TRUE", "metadata": "false"}
    listed = ", ".join(f"'store.envelope.fields.{name}'={value}" for name, value in fields.items())
    some = sink(f"PARTITIONBY a PROPERTIES('store.envelope'='true', {listed})").envelope
    assert some is not None
    assert some.fields == ("key", "headers")
    assert sink("PROPERTIES('store.envelope'=false)").envelope is None


def test_padding_of_the_connector() -> None:
    padding = sink(connect__s3__padding__strategy="NoOp", connect__s3__padding__length="-1").layout.padding
    assert (padding.type, padding.offset) == ("none", 12)
    assert sink(connect__s3__padding__length="5").layout.padding.offset == 5


# Keys of the connector


@pytest.mark.parametrize(("skip", "nulls"), [("true", "skip"), ("false", "write")])
def test_null_values(skip: str, nulls: str) -> None:
    assert s3("skip.null.values", skip).config.sinks[0].nulls == nulls
    assert sink().nulls == "write"


@pytest.mark.parametrize(
    ("codec", "rest", "expected"),
    [
        ("UNCOMPRESSED", "STOREAS AVRO", "none"),
        ("SNAPPY", "STOREAS AVRO", "snappy"),
        ("BZIP2", "STOREAS AVRO", "bzip2"),
        ("zstd", "STOREAS AVRO", "zstd"),
        ("DEFLATE", "STOREAS AVRO", "deflate"),
        ("XZ", "STOREAS AVRO", "xz"),
        ("BROTLI", "STOREAS PARQUET", "brotli"),
        ("LZ4", "STOREAS PARQUET", "lz4"),
        ("GZIP", "STOREAS PARQUET", "gzip"),
        ("ZSTD", "STOREAS CSV", "zstd"),
    ],
)
def test_codecs(codec: str, rest: str, expected: str) -> None:
    assert sink(rest, connect__s3__compression__codec=codec).format.codec == expected


def test_files_are_not_compressed_unless_said() -> None:
    assert [sink(f"STOREAS {form}").format.codec for form in ("AVRO", "PARQUET", "JSON")] == ["none"] * 3


def test_compression_level() -> None:
    settings = {"connect__s3__compression__codec": "ZSTD", "connect__s3__compression__level": "5"}
    assert sink("STOREAS AVRO", **settings).format.level == 5


def test_where_the_bucket_is() -> None:
    loaded = load(
        connect__s3__aws__region="eu-west-2",
        connect__s3__custom__endpoint="http://minio:9000",
        connect__s3__pool__max__connections="7",
        connect__s3__http__max__retries="4",
        connect__s3__http__retry__interval="60",
    )
    found = loaded.config.s3
    assert (found.region, found.endpoint_url, found.path_style) == ("eu-west-2", "http://minio:9000", True)
    assert (found.max_pool_connections, found.retries.max_attempts, found.retries.backoff_ms) == (7, 4, 60)


def test_paths_are_for_endpoints_unless_said() -> None:
    assert load().config.s3.path_style is False
    assert s3("path.style.access", "true").config.s3.path_style is True
    assert s3("vhost.bucket", "true").config.s3.path_style is True


def test_exactly_once_can_be_given_up() -> None:
    assert s3("exactly.once.enable", "false").config.sinks[0].exactly_once is False
    assert sink().exactly_once is True


@pytest.mark.parametrize(("policy", "tolerance"), [("THROW", "none"), ("RETRY", "none"), ("NOOP", "all")])
def test_error_policies_never_lose_a_record(policy: str, tolerance: str) -> None:
    assert s3("error.policy", policy).config.sinks[0].errors.tolerance == tolerance


def errors(**settings: str) -> Errors:
    return load(**{f"connect__s3__{key}": value for key, value in settings.items()}).config.sinks[0].errors


def test_retry_tries_a_micro_batch_again_as_often_and_as_far_apart_as_it_says() -> None:
    found = errors(error__policy="RETRY", max__retries="30", retry__interval="1500")
    assert (found.tolerance, found.max_retries, found.retry_interval) == ("none", 30, 1.5)


def test_retry_without_numbers_has_those_of_lenses() -> None:
    found = errors(error__policy="RETRY")
    assert (found.max_retries, found.retry_interval) == (20, 60.0)


@pytest.mark.parametrize("policy", ["THROW", "NOOP"])
def test_other_policies_have_the_retries_of_s3lake(policy: str) -> None:
    found = errors(error__policy=policy, max__retries="30")
    assert (found.max_retries, found.retry_interval) == (3, 10.0)


@pytest.mark.parametrize("key", ["max.retries", "retry.interval"])
@pytest.mark.parametrize("policy", ["THROW", "NOOP"])
def test_numbers_of_retries_without_the_policy_are_told(policy: str, key: str) -> None:
    settings = {"connect.s3.error.policy": policy, f"connect.s3.{key}": "5"}
    assert f"connect.s3.{key}" in noticed(bases.load(bases.LENSES, {**settings}))


def test_no_retries_are_told_because_lenses_would_try_for_ever() -> None:
    loaded = load(connect__s3__error__policy="RETRY", connect__s3__max__retries="0")
    assert loaded.config.sinks[0].errors.max_retries == 0
    assert "connect.s3.max.retries" in noticed(loaded)


def test_keys_of_lenses_are_in_any_case() -> None:
    assert s3("Skip.Null.VALUES", "true").config.sinks[0].nulls == "skip"


def test_old_class_names_are_known() -> None:
    old = "com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector"
    assert bases.load(bases.LENSES, {"connector.class": old}).config.sinks[0].name == "demo"


SCHEMAS = {
    "value__converter": "io.confluent.connect.avro.AvroConverter",
    "value__converter__schema__registry__url": "http://registry:8081",
}


@pytest.mark.parametrize(
    ("keys", "compatibility"),
    [
        ({}, "none"),
        ({"schema.change.detector": "default"}, "none"),
        ({"schema.change.detector": "version"}, "backward"),
        ({"schema.change.detector": "compatibility"}, "backward"),
        ({"latest.schema.optimization.enabled": "true"}, "backward"),
        ({"schema.change.detector": "version", "latest.schema.optimization.enabled": "false"}, "backward"),
    ],
)
def test_what_a_change_of_schema_does_says_which_schemas_share_files(keys: dict[str, str], compatibility: str) -> None:
    changes = {f"connect.s3.{key}".replace(".", "__"): value for key, value in keys.items()}
    assert sink("STOREAS `PARQUET`", **SCHEMAS, **changes).schema_policy.compatibility == compatibility
    assert sink("STOREAS `JSON`", **SCHEMAS, **changes).schema_policy.compatibility == "none"
