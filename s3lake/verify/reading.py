"""The files of one segment, as they belong together: data files, and the sidecars beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice, repeat, zip_longest
from operator import attrgetter
from typing import Any

from s3lake.commit.index import File, TopicIndex
from s3lake.objects import content
from s3lake.objects.shape import Shape
from s3lake.verify import digest, judge, s3_side
from s3lake.verify.judge import Judge
from s3lake.verify.log import Records
from s3lake.verify.woven import Woven

_ROWS = 10_000
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

    def __init__(self, index: TopicIndex, shape: Shape, groups: Sequence[Group]) -> None:
        self.groups = list(groups)
        self._store = index.store
        self._tombstones = any("data" not in group.files for group in groups)
        beside = {"keys": shape.sidecars.keys, "headers": shape.sidecars.headers}
        shapes = {"data": shape, **{stream: shape.sidecar(stream) for stream, form in beside.items() if form}}
        self._judges: dict[str, Judge] = {}
        self._wholes: dict[str, Whole] = {}
        for stream, stream_shape in shapes.items():
            if stream_shape.separable or (stream == "data" and len(shapes) == 1 and judge.in_pieces(stream_shape)):
                self._judges[stream] = judge.of(stream_shape, index.topic)
            if not stream_shape.separable:
                self._wholes[stream] = Whole(
                    stream_shape, [group.files[stream] for group in groups if stream in group.files]
                )
        self._pieces = judge.pieces(shape) if "data" in self._judges and "data" in self._wholes else None
        overlap = self._pieces is None and not all(whole.apart for whole in self._wholes.values())
        self._woven = Woven() if overlap and self._judges else None
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
        """Note which rows are in a group, where their digests have to tell its records from those of others."""
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
                whole.read(file, s3_side.body(self._store, file.key))

    def take_whole(self, records: Records, rows: Sequence[bytes]) -> None:
        """Note what they should be, by records of Kafka and the digests that are expected of them."""
        dealt = self._woven.deal(records.offsets, rows) if self._woven is not None else ()
        for stream, whole in self._wholes.items():
            if whole.apart:
                whole.take(self._valued(records) if stream == "data" else records)
            elif dealt:
                of = {group.first.key: group.files[stream] for group in self.groups if stream in group.files}
                whole.take(records, [of.get(key) if key else None for key in dealt])

    def compare_whole(self, needed: Callable[[File], bool], note: Callable[[str], None]) -> None:
        """Say which files are not the join of their records; `needed` tells those of which Kafka has every record."""
        for whole in self._wholes.values():
            if self._applies(whole):
                whole.compare(needed, note)

    def _applies(self, whole: Whole) -> bool:
        return whole.apart or (self._woven is not None and not self._woven.unsure)

    def _rows(self, stream: str, group: Group) -> Iterator[list[bytes]]:
        file = group.files[stream]
        return self._judges[stream].rows(s3_side.body(self._store, file.key), file)

    def _valued(self, records: Records) -> Records:
        if not self._tombstones or None not in records.values:
            return records
        return records.only([row for row, value in enumerate(records.values) if value is not None])


class Whole:
    """Files whose bytes are compared from first to last with the join of the records at their offsets.

    Attributes:
        apart: whether a record's offset says in which file it is.
    """

    def __init__(self, shape: Shape, files: Sequence[File]) -> None:
        assert shape.frame is not None
        self._shape, self._frame, self._text = shape, shape.frame, judge.raw_text(shape)
        self._files = sorted(files, key=attrgetter("first_offset"))
        neighbours = zip(self._files, self._files[1:], strict=False)
        self.apart = all(stream_shape.last_offset < other.first_offset for stream_shape, other in neighbours)
        self._in_file: dict[str, bytes] = {}
        self._in_kafka: dict[str, Any] = {}
        self._records: dict[str, int] = {}
        self._at = 0

    def read(self, file: File, body: bytes) -> None:
        """Take in an object."""
        hashed = blake2b(digest_size=digest.SIZE)
        for block in content.blocks(body, file.key, self._shape.codec):
            hashed.update(block)
        self._in_file[file.key] = hashed.digest()

    def take(self, records: Records, files: Sequence[File | None] | None = None) -> None:
        """Take in records, which come in order; `files` are theirs where offsets do not say it."""
        files = [self._file_at(offset) for offset in records.offsets] if files is None else files
        for file, text in zip(files, self._text(records), strict=True):
            if file is None:
                continue
            key = file.key
            if key not in self._in_kafka:
                self._in_kafka[key] = blake2b(self._frame.opening + text, digest_size=digest.SIZE)
            else:
                self._in_kafka[key].update(self._frame.between + text)
            self._records[key] = self._records.get(key, 0) + 1

    def _file_at(self, offset: int) -> File | None:
        while self._at < len(self._files) and self._files[self._at].last_offset < offset:
            self._at += 1
        file = self._files[self._at] if self._at < len(self._files) else None
        return file if file is not None and file.first_offset <= offset else None

    def compare(self, needed: Callable[[File], bool], note: Callable[[str], None]) -> None:
        """Compare what was read with what was taken."""
        for file in self._files:
            if not needed(file) or file.key not in self._in_file:
                continue
            count = self._records.get(file.key, 0)
            if count != file.records:
                note(f"{file.key} covers {count} records of Kafka, the manifest says {file.records}")
            elif file.key in self._in_kafka:
                self._in_kafka[file.key].update(self._frame.closing)
                if self._in_kafka[file.key].digest() != self._in_file[file.key]:
                    note(f"{file.key} is not what records {file.first_offset} to {file.last_offset} make together")


def _span(file: File) -> tuple[int, int, int]:
    return file.partition, file.first_offset, file.last_offset
