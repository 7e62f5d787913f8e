"""The files of one segment, as they belong together: data files, and the sidecars beside them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice, repeat, zip_longest
from operator import attrgetter
from typing import Any

from s3lake.commit.index import File, TopicIndex
from s3lake.objects import content
from s3lake.objects.shape import Frame, Shape
from s3lake.verify import digest, judge, s3_side
from s3lake.verify.judge import Judge
from s3lake.verify.log import Records
from s3lake.verify.woven import Woven

_ROWS = 10_000
_ROWS_FRAME = Frame(b"", b"", b"")
_NOTHING = digest.unfit(b"", b"no data")
_MISSING = digest.unfit(b"", b"no row")
_OVERLAP = "its files overlap, and a separator of theirs may stand inside of a record"


@dataclass
class Group:
    """Files with one stem: of the same records, in the same order. Records without a value may have only sidecars."""

    first: File
    files: dict[str, File] = field(default_factory=dict)

    @classmethod
    def all_of(cls, files: Sequence[File]) -> list[Group]:
        """The groups of a commit's files."""
        groups = [cls(file, {"data": file}) for file in files if file.kind == "data"]
        near: dict[tuple[int, int, int], list[Group]] = {}
        for group in groups:
            near.setdefault(_span(group.first), []).append(group)
        for file in files:
            if file.kind not in ("keys", "headers"):
                continue
            stem = file.key.rpartition(f".{file.kind}")[0]
            beside = near.setdefault(_span(file), [])
            group = next((one for one in beside if one.first.key.startswith(stem)), cls(file))
            group.files[file.kind] = file
            if group.first is file:
                groups.append(group)
                beside.append(group)
        return groups


class Reading:
    """How the groups of a segment and Kafka's records are digested.

    Attributes:
        groups: those that are compared.
    """

    def __init__(self, index: TopicIndex, shape: Shape, groups: Sequence[Group], *, in_order: bool) -> None:
        """Prepare to read `groups`; `in_order` says whether records stand in files in the order of their offsets."""
        self.groups = list(groups)
        self._store = index.store
        self._tombstones = any("data" not in group.files for group in groups)
        beside = {"keys": shape.sidecars.keys, "headers": shape.sidecars.headers}
        shapes = {"data": shape, **{stream: shape.sidecar(stream) for stream, form in beside.items() if form}}
        self._judges: dict[str, Judge] = {}
        self._shapes, self._wholes = shapes, dict[str, Sequences]()
        for stream, stream_shape in shapes.items():
            if stream_shape.separable or (stream == "data" and len(shapes) == 1 and judge.in_pieces(stream_shape)):
                self._judges[stream] = judge.of(stream_shape, index.topic)
            if not stream_shape.separable:
                assert stream_shape.frame is not None
                own = [group.files[stream] for group in groups if stream in group.files]
                self._wholes[stream] = Sequences(own, stream_shape.frame)
        self._pieces = judge.pieces(shape) if "data" in self._judges and "data" in self._wholes else None
        overlap = self._pieces is None and not all(whole.apart for whole in self._wholes.values())
        self._woven = Woven() if overlap and self._judges else None
        rows = Sequences([group.first for group in groups], _ROWS_FRAME)
        self._rows_in_order = rows if in_order and rows.apart and self.counts else None
        self._problem = _OVERLAP if overlap and not self._judges else None

    @property
    def problem(self) -> str | None:
        """Why some of it cannot be compared; None where all can, as far as it was read."""
        return _OVERLAP if self._woven is not None and self._woven.unsure else self._problem

    @property
    def counts(self) -> bool:
        """Whether a row is a record."""
        return self._pieces is None and bool(self._judges)

    def rows(self, group: Group) -> Iterator[list[bytes]]:
        """Digests of a group's rows, some at a time.

        Raises:
            UnreadableError: a file is none of its format, or has fewer rows than another; what came before was given.
        """
        if list(self._judges) == ["data"]:
            if "data" in group.files:
                yield from self._rows("data", group)
            return
        streams = [
            chain.from_iterable(self._rows(stream, group))
            if stream in group.files
            else repeat(_NOTHING, group.first.records)
            for stream in self._judges
        ]
        rows = zip_longest(*streams, fillvalue=_MISSING)
        while block := list(islice(rows, _ROWS)):
            yield [digest.of(b"".join(row)) for row in block]

    def expected(self, records: Records) -> tuple[Sequence[bytes], Sequence[int]]:
        """Digests of records, and the offset of each; a record in pieces has several."""
        if self._pieces is not None:
            return self._pieces(records)
        if list(self._judges) == ["data"]:
            return self._judges["data"].expected(records), records.offsets
        if not self._judges:
            return (), ()
        digested: list[Sequence[bytes]] = []
        for stream, one in self._judges.items():
            digests: Sequence[bytes] = one.expected(records)
            if stream == "data" and self._tombstones:
                pairs = zip(digests, records.values, strict=True)
                digests = [_NOTHING if value is None else one for one, value in pairs]
            digested.append(digests)
        return [digest.of(b"".join(row)) for row in zip(*digested, strict=True)], records.offsets

    def place(self, group: Group, rows: Sequence[bytes]) -> None:
        """Note which rows are in a group, and in which order."""
        if self._rows_in_order is not None:
            self._rows_in_order.read(group.first, rows)
        if self._woven is not None:
            self._woven.add(group.first.key, (group.first.first_offset, group.first.last_offset), rows)

    def read_whole(self, group: Group) -> None:
        """Note the content of files that are compared as a whole.

        Raises:
            UnreadableError: one is none of its format.
        """
        for stream, whole in self._wholes.items():
            if stream in group.files and self._applies(whole):
                file = group.files[stream]
                body = s3_side.body(self._store, file.key)
                whole.read(file, content.blocks(body, file.key, self._shapes[stream].codec))

    def take_whole(self, records: Records, rows: Sequence[bytes]) -> None:
        """Note what they should be, by records of Kafka and the digests that are expected of them."""
        if self._rows_in_order is not None:
            self._rows_in_order.take(records.offsets, rows)
        dealt = self._woven.deal(records.offsets, rows) if self._woven is not None else ()
        for stream, whole in self._wholes.items():
            text = judge.raw_text(self._shapes[stream])
            if whole.apart:
                own = self._valued(records) if stream == "data" else records
                whole.take(own.offsets, text(own))
            elif dealt:
                of = {group.first.key: group.files[stream] for group in self.groups if stream in group.files}
                whole.take(records.offsets, text(records), [of.get(key) if key else None for key in dealt])

    def compare_whole(self, needed: Callable[[File], bool], note: Callable[[str], None]) -> None:
        """Say which files are not the join of their records; `needed` tells those of which Kafka has every record."""
        for whole in (*self._wholes.values(), *([self._rows_in_order] if self._rows_in_order else ())):
            if self._applies(whole):
                whole.compare(needed, note)

    def _applies(self, whole: Sequences) -> bool:
        return whole.apart or (self._woven is not None and not self._woven.unsure)

    def _rows(self, stream: str, group: Group) -> Iterator[list[bytes]]:
        file = group.files[stream]
        return self._judges[stream].rows(s3_side.body(self._store, file.key), file)

    def _valued(self, records: Records) -> Records:
        if not self._tombstones or None not in records.values:
            return records
        return records.only([row for row, value in enumerate(records.values) if value is not None])


class Sequences:
    """Files, and what their records make one after the other, hashed on both sides.

    Attributes:
        apart: whether a record's offset says in which file it is.
    """

    def __init__(self, files: Sequence[File], frame: Frame) -> None:
        """Prepare to compare `files`, in which the units of records stand as `frame` says."""
        self._frame, self._files = frame, sorted(files, key=attrgetter("first_offset"))
        neighbours = zip(self._files, self._files[1:], strict=False)
        self.apart = all(one.last_offset < other.first_offset for one, other in neighbours)
        self._in_file: dict[str, Any] = {}
        self._in_kafka: dict[str, Any] = {}
        self._records: dict[str, int] = {}
        self._at = 0

    def read(self, file: File, blocks: Iterable[bytes]) -> None:
        """Add what is in a file, or more of it."""
        hashed = self._in_file.setdefault(file.key, blake2b(digest_size=digest.SIZE))
        for block in blocks:
            hashed.update(block)

    def take(self, offsets: Sequence[int], units: Sequence[bytes], files: Sequence[File | None] | None = None) -> None:
        """Add units of records, which come in order; `files` are theirs if offsets do not say it."""
        for file, own in self._runs(offsets, units) if files is None else zip(files, zip(units), strict=True):
            if file is None:
                continue
            before = self._frame.between if file.key in self._in_kafka else self._frame.opening
            hashed = self._in_kafka.setdefault(file.key, blake2b(digest_size=digest.SIZE))
            hashed.update(before + self._frame.between.join(own))
            self._records[file.key] = self._records.get(file.key, 0) + len(own)

    def _runs(self, offsets: Sequence[int], units: Sequence[bytes]) -> Iterator[tuple[File, Sequence[bytes]]]:
        """Yield each file that has some of these records, with their units."""
        start = 0
        while start < len(offsets) and self._at < len(self._files):
            file = self._files[self._at]
            start = bisect_left(offsets, file.first_offset, start)
            end = bisect_right(offsets, file.last_offset, start)
            if start < end:
                yield file, units[start:end]
            start = end
            self._at += end < len(offsets)

    def compare(self, needed: Callable[[File], bool], note: Callable[[str], None]) -> None:
        """Report each file that does not hold its records in their order; `needed` says of which Kafka has them all."""
        for file in self._files:
            if not needed(file) or file.key not in self._in_file:
                continue
            count = self._records.get(file.key, 0)
            of_rows = self._frame is _ROWS_FRAME
            if count != file.records and not of_rows:
                note(f"{file.key} covers {count} records of Kafka, the manifest says {file.records}")
            elif file.key in self._in_kafka:
                self._in_kafka[file.key].update(self._frame.closing)
                if self._in_kafka[file.key].digest() != self._in_file[file.key].digest():
                    how = "in their order" if of_rows else "together"
                    note(f"{file.key} is not what records {file.first_offset} to {file.last_offset} make {how}")


def _span(file: File) -> tuple[int, int, int]:
    return file.partition, file.first_offset, file.last_offset
