"""What is reported while a session starts."""

import re
import threading

import pytest

from s3lake.land.spark.starting import tell_start
from s3lake_tests.kit.cost import PATIENCE_S


def test_a_start_is_reported_when_it_begins_while_it_goes_on_and_when_it_is_over() -> None:
    lines: list[str] = []
    went_on = threading.Event()

    def tell(text: str) -> None:
        lines.append(text)
        if "still" in text:
            went_on.set()

    with tell_start(tell, every_s=0.01):
        assert lines == ["Spark session: starting"]
        assert went_on.wait(PATIENCE_S), "a timeout"
    assert re.fullmatch(r"Spark session: still starting after \d+ s", lines[1])
    assert re.fullmatch(r"Spark session: ready after \d+\.\d s", lines[-1])


def test_a_start_that_fails_is_not_reported_as_ready() -> None:
    lines: list[str] = []
    with pytest.raises(ValueError, match="no Java"), tell_start(lines.append, "Kafka"):
        raise ValueError("no Java")
    assert lines == ["Kafka: starting"]
