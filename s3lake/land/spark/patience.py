"""For how long a client of Spark Connect asks a server again that does not answer."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

# A server that was started again has lost its requests: it does not help to wait for them as Spark does, ten
# minutes for each request, several of which end a job.
_TRIES, _LONGEST_WAIT_MS = 8, 2_000


class Patience(DefaultPolicy):
    """The retries of one client: after one of its requests has waited in vain, no other one waits again.

    A job leaves requests behind that let the server forget its answers. The process does not end before they have, two
    at a time, and where many were left each would wait as long as the job did.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=_TRIES, max_backoff=_LONGEST_WAIT_MS)
        self.at_an_end = False

    def to_state(self) -> RetryPolicyState:
        return _Request(self)


class _Request(RetryPolicyState):
    def __init__(self, patience: Patience) -> None:
        super().__init__(patience)
        self._patience = patience

    def next_attempt(self, *failure: Any) -> int | None:  # Spark 4.1 and later pass it
        wait_ms = None if self._patience.at_an_end else super().next_attempt(*failure)
        if wait_ms is None:
            self._patience.at_an_end = True
        return wait_ms
