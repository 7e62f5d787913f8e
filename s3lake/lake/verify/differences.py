"""What verify found: counts per tile and topic-partition, and everything that differs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Literal

from s3lake.text.quantities import format_count

_SHOWN = 8

DifferenceType = Literal[
    "missing", "duplicated", "dead_letter", "count", "object", "unlisted", "interval", "index", "kafka"
]
"""What differs.

missing: records of Kafka that are in no file. duplicated: rows of files that no record of Kafka answers for, either
because Kafka has no such value there or because it has it fewer times. dead_letter: a dead letter that is not what
Kafka has at its offset. count: a number in the index is wrong. object: an object is missing, unreadable, or not what
its commit wrote. unlisted: an object in a directory of the hour that no commit lists. interval: offsets are covered
twice or not at all. index: documents of the index are missing or contradict each other. kafka: the topic is another
one, or its log ends before what was committed.
"""
State = Literal["lost", "counted", "incomparable"]
"""Why offsets are not compared.

lost: Kafka does not have them any more. counted: their number is compared, and what is in the files cannot be worked
out. incomparable: it could be, after the configuration or the registry is mended, so the report is not clean.
"""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it should be; `partition` is None if it concerns the whole tile."""

    type: DifferenceType
    topic: str
    hour: str
    partition: int | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.partition is None else f" partition {self.partition}"
        return f"{self.type}: {self.topic} {self.hour}{where}: {self.detail}"


@dataclass(frozen=True)
class NotChecked:
    """Offsets `[first, end)` that are not compared, and why."""

    first: int
    end: int
    reason: str
    state: State = "lost"


@dataclass(frozen=True, kw_only=True)
class ComparedCounts:
    """Numbers of records, files and bytes.

    Attributes:
        kafka_records: committed records that Kafka delivered between the tile's start and what is committed.
        not_compared: the number of these records that were only counted: `not_checkable` has the reason.
        landed: rows in data files: as read, or as in the index for files that lie wholly outside of what Kafka has.
        skipped: records that the sink leaves out: without a value, or by a filter of its transforms.
        dead_letters: records that are dead letters.
        erased: records that were taken out on purpose, by the index.
        missing: records that Kafka has and no file, apart from those.
        duplicated: rows and dead letters that Kafka does not have, or not as often.
        files: data objects that the index lists, sidecars included.
        dead_letter_files: objects of dead letters that the index lists.
        bytes: the size of all of them as stored.
    """

    kafka_records: int = 0
    not_compared: int = 0
    landed: int = 0
    skipped: int = 0
    dead_letters: int = 0
    erased: int = 0
    missing: int = 0
    duplicated: int = 0
    files: int = 0
    dead_letter_files: int = 0
    bytes: int = 0

    @property
    def compared(self) -> int:
        """Committed records of Kafka that were compared with files."""
        return self.kafka_records - self.not_compared


def add_counts(parts: Iterable[ComparedCounts]) -> dict[str, int]:
    parts = tuple(parts)
    return {field.name: sum(getattr(part, field.name) for part in parts) for field in fields(ComparedCounts)}


@dataclass(frozen=True, kw_only=True)
class PartitionReport(ComparedCounts):
    """One topic-partition of one tile."""

    hour: str
    partition: int
    not_checkable: tuple[NotChecked, ...] = ()


@dataclass(frozen=True)
class NotLanded:
    """Hours that should be landed by now and are not, or not as a whole.

    Attributes:
        first: the hour, or the first of several without a tile in which Kafka has nothing.
        last: the last of them, included.
        offsets: `[first, end)` per topic-partition that is not landed; of an hour without tile as it would be cut.
        state: the state of the hour in the index.
        expired: how many of the offsets Kafka no longer has.
        under_way: True if the hour, its grace included, is not over yet.
        allowed: True if that is fine.
    """

    topic: str
    first: str
    last: str
    offsets: Mapping[int, tuple[int, int]]
    state: str
    expired: int
    under_way: bool
    allowed: bool = False

    @property
    def count(self) -> int:
        return sum(end - start for start, end in self.offsets.values())

    def __str__(self) -> str:
        which = self.first if self.first == self.last else f"{self.first} to {self.last}"
        expired = f", {self.expired:,} of them expired" if self.expired else ""
        fine = " (allowed)" if self.allowed else ""
        parts = [f"partition {number}: {start} to {end - 1}" for number, (start, end) in self.offsets.items()]
        more = [format_count(len(parts) - _SHOWN, "more partitions")] if len(parts) > _SHOWN else []
        where = f"; {', '.join([*parts[:_SHOWN], *more])}" if parts else ""
        offsets = format_count(self.count, "offsets")
        return f"not landed: {self.topic} {which}: {offsets}, {self.state}{expired}{fine}{where}"


@dataclass(frozen=True, kw_only=True)
class VerifyReport(ComparedCounts):
    """The result for one or many topics. Offsets that Kafka no longer has do not make it less clean.

    Attributes:
        notices: sentences about what is as configured, and still unlikely to be meant.
    """

    checked: tuple[PartitionReport, ...] = ()
    differences: tuple[Difference, ...] = ()
    unlanded: tuple[NotLanded, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def not_landed(self) -> int:
        """Offsets that should be landed and are not."""
        return sum(hours.count for hours in self.unlanded)

    @property
    def not_checkable(self) -> int:
        """Offsets that Kafka no longer has, or that can only be compared after something is mended."""
        return sum(part.end - part.first for part in self._not_checked if part.state != "counted")

    @property
    def counted_reasons(self) -> tuple[str, ...]:
        """Why records were only counted."""
        return tuple(dict.fromkeys(part.reason for part in self._not_checked if part.state == "counted"))

    @property
    def clean(self) -> bool:
        """True if all that should be landed is, nothing differs, and nothing has to be mended before it is compared."""
        blocked = any(part.state == "incomparable" for part in self._not_checked)
        return not self.differences and not blocked and all(hours.allowed for hours in self.unlanded)

    @property
    def _not_checked(self) -> Iterable[NotChecked]:
        return chain.from_iterable(partition.not_checkable for partition in self.checked)

    def allow_current_hour(self) -> "VerifyReport":
        """Return the report with what the current hour lacks as allowed."""
        return replace(self, unlanded=tuple(replace(hours, allowed=hours.under_way) for hours in self.unlanded))


def build_report(
    checked: Iterable[PartitionReport] = (),
    differences: Iterable[Difference] = (),
    unlanded: Iterable[NotLanded] = (),
    notices: Iterable[str] = (),
) -> VerifyReport:
    """Return a report with the sums of its topic-partitions."""
    partitions = tuple(checked)
    return VerifyReport(
        checked=partitions,
        differences=tuple(differences),
        unlanded=tuple(unlanded),
        notices=tuple(dict.fromkeys(notices)),
        **add_counts(partitions),
    )


def combine_reports(reports: Iterable[VerifyReport]) -> VerifyReport:
    """Return one report of many."""
    every = tuple(reports)
    return build_report(
        chain.from_iterable(report.checked for report in every),
        chain.from_iterable(report.differences for report in every),
        chain.from_iterable(report.unlanded for report in every),
        chain.from_iterable(report.notices for report in every),
    )
