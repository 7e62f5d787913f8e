"""Iggy's own variables over its files (reference section 4.4)."""

import pytest

from s3lake.config.connectors import iggy_runtime
from s3lake.config.report import Report
from s3lake.config.syntax.toml import File
from s3lake.errors import ConfigurationError

SINK = {
    "type": "sink",
    "key": "s3-lake",
    "enabled": True,
    "streams": [{"stream": "app", "topics": ["a"]}],
    "plugin_config": {"bucket": "b", "retry": {"max_delay": "1s"}, "token": "t"},
}


def sink(name, text, file=SINK):
    return connectors({f"IGGY_CONNECTORS_SINK_S3_LAKE_{name}": text}, file)


def connectors(environment, file=SINK):
    report = Report("s3-lake.toml")
    (changed,) = iggy_runtime.apply_to_connectors([File("s3-lake.toml", file)], environment, report)
    report.check()
    return changed.data


def runtime(name, text, given=None):
    report = Report("config.toml")
    changed = iggy_runtime.apply_to_runtime(File("config.toml", given or {}), {f"IGGY_CONNECTORS_{name}": text}, report)
    report.check()
    return changed.data


def refused(name):
    report, variables = Report("config.toml"), {f"IGGY_CONNECTORS_{name}": "x"}
    iggy_runtime.apply_to_connectors([File("s3-lake.toml", SINK)], variables, report)
    iggy_runtime.apply_to_runtime(File("config.toml", {"iggy": {}}), variables, report)
    with pytest.raises(ConfigurationError) as refusal:
        report.check()
    return str(refusal.value)


def test_a_property_of_a_sink():
    assert sink("ENABLED", "false") == {**SINK, "enabled": False}


def test_a_property_that_the_file_does_not_have():
    assert sink("VERBOSE", "true")["verbose"] is True


def test_a_stream_by_its_place():
    assert sink("STREAMS_0_TOPICS", "[x,y]")["streams"] == [{"stream": "app", "topics": ["x", "y"]}]
    assert sink("STREAMS_1_STREAM", "more")["streams"][1] == {"stream": "more"}


def test_a_stream_where_there_was_none():
    assert sink("STREAMS_0_STREAM", "app", {"type": "sink"})["streams"] == [{"stream": "app"}]


def test_a_field_of_the_plugin():
    assert sink("PLUGIN_CONFIG_BUCKET", "lake")["plugin_config"]["bucket"] == "lake"


def test_a_nested_field_of_the_plugin():
    assert sink("PLUGIN_CONFIG_RETRY_MAX_DELAY", "2s")["plugin_config"]["retry"] == {"max_delay": "2s"}


def test_a_field_that_the_plugin_does_not_have_is_one_flat_name():
    assert sink("PLUGIN_CONFIG_MAX_FILE_SIZE", "8")["plugin_config"]["max_file_size"] == 8


def test_a_field_of_a_plugin_without_any():
    assert sink("PLUGIN_CONFIG_BUCKET", "lake", {"type": "sink"})["plugin_config"] == {"bucket": "lake"}


def test_the_plugins_format_is_no_field_of_it():
    found = sink("PLUGIN_CONFIG_FORMAT", "json")
    assert found["plugin_config_format"] == "json"
    assert "format" not in found["plugin_config"]


def test_what_is_a_text_in_the_file_stays_one():
    assert sink("PLUGIN_CONFIG_TOKEN", "1234")["plugin_config"]["token"] == "1234"


def test_a_section_of_the_runtime():
    assert runtime("IGGY_USERNAME", "me") == {"iggy": {"username": "me"}}
    assert runtime("HTTP_API_KEY", "k", {"http": {"enabled": True}}) == {"http": {"enabled": True, "api_key": "k"}}
    assert runtime("IGGY_TLS_ENABLED", "true") == {"iggy": {"tls": {"enabled": True}}}
    assert runtime("CONNECTORS_RETRY_MAX_ATTEMPTS", "5") == {"connectors": {"retry": {"max_attempts": 5}}}


@pytest.mark.parametrize("name", ["CONFIG_PATH", "ENV_PATH"])
def test_where_the_files_are_is_no_setting(name):
    assert runtime(name, "x") == {}


def test_empty_variables_say_nothing():
    assert sink("ENABLED", "") == SINK


def test_variables_of_sources_say_nothing_of_sinks():
    assert connectors({"IGGY_CONNECTORS_SOURCE_RANDOM_ENABLED": "true"}) == SINK


def test_the_files_are_left_as_they_are():
    sink("PLUGIN_CONFIG_RETRY_MAX_DELAY", "2s")
    assert SINK["plugin_config"]["retry"] == {"max_delay": "1s"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SINK_LAKE_ENABLED", "unknown setting; did you mean IGGY_CONNECTORS_SINK_S3_LAKE_ENABLED? names begin with: "),
        ("SINK_S3_LAKE_ENABLE", "unknown setting; did you mean IGGY_CONNECTORS_SINK_S3_LAKE_ENABLED? names begin with"),
        ("SINK_S3_LAKE_TRANSFORMS_ADD_FIELDS_ENABLED", "transforms cannot be set by variables, in Iggy neither; write"),
        ("SINK_S3_LAKE_STREAMS_3_STREAM", "unknown setting; did you mean IGGY_CONNECTORS_SINK_S3_LAKE_STREAMS? "),
        ("IGY_USERNAME", "unknown setting; did you mean IGGY_CONNECTORS_IGGY_USERNAME? names begin with: "),
        ("IGGY_USER", "unknown setting; did you mean IGGY_CONNECTORS_IGGY_USERNAME? names begin with: "),
    ],
)
def test_a_variable_that_names_nothing_is_refused(name, message):
    assert refused(name).startswith(f"environment variable IGGY_CONNECTORS_{name}: {message}")
