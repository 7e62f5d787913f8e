"""Lenses' S3 sink: what each key and property becomes, and the keys of objects."""

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows
from s3lake_tests.records.layout.files import read_records

NAMED: dict[str, dict[str, str | None]] = {
    "JSON_KEY": {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
    },
    "SCHEMAS": {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://registry:8081",
    },
}


def load(changes: str, **environment: str) -> LoadedConfig:
    """The base with changes: keys below `connect.s3` begin with a dot, and `kcql` is the end of the statement."""
    given = bases.changes(changes, **NAMED)
    if "kcql" in given:
        given[".kcql"] = f"INSERT INTO lake:raw SELECT * FROM demo {given.pop('kcql')}"
    settings = {f"connect.s3{key}" if key.startswith(".") else key: value for key, value in given.items()}
    return bases.load(bases.LENSES, settings, **environment)


# Keys of objects from the connector's tests, and from runs of it, with the first record's offset and the topic's
# directory, which its documentation promises
KEYS = """
kcql=PROPERTIES('flush.count'=1) | => raw/demo/1/000000000002.json
kcql=STOREAS `CSV_WITHHEADERS` | => raw/demo/1/000000000002.csv
kcql=STOREAS `BYTES` PROPERTIES('flush.count'=1) | => raw/demo/1/000000000002.bytes
kcql=PARTITIONBY name,title,salary | value: '{"name":"first","title":null,"salary":200.0}' =>
    raw/demo/name=first/title=[missing]/salary=200.0/demo(1_000000000002).json
kcql=PARTITIONBY _header.phonePrefix,_header.region STOREAS `CSV` | headers: {phonePrefix: "+44", region: "8"} =>
    raw/demo/phonePrefix=+44/region=8/demo(1_000000000002).csv
kcql=PARTITIONBY 'a.b', _value.'c d' | value: '{"a.b":1,"c d":2}' => raw/demo/a.b=1/c d=2/demo(1_000000000002).json
kcql=PARTITIONBY name WITHPARTITIONER=Values WITH_FLUSH_COUNT = 1 | value: '{"name":"x"}' =>
    raw/demo/x/demo(1_000000000002).json
kcql=PARTITIONBY _key | key: "0" => raw/demo/key=0/demo(1_000000000002).json
kcql=PARTITIONBY _key PROPERTIES('partition.include.keys'=false) | key: "1" => raw/demo/1/demo(1_000000000002).json
kcql=PARTITIONBY _topic, _partition PROPERTIES('padding.length.partition'=12,'padding.length.offset'=12,
    'partition.include.keys'=false) | => raw/demo/demo/000000000001/demo(000000000001_000000000002).json
kcql=PARTITIONBY _value.user.name | value: '{"user":{"name":"laura"}}' =>
    raw/demo/user.name=laura/demo(1_000000000002).json
kcql=PROPERTIES('padding.length.partition'=12,'padding.length.offset'=12) | => raw/demo/000000000001/000000000002.json
kcql=PARTITIONBY _date.uuuu,_date.LL,_date.dd PROPERTIES('partition.include.keys'=false) | timestamp: 1270188000000 =>
    raw/demo/2010/04/02/demo(1_000000000002).json
kcql=NOPARTITION | => raw/demo(1_000000000002).json
kcql=NOPARTITION PROPERTIES('padding.length.partition'=12,'padding.length.offset'=12) | =>
    raw/demo(000000000001_000000000002).json
kcql=NOPARTITION PROPERTIES('padding.type'=NoOp,'key.suffix'='-x') | => raw/demo(1_2)-x.json
kcql=NOPARTITION PROPERTIES('padding.type'=RightPad,'padding.char'='_','padding.length.offset'=3) | =>
    raw/demo(1_2__).json
kcql=PROPERTIES('key.suffix'='-my-suffix') | => raw/demo/1/000000000002-my-suffix.json
kcql=PROPERTIES('partition.include.keys'=true) | => raw/topic=demo/partition=1/000000000002.json
kcql=PROPERTIES('padding.length.partition'='12') | => raw/demo/000000000001/000000000002.json
kcql=PARTITIONBY _headers.x, fieldA | headers: {x: "1"}, value: '{"fieldA":2}' =>
    raw/demo/x=1/fieldA=2/demo(1_000000000002).json
JSON_KEY + .kcql=INSERT INTO lake SELECT * FROM demo PARTITIONBY _key.region, _key.`phonePrefix` |
    key: '{"region":8,"phonePrefix":"+44"}' => demo/region=8/phonePrefix=+44/demo(1_000000000002).json
.compression.codec=GZIP | => raw/demo/1/000000000002.json.gz
"""


@pytest.mark.parametrize(("given", "expected"), rows(KEYS))
def test_objects_have_the_keys_of_the_connector(given: str, expected: str) -> None:
    settings, _, record = given.partition("|")
    assert bases.keys_of(load(settings), *read_records(f"offset: 2, partition: 1, {record}")) == [expected]


NOTHING_LEFT_OUT = "SELECT leaves no field out"
SETTINGS = f"""
topics=a,b + .kcql=INSERT INTO one SELECT * FROM a; INSERT INTO two:p SELECT * FROM b STOREAS CSV;
    INSERT INTO two:q SELECT * FROM b => sinks.0.name: demo-a, sinks.0.bucket: one, sinks.0.topics: [a],
    sinks.1.name: demo-b, sinks.1.bucket: two, sinks.1.prefix: p, sinks.2.name: demo-b-2, sinks.2.prefix: q
topics=a,b + .kcql=INSERT INTO one SELECT * FROM a; INSERT INTO two SELECT * FROM b =>
    remark: each statement is a sink with an index of its own
topics=a,b,c + .kcql=INSERT INTO one SELECT * FROM `*`; INSERT INTO two SELECT * FROM b =>
    sinks.0.name: demo-all, sinks.0.topics: [a, c], sinks.1.name: demo-b, sinks.1.topics: [b]
.kcql=INSERT INTO lake SELECT a, b.c AS d FROM demo WHERE a > 1 => sql: null
.kcql=INSERT INTO lake SELECT a, b.c AS d FROM demo WHERE a > 1 => remark: {NOTHING_LEFT_OUT}
.kcql=INSERT INTO lake SELECT a, b.c AS d FROM demo WHERE a > 1 => remark: write s3lake.sql.select=a, b.c AS d
.kcql=INSERT INTO lake SELECT a, b.c AS d FROM demo WHERE a > 1 => remark: write s3lake.sql.where=a > 1
.kcql=INSERT INTO lake SELECT a FROM demo WHERE a > 1 + s3lake.sql.select=a + s3lake.sql.where=a > 1 =>
    sql.select: a, sql.where: a > 1
.kcql=INSERT INTO lake SELECT a FROM demo WHERE a > 1 + s3lake.sql.select=a + s3lake.sql.where=a > 1 =>
    no remark: leaves no
name=my connector.v2 => name: my-connector-v2
name=my connector.v2 => remark: name:
=> flush.count: 50000, flush.size: 500000000, flush.interval: 3600
=> nulls: write, exactly_once: true, s3.path_style: false
kcql=PROPERTIES('flush.count'='7', 'flush.size'=8, 'FLUSH.INTERVAL'=9) =>
    flush.count: 7, flush.size: 8, flush.interval: 9
.disable.flush.count=true => flush.count: null
kcql=STOREAS BYTES => flush.count: 1
kcql=STOREAS CSV => format.header: true
kcql=STOREAS CSV_WITHHEADERS => format.header: true
kcql=STOREAS CSV + s3lake.format.header=false => format.header: false
.padding.strategy=NoOp + .padding.length=-1 => layout.padding.type: none, layout.padding.offset: 12
.padding.length=5 => layout.padding.offset: 5
.skip.null.values=true => nulls: skip
.Skip.Null.VALUES=false => nulls: write
kcql=STOREAS AVRO => format.codec: none
kcql=STOREAS PARQUET => format.codec: none
kcql=STOREAS JSON => format.codec: none
kcql=STOREAS AVRO + .compression.codec=UNCOMPRESSED => format.codec: none
kcql=STOREAS AVRO + .compression.codec=SNAPPY => format.codec: snappy
kcql=STOREAS AVRO + .compression.codec=BZIP2 => format.codec: bzip2
kcql=STOREAS AVRO + .compression.codec=zstd + .compression.level=5 => format.codec: zstd, format.level: 5
kcql=STOREAS AVRO + .compression.codec=DEFLATE => format.codec: deflate
kcql=STOREAS AVRO + .compression.codec=XZ => format.codec: xz
kcql=STOREAS PARQUET + .compression.codec=BROTLI => format.codec: brotli
kcql=STOREAS PARQUET + .compression.codec=LZ4 => format.codec: lz4
kcql=STOREAS PARQUET + .compression.codec=GZIP => format.codec: gzip
kcql=STOREAS CSV + .compression.codec=ZSTD => format.codec: zstd
.aws.region=eu-west-2 + .pool.max.connections=7 => s3.region: eu-west-2, s3.max_pool_connections: 7
.custom.endpoint=http://minio:9000 => s3.endpoint_url: "http://minio:9000", s3.path_style: true
.http.max.retries=4 + .http.retry.interval=60 => s3.retries.max_attempts: 4, s3.retries.backoff_ms: 60
.path.style.access=true => s3.path_style: true
.vhost.bucket=true => s3.path_style: true
.exactly.once.enable=false => exactly_once: false
.error.policy=RETRY + .max.retries=30 + .retry.interval=1500 =>
    errors.tolerance: none, errors.max_retries: 30, errors.retry_interval: 1.5
.error.policy=RETRY => errors.max_retries: 20, errors.retry_interval: 60.0
.error.policy=RETRY + .max.retries=0 => errors.max_retries: 0
.error.policy=RETRY + .max.retries=0 => remark: connect.s3.max.retries:
.error.policy=THROW + .max.retries=30 => errors.tolerance: none, errors.max_retries: 3, errors.retry_interval: 10.0
.error.policy=NOOP + .max.retries=30 => errors.tolerance: all, errors.max_retries: 3, errors.retry_interval: 10.0
.error.policy=THROW + .max.retries=5 => remark: connect.s3.max.retries:
.error.policy=NOOP + .max.retries=5 => remark: connect.s3.max.retries:
.error.policy=THROW + .retry.interval=5 => remark: connect.s3.retry.interval:
.error.policy=NOOP + .retry.interval=5 => remark: connect.s3.retry.interval:
kcql=STOREAS PARQUET + SCHEMAS => schema_policy.compatibility: none
kcql=STOREAS PARQUET + SCHEMAS + .schema.change.detector=default => schema_policy.compatibility: none
kcql=STOREAS PARQUET + SCHEMAS + .schema.change.detector=version => schema_policy.compatibility: backward
kcql=STOREAS PARQUET + SCHEMAS + .schema.change.detector=compatibility => schema_policy.compatibility: backward
kcql=STOREAS PARQUET + SCHEMAS + .latest.schema.optimization.enabled=true => schema_policy.compatibility: backward
kcql=STOREAS PARQUET + SCHEMAS + .schema.change.detector=version + .latest.schema.optimization.enabled=false =>
    schema_policy.compatibility: backward
kcql=STOREAS JSON + SCHEMAS + .schema.change.detector=version => schema_policy.compatibility: none
kcql=STOREAS `TEXT` WITH_FLUSH_SIZE = 5000 WITH_FLUSH_INTERVAL = 60 WITH_FLUSH_COUNT = 7 =>
    flush.size: 5000, flush.interval: 60.0, flush.count: 7, format.type: text
kcql=with_flush_count=7 STOREAS `TEXT` => flush.count: 7, format.type: text
kcql=STOREAS `JSON` WITH_FLUSH_COUNT = 7 => remark: WITH_FLUSH_COUNT is a clause of Lenses 4 and 5
kcql=STOREAS `JSON` WITH_FLUSH_COUNT = 7 => remark: write PROPERTIES('flush.count'=7)
kcql=WITH_FLUSH_COUNT = 7 PROPERTIES('flush.size'=5000) => flush.count: 7, flush.size: 5000
kcql=PARTITIONBY a WITHPARTITIONER=Values => layout.include_keys: false
kcql=PARTITIONBY a WITHPARTITIONER=KeysAndValues => layout.include_keys: true
aws.region=eu-west-2 => s3.region: eu-west-2
aws.region=eu-west-2 => remark: is an old name: write connect.s3.aws.region
kcql=PROPERTIES('store.envelope'=false) => envelope: null
kcql=PROPERTIES('store.envelope'=true) =>
    envelope.style: record, envelope.fields: [key, value, headers, metadata]
kcql=PARTITIONBY a PROPERTIES('store.envelope'='true', 'store.envelope.fields.key'=true,
    'store.envelope.fields.value'=false, 'store.envelope.fields.headers'=TRUE, 'store.envelope.fields.metadata'=false)
    => envelope.fields: [key, headers]
"""


@pytest.mark.parametrize(("changes", "expected"), rows(SETTINGS))
def test_properties_and_keys_are_native_settings(changes: str, expected: str) -> None:
    bases.check(load(changes), expected)


def test_a_topic_of_its_own_beats_the_wildcard_of_an_expression() -> None:
    query = "INSERT INTO one SELECT * FROM `*`; INSERT INTO two SELECT * FROM sensor.1"
    rest, own = load(f"-topics + topics.regex=sensor[.].*|x + .kcql={query}").config.sinks
    assert own.topics == ("sensor.1",)
    read = [rest.reads(topic) for topic in ("sensor.1", "sensor.11", "sensor.2", "x", "y")]
    assert read == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("more", "variables"), [("s3lake.sql.select=a AS area", {}), ("", {"S3LAKE_SINKS_DEMO_SQL_SELECT": "a AS area"})]
)
def test_a_name_of_select_may_be_an_element_if_the_records_are_projected(more: str, variables: dict[str, str]) -> None:
    statement = ".kcql=INSERT INTO lake:raw SELECT a AS area FROM demo PARTITIONBY area"
    bases.check(load(f"{statement} + {more}" if more else statement, **variables), "layout.partition_by: [area]")


@pytest.mark.parametrize("elements", ["a", "_value.area", "_key.area", "_header.area", "b"])
def test_an_element_that_select_does_not_rename_is_a_field(elements: str) -> None:
    statement = f"INSERT INTO lake:raw SELECT a AS area, b, * FROM demo PARTITIONBY {elements}"
    assert load(f".kcql={statement} + JSON_KEY").config.sinks[0].layout.partition_by


def test_a_statement_among_several_is_projected_by_its_variable() -> None:
    query = "INSERT INTO one SELECT x FROM a; INSERT INTO two SELECT x FROM b"
    loaded = load(f"topics=a,b + .kcql={query}", S3LAKE_SINKS_DEMO_A_SQL_SELECT="x")
    first, second = loaded.config.sinks
    assert (first.sql and first.sql.select, second.sql) == ("x", None)
    (message,) = [notice.message for notice in loaded.notices if NOTHING_LEFT_OUT in notice.message]
    assert message.endswith("to have it, write S3LAKE_SINKS_DEMO_B_SQL_SELECT=x")
