"""Elements of `partition_by`: what is one."""

from typing import Any

import pytest

from s3lake.layout.partitioners import Element, parse_element


@pytest.mark.parametrize(
    ("text", "source", "path", "name"),
    [
        ("type", "value", ("type",), "type"),
        ("a.b.c", "value", ("a", "b", "c"), "a.b.c"),
        ("_value.user.name", "value", ("user", "name"), "user.name"),
        ("items.0.id", "value", ("items", "0", "id"), "items.0.id"),
        ("_key", "key", (), "key"),
        ("_key.region", "key", ("region",), "region"),
        ("_header.phonePrefix", "header", ("phonePrefix",), "phonePrefix"),
        ("_headers.h.a", "header", ("h", "a"), "h.a"),
        ("_topic", "topic", (), "topic"),
        ("_partition", "partition", (), "partition"),
        ("_date.yyyy-MM-dd", "date", ("yyyy-MM-dd",), "date"),
        ("_date.yyyy.MM", "date", ("yyyy.MM",), "date"),
        ("_KEY", "value", ("_KEY",), "_KEY"),
        ("_id", "value", ("_id",), "_id"),
        ("`a.b`", "value", ("a.b",), "a.b"),
        ("a.`b.c`.d", "value", ("a", "b.c", "d"), "a.b.c.d"),
        ("_key.`cost.centre.id`", "key", ("cost.centre.id",), "cost.centre.id"),
        ("_header.`ce.type`", "header", ("ce.type",), "ce.type"),
        ("`_key`", "value", ("_key",), "_key"),
    ],
)
def test_an_element_is_parsed(text: str, source: Any, path: tuple[str, ...], name: str) -> None:
    assert parse_element(text) == Element(text, source, path, name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a field name is empty"),
        ("a..b", "a field name is empty"),
        ("a.", "a field name is empty"),
        (".a", "a field name is empty"),
        ("a/b", "contains a slash"),
        ("`a/b`", "contains a slash"),
        ("`a.b", "a backquote is not closed"),
        ("a``", "a dot is missing"),
        ("``", "a field name is empty"),
        ("a\\b", "contains a slash"),
        ("a\nb", "a control character"),
        ("_value", "name a field, for example _value.type"),
        ("_header", "name the header, for example _header.region"),
        ("_headers", "name the header"),
        ("_topic.a", "_topic takes no path"),
        ("_partition.a", "_partition takes no path"),
        ("_date", "a pattern is needed, for example _date.yyyy-MM-dd"),
        ("_date.", "a pattern is needed"),
        ("_date.YYYY", "is not among"),
        ("_date.yyyy/'..'/MM", "a path step cannot be in a key"),
        ("_offset", "_offset is not an element; use _key, _value"),
        ("_timestamp", "_timestamp is not an element"),
    ],
)
def test_an_invalid_element_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_element(text)
