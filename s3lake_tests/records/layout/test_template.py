"""The language of templates: what it means, and what is refused with its place and the fix."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from s3lake import hours
from s3lake.config.model import Padding
from s3lake.config.model import Time as Clock
from s3lake.land.request import stage_values
from s3lake.records.layout.object_keys import FileNumbers, RecordColumns
from s3lake.records.layout.pieces import (
    Extension,
    FieldElement,
    FixedText,
    HeaderElement,
    Hour,
    KeyElement,
    Number,
    PaddingType,
    SchemaNameElement,
    TimeElement,
    Topic,
)
from s3lake.records.layout.template import parse_template
from s3lake_tests.kit.tables import read_each, rows
from s3lake_tests.records.layout.files import sink


def pieces(text: str, **time: Any) -> tuple[Any, ...]:
    return parse_template(text, Clock(**time).piece, Padding(type="right", char="_").numbers[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", (FixedText("a/b"),)),
        ("{topic}", (Topic(),)),
        ("{{{topic}}}", (FixedText("{"), Topic(), FixedText("}"))),
        ("a{{b}}", (FixedText("a{b}"),)),
        ("{partition}", (Number("partition"),)),
        ("{offset:020}", (Number("offset", 20),)),
        ("{offset:12}", (Number("offset", 12, "right", "_"),)),
        ("{last_offset}", (Number("last_offset"),)),
        ("{min_timestamp}_{max_timestamp}", (Number("min_timestamp"), FixedText("_"), Number("max_timestamp"))),
        ("{records:03}", (Number("records", 3),)),
        ("{field:a.b}", (FieldElement(("a", "b")),)),
        ("{field:`a.b`.c}", (FieldElement(("a.b", "c")),)),
        ("{field:it's}-{header:o'k}", (FieldElement(("it's",)), FixedText("-"), HeaderElement("o'k"))),
        ("{key}", (KeyElement(),)),
        ("{key:a.b}", (KeyElement(("a", "b")),)),
        ("{header:ce-type.v1}", (HeaderElement("ce-type.v1"),)),
        ("{schema}", (SchemaNameElement(),)),
        ("{hour:yyyy-MM-dd}", (Hour("yyyy-MM-dd"),)),
        ("{hour:'at {'HH}", (Hour("'at {'HH"),)),
        ("{time:yyyy}", (TimeElement("yyyy", "record", (), "UTC", "en", None),)),
        ("{time:'at: {}/'''HH:mm}", (TimeElement("'at: {}/'''HH:mm", "record", (), "UTC", "en", None),)),
    ],
)
def test_a_template_is_parsed_to_pieces(text: str, expected: tuple[Any, ...]) -> None:
    assert pieces(text) == (*expected, Extension())


def test_the_extension_is_appended_unless_it_is_there() -> None:
    assert pieces("a{extension}.bak") == (FixedText("a"), Extension(), FixedText(".bak"))


def test_a_time_is_the_layouts() -> None:
    time = {"source": "field", "field": "meta.at", "timezone": "+02:00", "locale": "fr", "duration": "1h"}
    assert pieces("{time:MM}", **time)[0] == TimeElement("MM", "field", ("meta", "at"), "+02:00", "fr", 3_600_000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "{topci}/{offset}",
            r"character 1: \{topci\} is unknown; did you mean \{topic\}\? there are \{topic\}, \{partition",
        ),
        ("a/{start_offset}", r"character 3: \{start_offset\} is unknown; did you mean \{last_offset\}|\{offset\}"),
        ("{ topic }", r"did you mean \{topic\}"),
        ("{xyz}", r"\{xyz\} is unknown; there are"),
        ("{}", r"\{\} is unknown"),
        ("a{topic", "character 2: '{' is not closed"),
        ("a}b", "character 2: '}' closes nothing: write '}}' for a brace"),
        ("{topic{x}}", "'{' is not closed"),
        ("{field:a{b}}", "'{' is not closed"),
        ("{topic:x}", "takes nothing after a colon"),
        ("{schema:}", "takes nothing after a colon"),
        ("{field}", r"needs an argument, for example \{field:user.id\}"),
        ("{header:}", r"needs an argument, for example \{header:region\}"),
        ("{hour}", r"needs an argument, for example \{hour:yyyy-MM-dd\}"),
        ("{hour:HH-mm}", "an hour has no minutes and no seconds: take m, s and S out"),
        ("{hour:uuuu}", "means nothing"),
        ("{time}", r"needs an argument, for example \{time:yyyy-MM-dd\}"),
        ("{key:}", "nothing is after the colon"),
        ("{offset:}", "nothing is after the colon"),
        ("{offset:0}", "'0' is not a length"),
        ("{offset:x}", "'x' is not a length: write 1 to 64"),
        ("{offset:065}", "is not a length"),
        ("{field:a..b}", "a field name is empty"),
        ("{time:YYYY-mm-DD}", "m is the minute"),
        ("{time:'dt=YYYY}", "the quote at character 1 is not closed"),
        ("{time:uuuu}", "means nothing"),
        ("{extension}{extension}", "is there twice"),
        ("{extension}/{topic}", "belongs into the file name"),
        ("//{topic}", "character 1: a name is missing between two '/'"),
        ("a//{topic}", "character 2: a name is missing between two '/'"),
        ("a/", "the file name is missing"),
        ("", "the file name is missing"),
        ("../{topic}", "'..' cannot be alone"),
        ("a/./{topic}", "'.' cannot be alone"),
        ("_dead_letters/{topic}", "'_dead_letters' cannot be alone"),
        (".probe/{topic}", "'.probe' cannot be alone"),
        ("{time:yyyy/'..'}/{topic}", "'..' cannot be alone"),
        ("{time:yyyy/}/{topic}", "a name is missing"),
        ("a\n{topic}", "character 2: '\\\\n' is a control character"),
        ("{topic}~x", "'~' marks files of a replacing commit"),
    ],
)
def test_an_invalid_template_is_refused_with_its_character(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pieces(text)


def test_a_directory_may_have_a_tilde() -> None:
    assert pieces("~a/{topic}")


@given(st.text("{}:'`/.~ topicfeldkyr0123", max_size=30))
def test_every_text_is_a_template_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(pieces(text), tuple)


# With the whole sink

GOOD = "{topic}/{partition}/{offset}"


def refusal(**settings: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        sink(**settings)
    return str(refused.value)


@pytest.mark.parametrize(
    ("template", "lacking"),
    [
        ("{topic}/{offset}", "lacks {partition}: "),
        ("{topic}/{partition}", "lacks {offset}: "),
        ("{key}", "lacks {topic} and {partition} and {offset}: "),
        ("{partition}/{offset}", "lacks {topic}: "),
        ("{topic}/{partition}/{min_timestamp}", "lacks {offset}: "),
    ],
)
def test_keys_that_replace_each_other_need_exactly_once_off(template: str, lacking: str) -> None:
    message = refusal(layout={"template": template}, topics=("a", "b"))
    assert lacking in message
    assert "exactly_once: false" in message
    assert sink(layout={"template": template}, topics=("a", "b"), exactly_once=False)


REFUSED = """
lacks {topic} => template: "{partition}/{offset}", topics: [], topics_regex: a.*
two offsets can get one key => each template: ["{topic}/{partition}{offset}", "{topic}/{partition}0{offset}",
    "{topic}/{partition}/{key}{offset}", "{topic}/{partition}/{offset}{field:a}",
    "{topic}/{partition}/{time:yyyy}{offset}", "{topic}/{partition}/{offset}7{records}"]
two offsets can get one key =>
    each template: ["{partition}{topic}{offset}", "{topic}{partition}/{offset}"], topics: ["1", "12"]
converter.value string does not give: set => template: "{field:a}/GOOD", converter.value: string
converter.key string does not give: set converter.key to json => template: "{key:a}/GOOD"
{time:yyyy} needs a field of the value => template: "{time:yyyy}/GOOD", converter.value: bytes, time.source: field
is in the index '.indexes/' => template: ".indexes/GOOD"
is in the index 'raw/ix/' => template: "ix/GOOD", prefix: raw, index.prefix: raw/ix
an offset such as +02:00 => template: "GOOD", time.timezone: PST
is not allowed: write a language => template: "GOOD", time.locale: " "
is not a field => each time.field: ["", a..b, .a, "`a"], template: "GOOD"
a record without a value has no field => template: "GOOD", nulls: write, sidecars.keys: json,
    tombstones: "{topic}/tombstone/{field:a}/{partition}-{offset}"
tombstones lacks {offset} =>
    template: "GOOD", nulls: write, sidecars.keys: json, tombstones: "{topic}/tombstone/{partition}"
is not closed => template: "GOOD", nulls: write, sidecars.keys: json, tombstones: "{topic}/{"
either both an offset or none =>
    template: "GOOD", nulls: write, sidecars.keys: json, tombstones: "t/{key}", exactly_once: false
partition_by has no meaning with a template => template: "GOOD", partition_by: [a]
include_keys has no meaning with a template => template: "GOOD", include_keys: true
suffix has no meaning with a template => template: "GOOD", suffix: -s
connector_names has no meaning with a template => template: "GOOD", connector_names: true
a name is missing between the prefix and '/' => template: "/GOOD", prefix: raw
"""
ACCEPTED = """
template: "{partition}/{offset}" =>
template: "{partition}/{last_offset}" =>
template: "{partition}{topic}{offset}", topics: [events] =>
template: "{topic}{partition}/{offset}", topics: [events] =>
template: "{field:a}/{key:b}/GOOD", converter: {key: json, value: json} =>
template: "{field:a}/{key:b}/GOOD", converter: {key: connect_json, value: connect_json} =>
template: "/GOOD", prefix: "" =>
"""


def settings_of(text: str) -> list[dict[str, Any]]:
    """Read the settings of a row, of which some are the layout's."""
    names = "template|tombstones|time|partition_by|include_keys|suffix|connector_names"
    text = re.sub(rf"(?<![\w{{.])({names})(?=[:.])", r"layout.\1", text)
    return read_each(text.replace("GOOD", GOOD))


@pytest.mark.parametrize(("why", "settings"), rows(REFUSED))
def test_a_template_that_does_not_fit_its_sink_is_refused(why: str, settings: str) -> None:
    for changes in settings_of(settings):
        assert why in refusal(**changes)


@pytest.mark.parametrize(("settings", "_"), rows(ACCEPTED))
def test_a_template_that_fits_its_sink_is_accepted(settings: str, _: str) -> None:
    assert [sink(**changes) for changes in settings_of(settings)]


DOCUMENT = (Path(__file__).parents[3] / "docs" / "layouts.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\|[^`|]*(?:`[^`|]*`[^`|]*)*\| `([^`]*\{[^`]*)` \|$", DOCUMENT, re.MULTILINE)


@pytest.mark.parametrize("template", SHOWN)
def test_the_documents_templates_are_templates(template: str) -> None:
    assert sink(layout={"template": template}, exactly_once=template != "{key}")


def test_the_document_shows_every_connector() -> None:
    assert len(SHOWN) == 15


# Padding: keys sort as numbers do, and no number is ever cut


@pytest.mark.parametrize(
    ("how", "char", "length", "expected"),
    [
        ("left", "0", 12, "000000000081"),
        ("left", "0", 3, "081"),
        ("left", "0", 2, "81"),
        ("left", "0", 1, "81"),
        ("left", "0", 0, "81"),
        ("left", "-", 4, "--81"),
        ("right", "_", 4, "81__"),
        ("right", "_", 1, "81"),
        ("none", "0", 12, "81"),
    ],
)
def test_a_number_is_filled_up_and_never_cut(how: PaddingType, char: str, length: int, expected: str) -> None:
    assert Number("offset", length, how, char).format(81) == expected


# `{hour:…}`: the hour that a file is landed in, whatever its records have


FIVE = hours.start_ms("2026-11-20T05")
LATE = FileNumbers(7, 9, FIVE - 90_000_000, FIVE - 80_000_000, 3)


def key(template: str, hour_ms: int = FIVE, **layout: object) -> str:
    rule = stage_values.build_key_layout(sink(layout={"template": template, **layout}), "t", hour_ms=hour_ms)
    group = rule.fixed_group(0) or rule.groups(0, RecordColumns(timestamps=[LATE.min_timestamp]), 1)[0]
    assert isinstance(group, str)
    return rule.key(group, LATE)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd", "2026-11-20"),
        ("HH", "05"),
        ("yyyy/MMM/d", "2026/Nov/20"),
        ("'h='H", "h=5"),
        ("xxxx'W'ww", "2026W47"),
    ],
)
def test_an_hour_has_the_patterns_of_times(pattern: str, expected: str) -> None:
    assert key(f"{{topic}}/{{hour:{pattern}}}/{{partition}}-{{offset}}") == f"t/{expected}/0-7.json"


@pytest.mark.parametrize(("zone", "time"), [("UTC", "2026-11-19-04"), ("Asia/Kolkata", "2026-11-19-09")])
def test_late_records_are_in_the_hour_in_utc_that_they_were_landed_in(zone: str, time: str) -> None:
    template = "{topic}/{hour:yyyy-MM-dd-HH}/{time:yyyy-MM-dd-HH}/{partition}-{offset}"
    assert key(template, time={"timezone": zone}) == f"t/2026-11-20-05/{time}/0-7.json"
    assert key(template, FIVE + hours.HOUR_MS).startswith("t/2026-11-20-06/2026-11-19-04/")
