"""What verifying finds: counts per tile and topic-partition, and everything that differs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

_SHOWN = 8

Kind = Literal["missing", "duplicated", "dead_letter", "count", "object", "unlisted", "interval", "index", "kafka"]
"""What differs.

missing: records of Kafka that are in no file. duplicated: rows of files that no record of Kafka answers for, either
because Kafka has no such value there or because it has it fewer times. dead_letter: a dead letter that is not what
Kafka has at its offset. count: a number in the index is wrong. object: an object is gone, unreadable, or not what its
commit wrote. unlisted: an object in a directory of the hour that no commit lists. interval: offsets are covered twice
or not at all. index: documents of the index are missing or contradict each other. kafka: the topic is another one, or
its log ends before what was committed.
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
        erased: records that the index says were taken out on purpose.
        missing: records that Kafka has and no file, beside those.
        duplicated: rows and dead letters that Kafka does not have, or not as often.
        files: data objects that the index lists, sidecars included.
        dead_letter_files: objects of dead letters that the index lists.
        bytes: the size of all of them as stored.
        not_compared: records that Kafka delivered and that were only counted: `not_checkable` says why.
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
    dead_letter_files: int = 0
    bytes: int = 0
    erased: int = 0
    not_compared: int = 0
    not_checkable: tuple[Unchecked, ...] = ()


@dataclass(frozen=True)
class Unlanded:
    """Hours that should be landed by now and are not, or not as a whole.

    Attributes:
        first: the hour, or the first of several without a tile in which Kafka has nothing.
        last: the last of them, included.
        offsets: `[first, end)` per topic-partition that is not landed; of an hour without tile as it would be cut.
        state: what the index says of the hour.
        expired: how many of the offsets Kafka no longer has.
        under_way: whether the hour, its grace included, is not over yet.
        allowed: whether that is fine.
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
        """How many offsets these are."""
        return sum(end - start for start, end in self.offsets.values())

    def __str__(self) -> str:
        which = self.first if self.first == self.last else f"{self.first} to {self.last}"
        gone = f", {self.expired:,} of them expired" if self.expired else ""
        fine = " (allowed)" if self.allowed else ""
        parts = [f"partition {one}: {start} to {end - 1}" for one, (start, end) in self.offsets.items()]
        more = [f"{len(parts) - _SHOWN} more partitions"] if len(parts) > _SHOWN else []
        where = f"; {', '.join([*parts[:_SHOWN], *more])}" if parts else ""
        return f"not landed: {self.topic} {which}: {self.count:,} offsets, {self.state}{gone}{fine}{where}"


@dataclass(frozen=True)
class Report:
    """What verifying one or many topics found. Offsets that Kafka no longer has do not make it less clean.

    Attributes:
        notices: sentences about what is as configured, and still unlikely to be meant.
    """

    checked: tuple[Checked, ...] = ()
    differences: tuple[Difference, ...] = ()
    unlanded: tuple[Unlanded, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def compared(self) -> int:
        """Committed records of Kafka that were compared with files."""
        return sum(one.kafka_records for one in self.checked) - self.not_compared

    @property
    def not_compared(self) -> int:
        """Committed records of Kafka that were read, and only counted."""
        return sum(one.not_compared for one in self.checked)

    @property
    def erased(self) -> int:
        """Records that the index says were taken out on purpose."""
        return sum(one.erased for one in self.checked)

    @property
    def not_landed(self) -> int:
        """Offsets that should be landed and are not."""
        return sum(one.count for one in self.unlanded)

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
        """Data objects that the index lists, sidecars included."""
        return sum(one.files for one in self.checked)

    @property
    def dead_letter_files(self) -> int:
        """Objects of dead letters that the index lists."""
        return sum(one.dead_letter_files for one in self.checked)

    @property
    def bytes(self) -> int:
        """Size of these objects as stored."""
        return sum(one.bytes for one in self.checked)

    @property
    def not_checkable(self) -> int:
        """Offsets that cannot be checked."""
        return sum(gone.end - gone.first for gone in self._unchecked)

    @property
    def clean(self) -> bool:
        """Whether all that should be landed is, and nothing differs, in files that can be compared."""
        incomparable = any(gone.incomparable for gone in self._unchecked)
        return not self.differences and not incomparable and all(one.allowed for one in self.unlanded)

    @property
    def _unchecked(self) -> Iterable[Unchecked]:
        return chain.from_iterable(one.not_checkable for one in self.checked)

    def allowing_open(self) -> "Report":
        """The same, where what the hour under way lacks is fine."""
        return replace(self, unlanded=tuple(replace(one, allowed=one.under_way) for one in self.unlanded))


def combined(reports: Iterable[Report]) -> Report:
    """One report of many."""
    every = tuple(reports)
    return Report(
        tuple(chain.from_iterable(report.checked for report in every)),
        tuple(chain.from_iterable(report.differences for report in every)),
        tuple(chain.from_iterable(report.unlanded for report in every)),
        tuple(dict.fromkeys(chain.from_iterable(report.notices for report in every))),
    )
