"""Single settings from variables: `S3LAKE_SINKS_<NAME>_<PATH>` in each dialect, and Iggy's own over its files."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from s3lake.config.connectors import iggy_runtime
from s3lake.config.draft import LoadedConfig
from s3lake.config.overrides import Override, apply_variables, refuse_unknown
from s3lake.config.report import Report
from s3lake.config.syntax.toml_file import TomlFile
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads
from s3lake_tests.kit.tables import rows

GOOD = bases.KAFKA + bases.SINK
DOCUMENT: dict[str, Any] = {
    "kafka": {},
    "sinks": [{"name": "my-events", "topics": ["a"], "flush": {"count": 5}, "columns": {"unitPrice": "int64"}}],
}


@pytest.mark.parametrize(
    ("name", "text", "place", "value"),
    [
        ("FLUSH_COUNT", "1000", "flush.count", "1000"),
        ("FLUSH_COUNT", "null", "flush.count", None),
        ("PREFIX", "123", "prefix", "123"),
        ("PREFIX", "null", "prefix", "null"),
        ("FROM", "earliest", "from", "earliest"),
        ("TOPICS", "[b, c]", "topics", ["b", "c"]),
        ("TOPICS", "b, c", "topics", ["b", "c"]),
        ("TOPICS", "[]", "topics", []),
        ("TOPICS_0", "b", "topics.0", "b"),
        ("TOPICS_1", "7", "topics.1", "7"),
        ("TOPICS_REGEX", "a.*", "topics_regex", "a.*"),
        ("LAYOUT_PARTITION_BY", "[type,_date.yyyy]", "layout.partition_by", ["type", "_date.yyyy"]),
        ("LAYOUT_PADDING_CHAR", "0", "layout.padding.char", "0"),
        ("COLUMNS_PRICE", "decimal(10,2)", "columns.price", "decimal(10,2)"),
        ("COLUMNS_UNITPRICE", "double", "columns.unitPrice", "double"),
    ],
)
def test_a_variable_sets_the_setting_that_it_names(name: str, text: str, place: str, value: Any) -> None:
    document = deepcopy(DOCUMENT)
    overrides = apply_variables(document, {f"S3LAKE_SINKS_MY_EVENTS_{name}": text})
    found: Any = document["sinks"][0]
    for step in place.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    assert (found, type(found)) == (value, type(value))
    path = ("sinks", 0, *(int(step) if step.isdigit() else step for step in place.split(".")))
    assert overrides == [Override(f"S3LAKE_SINKS_MY_EVENTS_{name}", path, value)]


@pytest.mark.parametrize("environment", [{}, {"S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT": ""}, {"S3LAKE_CONFIG": "x"}])
def test_empty_and_other_variables_change_nothing(environment: dict[str, str]) -> None:
    assert apply_variables(DOCUMENT, environment) == []


def test_the_longest_name_of_a_sink_counts_and_two_meanings_are_refused() -> None:
    sinks: dict[str, Any] = {"sinks": [{"name": "events"}, {"name": "events_v2"}]}
    apply_variables(sinks, {"S3LAKE_SINKS_EVENTS_V2_PREFIX": "raw", "S3LAKE_SINKS_EVENTS_FLUSH_COUNT": "1"})
    assert sinks["sinks"] == [{"name": "events", "flush": {"count": "1"}}, {"name": "events_v2", "prefix": "raw"}]
    with pytest.raises(
        ConfigurationError, match=r"can mean index\.prefix of sink a and prefix of sink a-index: set it"
    ):
        apply_variables({"sinks": [{"name": "a"}, {"name": "a-index"}]}, {"S3LAKE_SINKS_A_INDEX_PREFIX": "x"})


UNKNOWN = """
MY_EVENT_PREFIX =>
    no sink of the configuration has this name; did you mean S3LAKE_SINKS_MY_EVENTS_…? sinks here: MY_EVENTS
MY_EVENTS_FLUSH_COUNTS =>
    unknown setting of sink my-events; did you mean S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT? settings begin with:
MY_EVENTS_ERRORS => errors is a group of settings; set one of S3LAKE_SINKS_MY_EVENTS_ERRORS_TOLERANCE
MY_EVENTS_TOPICS_5 => unknown setting
MY_EVENTS_TOPICS_0_NAME => unknown setting
MY_EVENTS_FORMAT_TYPE => 'format' is not a group of settings in the file: correct it there
"""


@pytest.mark.parametrize(("name", "message"), rows(UNKNOWN))
def test_a_variable_that_names_nothing_is_refused_with_the_nearest(name: str, message: str) -> None:
    document = deepcopy(DOCUMENT)
    document["sinks"][0]["format"] = "parquet"
    with pytest.raises(ConfigurationError) as refusal:
        apply_variables(document, {f"S3LAKE_SINKS_{name}": "x"})
    assert str(refusal.value).startswith(f"S3LAKE_SINKS_{name}: {message}")


# Settings that hold for all sinks


@pytest.mark.parametrize(
    ("variable", "text", "path"),
    [
        ("S3LAKE_KAFKA_BOOTSTRAP_SERVERS", "prod:9092", ("kafka", "bootstrap_servers")),
        ("S3LAKE_KAFKA_PROPERTIES_SASL_PASSWORD", "hush", ("kafka", "properties", "sasl.password")),
        ("S3LAKE_KAFKA_PROPERTIES_SECURITY_PROTOCOL", "SSL", ("kafka", "properties", "security.protocol")),
        ("S3LAKE_S3_REGION", "eu-west-1", ("s3", "region")),
        ("S3LAKE_S3_OBJECTS_ENCRYPTION", "AES256", ("s3", "objects", "encryption")),
        ("S3LAKE_SPARK_MASTER", "sc://spark:15002", ("spark", "master")),
        ("S3LAKE_SPARK_CONF_SPARK_EXECUTOR_MEMORY", "2g", ("spark", "conf", "spark.executor.memory")),
        ("S3LAKE_SPARK_CONF_SPARK_SQL_ANSI_ENABLED", "true", ("spark", "conf", "spark.sql.ansi.enabled")),
    ],
)
def test_a_variable_sets_kafka_s3_or_spark_for_all_sinks(variable: str, text: str, path: tuple[str, ...]) -> None:
    document: dict[str, Any] = {"kafka": {"properties": {"security.protocol": "SASL_SSL"}}, "sinks": []}
    assert apply_variables(document, {variable: text}) == [Override(variable, path, text)]
    found: Any = document
    for step in path:
        found = found[step]
    assert found == text


def test_one_file_serves_test_and_production() -> None:
    variables = {"S3LAKE_KAFKA_BOOTSTRAP_SERVERS": "prod:9092", "S3LAKE_S3_REGION": "eu-west-1"}
    config = bases.native(GOOD, variables).config
    assert config.kafka is not None
    assert (config.kafka.bootstrap_servers, config.s3.region) == ("prod:9092", "eu-west-1")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("S3LAKE_KAFKA_BOOTSTRAP_SERVER", "unknown setting of kafka; did you mean S3LAKE_KAFKA_BOOTSTRAP_SERVERS? "),
        ("S3LAKE_S3_OBJECTS", "objects is a group of settings; set one of S3LAKE_S3_OBJECTS_"),
    ],
)
def test_a_variable_of_kafka_s3_or_spark_that_names_nothing_is_refused(variable: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        apply_variables({"kafka": {}, "sinks": []}, {variable: "x"})
    assert str(refusal.value).startswith(f"{variable}: {message}")


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("S3LAKE_CONFG", "did you mean S3LAKE_CONFIG? "),
        ("S3LAKE_STRAT", "did you mean S3LAKE_START? "),
        ("S3LAKE_KAFKA", ""),
        ("S3LAKE_BOOTSTRAP_SERVER", "did you mean S3LAKE_BOOTSTRAP_SERVERS? "),
    ],
)
def test_a_variable_that_nothing_reads_is_refused_with_the_nearest_name(variable: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        refuse_unknown({variable: "x", "PATH": "x"}, ["sinks: []"])
    message = f"{variable}: nothing reads this variable; {hint}unset it, or correct its name: settings begin with"
    assert str(refusal.value).startswith(message)


def test_every_variable_of_the_repository_is_known() -> None:
    root = Path(__file__).parents[2]
    texts = [(root / name).read_text("utf-8") for name in ("docker/compose.yaml", "docker/Dockerfile", "Makefile")]
    texts += [path.read_text("utf-8") for room in ("s3lake", "trials") for path in (root / room).rglob("*.py")]
    named = set(re.findall(r"\bS3LAKE_[A-Z_]*[A-Z]\b", "\n".join(texts)))
    refuse_unknown(dict.fromkeys(named - {"S3LAKE_SINKS", "S3LAKE_KAFKA", "S3LAKE_S", "S3LAKE_SPARK"}, "x"), [])


def test_a_variable_that_the_file_names_is_the_files_own() -> None:
    refuse_unknown({"S3LAKE_PREFIX_OF_TEST": "x", "S3LAKE_START": "x"}, ["prefix: ${S3LAKE_PREFIX_OF_TEST}"])


# In a file that is loaded


def changed(text: str, **variables: str) -> LoadedConfig:
    return bases.native(text, {f"S3LAKE_SINKS_{name}": value for name, value in variables.items()})


def test_the_place_of_a_value_is_its_variable_in_each_dialect() -> None:
    native = changed(GOOD + "    flush: {count: 5}\n", EVENTS_FLUSH_COUNT="7")
    assert native.config.sinks[0].flush.count == 7
    assert not changed(GOOD, EVENTS_EXACTLY_ONCE="false").config.sinks[0].exactly_once
    assert str(native.origins["sinks", 0, "flush", "count"]) == "environment variable S3LAKE_SINKS_EVENTS_FLUSH_COUNT"
    assert str(native.origins["sinks", 0, "bucket"]) == "s3lake.yaml:5:5"
    variables = {"S3LAKE_SINKS_DEMO_FLUSH_COUNT": "7", "S3LAKE_SINKS_DEMO_TOPICS_1": "more"}
    connector = bases.load(bases.CONFLUENT, {"s3lake.flush.count": "5"}, **variables)
    assert (connector.config.sinks[0].flush.count, connector.config.sinks[0].topics) == (7, ("demo", "more"))
    assert str(connector.origins["sinks", 0, "flush", "count"]).endswith("S3LAKE_SINKS_DEMO_FLUSH_COUNT")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("FLUSH_COUNT", "many", "sinks[0].flush.count: 'many' is not allowed; write a whole number"),
        ("FORMAT_TYPE", "parqet", "sinks[0].format.type: 'parqet' is not allowed; did you mean parquet? use one of: "),
        ("TOPICS", "[a, b c]", "sinks[0].topics[1]: 'b c' is not allowed: a topic has letters"),
        ("LAYOUT_PADDING_CHAR", "ab", "sinks[0].layout.padding.char: 'ab' is not allowed: one printable"),
    ],
)
def test_an_invalid_value_is_reported_at_its_variable(variable: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        changed(GOOD, **{f"EVENTS_{variable}": value})
    assert str(refused.value).startswith(f"environment variable S3LAKE_SINKS_EVENTS_{variable}: {message}")


def test_errors_of_the_file_and_of_variables_come_together_and_those_of_the_file_may_be_the_cause() -> None:
    with pytest.raises(ConfigurationError) as refused:
        changed(GOOD.replace("bucket: lake", "bucket: x"), EVENTS_FLUSH_COUNT="many")
    assert [line.partition(": ")[0] for line in str(refused.value).split("\n")] == [
        "environment variable S3LAKE_SINKS_EVENTS_FLUSH_COUNT",
        "s3lake.yaml:5:13",
    ]
    with pytest.raises(ConfigurationError, match="S3LAKE_SINKS_EVNETS_PREFIX: no sink of the configuration has"):
        changed(GOOD, EVNETS_PREFIX="raw")
    with pytest.raises(ConfigurationError, match=r"s3lake.yaml:3:11: .*environment variable NOWHERE is not set"):
        changed(GOOD.replace("name: events", "name: ${NOWHERE}"), EVENTS_PREFIX="raw")
    with pytest.raises(ConfigurationError, match=r"s3lake.yaml:1:1: sinks: is missing"):
        changed(bases.KAFKA, EVENTS_PREFIX="raw")


# Iggy's own variables over its files (reference section 4.4)

SINK = {
    "type": "sink",
    "key": "s3-lake",
    "streams": [{"stream": "app", "topics": ["a"]}],
    "plugin_config": {"retry": {"max_delay": "1s"}, "token": "t"},
}


def of_connector(name: str, text: str, file: dict[str, Any] = SINK) -> dict[str, Any]:
    report = Report("s3-lake.toml")
    variables = {f"IGGY_CONNECTORS_{name}": text}
    (found,) = iggy_runtime.apply_to_connectors([TomlFile("s3-lake.toml", file)], variables, report)
    report.check()
    return found.data


def of_runtime(name: str, text: str, file: dict[str, Any]) -> dict[str, Any]:
    report = Report("config.toml")
    found = iggy_runtime.apply_to_runtime(TomlFile("config.toml", file), {f"IGGY_CONNECTORS_{name}": text}, report)
    report.check()
    return found.data


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("ENABLED", "false", {"enabled": "false"}),
        ("ENABLED", "", {}),
        ("STREAMS_0_TOPICS", "[x,y]", {"streams": [{"stream": "app", "topics": ["x", "y"]}]}),
        ("STREAMS_1_STREAM", "more", {"streams": [{"stream": "app", "topics": ["a"]}, {"stream": "more"}]}),
        ("PLUGIN_CONFIG_BUCKET", "lake", {"plugin_config": {**SINK["plugin_config"], "bucket": "lake"}}),  # type: ignore[dict-item]
        ("PLUGIN_CONFIG_SECRET", "008", {"plugin_config": {**SINK["plugin_config"], "secret": "008"}}),  # type: ignore[dict-item]
        ("PLUGIN_CONFIG_RETRY_MAX_DELAY", "2s", {"plugin_config": {"retry": {"max_delay": "2s"}, "token": "t"}}),
        ("PLUGIN_CONFIG_TOKEN", "[t]", {"plugin_config": {**SINK["plugin_config"], "token": "[t]"}}),  # type: ignore[dict-item]
        ("PLUGIN_CONFIG_FORMAT", "json", {"plugin_config_format": "json"}),
    ],
)
def test_a_variable_of_iggys_sets_a_value_of_a_connectors_file(name: str, text: str, changes: dict[str, Any]) -> None:
    assert of_connector(f"SINK_S3_LAKE_{name}", text) == {**SINK, **changes}


def test_a_variable_of_iggys_adds_what_a_file_does_not_have_and_one_of_sources_changes_no_sink() -> None:
    assert of_connector("SINK_S3_LAKE_STREAMS_0_STREAM", "app", {"type": "sink"})["streams"] == [{"stream": "app"}]
    assert of_connector("SINK_S3_LAKE_PLUGIN_CONFIG_BUCKET", "b", {"type": "sink"})["plugin_config"] == {"bucket": "b"}
    assert of_connector("SOURCE_RANDOM_ENABLED", "true") == SINK


@pytest.mark.parametrize(
    ("name", "text", "file", "expected"),
    [
        ("IGGY_USERNAME", "me", {}, {"iggy": {"username": "me"}}),
        ("HTTP_API_KEY", "k", {"http": {"enabled": True}}, {"http": {"enabled": True, "api_key": "k"}}),
        ("IGGY_TLS_ENABLED", "true", {}, {"iggy": {"tls": {"enabled": "true"}}}),
        ("CONNECTORS_RETRY_MAX_ATTEMPTS", "5", {}, {"connectors": {"retry": {"max_attempts": "5"}}}),
        ("CONFIG_PATH", "x", {}, {}),
        ("ENV_PATH", "x", {}, {}),
    ],
)
def test_a_variable_of_iggys_sets_a_value_of_the_runtimes_file(
    name: str, text: str, file: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert of_runtime(name, text, file) == expected


UNKNOWN_OF_IGGY = """
SINK_LAKE_ENABLED => names no connector that is here; here: s3-lake. Variables of connectors in
SINK_S3_LAKE_TRANSFORMS_ADD_FIELDS_ENABLED => unknown setting;
SINK_S3_LAKE_STREAMS_3_STREAM => unknown setting; did you mean IGGY_CONNECTORS_SINK_S3_LAKE_STREAMS_
SINK_S3_LAKE_PLUGIN_CONFIG => is a group of settings; set one of them
IGY_USERNAME => unknown setting; did you mean IGGY_CONNECTORS_IGGY_USERNAME? Iggy's
"""


@pytest.mark.parametrize(("name", "message"), rows(UNKNOWN_OF_IGGY))
def test_a_variable_of_iggys_that_names_nothing_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        of_connector(name, "x") if name.startswith("SINK") else of_runtime(name, "x", {"iggy": {}})
    assert str(refusal.value).startswith(f"environment variable IGGY_CONNECTORS_{name}: {message}")


def with_iggys(**variables: str) -> LoadedConfig:
    environment = {f"IGGY_CONNECTORS_{name}": value for name, value in variables.items()}
    return loads(bases.IGGY, "sink.toml", None, environment)


def test_a_value_of_iggys_variable_is_loaded_with_its_place() -> None:
    loaded = with_iggys(SINK_LAKE_PLUGIN_CONFIG_BUCKET="pond", SINK_LAKE_STREAMS_0_TOPICS="[api, web]")
    assert [(sink.bucket, sink.topics) for sink in loaded.config.sinks] == [
        ("pond", ("logs.api",)),
        ("pond", ("logs.web",)),
    ]
    place = loaded.origins["sinks", 0, "bucket"]
    assert (str(place), place.key) == (
        "environment variable IGGY_CONNECTORS_SINK_LAKE_PLUGIN_CONFIG_BUCKET",
        "plugin_config.bucket",
    )


def test_an_invalid_value_of_iggys_variable_is_reported_there_without_secrets() -> None:
    variables = {"ACCESS_KEY_ID": "AK", "SECRET_ACCESS_KEY": "hush-hush", "BUCKET": "hush-hush!"}
    with pytest.raises(ConfigurationError) as refused:
        with_iggys(**{f"SINK_LAKE_PLUGIN_CONFIG_{name}": text for name, text in variables.items()})
    assert "hush-hush" not in str(refused.value)
    assert "environment variable IGGY_CONNECTORS_SINK_LAKE_PLUGIN_CONFIG_BUCKET: plugin_config.bucket: " in str(
        refused.value
    )


def test_variables_of_the_runtime_have_no_meaning_for_one_connector() -> None:
    loaded = with_iggys(IGGY_USERNAME="me", STATE_PATH="s", CONFIG_PATH="x", ENV_PATH="y")
    assert [str(one) for one in bases.remarks(loaded) if "environment" in one.place.file] == [
        "environment variable IGGY_CONNECTORS_IGGY_USERNAME: iggy.username: has no effect: [s3lake] sets where the "
        "records are",
        "environment variable IGGY_CONNECTORS_STATE_PATH: state.path: has no effect: the file is that of one "
        "connector, not the runtime's",
    ]
