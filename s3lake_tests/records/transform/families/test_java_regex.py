"""Java's regular expressions, as far as Python can be brought to mean the same."""

from __future__ import annotations

import pytest

from s3lake.records.transform.families import java_regex


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"\d+", "12", True),
        (r"\d+", "١٢", False),
        (r"\w+", "é", False),
        (r"(?<year>\d{4})-\k<year>", "2020-2020", True),
        (r"\Qa.b\E.", "a.bc", True),
        (r"\Qa.b\E", "axb", False),
        (r"\P{Digit}+", "ab", True),
        (r"[^\p{Upper}]+", "abc", True),
        (r"[]a]+", "]a", True),
        (r"a\z", "a", True),
        (r"\[a\]", "[a]", True),
        (r"[\[\]]+", "[]", True),
        (r"(?i)ORDERS", "orders", True),
        (r"a++", "aa", True),
        (r"(?>a)b", "ab", True),
        (r"[a-z&&[^b]]", "b", False),
        (r"[a-c[x-z]]+", "ay", True),
        (r"[^[A-Z]]+", "Ab", False),
        (r"\p{Punct}+", "$-", True),
        (r"[+--]+", ",", True),
        (r"orders--\d", "orders--1", True),
        (r"\p{L}", "", None),
        (r"(", "", None),
    ],
)
def test_an_expression_matches_as_in_java_or_is_refused(pattern: str, text: str, matches: bool | None) -> None:
    if matches is None:
        with pytest.raises(ValueError, match=r"not supported|not a regular expression"):
            java_regex.compile_java(pattern)
    else:
        assert java_regex.compile_java(pattern).matches(text) is matches


@pytest.mark.parametrize(
    ("replacement", "why"),
    [
        ("$2", "the expression has no group 2"),
        ("${name}", "the expression has no group 'name'"),
        ("a$", r"'\$' must be followed by a group, or be escaped"),
        ("a\\", "must be followed by a group, or be escaped"),
    ],
)
def test_a_wrong_replacement_is_refused_with_the_reason(replacement: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        java_regex.compile_replacement("(a)", replacement)


def test_further_digits_belong_to_the_group_while_there_is_one() -> None:
    assert java_regex.compile_replacement("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)", "$11$1$12")("abcdefghijk") == "kaa2"
