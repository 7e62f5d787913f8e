"""The S3 server of the suites: moto, or the one that S3_SERVER_OF_TESTS names."""

import os
from typing import Any

from s3lake.demo.s3 import EmbeddedS3

NAMED = os.environ.get("S3_SERVER_OF_TESTS", "moto")
"""What `EmbeddedS3` can start, or the address of a server that knows its keys: tests themselves see no variables."""

RUNS_ALREADY = "://" in NAMED


class Elsewhere(EmbeddedS3):
    """A server that somebody else has started, and ends."""

    def __init__(self, address: str) -> None:
        self.endpoint_url = address
        self.ca_file = None

    def stop(self) -> None:
        """Nothing: it is not ours."""


def started() -> EmbeddedS3:
    """The server that was asked for."""
    name: Any = NAMED
    return Elsewhere(NAMED) if RUNS_ALREADY else EmbeddedS3.start(name)
