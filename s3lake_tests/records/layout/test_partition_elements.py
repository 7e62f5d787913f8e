"""Elements of `partition_by`: what is one."""

import pytest

from s3lake.records.layout.partition_elements import parse_element
from s3lake.records.layout.pieces import DateElement, FieldElement, HeaderElement, KeyElement, Number, Piece, Topic


@pytest.mark.parametrize(
    ("text", "name", "piece"),
    [
        ("type", "type", FieldElement(("type",))),
        ("a.b.c", "a.b.c", FieldElement(("a", "b", "c"))),
        ("_value.user.name", "user.name", FieldElement(("user", "name"))),
        ("items.0.id", "items.0.id", FieldElement(("items", "0", "id"))),
        ("_key", "key", KeyElement((), required=True)),
        ("_key.region", "region", KeyElement(("region",), required=True)),
        ("_header.phonePrefix", "phonePrefix", HeaderElement("phonePrefix")),
        ("_headers.h.a", "h.a", HeaderElement("h", ("a",))),
        ("_topic", "topic", Topic()),
        ("_partition", "partition", Number("partition")),
        ("_date.yyyy-MM-dd", "date", DateElement("yyyy-MM-dd")),
        ("_date.yyyy.MM", "date", DateElement("yyyy.MM")),
        ("_KEY", "_KEY", FieldElement(("_KEY",))),
        ("_id", "_id", FieldElement(("_id",))),
        ("`a.b`", "a.b", FieldElement(("a.b",))),
        ("a.`b.c`.d", "a.b.c.d", FieldElement(("a", "b.c", "d"))),
        ("_key.`cost.centre.id`", "cost.centre.id", KeyElement(("cost.centre.id",), required=True)),
        ("_header.`ce.type`", "ce.type", HeaderElement("ce.type")),
        ("`_key`", "_key", FieldElement(("_key",))),
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
