"""The standard output of a run, to see what a destination would get."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from s3lake.forwarding.hour import Hour


class Stdout:
    """A destination of `forward`: a line of JSON for each row.

    An hour that is forwarded again is printed again.
    """

    place = "stdout"

    def read_content(self, hour: Hour) -> None:
        """Return None: what was printed is not known."""

    def write(self, hour: Hour) -> None:
        """Print the rows while they are read: of an hour that fails, some lines are printed already."""
        for batch in hour.batches():
            for row in batch:
                line = row._replace(document=msgspec.Raw(row.document))._asdict()
                named = {"topic": hour.topic, "hour": hour.hour, **line}
                sys.stdout.write(msgspec.json.encode(named).decode() + "\n")
