"""Elements of `partition_by`: what is one."""

import pytest

from s3lake.records.layout.partition_elements import parse_element
from s3lake.records.layout.pieces import Date, Field, Header, Key, Number, Piece, Topic


@pytest.mark.parametrize(
    ("text", "name", "piece"),
    [
        ("type", "type", Field(("type",))),
        ("a.b.c", "a.b.c", Field(("a", "b", "c"))),
        ("_value.user.name", "user.name", Field(("user", "name"))),
        ("items.0.id", "items.0.id", Field(("items", "0", "id"))),
        ("_key", "key", Key((), required=True)),
        ("_key.region", "region", Key(("region",), required=True)),
        ("_header.phonePrefix", "phonePrefix", Header("phonePrefix")),
        ("_headers.h.a", "h.a", Header("h", ("a",))),
        ("_topic", "topic", Topic()),
        ("_partition", "partition", Number("partition")),
        ("_date.yyyy-MM-dd", "date", Date("yyyy-MM-dd")),
        ("_date.yyyy.MM", "date", Date("yyyy.MM")),
        ("_KEY", "_KEY", Field(("_KEY",))),
        ("_id", "_id", Field(("_id",))),
        ("`a.b`", "a.b", Field(("a.b",))),
        ("a.`b.c`.d", "a.b.c.d", Field(("a", "b.c", "d"))),
        ("_key.`cost.centre.id`", "cost.centre.id", Key(("cost.centre.id",), required=True)),
        ("_header.`ce.type`", "ce.type", Header("ce.type")),
        ("`_key`", "_key", Field(("_key",))),
    ],
)
def test_an_element_is_parsed(text: str, name: str, piece: Piece) -> None:
    assert parse_element(text) == (name, piece)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "a field name is empty") for text in ("", "a..b", "a.", ".a", "``")),
        *((text, "contains a slash") for text in ("a/b", "`a/b`", "a\\b")),
        ("`a.b", "a backquote is not closed"),
        ("a``", "a dot is missing"),
        ("a\nb", "a control character"),
        ("_value", "name a field, for example _value.type"),
        ("_header", "name the header, for example _header.region"),
        ("_headers", "name the header"),
        ("_topic.a", "_topic takes no path"),
        ("_partition.a", "_partition takes no path"),
        ("_date", "a pattern is needed, for example _date.yyyy-MM-dd"),
        ("_date.", "a pattern is needed"),
        ("_date.YYYY", "use yyyy"),
        ("_date.yyyy/'..'/MM", "a path step cannot be in a key"),
        ("_offset", "_offset is not an element; use _key, _value"),
        ("_timestamp", "_timestamp is not an element"),
    ],
)
def test_an_invalid_element_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_element(text)
