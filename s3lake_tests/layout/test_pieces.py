"""Padding: keys sort as numbers do, and no number is ever cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.layout.pieces import Number, PaddingType


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


@given(st.integers(0, 10**12 - 1), st.integers(0, 10**12 - 1))
def test_twelve_zeros_make_keys_sort_as_offsets(one: int, other: int) -> None:
    offset = Number("offset", 12)
    assert (offset.format(one) < offset.format(other)) == (one < other)
