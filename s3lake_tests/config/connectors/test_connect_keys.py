"""Keys of Kafka Connect itself, `s3lake.*`, and what `s3lake adopt` has to know of a connector."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.config.draft import Connector, LoadedConfig
from s3lake.config.report import Place
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows

AVRO = "io.confluent.connect.avro.AvroConverter"
NAMED: dict[str, dict[str, str | None]] = {
    "WITHOUT_CONVERTERS": dict.fromkeys(["key.converter", "value.converter", "value.converter.schemas.enable"]),
    "AVRO": {
        "value.converter": AVRO,
        "value.converter.schemas.enable": None,
        "value.converter.schema.registry.url": "http://r:8081",
    },
    "AVRO_KEY": {"key.converter": AVRO, "key.converter.schema.registry.url": "http://r:8081"},
    "DEAD_LETTERS": {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"},
    "USER_OF_REGISTRY": {
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": "me:hush:hush",
    },
    "OLD_USER_OF_REGISTRY": {
        "value.converter.schema.registry.basic.auth.credentials.source": "USER_INFO",
        "value.converter.schema.registry.basic.auth.user.info": "me:hush:hush",
    },
    "URL_USER_OF_REGISTRY": {"value.converter.schema.registry.url": "http://me:hush%3Ahush@r:8081"},
}


def load(changes: str, **environment: str) -> LoadedConfig:
    return bases.load(bases.CONFLUENT, bases.changes(changes, **NAMED), **environment)


READ_ONLY = "schemas are only read, by their ids, and all of their content is kept"
OTHER = "is not followed: "
HEADER_FIRST = "a header that names the schema is read first, and otherwise what is before the data"
IDS = "io.confluent.kafka.serializers.schema.id"
NOT_FOLLOWED = "is not followed: a value has the fields of the schema that it was written with"
USER = 'converter.registry.url: "http://r:8081", converter.registry.user: me, converter.registry.password: "hush:hush"'
SETTINGS = f"""
=> from_: earliest
consumer.override.auto.offset.reset=latest => from_: start
consumer.override.security.protocol=SASL_SSL + consumer.fetch.max.bytes=1000 + sasl.mechanism=PLAIN +
    ssl.truststore.location=/etc/ca.pem => kafka.properties: {{security.protocol: SASL_SSL, fetch.max.bytes: "1000",
    sasl.mechanism: PLAIN, ssl.truststore.location: /etc/ca.pem}}
consumer.override.sasl.mechanism=C + sasl.mechanism=B + consumer.sasl.mechanism=A =>
    kafka.properties: {{sasl.mechanism: C}}
sasl.mechanism=B + consumer.sasl.mechanism=A => kafka.properties: {{sasl.mechanism: B}}
consumer.sasl.mechanism=A => kafka.properties: {{sasl.mechanism: A}}
consumer.override.bootstrap.servers=other:1 => kafka.bootstrap_servers: "other:1"
consumer.bootstrap.servers=other:1 => kafka.bootstrap_servers: "kafka:9092"
errors.retry.timeout=300000 + errors.retry.delay.max.ms=5000 => errors.retry_timeout: 300, errors.retry_delay: 5
errors.retry.timeout=-1 => errors.retry_timeout: null
=> errors.retry_timeout: 0, errors.retry_delay: 60, errors.log: none, errors.dead_letter_topic: null
errors.log.enable=true => errors.log: reason
errors.log.enable=true + errors.log.include.messages=true => errors.log: place
errors.log.include.messages=true => errors.log: none
DEAD_LETTERS => errors.dead_letter_topic: {{name: dlq, context_headers: false, replication_factor: 3}}
DEAD_LETTERS + errors.deadletterqueue.topic.replication.factor=2 + errors.deadletterqueue.context.headers.enable=true
    => errors.dead_letter_topic: {{name: dlq, context_headers: true, replication_factor: 2}}
errors.deadletterqueue.topic.name= => errors.dead_letter_topic: null
errors.deadletterqueue.topic.name= + errors.deadletterqueue.context.headers.enable=true =>
    remark: errors.deadletterqueue.context.headers.enable:
errors.deadletterqueue.context.headers.enable=true => remark: errors.deadletterqueue.context.headers.enable:
tasks.max=6 => spark.master: "local[6]"
=> spark.master: "local[*]"
key.converter=org.apache.kafka.connect.storage.StringConverter => converter.key: string
value.converter=org.apache.kafka.connect.storage.StringConverter => converter.value: string
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter => converter.key: bytes
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter => converter.value: bytes
key.converter=org.apache.kafka.connect.json.JsonConverter => converter.key: connect_json
-value.converter.schemas.enable => converter.value: connect_json
value.converter=JsonConverter + value.converter.schemas.enable=true => converter.value: connect_json
value.converter=Json + value.converter.schemas.enable=true => converter.value: connect_json
key.converter=Json + key.converter.schemas.enable=false => converter.key: json
key.converter=String => converter.key: string
key.converter=ByteArray => converter.key: bytes
key.converter=Long => converter.key: long
AVRO + value.converter=Avro => converter.value: avro
AVRO + value.converter=JsonSchema => converter.value: json_schema
AVRO + value.converter=Protobuf => converter.value: protobuf
key.converter=JsonConverter + key.converter.schemas.enable=false => converter.key: json
value.converter=JsonConverter + value.converter.schemas.enable=false => converter.value: json
value.converter=JsonConverter + value.converter.schemas.enable=true => converter.null_to_default: [value]
value.converter=JsonConverter + value.converter.schemas.enable=true + key.converter=JsonConverter =>
    converter.null_to_default: [key, value]
value.converter=JsonConverter + value.converter.schemas.enable=true +
    value.converter.replace.null.with.default=false => converter.null_to_default: []
key.converter=JsonConverter + key.converter.replace.null.with.default=false => converter.null_to_default: []
value.converter=JsonConverter + value.converter.schemas.enable=false +
    value.converter.replace.null.with.default=false => converter.null_to_default: []
value.converter=JsonConverter + value.converter.schemas.enable=false +
    value.converter.replace.null.with.default=false =>
    remark: value.converter.replace.null.with.default: values without a schema have no defaults
AVRO + value.converter=io.confluent.connect.json.JsonSchemaConverter => converter.null_to_default: [value]
AVRO + value.converter=io.confluent.connect.json.JsonSchemaConverter +
    value.converter.ignore.default.for.nullables=true => converter.null_to_default: []
AVRO + value.converter=io.confluent.connect.json.JsonSchemaConverter +
    value.converter.ignore.default.for.nullables=false => converter.null_to_default: [value]
AVRO => converter.null_to_default: [value]
AVRO + AVRO_KEY => converter.null_to_default: [key, value]
AVRO + value.converter.ignore.default.for.nullables=true => converter.null_to_default: []
AVRO + value.converter=io.confluent.connect.protobuf.ProtobufConverter => converter.null_to_default: []
AVRO + value.converter=io.confluent.connect.protobuf.ProtobufConverter +
    value.converter.ignore.default.for.nullables=true =>
    remark: ignore.default.for.nullables: what a message of Protobuf does not set is null, with it and without it
WITHOUT_CONVERTERS => converter.key: string, converter.value: json
WITHOUT_CONVERTERS => remark: key.converter is missing
WITHOUT_CONVERTERS => remark: value.converter is missing
AVRO + AVRO_KEY => converter.key: avro, converter.value: avro, converter.registry.url: "http://r:8081"
AVRO_KEY => converter.key: avro, converter.registry.url: "http://r:8081"
AVRO + value.converter=io.confluent.connect.json.JsonSchemaConverter =>
    converter.value: json_schema, converter.registry.url: "http://r:8081"
AVRO_KEY + key.converter=io.confluent.connect.json.JsonSchemaConverter =>
    converter.key: json_schema, converter.registry.url: "http://r:8081"
AVRO + USER_OF_REGISTRY => {USER}
AVRO + OLD_USER_OF_REGISTRY => {USER}
AVRO + URL_USER_OF_REGISTRY => {USER}
AVRO + URL_USER_OF_REGISTRY + value.converter.basic.auth.credentials.source=URL => {USER}
AVRO + value.converter.schema.registry.url=https://one:8081, https://two/api =>
    converter.registry.urls: ["https://one:8081", "https://two/api"]
AVRO + value.converter.bearer.auth.credentials.source=STATIC_TOKEN + value.converter.bearer.auth.token=hush-hush =>
    converter.registry.token: hush-hush
AVRO + value.converter.schema.registry.ssl.truststore.location=/etc/ca.pem +
    value.converter.schema.registry.ssl.truststore.type=PEM => converter.registry.ca_file: /etc/ca.pem
AVRO + value.converter.ssl.keystore.location=/etc/client.pem + value.converter.ssl.keystore.type=PEM =>
    converter.registry.cert_file: /etc/client.pem
AVRO + value.converter.http.read.timeout.ms=2500 => converter.registry.timeout: 2.5
AVRO + value.converter.auto.register.schemas=false => remark: auto.register.schemas: {READ_ONLY}
AVRO + value.converter.use.latest.version=false => remark: use.latest.version: {READ_ONLY}
AVRO + value.converter.latest.compatibility.strict=true => remark: latest.compatibility.strict: {READ_ONLY}
AVRO + value.converter.value.subject.name.strategy=io.confluent.kafka.serializers.subject.RecordNameStrategy =>
    remark: value.subject.name.strategy: {READ_ONLY}
AVRO + value.converter.enhanced.avro.schema.support=true => remark: enhanced.avro.schema.support: {READ_ONLY}
AVRO + value.converter.flatten.singleton.unions=true => remark: flatten.singleton.unions: {READ_ONLY}
AVRO + value.converter.flatten.singleton.unions=false => remark: flatten.singleton.unions: {OTHER}
AVRO + value.converter.generalized.sum.type.support=false => remark: generalized.sum.type.support: {READ_ONLY}
AVRO + value.converter.generalized.sum.type.support=true => remark: generalized.sum.type.support: {OTHER}
AVRO + value.converter.flatten.unions=false => remark: flatten.unions: {READ_ONLY}
AVRO + value.converter.flatten.unions=true => remark: flatten.unions: {OTHER}
AVRO + value.converter.generate.index.for.unions=true => remark: generate.index.for.unions: {READ_ONLY}
AVRO + value.converter.generate.index.for.unions=FALSE => remark: generate.index.for.unions: {OTHER}
AVRO + value.converter.int.for.enums=false => remark: int.for.enums: {READ_ONLY}
AVRO + value.converter.int.for.enums=true => remark: int.for.enums: {OTHER}
AVRO + value.converter.wrapper.for.raw.primitives=true => remark: wrapper.for.raw.primitives: {READ_ONLY}
AVRO + value.converter.wrapper.for.raw.primitives=false => remark: wrapper.for.raw.primitives: {OTHER}
AVRO + value.converter.connect.meta.data=false => remark: connect.meta.data: {READ_ONLY}
AVRO + value.converter.schema.registry.ssl.protocol=TLSv1.3 => remark: ssl.protocol: {READ_ONLY}
AVRO + value.converter.use.latest.version=true => remark: use.latest.version: {NOT_FOLLOWED}
AVRO + value.converter.use.latest.with.metadata=a=b => remark: use.latest.with.metadata: {NOT_FOLLOWED}
AVRO + value.converter.use.schema.id=7 => remark: use.schema.id: {NOT_FOLLOWED}
AVRO + value.converter.value.schema.id.deserializer={IDS}.DualSchemaIdDeserializer =>
    remark: value.schema.id.deserializer: {HEADER_FIRST}
AVRO + value.converter.value.schema.id.deserializer={IDS}.PrefixSchemaIdDeserializer =>
    remark: value.schema.id.deserializer: {OTHER}{HEADER_FIRST}
AVRO + value.converter.value.schema.id.serializer={IDS}.HeaderSchemaIdSerializer =>
    remark: value.schema.id.serializer: {READ_ONLY}
s3lake.flush.size=10MB => flush.size: 10000000
s3lake.layout.time.timezone=Europe/Berlin => layout.time.timezone: Europe/Berlin
s3lake.close_grace=1m => close_grace: 60
s3lake.hours_per_run=null => hours_per_run: null
s3lake.topics=a, b => topics: [a, b]
s3lake.from=start => from_: start
s3lake.name=other => name: other
s3lake.spark.driver_memory=2g => spark.driver_memory: 2g
s3lake.spark.conf.spark.sql.shuffle.partitions=7 => spark.conf: {{spark.sql.shuffle.partitions: "7"}}
s3lake.kafka.properties.fetch.max.bytes=5 => kafka.properties: {{fetch.max.bytes: "5"}}
s3lake.s3.credentials.access_key_id=AKIA + s3lake.s3.credentials.secret_access_key=hush-hush =>
    s3.credentials.secret_access_key: hush-hush
"""


@pytest.mark.parametrize(("changes", "expected"), rows(SETTINGS))
def test_keys_are_native_settings(changes: str, expected: str) -> None:
    loaded = load(changes)
    bases.check(loaded, expected)
    assert "hush" not in repr(loaded)


def test_the_environment_sets_what_the_file_leaves_out() -> None:
    loaded = load("-bootstrap.servers + -s3lake.start", **bases.ENVIRONMENT)
    bases.check(loaded, 'kafka.bootstrap_servers: "kafka:9092", start: "2026-11-20T00"')
    assert str(loaded.origins[("sinks", 0, "start")]) == "environment variable S3LAKE_START"
    with pytest.raises(ConfigurationError, match=r"^environment variable S3LAKE_START: 'today' is not an hour"):
        load("-s3lake.start", S3LAKE_START="today")


@pytest.mark.parametrize(
    ("changes", "path", "place"),
    [
        ("AVRO + AVRO_KEY", "converter.registry.url", (11, "value.converter.schema.registry.url")),
        ("s3lake.flush.size=10MB", "flush.size", (12, "s3lake.flush.size")),
        ("s3lake.flush.size=10MB", "flush.count", (11, "flush.size")),
    ],
)
def test_a_setting_has_the_place_of_its_key(changes: str, path: str, place: tuple[int, str]) -> None:
    origins = load(changes).origins
    assert origins[("sinks", 0, *path.split("."))] == Place("connector.properties", place[0], 1, place[1])


@pytest.mark.parametrize("password", ["hush-hush", "p@ss-w"])
def test_a_password_in_the_address_is_in_no_message(password: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(f"AVRO + value.converter.schema.registry.url=http//me:{password}@r:8081")
    assert password not in str(refused.value)


# Transforms


def test_a_chain_of_transforms_is_read_in_order() -> None:
    loaded = load(
        "transforms=route, ts + transforms.ts.type=io.lenses.connect.smt.header.TimestampConverter"
        " + transforms.ts.header.name=ts + transforms.ts.field=_value.at + transforms.ts.target.type=string"
        " + transforms.ts.format.to.pattern=yyyy-MM-dd-HH"
        " + transforms.route.type=org.apache.kafka.connect.transforms.RegexRouter + transforms.route.regex=(.*)"
        " + transforms.route.replacement=x-$1 + transforms.route.predicate=named + transforms.route.negate=true"
        " + predicates=named + predicates.named.pattern=a.*"
        " + predicates.named.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
    )
    route, stamp = loaded.config.sinks[0].transforms
    assert (route.name, route.type) == ("route", "org.apache.kafka.connect.transforms.RegexRouter")
    assert route.options == {"regex": "(.*)", "replacement": "x-$1"}
    assert route.predicate is not None
    assert (route.predicate.options, route.negate) == ({"pattern": "a.*"}, True)
    assert (stamp.name, stamp.options["format.to.pattern"], stamp.predicate) == ("ts", "yyyy-MM-dd-HH", None)
    assert loaded.origins[("sinks", 0, "transforms", 1, "options", "field")].key == "transforms.ts.field"


def test_a_chain_that_begins_with_debeziums_transform_is_read() -> None:
    loaded = load(
        "transforms=unwrap, insert + transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState"
        " + transforms.unwrap.drop.tombstones=false + transforms.unwrap.delete.handling.mode=rewrite"
        " + transforms.unwrap.add.fields=op, table,source.ts_ms"
        " + transforms.insert.type=org.apache.kafka.connect.transforms.InsertField$Value"
        " + transforms.insert.timestamp.field=at"
    )
    unwrap, insert = loaded.config.sinks[0].transforms
    assert (unwrap.name, unwrap.type) == ("unwrap", "io.debezium.transforms.ExtractNewRecordState")
    assert unwrap.options == {
        "drop.tombstones": "false",
        "delete.handling.mode": "rewrite",
        "add.fields": "op, table,source.ts_ms",
    }
    assert insert.options == {"timestamp.field": "at"}


def test_a_class_of_others_is_refused_at_its_place_with_what_to_write_instead() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^connector\.properties:13:1: transforms\.f\.type: .*JsonPath is not"
    ):
        load("transforms=f + transforms.f.type=io.confluent.connect.transforms.Filter$Value")


def test_an_invalid_option_of_a_transform_is_refused_at_its_place() -> None:
    router = "transforms.route.type=org.apache.kafka.connect.transforms.RegexRouter + transforms.route.regex=("
    with pytest.raises(ConfigurationError, match=r"^connector\.properties:14:1: transforms\.route\.regex: "):
        load(f"transforms=route + {router} + transforms.route.replacement=x")


# What `s3lake adopt` has to know of a connector


@pytest.mark.parametrize("base", [bases.CONFLUENT, bases.AIVEN])
def test_the_connector_is_known_by_its_own_name(base: dict[str, str]) -> None:
    assert bases.load(base, {"name": "to s3"}).connectors == {"to-s3": Connector("to s3")}


@pytest.mark.parametrize(
    ("settings", "indexes"),
    [
        ({}, ".indexes"),
        ({"connect.s3.indexes.name": "logs/indexes"}, "logs/indexes"),
        ({"connect.s3.indexes.name": "logs/indexes", "connect.s3.exactly.once.enable": "false"}, None),
        ({"s3lake.index.prefix": "ours"}, ".indexes"),
    ],
)
def test_lenses_keeps_an_index_for_exactly_once(settings: dict[str, str | None], indexes: str | None) -> None:
    assert bases.load(bases.LENSES, settings).connectors == {"demo": Connector("demo", True, indexes)}


def test_every_statement_is_of_the_same_connector() -> None:
    kcql = "INSERT INTO lake:a SELECT * FROM a; INSERT INTO lake:b SELECT * FROM b"
    found = bases.load(bases.LENSES, {"topics": "a,b", "connect.s3.kcql": kcql}).connectors
    assert found == dict.fromkeys(("demo-a", "demo-b"), Connector("demo", True, ".indexes"))


@pytest.mark.parametrize("base", [bases.LENSES, bases.CONFLUENT, bases.AIVEN])
def test_its_consumer_group_may_have_another_name(base: dict[str, str]) -> None:
    (connector,) = bases.load(base, {"consumer.override.group.id": "mine"}).connectors.values()
    assert connector.group == "mine"


def test_several_files_keep_their_connectors(tmp_path: Path) -> None:
    shared = {
        "s3lake.s3.retries.max_attempts": "3",
        "s3lake.s3.retries.backoff_ms": "1",
        "s3lake.s3.path_style": "true",
    }
    confluent = {"name": "other", "s3.region": "us-east-1"}
    lenses = {"name": "one", "connect.s3.kcql": "INSERT INTO pond SELECT * FROM demo"}
    (tmp_path / "a.properties").write_text(bases.properties(bases.LENSES, {**lenses, **shared}))
    (tmp_path / "b.properties").write_text(bases.properties(bases.CONFLUENT, {**confluent, **shared}))
    found = configuration.load_configuration(str(tmp_path), environment={}).connectors
    assert found == {"one": Connector("one", True, ".indexes"), "other": Connector("other")}
