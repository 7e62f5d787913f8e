"""Single settings of a native configuration from the environment."""

import pytest

from s3lake.config.overrides import Override, apply_variables, parse_value
from s3lake.errors import ConfigurationError


def document(**settings):
    return {"kafka": {}, "sinks": [{"name": "my-events", "topics": ["a"], **settings}]}


def changed(environment, **settings):
    return apply_variables(document(**settings), environment)[0]["sinks"][0]


def refused(environment, **settings):
    with pytest.raises(ConfigurationError) as refusal:
        apply_variables(document(**settings), environment)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("name", "text", "place", "value"),
    [
        ("FLUSH_COUNT", "1000", "flush.count", 1000),
        ("FLUSH_SIZE", "10MB", "flush.size", "10MB"),
        ("FLUSH_INTERVAL", "90", "flush.interval", 90),
        ("FLUSH_INTERVAL", "1.5", "flush.interval", 1.5),
        ("FORMAT_TYPE", "parquet", "format.type", "parquet"),
        ("PREFIX", "123", "prefix", "123"),
        ("PREFIX", "true", "prefix", "true"),
        ("FROM", "earliest", "from", "earliest"),
        ("START", "2026-11-20T05", "start", "2026-11-20T05"),
        ("EXACTLY_ONCE", "false", "exactly_once", False),
        ("TOPICS", "[b, c]", "topics", ["b", "c"]),
        ("TOPICS", "b", "topics", ["b"]),
        ("TOPICS", "[]", "topics", []),
        ("TOPICS_0", "b", "topics.0", "b"),
        ("TOPICS_1", "7", "topics.1", "7"),
        ("TOPICS_REGEX", "a.*", "topics_regex", "a.*"),
        ("LAYOUT_PARTITION_BY", "[type,_date.yyyy]", "layout.partition_by", ["type", "_date.yyyy"]),
        ("LAYOUT_PADDING_OFFSET", "20", "layout.padding.offset", 20),
        ("LAYOUT_PADDING_CHAR", "0", "layout.padding.char", "0"),
        ("ENVELOPE_FIELDS", "[key,value]", "envelope.fields", ["key", "value"]),
        ("COLUMNS_PRICE", "decimal(10,2)", "columns.price", "decimal(10,2)"),
        ("INDEX_PREFIX", ".i", "index.prefix", ".i"),
    ],
)
def test_a_variable_sets_what_it_names(name, text, place, value):
    found = changed({f"S3LAKE_SINKS_MY_EVENTS_{name}": text})
    for step in place.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    assert found == value
    assert type(found) is type(value)


def test_a_column_is_found_in_whatever_case_the_file_has_it():
    assert changed({"S3LAKE_SINKS_MY_EVENTS_COLUMNS_UNITPRICE": "double"}, columns={"unitPrice": "int64"})[
        "columns"
    ] == {"unitPrice": "double"}


def test_the_document_itself_is_left_as_it_is():
    given = document(flush={"count": 5, "size": "1MB"})
    apply_variables(given, {"S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT": "6"})
    assert given == document(flush={"count": 5, "size": "1MB"})


def test_what_no_variable_names_stays():
    found = changed({"S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT": "6"}, flush={"count": 5, "size": "1MB"})
    assert found["flush"] == {"count": 6, "size": "1MB"}


@pytest.mark.parametrize("environment", [{}, {"S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT": ""}, {"S3LAKE_CONFIG": "x"}])
def test_empty_and_other_variables_say_nothing(environment):
    assert apply_variables(document(), environment) == (document(), [])


def test_an_override_says_its_variable_and_its_place():
    assert apply_variables(document(), {"S3LAKE_SINKS_MY_EVENTS_PREFIX": "raw"})[1] == [
        Override("S3LAKE_SINKS_MY_EVENTS_PREFIX", ("sinks", 0, "prefix"), "raw")
    ]


def test_the_longest_name_of_a_sink_is_tried_too():
    sinks = {"sinks": [{"name": "events"}, {"name": "events_v2"}]}
    found, _ = apply_variables(sinks, {"S3LAKE_SINKS_EVENTS_V2_PREFIX": "raw", "S3LAKE_SINKS_EVENTS_FLUSH_COUNT": "1"})
    assert found["sinks"] == [{"name": "events", "flush": {"count": 1}}, {"name": "events_v2", "prefix": "raw"}]


def test_a_variable_that_can_mean_two_sinks_is_refused():
    with pytest.raises(ConfigurationError) as refusal:
        apply_variables({"sinks": [{"name": "a"}, {"name": "a-index"}]}, {"S3LAKE_SINKS_A_INDEX_PREFIX": "x"})
    assert str(refusal.value) == (
        "S3LAKE_SINKS_A_INDEX_PREFIX can mean index.prefix of sink a and prefix of sink a-index: say it in the file "
        "instead"
    )


def test_an_unknown_sink_is_refused_with_the_nearest():
    assert refused({"S3LAKE_SINKS_MY_EVENT_FLUSH_COUNT": "1"}) == (
        "S3LAKE_SINKS_MY_EVENT_FLUSH_COUNT: no sink of the configuration has this name; did you mean "
        "S3LAKE_SINKS_MY_EVENTS_…? sinks here: MY_EVENTS"
    )


def test_an_unknown_setting_is_refused_with_the_nearest():
    message = refused({"S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNTS": "1"})
    assert message.startswith(
        "S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNTS: unknown setting of sink my-events; did you mean "
        "S3LAKE_SINKS_MY_EVENTS_FLUSH_COUNT? settings begin with: NAME, TOPICS, "
    )


def test_a_group_is_no_setting():
    message = refused({"S3LAKE_SINKS_MY_EVENTS_ERRORS": "all"})
    assert message.startswith(
        "S3LAKE_SINKS_MY_EVENTS_ERRORS: errors is a group of settings; set one of "
        "S3LAKE_SINKS_MY_EVENTS_ERRORS_TOLERANCE"
    )


def test_a_place_beyond_the_end_of_a_list_is_refused():
    assert "unknown setting" in refused({"S3LAKE_SINKS_MY_EVENTS_TOPICS_5": "x"})


def test_a_file_that_has_a_value_for_a_group_is_told_so():
    assert refused({"S3LAKE_SINKS_MY_EVENTS_FORMAT_TYPE": "avro"}, format="parquet") == (
        "S3LAKE_SINKS_MY_EVENTS_FORMAT_TYPE: 'format' is not a group of settings in the file: correct it there"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[a,b]", ["a", "b"]),
        ("[1, true]", [1, True]),
        ("[]", []),
        ("true", True),
        ("True", "True"),
        ("42", 42),
        ("-42", -42),
        ("18446744073709551615", 2**64 - 1),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("1.5s", "1.5s"),
        ("nan", "nan"),
        ("text", "text"),
    ],
)
def test_values_are_typed_as_iggy_does(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)
