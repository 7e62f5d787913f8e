"""Keys of Kafka Connect itself, `s3lake.*`, and values from elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from s3lake.config import load as configuration
from s3lake.config.draft import Connector, LoadedConfig
from s3lake.config.report import Place
from s3lake.errors import ConfigurationError
from s3lake.sink.errors import DeadLetterTopic
from s3lake_tests.config import bases

CONVERTERS = "org.apache.kafka.connect."


def confluent(**environment: str) -> LoadedConfig:
    return bases.load(bases.CONFLUENT, **environment)


def given(changes: dict[str, str | None], **environment: str) -> LoadedConfig:
    return bases.load(bases.CONFLUENT, changes, **environment)


# Kafka


def test_a_sink_connector_begins_where_the_log_begins() -> None:
    assert confluent().config.sinks[0].from_ == "earliest"
    assert given({"consumer.override.auto.offset.reset": "latest"}).config.sinks[0].from_ == "start"


def test_properties_of_the_consumer_are_the_clients() -> None:
    loaded = given(
        {
            "consumer.override.security.protocol": "SASL_SSL",
            "consumer.fetch.max.bytes": "1000",
            "sasl.mechanism": "PLAIN",
            "ssl.truststore.location": "/etc/ca.pem",
        }
    )
    assert loaded.config.kafka.properties == {
        "security.protocol": "SASL_SSL",
        "fetch.max.bytes": "1000",
        "sasl.mechanism": "PLAIN",
        "ssl.truststore.location": "/etc/ca.pem",
    }


def test_a_connector_overrides_the_consumer_of_its_worker_and_what_has_no_prefix() -> None:
    options = {"consumer.override.sasl.mechanism": "C", "sasl.mechanism": "B", "consumer.sasl.mechanism": "A"}
    for key, mechanism in zip(list(options), "CBA", strict=True):
        assert given(options).config.kafka.properties == {"sasl.mechanism": mechanism}
        del options[key]
    assert given({"consumer.override.bootstrap.servers": "other:1"}).config.kafka.bootstrap_servers == "other:1"
    assert given({"consumer.bootstrap.servers": "other:1"}).config.kafka.bootstrap_servers == "kafka:9092"


def errors(**keys: str) -> Any:
    (sink,) = given({name.replace("__", "."): value for name, value in keys.items()}).config.sinks
    return sink.errors


def test_questions_to_the_registry_are_asked_again_for_as_long_as_connect_tries() -> None:
    found = errors(errors__retry__timeout="300000", errors__retry__delay__max__ms="5000")
    assert (found.retry_timeout, found.retry_delay) == (300.0, 5.0)
    assert errors(errors__retry__timeout="-1").retry_timeout is None
    assert (errors().retry_timeout, errors().retry_delay) == (0.0, 60.0)


@pytest.mark.parametrize(
    ("keys", "log"),
    [
        ({}, "none"),
        ({"errors__log__enable": "true"}, "reason"),
        ({"errors__log__enable": "true", "errors__log__include__messages": "true"}, "place"),
        ({"errors__log__include__messages": "true"}, "none"),
    ],
)
def test_refused_records_are_logged_where_connect_would_log_them(keys: dict[str, str], log: str) -> None:
    assert errors(**keys).log == log


QUEUE = "errors.deadletterqueue."


@pytest.mark.parametrize(
    ("settings", "topic"),
    [
        ({}, DeadLetterTopic(name="dlq", context_headers=False, replication_factor=3)),
        (
            {f"{QUEUE}topic.replication.factor": "2", f"{QUEUE}context.headers.enable": "true"},
            DeadLetterTopic(name="dlq", context_headers=True, replication_factor=2),
        ),
    ],
)
def test_a_dead_letter_topic_is_made_as_connect_makes_it(settings: dict[str, str], topic: DeadLetterTopic) -> None:
    (sink,) = given({"errors.tolerance": "all", f"{QUEUE}topic.name": "dlq", **settings}).config.sinks
    assert sink.errors.dead_letter_topic == topic


@pytest.mark.parametrize("name", [None, ""])
def test_without_a_name_there_is_no_dead_letter_topic_and_its_settings_are_noted(name: str | None) -> None:
    loaded = given({f"{QUEUE}topic.name": name, f"{QUEUE}context.headers.enable": "true"})
    assert loaded.config.sinks[0].errors.dead_letter_topic is None
    assert f"{QUEUE}context.headers.enable" in bases.remarks_by_key(loaded)


def test_tasks_are_cores() -> None:
    assert given({"tasks.max": "6"}).config.spark.master == "local[6]"
    assert confluent().config.spark.master == "local[*]"


def test_the_environment_says_what_the_file_does_not() -> None:
    loaded = given({"bootstrap.servers": None, "s3lake.start": None}, **bases.ENVIRONMENT)
    assert loaded.config.kafka.bootstrap_servers == "kafka:9092"
    assert loaded.config.sinks[0].start == "2026-11-20T00"
    assert str(loaded.origins[("sinks", 0, "start")]) == "environment variable S3LAKE_START"
    with pytest.raises(ConfigurationError) as refused:
        given({"s3lake.start": None}, S3LAKE_START="today")
    assert str(refused.value).startswith("environment variable S3LAKE_START: 'today' is not an hour")


# Converters


@pytest.mark.parametrize(
    ("name", "schemas", "expected"),
    [
        (f"{CONVERTERS}storage.StringConverter", None, "string"),
        (f"{CONVERTERS}converters.ByteArrayConverter", None, "bytes"),
        (f"{CONVERTERS}json.JsonConverter", None, "connect_json"),
        (f"{CONVERTERS}json.JsonConverter", "true", "connect_json"),
        (f"{CONVERTERS}json.JsonConverter", "false", "json"),
        ("JsonConverter", "false", "json"),
    ],
)
@pytest.mark.parametrize("part", ["key", "value"])
def test_converters(part: str, name: str, schemas: str | None, expected: str) -> None:
    loaded = given({f"{part}.converter": name, f"{part}.converter.schemas.enable": schemas})
    assert getattr(loaded.config.sinks[0].converter, part) == expected


def test_a_missing_converter_is_noted() -> None:
    loaded = given({"key.converter": None, "value.converter": None, "value.converter.schemas.enable": None})
    converter = loaded.config.sinks[0].converter
    assert (converter.key, converter.value) == ("string", "json")
    assert len([notice for notice in bases.remarks(loaded) if "converter is missing" in notice.message]) == 2


def registered(options: dict[str, str], part: str = "value", name: str = "avro.AvroConverter") -> LoadedConfig:
    """A configuration whose key or value has a converter with a registry, and options of it."""
    return given(
        {
            f"{part}.converter": f"io.confluent.connect.{name}",
            f"{part}.converter.schemas.enable": None,
            **{f"{part}.converter.{key}": value for key, value in options.items()},
        }
    )


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize(
    ("name", "expected"), [("avro.AvroConverter", "avro"), ("json.JsonSchemaConverter", "json_schema")]
)
def test_converters_of_a_registry(part: str, name: str, expected: str) -> None:
    converter = registered({"schema.registry.url": "http://r:8081"}, part, name).config.sinks[0].converter
    assert getattr(converter, part) == expected
    assert converter.registry is not None
    assert converter.registry.url == "http://r:8081"


def test_key_and_value_have_one_registry() -> None:
    options = {"converter": "io.confluent.connect.avro.AvroConverter", "converter.schema.registry.url": "http://r:8081"}
    loaded = given(
        {f"{part}.{name}": value for part in ("key", "value") for name, value in options.items()}
        | {"value.converter.schemas.enable": None}
    )
    converter = loaded.config.sinks[0].converter
    assert (converter.key, converter.value) == ("avro", "avro")
    assert loaded.origins["sinks", 0, "converter", "registry", "url"].key == "value.converter.schema.registry.url"


@pytest.mark.parametrize(
    "options",
    [
        {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:hush:hush"},
        {
            "schema.registry.basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "me:hush:hush",
        },
        {"schema.registry.url": "http://me:hush%3Ahush@r:8081"},
        {"schema.registry.url": "http://me:hush%3Ahush@r:8081", "basic.auth.credentials.source": "URL"},
    ],
)
def test_user_and_password_of_a_registry(options: dict[str, str]) -> None:
    loaded = registered({"schema.registry.url": "http://r:8081", **options})
    registry = loaded.config.sinks[0].converter.registry
    assert registry is not None
    assert registry.password is not None
    assert (registry.url, registry.user, registry.password.get_secret_value()) == ("http://r:8081", "me", "hush:hush")
    assert "hush" not in repr(loaded)


def test_the_other_ways_into_a_registry() -> None:
    options = {
        "schema.registry.url": "https://one:8081, https://two/api",
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": "hush-hush",
        "schema.registry.ssl.truststore.location": "/etc/ca.pem",
        "schema.registry.ssl.truststore.type": "PEM",
        "ssl.keystore.location": "/etc/client.pem",
        "ssl.keystore.type": "PEM",
        "http.read.timeout.ms": "2500",
    }
    registry = registered(options).config.sinks[0].converter.registry
    assert registry is not None
    assert registry.token is not None
    assert registry.urls == ("https://one:8081", "https://two/api")
    assert registry.token.get_secret_value() == "hush-hush"
    assert (registry.ca_file, registry.cert_file, registry.timeout) == ("/etc/ca.pem", "/etc/client.pem", 2.5)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("auto.register.schemas", "false"),
        ("use.latest.version", "false"),
        ("latest.compatibility.strict", "true"),
        ("value.subject.name.strategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy"),
        ("enhanced.avro.schema.support", "true"),
        ("connect.meta.data", "false"),
        ("schema.registry.ssl.protocol", "TLSv1.3"),
    ],
)
def test_options_of_writers_are_accepted_with_a_reason(option: str, value: str) -> None:
    loaded = registered({"schema.registry.url": "http://r:8081", option: value})
    assert [one.message for one in bases.remarks(loaded) if one.place.key == f"value.converter.{option}"] == [
        "schemas are only read, by their ids, and all they say is kept"
    ]


@pytest.mark.parametrize(
    ("option", "value"), [("use.latest.version", "true"), ("use.latest.with.metadata", "a=b"), ("use.schema.id", "7")]
)
def test_a_schema_that_values_were_to_be_read_as_is_not_followed_and_noted(option: str, value: str) -> None:
    loaded = registered({"schema.registry.url": "http://r:8081", option: value})
    (message,) = [one.message for one in bases.remarks(loaded) if one.place.key == f"value.converter.{option}"]
    assert message.startswith("is not followed: a value has the fields of the schema that it was written with")


@pytest.mark.parametrize("password", ["hush-hush", "p@ss-w"])
def test_a_password_in_the_address_is_in_no_message(password: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        registered({"schema.registry.url": f"http//me:{password}@r:8081"})
    assert password not in str(refused.value)


# Transforms


def test_a_chain_of_transforms_is_read_in_order() -> None:
    loaded = given(
        {
            "transforms": "route, ts",
            "transforms.ts.type": "io.lenses.connect.smt.header.TimestampConverter",
            "transforms.ts.header.name": "ts",
            "transforms.ts.field": "_value.at",
            "transforms.ts.target.type": "string",
            "transforms.ts.format.to.pattern": "yyyy-MM-dd-HH",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "(.*)",
            "transforms.route.replacement": "x-$1",
            "transforms.route.predicate": "named",
            "transforms.route.negate": "true",
            "predicates": "named",
            "predicates.named.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
            "predicates.named.pattern": "a.*",
        }
    )
    route, stamp = loaded.config.sinks[0].transforms
    assert (route.name, route.type) == ("route", "org.apache.kafka.connect.transforms.RegexRouter")
    assert route.options == {"regex": "(.*)", "replacement": "x-$1"}
    assert route.predicate is not None
    assert (route.predicate.options, route.negate) == ({"pattern": "a.*"}, True)
    assert (stamp.name, stamp.options["format.to.pattern"], stamp.predicate) == ("ts", "yyyy-MM-dd-HH", None)
    assert loaded.origins[("sinks", 0, "transforms", 1, "options", "field")].key == "transforms.ts.field"


def test_an_invalid_option_of_a_transform_is_refused_at_its_place() -> None:
    route = {"type": "org.apache.kafka.connect.transforms.RegexRouter", "regex": "(", "replacement": "x"}
    with pytest.raises(ConfigurationError) as refused:
        given({"transforms": "route", **{f"transforms.route.{key}": value for key, value in route.items()}})
    assert str(refused.value).startswith("connector.properties:14:1: transforms.route.regex: ")


# s3lake.*


def test_any_native_setting_can_be_set() -> None:
    loaded = given(
        {
            "s3lake.flush.size": "10MB",
            "s3lake.layout.time.timezone": "Europe/Berlin",
            "s3lake.close_grace": "1m",
            "s3lake.hours_per_run": "null",
            "s3lake.topics": "a, b",
            "s3lake.spark.driver_memory": "2g",
            "s3lake.spark.conf.spark.sql.shuffle.partitions": "7",
            "s3lake.kafka.properties.fetch.max.bytes": "5",
            "s3lake.s3.credentials.access_key_id": "AKIA",
            "s3lake.s3.credentials.secret_access_key": "hush-hush",
            "s3lake.from": "start",
            "s3lake.name": "other",
        }
    )
    (sink,) = loaded.config.sinks
    assert (sink.name, sink.topics, sink.from_, sink.flush.size) == ("other", ("a", "b"), "start", 10_000_000)
    assert (sink.close_grace, sink.hours_per_run, sink.layout.time.timezone) == (60, None, "Europe/Berlin")
    assert loaded.config.spark.conf == {"spark.sql.shuffle.partitions": "7"}
    assert loaded.config.kafka.properties == {"fetch.max.bytes": "5"}
    assert loaded.config.s3.credentials != "default"


def test_an_override_says_where_it_came_from() -> None:
    loaded = given({"s3lake.flush.size": "10MB"})
    assert loaded.origins[("sinks", 0, "flush", "size")] == Place("connector.properties", 12, 1, "s3lake.flush.size")
    assert loaded.origins[("sinks", 0, "flush", "count")].key == "flush.size"


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
