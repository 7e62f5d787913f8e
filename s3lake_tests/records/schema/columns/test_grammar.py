"""Types as users write them."""

from typing import Any

import pytest

from s3lake.records.schema.columns.grammar import parse_type
from s3lake.records.schema.columns.types import UNKNOWN, List, Primitive, Struct, to_document


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bool", "bool"),
        ("INT64", "int64"),
        (" timestamp ", "timestamp"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("Decimal( 38 , 0 )", "decimal(38,0)"),
        ("list<string>", {"list": "string"}),
        ("map<string, int64>", {"map": "int64"}),
        ("struct<a: int64, b: string>", {"struct": {"a": "int64", "b": "string"}}),
        ('struct<"a b": date, `c``d`: uuid>', {"struct": {"a b": "date", "c`d": "uuid"}}),
        ("list<map<string,struct<a:list<float>>>>", {"list": {"map": {"struct": {"a": {"list": "float"}}}}}),
    ],
)
def test_a_type_is_read(text: str, kind: Any) -> None:
    assert to_document({"": parse_type(text)}) == {"": kind}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strng", "'strng', position 1: 'strng' is not a type: did you mean string?"),
        ("list<timestmp>", "'list<timestmp>', position 6: 'timestmp' is not a type: did you mean timestamp?"),
        ("", "'', position 1: a type is expected: bool, int32"),
        ("int64 x", "'int64 x', position 7: 'x' is left over: take it out"),
        ("list<string", "'list<string', position 12: '>' is expected: write list<string>"),
        ("map<int64, string>", "'map<int64, string>', position 5: keys of a map are strings: write map<string, int64>"),
        ("struct<a int64>", "'struct<a int64>', position 10: ':' is expected: write struct<a: int64, b: string>"),
        ("struct<>", "'struct<>', position 8: the name of a field is expected"),
        ("struct<a: int64, a: date>", "position 18: field 'a' is named twice: take one out"),
        ("decimal", "'decimal', position 8: '(' is expected: write decimal(10,2)"),
        ("decimal(x,2)", "'decimal(x,2)', position 9: a number is expected: write decimal(10,2)"),
        ("decimal(39,2)", "position 9: decimal(39,2) is out of range: a precision of 1 to 38"),
        ("decimal(2,3)", "decimal(2,3) is out of range"),
        ("list<" * 40 + "int64" + ">" * 40, "more than 32 levels"),
    ],
)
def test_an_invalid_type_is_refused_with_its_position_and_the_allowed_types(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="position") as error:
        parse_type(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "written",
    [
        *map(str, Primitive),
        'struct<"a b": decimal(10,2), "c`d": uuid, "e""f": list<map<string, struct<a: time>>>>',
    ],
)
def test_a_type_is_written_as_it_is_read(written: str) -> None:
    assert str(parse_type(written)) == written


def test_a_type_of_which_nothing_was_seen_yet_is_written_as_unknown() -> None:
    assert str(Struct({"a": List(UNKNOWN), "b": UNKNOWN})) == "struct<a: list<unknown>, b: unknown>"
