"""The observer that shows how far a landing is. It imports what lands, so a command imports it when it lands."""

from collections.abc import Callable
from dataclasses import dataclass

from s3lake.cli.output import ProgressLine
from s3lake.index.commit.documents import Manifest
from s3lake.land.topic.observer import LandedHour, Logged


@dataclass
class LandingPrinter(Logged):
    """Shows how far a topic is, and prints each hour when it is done if `print_hour` is set."""

    progress: ProgressLine
    print_hour: Callable[[LandedHour], None] | None = None
    offsets: int = 0
    read: int = 0

    def hour_planned(self, hour: str, offsets: int, batches: int) -> None:
        super().hour_planned(hour, offsets, batches)
        self.offsets += offsets
        self.progress(self.read, self.offsets)

    def batch_committed(self, manifest: Manifest) -> None:
        super().batch_committed(manifest)
        self.read += sum(read.end - read.start for read in manifest.partitions.values())
        self.progress(self.read, self.offsets)

    def hour_landed(self, landed: LandedHour) -> None:
        if self.print_hour is not None:
            self.progress.erase()
            self.print_hour(landed)
