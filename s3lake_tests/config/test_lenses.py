"""Lenses' S3 sink: what each key and property becomes, and the keys of objects of reference/lenses.md 1.6."""

from typing import Any

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.sink import Sink
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


# Keys of objects: rows 1 to 38 of the table, with the first record's offset and the topic directory that the document
# promises (compatibility.md, Object keys)

PAD = "'padding.length.partition'=12,'padding.length.offset'=12"
KEYED = b'{"region":8,"phonePrefix":"+44"}'


@pytest.mark.parametrize(
    ("rest", "record", "expected"),
    [
        pytest.param("PROPERTIES('flush.count'=1)", {}, "raw/demo/1/000000000002.json", id="2"),
        pytest.param("STOREAS `CSV_WITHHEADERS`", {}, "raw/demo/1/000000000002.csv", id="7"),
        pytest.param("STOREAS `BYTES` PROPERTIES('flush.count'=1)", {}, "raw/demo/1/000000000002.bytes", id="8"),
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
    assert "each statement is a sink with an index of its own" in bases.remarks_text(loaded)


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
    messages = "\n".join(notice.message for notice in loaded.notices)
    assert "SELECT leaves no field out" in messages
    assert "write s3lake.sql.select=a, b.c AS d" in messages
    assert "write s3lake.sql.where=a > 1" in messages
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
    (message,) = [notice.message for notice in loaded.notices if "SELECT leaves no field out" in notice.message]
    assert message.endswith("to have it, write S3LAKE_SINKS_DEMO_B_SQL_SELECT=x")


def test_a_connectors_name_becomes_a_sinks_name() -> None:
    loaded = bases.load(bases.LENSES, {"name": "my connector.v2"})
    assert loaded.config.sinks[0].name == "my-connector-v2"
    assert "name" in bases.remarks_by_key(loaded)


# Properties and keys

AVRO, PARQUET = "STOREAS AVRO", "STOREAS PARQUET"
SCHEMAS = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
}
S3 = "connect.s3."


@pytest.mark.parametrize(
    ("rest", "settings", "expected"),
    [
        ("", {}, {"flush.count": 50_000, "flush.size": 500_000_000, "flush.interval": 3600}),
        ("", {}, {"nulls": "write", "exactly_once": True, "s3.path_style": False}),
        (
            "PROPERTIES('flush.count'='7', 'flush.size'=8, 'FLUSH.INTERVAL'=9)",
            {},
            {"flush.count": 7, "flush.size": 8, "flush.interval": 9},
        ),
        ("", {"disable.flush.count": "true"}, {"flush.count": None}),
        ("STOREAS BYTES", {}, {"flush.count": 1}),
        ("STOREAS CSV", {}, {"format.header": True}),
        ("STOREAS CSV_WITHHEADERS", {}, {"format.header": True}),
        ("STOREAS CSV", {"s3lake.format.header": "false"}, {"format.header": False}),
        (
            "",
            {"padding.strategy": "NoOp", "padding.length": "-1"},
            {"layout.padding.type": "none", "layout.padding.offset": 12},
        ),
        ("", {"padding.length": "5"}, {"layout.padding.offset": 5}),
        ("", {"skip.null.values": "true"}, {"nulls": "skip"}),
        ("", {"Skip.Null.VALUES": "false"}, {"nulls": "write"}),
        *((form, {}, {"format.codec": "none"}) for form in (AVRO, PARQUET, "STOREAS JSON")),
        (AVRO, {"compression.codec": "UNCOMPRESSED"}, {"format.codec": "none"}),
        (AVRO, {"compression.codec": "SNAPPY"}, {"format.codec": "snappy"}),
        (AVRO, {"compression.codec": "BZIP2"}, {"format.codec": "bzip2"}),
        (AVRO, {"compression.codec": "zstd", "compression.level": "5"}, {"format.codec": "zstd", "format.level": 5}),
        (AVRO, {"compression.codec": "DEFLATE"}, {"format.codec": "deflate"}),
        (AVRO, {"compression.codec": "XZ"}, {"format.codec": "xz"}),
        (PARQUET, {"compression.codec": "BROTLI"}, {"format.codec": "brotli"}),
        (PARQUET, {"compression.codec": "LZ4"}, {"format.codec": "lz4"}),
        (PARQUET, {"compression.codec": "GZIP"}, {"format.codec": "gzip"}),
        ("STOREAS CSV", {"compression.codec": "ZSTD"}, {"format.codec": "zstd"}),
        (
            "",
            {"aws.region": "eu-west-2", "custom.endpoint": "http://minio:9000", "pool.max.connections": "7"},
            {
                "s3.region": "eu-west-2",
                "s3.endpoint_url": "http://minio:9000",
                "s3.path_style": True,
                "s3.max_pool_connections": 7,
            },
        ),
        (
            "",
            {"http.max.retries": "4", "http.retry.interval": "60"},
            {"s3.retries.max_attempts": 4, "s3.retries.backoff_ms": 60},
        ),
        ("", {"path.style.access": "true"}, {"s3.path_style": True}),
        ("", {"vhost.bucket": "true"}, {"s3.path_style": True}),
        ("", {"exactly.once.enable": "false"}, {"exactly_once": False}),
        (
            "",
            {"error.policy": "RETRY", "max.retries": "30", "retry.interval": "1500"},
            {"errors.tolerance": "none", "errors.max_retries": 30, "errors.retry_interval": 1.5},
        ),
        ("", {"error.policy": "RETRY"}, {"errors.max_retries": 20, "errors.retry_interval": 60.0}),
        (
            "",
            {"error.policy": "THROW", "max.retries": "30"},
            {"errors.tolerance": "none", "errors.max_retries": 3, "errors.retry_interval": 10.0},
        ),
        (
            "",
            {"error.policy": "NOOP", "max.retries": "30"},
            {"errors.tolerance": "all", "errors.max_retries": 3, "errors.retry_interval": 10.0},
        ),
        *(
            (PARQUET, {**SCHEMAS, **keys}, {"schema_policy.compatibility": compatibility})
            for keys, compatibility in (
                ({}, "none"),
                ({"schema.change.detector": "default"}, "none"),
                ({"schema.change.detector": "version"}, "backward"),
                ({"schema.change.detector": "compatibility"}, "backward"),
                ({"latest.schema.optimization.enabled": "true"}, "backward"),
                ({"schema.change.detector": "version", "latest.schema.optimization.enabled": "false"}, "backward"),
            )
        ),
        ("STOREAS JSON", {**SCHEMAS, "schema.change.detector": "version"}, {"schema_policy.compatibility": "none"}),
    ],
)
def test_properties_and_keys_are_native_settings(
    rest: str, settings: dict[str, str], expected: dict[str, object]
) -> None:
    whole = {key if key.startswith(("s3lake.", "value.")) else f"{S3}{key}": text for key, text in settings.items()}
    loaded = bases.load(bases.LENSES, {f"{S3}kcql": f"INSERT INTO lake:raw SELECT * FROM demo {rest}", **whole})
    assert bases.values(loaded, *expected) == expected


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


@pytest.mark.parametrize("key", ["max.retries", "retry.interval"])
@pytest.mark.parametrize("policy", ["THROW", "NOOP"])
def test_numbers_of_retries_without_the_policy_are_noted(policy: str, key: str) -> None:
    settings = {"connect.s3.error.policy": policy, f"connect.s3.{key}": "5"}
    assert f"connect.s3.{key}" in bases.remarks_by_key(bases.load(bases.LENSES, {**settings}))


def test_no_retries_are_noted_because_lenses_would_try_for_ever() -> None:
    loaded = load(connect__s3__error__policy="RETRY", connect__s3__max__retries="0")
    assert loaded.config.sinks[0].errors.max_retries == 0
    assert "connect.s3.max.retries" in bases.remarks_by_key(loaded)
