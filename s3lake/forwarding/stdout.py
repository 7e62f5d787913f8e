"""The standard output of a run: to look at what a destination would get."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from s3lake.forwarding.hour import Hour


class Stdout:
    """A destination of `forward`: a line of JSON for each row.

    Nothing is remembered, so an hour that is forwarded again is printed again.
    """

    place = "stdout"

    def content(self, hour: Hour) -> None:
        """Nobody knows what was printed."""

    def write(self, hour: Hour) -> None:
        """Print them as they are read: of an hour that fails some lines are out already."""
        for batch in hour.batches():
            for row in batch:
                line = row._replace(document=msgspec.Raw(row.document))._asdict()
                named = {"topic": hour.topic, "hour": hour.hour, **line}
                sys.stdout.write(msgspec.json.encode(named).decode() + "\n")
