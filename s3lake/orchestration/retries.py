"""What Dagster is to do about an error: try the step again, or not.

No `RetryPolicy` of an op: it would try again after every exception, a mistake in the code included.
"""

from collections.abc import Callable
from typing import TypeVar

import dagster as dg

from s3lake.errors import RecordError, S3LakeError, TransientError
from s3lake.sink import Errors

A = TypeVar("A")


def retried(work: Callable[[], A], errors: Errors) -> A:
    """Run `work`; what may pass later asks Dagster for a retry, what cannot fails the step at once.

    Args:
        work: what is tried.
        errors: of the sink: they say how often, and how long after one another.
    """
    try:
        return work()
    except TransientError as error:
        raise dg.RetryRequested(max_retries=errors.max_retries, seconds_to_wait=errors.retry_interval) from error
    except S3LakeError as error:
        place = error.place if isinstance(error, RecordError) else {}
        metadata = {"error": type(error).__name__, **place}
        # Its text is all that there is to say: Dagster would show it once more, with the way to it.
        raise dg.Failure(str(error), metadata=metadata, allow_retries=False) from None
