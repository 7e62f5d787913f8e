"""What the log of a worker says of refused records: nothing, the reason, or the place too, and never what they hold."""

import logging

import pytest

from s3lake_tests.land.task.test_pipeline import HOUR, Bucket, Record, outcome, work


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        ("none", []),
        ("reason", ["sink s: record refused in topic t, stage convert: Input data was truncated"]),
        (
            "place",
            [
                f"sink s: record refused in topic t, partition 0, offset 0, timestamp {HOUR}, stage convert: "
                "Input data was truncated"
            ],
        ),
    ],
)
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_refused_record_is_logged_as_far_as_the_sink_says(
    caplog: pytest.LogCaptureFixture, tolerance: str, log: str, lines: list[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        outcome(work(Bucket(), errors={"tolerance": tolerance, "log": log}), [Record(b'{"hunter2": ')])
    assert [record.getMessage() for record in caplog.records] == lines
