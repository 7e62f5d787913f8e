"""An Iggy server as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from s3lake.source.iggy.connection import Connection
from s3lake.source.iggy.offsets import IggyOffsets

if TYPE_CHECKING:
    from s3lake.source.iggy.reader import IggyReader


class IggySource:
    """`Source` of a server; `settings` are those of `source` in a configuration."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._connection = Connection(**settings, timeout_s=timeout_s)
        self.place = f"iggy {self._connection.address}"
        self.offsets = IggyOffsets(self._connection)

    @property
    def reader(self) -> IggyReader:
        """The server, as Spark's tasks reach it."""
        from s3lake.source.iggy.reader import IggyReader  # and Arrow, which nobody needs who only asks

        return IggyReader(self._connection)
