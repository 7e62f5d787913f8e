"""Kafka Connect's field paths (KIP-821)."""

from __future__ import annotations

import pytest

from s3lake.transform.record import parse_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a`b`.c", ("a`b", "c")),
        (r"`a\`.b`", ("a`.b",)),
        ("a.", ("a", "")),
        ("a`b.c", ("a`b", "c")),
    ],
)
def test_nested_syntax(text: str, expected: tuple[str, ...]) -> None:
    assert parse_path(text, nested=True) == expected


def test_flat_syntax_knows_no_dots() -> None:
    assert parse_path("a.b", nested=False) == ("a.b",)


def test_a_backtick_must_be_closed() -> None:
    with pytest.raises(ValueError, match="a backtick is not closed"):
        parse_path("`a.b", nested=True)
