"""What verifying finds: counts per tile and topic-partition, and everything that differs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["missing", "duplicated", "dead_letter", "count", "object", "interval", "index", "kafka"]
"""What differs.

missing: records of Kafka that are in no file. duplicated: rows of files that no record of Kafka answers for, either
because Kafka has no such value there or because it has it fewer times. dead_letter: a dead letter that is not what
Kafka has at its offset. count: a number in the index is wrong. object: an object is gone, unreadable, or not what its
commit wrote. interval: offsets are covered twice or not at all. index: documents of the index are missing or
contradict each other. kafka: the topic is another one, or its log ends before what was committed.
"""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it should be; `partition` is None where it concerns the whole tile."""

    kind: Kind
    topic: str
    hour: str
    partition: int | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.partition is None else f" partition {self.partition}"
        return f"{self.kind}: {self.topic} {self.hour}{where}: {self.detail}"


@dataclass(frozen=True)
class Unchecked:
    """Offsets `[first, end)` that cannot be checked, and why.

    Attributes:
        incomparable: not for what Kafka no longer has, but for what the sink's files do not tell.
    """

    first: int
    end: int
    reason: str
    incomparable: bool = False


@dataclass(frozen=True)
class Checked:
    """One topic-partition of one tile.

    Attributes:
        kafka_records: committed records that Kafka delivered between the tile's start and what is committed.
        landed: rows in data files: as read, or as the index says for files that lie wholly outside of what Kafka has.
        skipped: null records that the sink leaves out.
        dead_letters: records that are dead letters.
        missing: records that Kafka has and no file.
        duplicated: rows and dead letters that Kafka does not have, or not as often.
        files: objects that the index lists, dead letters' included.
        bytes: their size as stored.
    """

    hour: str
    partition: int
    kafka_records: int = 0
    landed: int = 0
    skipped: int = 0
    dead_letters: int = 0
    missing: int = 0
    duplicated: int = 0
    files: int = 0
    bytes: int = 0
    not_checkable: tuple[Unchecked, ...] = ()


@dataclass(frozen=True)
class Report:
    """What verifying one or many topics found. Offsets that Kafka no longer has do not make it less clean."""

    checked: tuple[Checked, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def produced(self) -> int:
        """Committed records that Kafka has in the verified ranges."""
        return sum(one.kafka_records for one in self.checked)

    @property
    def landed(self) -> int:
        """Rows in data files."""
        return sum(one.landed for one in self.checked)

    @property
    def skipped(self) -> int:
        """Null records that sinks leave out."""
        return sum(one.skipped for one in self.checked)

    @property
    def dead_letters(self) -> int:
        """Records that are dead letters."""
        return sum(one.dead_letters for one in self.checked)

    @property
    def missing(self) -> int:
        """Records that Kafka has and no file."""
        return sum(one.missing for one in self.checked)

    @property
    def duplicated(self) -> int:
        """Rows and dead letters that Kafka does not have, or not as often."""
        return sum(one.duplicated for one in self.checked)

    @property
    def files(self) -> int:
        """Objects that the index lists."""
        return sum(one.files for one in self.checked)

    @property
    def bytes(self) -> int:
        """Size of these objects as stored."""
        return sum(one.bytes for one in self.checked)

    @property
    def not_checkable(self) -> int:
        """Offsets that cannot be checked."""
        return sum(gone.end - gone.first for one in self.checked for gone in one.not_checkable)

    @property
    def clean(self) -> bool:
        """Whether nothing differs, in files that can be compared."""
        incomparable = any(gone.incomparable for one in self.checked for gone in one.not_checkable)
        return not self.differences and not incomparable


def combined(reports: Iterable[Report]) -> Report:
    """One report of many."""
    every = tuple(reports)
    return Report(
        tuple(one for report in every for one in report.checked),
        tuple(one for report in every for one in report.differences),
    )
