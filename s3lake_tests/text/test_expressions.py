"""Regular expressions that others' texts meet: none takes for ever."""

import pytest
from pydantic import ValidationError

from s3lake.config.model import Sink
from s3lake.records.transform.families import java_regex
from s3lake.text import expressions

CATASTROPHIC = "(a+)+$"
TEXT = "a" * 40 + "!"


def test_repetitions_of_repetitions_come_to_an_end() -> None:
    """None runs into its time limit, which would be a PatternTimeoutError."""
    assert not expressions.compile_pattern(CATASTROPHIC).matches(TEXT)
    assert expressions.compile_pattern(CATASTROPHIC).search(TEXT) is None
    sink = Sink(name="s", topics_regex=CATASTROPHIC, bucket="lake", start="2026-11-20T00")
    assert not sink.reads("a" * 200 + "b")
    assert java_regex.compile_replacement(CATASTROPHIC, "x")(TEXT) == TEXT


@pytest.mark.parametrize("pattern", ["(" * 2000 + "a" + ")" * 2000, "(?:a|" * 2000 + "b" + ")" * 2000])
def test_an_expression_that_is_nested_too_deeply_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match=r"is not a regular expression: its groups are nested too") as error:
        Sink(name="s", topics_regex=pattern, bucket="lake", start="2026-11-20T00")
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("text", [TEXT, "ä" + TEXT, TEXT + "\n"])
@pytest.mark.parametrize("pattern", [r"(?=.)(.+)+(a|aa)+\1x$"])
def test_a_search_that_takes_too_long_is_stopped(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To its end it would take hours."""
    monkeypatch.setattr(expressions, "PATIENCE_S", 0.05)
    with pytest.raises(expressions.PatternTimeoutError, match="write it without repetitions inside of repetitions"):
        expressions.compile_pattern(pattern).matches(text)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"(?!__).*", "__consumer_offsets", False),
        (r"(?!__).*", "orders", True),
        (r"(\w)\1", "aa", True),
        (r"\w+", "grün", True),
        (r"\d+", "٣", True),
        (r"orders-\d{2}", "orders-07", True),
        (r"a.c", "a\nc", False),
        (r"a\Z", "a", True),
        (r"a|ab", "ab", True),
    ],
)
def test_expressions_match_as_in_python(pattern: str, text: str, fits: bool) -> None:
    assert expressions.compile_pattern(pattern).matches(text) is fits
