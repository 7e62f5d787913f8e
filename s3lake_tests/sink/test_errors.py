"""The threshold of a sink's errors."""

from typing import Any

import pytest

from s3lake.sink.errors import Threshold


@pytest.mark.parametrize(
    ("threshold", "dead", "exceeded"),
    [
        ({}, 0, False),
        ({}, 1, True),
        ({"number": 5}, 5, False),
        ({"number": 5}, 6, True),
        ({"share": 0.01}, 10, False),
        ({"share": 0.01}, 11, True),
        ({"share": 0.01, "number": 5}, 6, True),
    ],
)
def test_a_threshold_is_exceeded_by_more_than_its_number_or_its_share(
    threshold: dict[str, Any], dead: int, exceeded: bool
) -> None:
    assert Threshold.model_validate(threshold).is_exceeded(dead, 1_000) is exceeded


def test_a_share_is_at_most_one() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        Threshold(share=1.5)
