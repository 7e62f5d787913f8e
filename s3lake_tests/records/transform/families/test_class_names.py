"""Mistakes in the transforms of a configuration: each is reported with what is allowed and how to correct it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from s3lake.config.model.base import RuleError
from s3lake.config.model.transforms import Predicate, Transform
from s3lake.records.transform.families import class_names

DOCS = Path(__file__).parents[4] / "docs" / "transforms.md"
LENSES = "io.lenses.connect.smt.header."


def misfit(**given: Any) -> RuleError:
    with pytest.raises(ValidationError) as raised:
        Transform(**given)
    (error,) = raised.value.errors()
    found = error["ctx"]["error"]
    assert isinstance(found, RuleError)
    return found


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("InsertFeild$Value", "'InsertFeild$Value' is not a transform of s3lake; did you mean InsertField$Value?"),
        ("iggy.add_field", "did you mean iggy.add_fields?"),
        ("InsertField", "'InsertField' does not name what it changes: write InsertField$Value or InsertField$Key"),
        (
            "TimestampConverter",
            "write TimestampConverter$Value or TimestampConverter$Key, or io.lenses.connect.smt.header.Timest",
        ),
        ("org.apache.kafka.connect.transforms.Cast", "does not name what it changes: write Cast$Value or Cast$Key"),
        (f"{LENSES}InsertSourcePartitionOrOffsetValue", "has no meaning here: it reads a source connector's partition"),
        ("iggy.proto_convert", "has no meaning here: s3lake reads JSON, text and bytes"),
        ("com.acme.Mine", "'com.acme.Mine' is not a transform of s3lake; there are: "),
        ("com.acme.FilterTransform$Value", "; what a class of your own does, write with sql"),
        ("com.acme.Cast$Value", "did you mean Cast$Value?"),
        ("org.apache.kafka.connect.transforms.MaskFeild$Value", "did you mean MaskField$Value?"),
        ("io.confluent.connect.transforms.Filter", "is not a transform of s3lake"),
    ],
)
def test_an_unknown_type_is_refused_with_the_nearest_one(kind: str, why: str) -> None:
    error = misfit(type=kind)
    assert why in str(error)
    assert error.path == ("type",)


@pytest.mark.parametrize("listed", ["ExtractTopicFromSchemaName$Value", "MaskField$Key|$Value", "RegexRouter"])
def test_an_unknown_type_lists_every_class_by_the_sides_that_it_has(listed: str) -> None:
    names = str(misfit(type="X")).partition("there are: ")[2].split(", ")
    assert names.count(listed) == 1


OPTIONS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "MaskField$Value": [
        ({}, "fields is missing; add it, for example fields=phone,address"),
        ({"feilds": "a"}, "fields is missing (is 'feilds' meant?); add it"),
        ({"fields": "a", "replace": "x"}, "replace is not an option; did you mean replacement? allowed"),
        ({"fields": "a,,b"}, "fields: 'a,,b' has an empty name between commas; take a comma out"),
        ({"fields": "a", "replacement": ""}, "replacement is empty"),
    ],
    "InsertField$Value": [
        (
            {},
            "no field is inserted; set one of topic.field, partition.field, offset.field, timestamp.field, static.",
        ),
        ({"static.field": "a"}, "static.value is missing"),
    ],
    "ReplaceField$Value": [
        ({}, "nothing is replaced; set exclude, include or renames"),
        ({"renames": "a-b"}, "renames: 'a-b' is not a renaming; write old:new,old2:new2"),
        ({"renames": "a:c,b:c"}, "renames: 'b:c' names a field for the second time"),
        ({"exclude": "a", "blacklist": "b"}, "blacklist is the old name of exclude: take one"),
    ],
    "ExtractField$Value": [
        ({"field": "a", "field.syntax.version": "V3"}, "'V3' is not allowed; use one of: V1, V2"),
        ({"field": "`a", "field.syntax.version": "V2"}, "field: '`a': a backtick is not closed"),
    ],
    "Cast$Value": [
        ({"spec": "a:int31"}, "spec: 'int31' in 'a:int31' is not a type; use one of: int8, int16, int32"),
        ({"spec": "int8,a:int8"}, "spec: a type for the whole must be alone"),
        ({"spec": "a:b:int8"}, "spec: 'a:b:int8' is not field:type; write for example amount:float64"),
    ],
    "HeaderFrom$Value": [
        ({"fields": "a,b", "headers": "h", "operation": "move"}, "headers: 1 name for 2 fields"),
        ({"fields": "a", "headers": "h", "operation": "mv"}, "did you mean move? use one of: move, c"),
    ],
    "RegexRouter": [
        ({"regex": "(", "replacement": "x"}, "regex: '(' is not a regular expression"),
        ({"regex": "a", "replacement": "$1"}, "replacement: '$1': the expression has no gro"),
    ],
    "TimestampRouter": [({"timestamp.format": "YYYY"}, "timestamp.format: date pattern 'YYYY': Y is the year of the")],
    "TimestampConverter$Value": [
        ({"target.type": "string"}, "format is missing; target.type string needs it"),
        ({"target.type": "millis"}, "target.type: 'millis' is not allowed"),
    ],
    "ExtractNewRecordState": [
        (
            {"delete.tombstone.handling.mode": "rewrit"},
            "'rewrit' is not allowed; did you mean rewrite? use one of: drop",
        ),
        ({"delete.handling.mode": "keep"}, "'keep' is not allowed; use one of: drop, none, rewrite"),
        ({"add.fields": "a.b.c"}, "add.fields: 'a.b.c' is not a field; write op, source.ts_ms or table:new_name"),
        ({"add.headers": "op,ts_ms:op"}, "add.headers: two of them would be called '__op'; write field:new_name"),
        ({"drop.tombstone": "true"}, "drop.tombstone is not an option; did you mean drop.tombstones?"),
    ],
    "HeaderToValue": [
        ({"headers": "a,b", "fields": "a", "operation": "move"}, "fields: 1 name for 2 headers"),
        ({"headers": "a", "fields": "a"}, "operation is missing"),
    ],
    "InsertHeader": [({"header": "a"}, "value.literal is missing")],
    "DropHeaders": [({"headers": []}, "headers is empty")],
    "InsertWallclock": [
        ({}, "header.name is missing; add it, for example header.name=wallclock"),
        ({"header.name": "a", "format": "bad"}, "format: date pattern 'bad': 'b' is not supported"),
        ({"header.name": "a", "timezone": "Mars"}, "timezone: 'Mars' is not a time zone"),
        (
            {"header.name": "a", "value.type": "epoch", "timezone": "CET"},
            "timezone: 'CET' has no meaning with value.type epoch",
        ),
    ],
    "InsertRollingWallclock": [
        (
            {"header.name": "a", "rolling.window.size": 61},
            "rolling.window.size: 61 is not allowed; write a whole number from 1 to 60",
        ),
        (
            {"header.name": "a", "rolling.window.type": "hours", "rolling.window.size": "25"},
            "rolling.window.size: '25' is not allowed; write a whole number from 1 to 24",
        ),
    ],
    f"{LENSES}TimestampConverter": [
        ({"header.name": "a", "target.type": "string"}, "format.to.pattern is missing; target.type string needs it"),
        (
            {"header.name": "a", "target.type": "unix", "rolling.window.type": "hours"},
            "rolling.window.size is missing; how many hours a window has",
        ),
        (
            {"header.name": "a", "target.type": "unix", "field": "_timestamp.x"},
            "field: '_timestamp.x': _timestamp has no fields",
        ),
        (
            {"header.name": "a", "target.type": "unix", "format.from.pattern": "HH:mm"},
            "format.from.pattern: date pattern 'HH:mm' does not name a day",
        ),
    ],
    "InsertRecordTimestampHeaders": [
        (
            {"locale": "fr", "month.format": "MMM"},
            "month.format: date pattern 'MMM': MMM prints a name, and names are English only",
        ),
    ],
    "iggy.add_fields": [
        ({"fields": "a"}, "fields: 'a' is not a list; write [{key: service, value: {static: api}}]"),
        ({"fields": [{"value": {"static": 1}}]}, "fields[0]: key is missing"),
        ({"fields": [{"key": "a", "value": 1}]}, "fields[0]: value 1 is not allowed; give static or"),
        (
            {"fields": [{"key": "a", "value": {"computed": "uuid"}}]},
            "fields[0]: computed 'uuid' is not allowed; use one of: date_time, timestamp_nanos",
        ),
    ],
    "iggy.update_fields": [
        (
            {"fields": [{"key": "a", "value": {"static": 1}, "condition": "never"}]},
            "fields[0]: condition 'never' is not allowed; use one of: always, key_exists, key_not_exists",
        ),
    ],
    "iggy.unwrap_envelope": [({"field": ""}, "field is empty")],
    "iggy.filter_fields": [
        ({"patterns": [{"key": "a"}]}, "patterns[0]: 'key' is not a name; allowed here: key_pattern"),
        (
            {"patterns": [{"key_pattern": {"begins": "a"}}]},
            "patterns[0].key_pattern: 'begins' is not allowed; use one of: exact: …, starts_with: …",
        ),
        (
            {"patterns": [{"value_pattern": {"between": [1]}}]},
            "patterns[0].value_pattern: between needs two numbers, [low, high]; not [1]",
        ),
        ({"patterns": [{"key_pattern": {"regex": "("}}]}, "patterns[0].key_pattern: '(' is not a regular expression"),
        ({"include_matching": "maybe"}, "include_matching: 'maybe' is not allowed; write true or fa"),
    ],
    "iggy.delete_fields": [
        ({"feilds": ["a"]}, "feilds is not an option; did you mean fields? allowed here: fields, en")
    ],
}


@pytest.mark.parametrize(("kind", "options", "why"), [(kind, *row) for kind, rows in OPTIONS.items() for row in rows])
def test_a_wrong_option_is_refused_with_the_reason(kind: str, options: dict[str, Any], why: str) -> None:
    error = misfit(type=kind, options=options)
    assert why in str(error)
    assert error.path[0] == "options"


def test_a_class_of_others_is_not_mistaken_for_one_with_a_name_like_it() -> None:
    assert "did you mean" not in str(misfit(type="si.hekovnik.transform.FilterTransform$Value"))


def test_an_error_points_at_its_option() -> None:
    assert misfit(type="Cast$Value", options={"spec": "a:b"}).path == ("options", "spec")
    assert misfit(type="Cast$Value").path == ("options",)


def test_a_filter_without_a_predicate_would_drop_everything() -> None:
    assert "drops every record" in str(misfit(type="Filter"))


def test_negate_needs_a_predicate() -> None:
    error = misfit(type="Flatten$Value", negate=True)
    assert (str(error), error.path) == ("negate has no meaning without a predicate: take it out", ("negate",))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"type": "HasHeader"}, "is not a predicate of s3lake; did you mean HasHeaderKey? there are: HasHeaderKey"),
        ({"type": "HasHeaderKey"}, "name is missing; add it, for example name=trace_id"),
        ({"type": "TopicNameMatches", "options": {"pattern": "("}}, "pattern: '(' is not a regular expression"),
        ({"type": "RecordIsTombstone", "options": {"a": 1}}, "a is not an option; allowed here: none"),
    ],
)
def test_a_wrong_predicate_is_refused_with_the_reason(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Predicate(**given)
    assert why in str(raised.value.errors()[0]["ctx"]["error"])


@pytest.mark.parametrize("kind", [*class_names.TRANSFORMS, *class_names.PREDICATES])
def test_every_type_is_documented(kind: str) -> None:
    name = class_names.shorten(kind).partition("$")[0]
    assert f"`{name}`" in DOCS.read_text(encoding="utf-8")
