"""What Dagster is to do about an error: try the step again, or not."""

from collections.abc import Callable
from typing import TypeVar

import dagster as dg

from s3lake.errors import S3LakeError, TransientError

A = TypeVar("A")
RETRIES = 3
PAUSE_S = 10


def retried(work: Callable[[], A]) -> A:
    """Run `work`; what may pass later asks Dagster for a retry, what cannot fails the step at once."""
    try:
        return work()
    except TransientError as error:
        raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=PAUSE_S) from error
    except S3LakeError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__}, allow_retries=False) from error
