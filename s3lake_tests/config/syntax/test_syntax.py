"""Properties, JSON and TOML: values as their languages mean them, and the place of every key."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.connectors.wrapped_files import unwrap_connector_file
from s3lake.config.report import Place, Report, Setting
from s3lake.config.syntax import properties_file, toml_file
from s3lake.config.syntax.yaml_file import parse_json
from s3lake.errors import ConfigurationError
from s3lake_tests.kit.cost import cpu_ratio


def read(text: str) -> dict[str, str]:
    report = Report("f")
    found = properties_file.read_settings(text, report)
    report.check()
    return {one.key: one.value for one in found}


def first(text: str) -> Setting:
    return properties_file.read_settings(text, Report("f"))[0]


# Java properties


@pytest.mark.parametrize("between", ["=", ":", " ", " = ", "\t:\t", "   ", " :", "= "])
def test_a_key_ends_at_an_equals_sign_a_colon_or_a_blank(between: str) -> None:
    assert read(f"a.b{between}c d") == {"a.b": "c d"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a==b:c", {"a": "=b:c"}, id="only the first separator separates"),
        pytest.param("a = :b", {"a": ":b"}, id="only the first separator separates, after a blank"),
        pytest.param("# a=b\n! c=d\n\n  # e=f\n x=y", {"x": "y"}, id="comments and empty lines"),
        pytest.param("#a\\\nx=y", {"x": "y"}, id="a comment is not continued"),
        pytest.param("\\\nx=y", {"x": "y"}, id="an empty line is continued"),
        pytest.param("a=b,\\\n   c\\\n  d\nx=y", {"a": "b,cd", "x": "y"}, id="a line is continued"),
        pytest.param("a=b\\\\\nx=y", {"a": "b\\", "x": "y"}, id="two backslashes are one"),
        pytest.param("a=b\\\n# c", {"a": "b# c"}, id="a comment in a continued line is text"),
        pytest.param("a=b\\", {"a": "b"}, id="a backslash at the end"),
        *(pytest.param(f"a=b{end}c=d{end}", {"a": "b", "c": "d"}, id=f"{end!r}") for end in ("\n", "\r\n", "\r")),
        pytest.param("a=\\t\\n\\r\\f", {"a": "\t\n\r\f"}, id="escapes"),
        pytest.param("a=\\u00e9\\ud83d\\ude00", {"a": "\xe9\N{GRINNING FACE}"}, id="escapes of Unicode"),
        pytest.param("a=\\=\\:\\#\\!\\ x", {"a": "=:#! x"}, id="escapes of marks"),
        pytest.param("a=\\  x", {"a": "  x"}, id="an escaped blank is text"),
        pytest.param("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}, id="escaped separators in a key"),
        pytest.param("a\nb=\nc: ", {"a": "", "b": "", "c": ""}, id="keys without a value"),
        pytest.param("a=b  \nc=d\\ ", {"a": "b", "c": "d "}, id="blanks after a value"),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, values: dict[str, str]) -> None:
    assert read(text) == values


def test_a_backslash_that_java_would_drop_is_kept_and_noted() -> None:
    report = Report("f")
    (found,) = properties_file.read_settings(r"topics.regex=^sensor_\d+$", report)
    assert found.value == r"^sensor_\d+$"
    assert [str(notice) for notice in report.notices] == [
        r"f:1:22: \d is taken as written; Java drops the backslash: write \\d to be sure"
    ]


def test_a_unicode_escape_needs_four_digits() -> None:
    with pytest.raises(ConfigurationError, match=r"f:1:3: \\u needs four hexadecimal digits"):
        read("a=\\u12")


def test_every_character_of_a_value_has_its_place() -> None:
    found = first("\n  a = x\\\n   \\u00e9z")
    assert found.place == Place("f", 2, 3, "a")
    assert [(found.at(at).line, found.at(at).column) for at in range(4)] == [(2, 7), (3, 4), (3, 10), (3, 11)]


@given(st.dictionaries(st.text(min_size=1, alphabet=string.printable), st.text(alphabet=string.printable), max_size=4))
def test_properties_that_java_stores_are_read_back(held: dict[str, str]) -> None:
    def stored(text: str) -> str:
        escaped = "".join("\\" + char if char in "\\=:#! " else char for char in text)
        for char, letter in (("\t", "t"), ("\n", "n"), ("\r", "r"), ("\f", "f")):
            escaped = escaped.replace(char, "\\" + letter)
        return escaped.replace("\v", "\\u000b")

    assert read("\n".join(f"{stored(key)}={stored(value)}" for key, value in held.items())) == held


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    properties_file.read_settings(text, Report("f"))


@pytest.mark.parametrize(("begin", "repeated", "end"), [("a=x", " ", "x"), ("a", " ", ""), ("a=", "\\\\", " ")])
def test_the_time_for_a_line_grows_with_its_length_and_not_with_its_square(begin: str, repeated: str, end: str) -> None:
    def read_line(length: int) -> None:
        properties_file.read_settings(begin + repeated * length + end * length, Report("f"))

    assert cpu_ratio(lambda: read_line(100_000), lambda: read_line(25_000), enough=8) <= 8  # the square would be 16


# JSON


def members(text: str, report: Report | None = None) -> list[Setting]:
    report = report or Report("f")
    return [
        setting for node in unwrap_connector_file([parse_json(text, "f")], report) for setting in node.setting(report)
    ]


@pytest.mark.parametrize(
    ("text", "settings", "remarks"),
    [
        (
            '{"name": "n",\n "tasks.max": 3, "flag": true, "level": 1.50}',
            {"name": "n", "tasks.max": "3", "flag": "true", "level": "1.50"},
            [],
        ),
        (
            '{"name": "n", "config": {"a": "b"}, "tasks": [], "type": "sink"}',
            {"name": "n", "a": "b"},
            [
                "f:1:37: tasks: is what Connect's REST API answers; s3lake has no tasks",
                "f:1:50: type: is what Connect's REST API answers",
            ],
        ),
        ('{"name": "n", "config": "x"}', {"name": "n", "config": "x"}, []),
        ('{"a": null}', {}, ["f:1:2: a: null is as if it were not there"]),
    ],
)
def test_a_connector_in_json_is_its_settings(text: str, settings: dict[str, str], remarks: list[str]) -> None:
    report = Report("f")
    assert {one.key: one.value for one in members(text, report)} == settings
    assert [str(one) for one in (*report.notices, *report.without_effect)] == remarks


def test_a_setting_has_the_place_of_its_key() -> None:
    assert members('{"name": "n",\n "tasks.max": 3}')[1].place == Place("f", 2, 2, "tasks.max")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"x\\u00e9\\ud83d\\ude00\\n\\/y"', "xé\N{GRINNING FACE}\n/y"),
        ('"a\x7fb\u2028c\ufeff"', "a\x7fb\u2028c\ufeff"),
        ('"null"', "null"),
        ('"~"', "~"),
        ('"\\ud800"', "\ud800"),
    ],
)
def test_a_text_of_json_is_read_as_json_has_it(written: str, value: str) -> None:
    (found,) = members(f'{{\t"a"\t:\t{written}}}')
    assert found.value == value


@pytest.mark.parametrize("name", ["n" * 1_025, "ä" * 50_000])
def test_a_name_of_json_may_be_longer_than_one_of_yaml(name: str) -> None:
    (found,) = members(json.dumps({name: "x"}))
    assert (found.key, found.value) == (name, "x")


def test_a_colon_of_json_may_be_in_another_line_than_its_name() -> None:
    found = members('{"a"\n:\n"x", "b"\n\n: 1}')
    assert [(one.key, one.value, one.place.line) for one in found] == [("a", "x", 1), ("b", "1", 3)]


def test_a_plain_text_of_json_has_the_place_of_each_character() -> None:
    (found,) = members('{\n"a": "xyz"}')
    assert [found.at(at).column for at in range(3)] == [7, 8, 9]


VALUES = st.recursive(
    st.one_of(st.text(), st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans()), max_size=4), st.sampled_from([0, 2])
)
def test_whatever_json_means_is_read(config: dict[str, object], indent: int) -> None:
    found = members(json.dumps({"name": "x", "config": {**config, "name": "x"}}, indent=indent))
    values = {one.key: one.value for one in found if one.key != "name"}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    assert values == {
        key: text.strip() for key, text in texts.items() if key != "name" and not key.startswith(("_", "#"))
    }


@given(st.one_of(st.text(), VALUES.map(json.dumps)))
def test_any_text_is_json_or_refused_with_a_place(text: str) -> None:
    try:
        members(text)
    except ConfigurationError as error:
        message = str(error)
    else:
        return
    assert message.startswith("f:")


# TOML

SAMPLE = """\
# a comment with [brackets] = and "quotes"
type = "sink" # more
"quoted key" . deep = 'x'
many = [
  "a, b", # not the end: ]
  ["c"],
]
text = \"\"\"
[not.a.table]
a = 1 \\\"\"\" still\"\"\"
inline = { a = 1, b = { "c d" = [2, 3] } }

[[streams]]
  stream = "one"
  [streams.options]
  fast = true
[[streams]]
stream = 'two'
[transforms.add_fields]
value.static = 2026-11-20T00:00:00Z
"""


def test_every_value_of_toml_has_the_place_of_its_line() -> None:
    file = toml_file.parse_toml(SAMPLE, "f")
    lines = {
        ("type",): (2, 1),
        ("quoted key", "deep"): (3, 1),
        ("many", 1, 0): (4, 1),
        ("text",): (8, 1),
        ("inline", "b", "c d", 1): (11, 1),
        ("streams", 0, "options", "fast"): (16, 3),
        ("streams", 1, "stream"): (18, 1),
        ("transforms", "add_fields", "value", "static"): (20, 1),
    }
    assert {path: (file.place(*path).line, file.place(*path).column) for path in lines} == lines
    assert file.place("streams", 0, "options", "fast").key == "streams[0].options.fast"
    assert file.data["text"].startswith("[not.a.table]")


def test_invalid_toml_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"^f:2:\d+: not TOML: "):
        toml_file.parse_toml("a = 1\nb = \n", "f")


def test_a_number_of_toml_that_is_too_long_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"^f:1:1: a number has more digits than any setting takes"):
        toml_file.parse_toml(f"a = 1\nb = {'9' * 5000}\n", "f")


def test_numbers_of_json_may_be_long() -> None:
    number = "9" * 5000
    text = f'{{"config": {{"flush.size": {number}}}}}'
    assert parse_json(text, "f").at("config").text("flush.size") == number


SCALARS = st.one_of(st.text(st.characters(exclude_categories=("Cs", "Cc"))), st.integers(-9, 9), st.booleans())


def to_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(
    st.dictionaries(
        st.text(string.ascii_letters + " .]#=", min_size=1, max_size=5),
        st.recursive(
            SCALARS,
            lambda one: st.one_of(
                st.lists(one, max_size=3), st.dictionaries(st.text("ab. ", max_size=3), one, max_size=2)
            ),
        ),
        max_size=4,
    )
)
def test_every_key_of_toml_has_its_line(data: dict[str, object]) -> None:
    text = "\n".join(f"{json.dumps(key)} = {to_toml(value)}" for key, value in data.items())
    file = toml_file.parse_toml(text, "f")
    assert file.data == data
    assert [file.place(key).line for key in data] == list(range(1, len(data) + 1))
