"""The documents of the index, version 1: each as the struct that is its JSON. Tiles are in `index/plan/tile.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from s3lake.index.plan.counts import Counts, sum_counts
from s3lake.index.plan.tile import VERSION, Tile, Wait
from s3lake.records.schema.columns.changes import Change

TABLE = "table"
"""The `topic_id` of an index whose hours are tables that assets handed in, and not records of a topic."""
DEAD_LETTERS = "dead_letters"
"""The stream of dead letters."""


class Watermark(msgspec.Struct, frozen=True):
    """A note of how far all hours are sealed (`sealing.py`).

    Attributes:
        since: the hour that it is counted from.
        upto: the last hour such that all from `since` on are sealed.
    """

    since: str
    upto: str


class TopicHead(msgspec.Struct, frozen=True):
    """`topic.json`: changed once per new hour, and once when an hour is sealed.

    Attributes:
        topic_id: Kafka's id of the topic that these tiles are cut from; empty until it was first seen; `TABLE`.
        hours: existing tiles as inclusive ranges.
        new: the tile created last, whole, so that anyone can finish its creation.
        begins: where the tile of `since` begins, where an unclean election had cut the log; else at the log start.
        led: the leaders' epochs at that moment.
        since: first hour that is landed here, where an earlier topic of this name was deleted and given up, or a
            connector landed what came before.
        earlier: what `since` was before, oldest first.
        owner: the key of the asset whose tables these are; empty for a topic.
        sealed: how far all hours are sealed; None if the first of them is not.
    """

    version: int = VERSION
    rev: int = 0
    topic_id: str = ""
    hours: tuple[tuple[str, str], ...] = ()
    new: Tile | None = None
    since: str | None = None
    begins: dict[int, int] = {}
    led: dict[int, int] = {}
    earlier: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    sealed: Watermark | None = None

    def leads_on(self, earlier: Tile, later: Tile) -> bool:
        """Return whether a later hour continues the offsets of an earlier one: landing did not restart in between."""
        if self.topic_id == TABLE:
            return False
        noted = (*self.earlier, self.since)
        return not any(since is not None and earlier.hour < since <= later.hour for since in noted)

    def revise(self, **changes: Any) -> TopicHead:
        """Return the next revision with these changes."""
        return msgspec.structs.replace(self, rev=self.rev + 1, **changes)


class File(msgspec.Struct, frozen=True):
    """One object of a commit.

    Attributes:
        stream: `data`, `keys`, `headers` or `dead_letters`.
        parts: ETags of the parts, in order.
        records: records in the file; for dead letters, refused records.
        bytes: size as stored.
        group: its key with gaps in place of numbers, the same in all files of one output partition; None for dead
            letters.
        columns: names, in order, of a CSV file without a header line; None of others.
    """

    key: str
    upload: str
    parts: tuple[str, ...]
    partition: int
    first_offset: int
    last_offset: int
    records: int
    bytes: int
    stream: str = msgspec.field(default="data", name="kind")
    group: str | None = None
    columns: tuple[str, ...] | None = None


class Read(Counts, frozen=True):
    """The offset range of one topic-partition of a commit, and the counts of its records.

    `end - start` minus `read` are offsets without a record for a reader of committed data: transaction markers,
    aborted and compacted records, and expired offsets.

    Attributes:
        oldest_ms: the earliest timestamp of its records, epoch milliseconds; 0 where none has one.
        newest_ms: the latest.
    """

    start: int
    end: int
    oldest_ms: int = 0
    newest_ms: int = 0

    def __add__(self, other: Read) -> Read:
        """Return two offset ranges of one topic-partition as one, with the counts of both."""
        return msgspec.structs.replace(
            self.plus(other),
            start=min(self.start, other.start),
            end=max(self.end, other.end),
            oldest_ms=min(filter(None, (self.oldest_ms, other.oldest_ms)), default=0),
            newest_ms=max(self.newest_ms, other.newest_ms),
        )


class EnvelopeForm(msgspec.Struct, frozen=True):
    """The parts of a record that a row has, as `s3lake.config.model.Envelope` had them when the file was written."""

    style: str
    fields: tuple[str, ...]
    value_encoding: str = "base64"
    bare: bool = False
    stream: str = ""
    topic: str = ""


class SidecarForm(msgspec.Struct, frozen=True):
    """The files of keys and of headers.

    Attributes:
        keys: format of sidecars of keys, None if there are none.
        headers: format of sidecars of headers.
        codecs: the codec of each format.
    """

    keys: str | None = None
    headers: str | None = None
    codecs: tuple[tuple[str, str], ...] = ()


class FileForm(msgspec.Struct, frozen=True):
    """The content and encoding of a commit's data files: all that a reader has to know, except for their columns.

    Attributes:
        format: the value of `format.type`; empty without data.
        value: the converter of values.
        key: the converter of keys.
        codec: the codec of the format.
        header: True if a CSV file begins with the names of its columns.
        framing: what is before the first record, between two, and after the last; None if an object is one record, or
            the format has a framing of its own.
        transformed: the parts (`key`, `value`, `headers`) that transforms or SQL may have changed.
        transforms: digest of the transforms and the SQL, as configured; empty if there are none.
        null_to_default: the sides, `key` and `value`, whose nulls became the defaults of their schemas.
    """

    format: str = ""
    value: str = "json"
    key: str = "string"
    codec: str = "none"
    header: bool = True
    framing: tuple[str, str, str] | None = ("", "\n", "\n")
    envelope: EnvelopeForm | None = None
    sidecars: SidecarForm = SidecarForm()
    transformed: tuple[str, ...] = ()
    transforms: str = ""
    null_to_default: tuple[str, ...] = ()

    @property
    def without_transforms(self) -> FileForm:
        """The form of files with these rows, whatever transforms had done before."""
        return msgspec.structs.replace(self, transformed=(), transforms="")


class RefusalReason(msgspec.Struct, frozen=True):
    """Dead letters of one stage that were refused for the same reason.

    Attributes:
        reason: the message, without what it quotes and counts.
        partition: the topic-partition of the first of them.
        offset: the offset of the first of them.
    """

    stage: str
    reason: str
    count: int
    partition: int
    offset: int


class ReplayedDeadLetters(msgspec.Struct, frozen=True):
    """Dead letters that a replay has landed, and so are none any more.

    Attributes:
        commit: the commit that took them.
        at_ms: when, epoch milliseconds.
        offsets: [topic-partition, first, end) of them.
    """

    commit: str
    at_ms: int
    offsets: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return sum(end - start for _, start, end in self.offsets)


MOST_FILES = 50_000
"""Of one commit: its manifest, some 400 bytes a file, stays far below what one PUT takes."""


class Manifest(msgspec.Struct, frozen=True):
    """The contents of one commit; never changed once written.

    `form` and `nulls` are the sink's at the time, which may be configured otherwise later.

    Attributes:
        epochs: see `Tile`, as they were when it was planned.
        begun_ms: when it was planned, before its records were read; 0 if unknown.
        reason: why it replaces others; empty where it replaces none.
        waits: how long its records had waited when it was made; a merge has the waits of all that it replaces.
        at_once: its objects were made visible before a tile listed it (`exactly_once: false`).
        replacing: True if keys of its data contain no offset: an object replaced the one that was there.
        refusal_reasons: the reasons of its dead letters; `letters` in the JSON document.
        taken: dead letters of commits before it that are none any more.
        clocks: the time of transforms, as `(topic-partition, end, epoch milliseconds)`: for offsets from the end before
            up to `end`. Empty without transforms, and after a replay.
    """

    id: str
    topic: str
    hour: str
    partitions: dict[int, Read]
    files: tuple[File, ...] = ()
    replaces: tuple[str, ...] = ()
    expired: tuple[tuple[int, int, int], ...] = ()
    form: FileForm = FileForm()
    nulls: str = ""
    columns: dict[str, Any] | None = None
    created_ms: int = 0
    begun_ms: int = 0
    at_once: bool = False
    replacing: bool = False
    epochs: dict[int, int] = {}
    reason: str = ""
    waits: tuple[Wait, ...] = ()
    refusal_reasons: tuple[RefusalReason, ...] = msgspec.field(default=(), name="letters")
    taken: tuple[ReplayedDeadLetters, ...] = ()
    clocks: tuple[tuple[int, int, int], ...] = ()
    version: int = VERSION

    @property
    def counts(self) -> Counts:
        """The counts of all topic-partitions."""
        return sum_counts(self.partitions.values())


class Changed(msgspec.Struct, frozen=True):
    """The changes of columns that one attempt at a commit saw.

    Attributes:
        hour: the hour that it read records of; a later attempt at the same records is one at the same hour.
        commit: its id; it may have come to nothing, and a later attempt landed the columns.
    """

    hour: str
    commit: str
    changes: tuple[Change, ...]


class Recorded(msgspec.Struct, frozen=True):
    """`schema.json`: the columns that every file of this sink and topic has in common.

    Attributes:
        history: the columns of the first commit, then every change.
        words: their descriptions, from the schemas of the last records.
        exact: paths of columns that have held integers beyond 2^53: such a column never becomes one of doubles.
        shapes: the combinations of types that the fields which a sink's SQL reads have had, each as the text that
            `land.sql.sql_table` writes.
    """

    columns: dict[str, Any]
    history: tuple[Changed, ...] = ()
    words: dict[str, str] = {}
    exact: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    rev: int = 0
    version: int = VERSION


class Filed(Protocol):
    """A commit, or what is staged for one."""

    @property
    def files(self) -> Sequence[File]: ...


def collect_files(commits: Iterable[Filed], *streams: str) -> list[File]:
    """Return the files of commits, or only the files of these `streams`."""
    return [file for commit in commits for file in commit.files if not streams or file.stream in streams]


def count_data_files(commit: Filed) -> int:
    """Count the objects apart from dead letters: data files, and sidecars with them. All who show a count use this."""
    return sum(file.stream != DEAD_LETTERS for file in commit.files)
