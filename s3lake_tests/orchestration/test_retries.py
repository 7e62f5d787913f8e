"""What Dagster is asked to do about an error of landing."""

import dagster as dg
import pytest

from s3lake.errors import KafkaUnavailableError, RecordError, S3LakeError
from s3lake.orchestration.retries import retried
from s3lake.sink import Errors


def failing(error: S3LakeError, errors: Errors) -> None:
    def work() -> None:
        raise error

    retried(work, errors)


AWAY = KafkaUnavailableError("the brokers did not answer")


@pytest.mark.parametrize("errors", [Errors(), Errors(tolerance="all")])
def test_what_may_pass_is_tried_three_times_again_ten_seconds_apart(errors: Errors) -> None:
    with pytest.raises(dg.RetryRequested) as asked:
        failing(AWAY, errors)
    assert (asked.value.max_retries, asked.value.seconds_to_wait) == (3, 10)
    assert asked.value.__cause__ is AWAY


def test_a_sink_may_say_how_often_and_how_far_apart() -> None:
    with pytest.raises(dg.RetryRequested) as asked:
        failing(AWAY, Errors(max_retries=20, retry_interval=60.0))
    assert (asked.value.max_retries, asked.value.seconds_to_wait) == (20, 60.0)


def test_a_sink_may_have_no_retries_and_no_pause() -> None:
    with pytest.raises(dg.RetryRequested) as asked:
        failing(AWAY, Errors(max_retries=0, retry_interval=0.0))
    assert (asked.value.max_retries, asked.value.seconds_to_wait) == (0, 0.0)


def test_what_cannot_pass_is_not_tried_again_whatever_the_sink_says() -> None:
    with pytest.raises(dg.Failure) as failed:
        failing(RecordError("refused"), Errors(max_retries=20))
    assert failed.value.allow_retries is False


def test_a_failure_names_the_record_and_has_no_second_text_behind_it() -> None:
    with pytest.raises(dg.Failure) as failed:
        failing(RecordError("refused", partition=3, offset=17, stage="value"), Errors())
    shown = {name: entry.value for name, entry in failed.value.metadata.items()}
    assert shown == {"error": "RecordError", "partition": 3, "offset": 17, "stage": "value"}
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_mistake_in_the_code_is_left_as_it_is() -> None:
    def work() -> None:
        raise AttributeError("no such thing")

    with pytest.raises(AttributeError):
        retried(work, Errors(max_retries=20))
