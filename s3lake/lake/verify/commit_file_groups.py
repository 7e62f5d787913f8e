"""The files of one commit and topic-partition: which belong together, the digests of their rows, and their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice, repeat, zip_longest
from operator import attrgetter
from typing import Any

from s3lake.errors import UnreadableError
from s3lake.index.commit.documents import File
from s3lake.index.store import Store
from s3lake.lake.objects import content, open_columns
from s3lake.lake.objects.shape import FramingBytes, ObjectShape
from s3lake.lake.verify.decoded_values import DIGEST_BYTES, digest_row
from s3lake.lake.verify.log import Records
from s3lake.lake.verify.row_digests import StreamDigester
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake.text.quantities import format_count

_ROWS = 10_000
_JOINED = FramingBytes(b"", b"", b"")
_OVERLAP = "its files overlap, and what separates their records may be inside of one"
_UNSEPARATED = "s3lake wrote its rows, in which what separates them may be: use format json"
_NO_DATA = digest_row("no data")
_NO_ROW = digest_row("no row")


@dataclass
class FileGroup:
    """Files of the same records in the same order: data, and the keys and headers next to it.

    Attributes:
        first: the data; keys or headers if no record has a value.
    """

    first: File
    files: dict[str, File] = field(default_factory=dict)


def group_files(files: Sequence[File]) -> list[FileGroup]:
    """Group a commit's files of data, keys and headers by their stem."""
    groups = [FileGroup(file, {"data": file}) for file in files if file.stream == "data"]
    near: dict[tuple[int, int, int], list[FileGroup]] = {}
    for group in groups:
        near.setdefault(_get_span(group.first), []).append(group)
    for file in files:
        if file.stream not in ("keys", "headers"):
            continue
        stem = file.key.rpartition(f".{file.stream}")[0]
        candidates = near.setdefault(_get_span(file), [])
        group = next((group for group in candidates if group.first.key.startswith(stem)), FileGroup(file))
        group.files[file.stream] = file
        if group.first is file:
            groups.append(group)
            candidates.append(group)
    return groups


def read_body(store: Store, key: str) -> bytes:
    """Return the bytes of an object.

    Raises:
        UnreadableError: it is missing.
    """
    document = store.get(key)
    if document is None:
        raise UnreadableError(f"{key} is missing")
    return document.body


def list_stream_shapes(shape: ObjectShape) -> dict[str, ObjectShape]:
    """Return the shape of each stream of a commit's files."""
    sidecars = {"keys": shape.sidecars.keys, "headers": shape.sidecars.headers}
    return {"data": shape, **{stream: shape.sidecar(stream) for stream, format in sidecars.items() if format}}


def count_rows(shape: ObjectShape, group: FileGroup, bodies: Mapping[str, bytes]) -> int:
    """Count the rows of a group's first file; as many as the manifest states if nothing separates them.

    Raises:
        UnreadableError: it is not a file of its format.
    """
    file, (stream, *_) = group.first, [stream for stream, file in group.files.items() if file is group.first]
    own = list_stream_shapes(shape)[stream]
    if own.in_columns:
        batches = open_columns(own.for_file(file), bodies[stream], file.key).batches
        return sum(batch.num_rows for batch in batches)
    rows = sum(len(texts) for texts in content.split_records(own, bodies[stream], file.key))
    return rows if own.separable else file.records


class CommitFiles:
    """How the groups of a commit's files and Kafka's records are digested.

    Attributes:
        groups: the files that are compared.
        counted_reason: why they can only be counted; empty if they can be compared.
    """

    def __init__(
        self,
        store: Store,
        topic: str,
        shape: ObjectShape,
        groups: Sequence[FileGroup],
        registry: Connection | None,
        *,
        in_order: bool,
    ) -> None:
        """Prepare to read `groups`; `in_order` is True if records are in files in the order of their offsets."""
        self.groups, self._store = list(groups), store
        shapes = list_stream_shapes(shape)
        self._rows = {stream: StreamDigester(own, topic, registry) for stream, own in shapes.items() if own.separable}
        self._without_data = any("data" not in group.files for group in groups)
        self._shapes, self._texts = shapes, dict[str, Callable[[Records], list[bytes]]]()
        self._orders: dict[str, FileOrder] = {}
        self.counted_reason = ""
        for stream, own in shapes.items():
            if own.separable:
                continue
            assert own.frame is not None
            order = FileOrder([group.files[stream] for group in groups if stream in group.files], own.frame)
            texts = StreamDigester(own, topic, registry).texts
            if texts is None or not order.is_apart:
                self.counted_reason = _UNSEPARATED if texts is None else _OVERLAP
            else:
                self._orders[stream], self._texts[stream] = order, texts
        rows = FileOrder([group.first for group in groups], _JOINED)
        self._row_order = rows if in_order and rows.is_apart and self._rows else None

    @property
    def can_count(self) -> bool:
        return bool(self._rows)

    def read_files(self, group: FileGroup, bodies: Mapping[str, bytes] | None = None) -> Iterator[list[bytes]]:
        """Yield the digests of a group's rows, some at a time.

        Raises:
            UnreadableError: a file is not of its format, or has fewer rows than another; what came before was given.
        """
        if bodies is None:
            bodies = self.fetch(group)
        if list(self._rows) == ["data"]:
            if "data" in group.files:
                yield from self._rows["data"].digest_file(bodies["data"], group.files["data"])
            return
        streams = [
            chain.from_iterable(rows.digest_file(bodies[stream], group.files[stream]))
            if stream in group.files
            else repeat(_NO_DATA, group.first.records)
            for stream, rows in self._rows.items()
        ]
        joined = zip_longest(*streams, fillvalue=_NO_ROW)
        while block := list(islice(joined, _ROWS)):
            yield [digest_row(row) for row in block]

    def fetch(self, group: FileGroup) -> dict[str, bytes]:
        """Return the bytes of a group's files.

        Raises:
            UnreadableError: one is missing.
        """
        return {stream: read_body(self._store, file.key) for stream, file in group.files.items()}

    def read_first(self, group: FileGroup, bodies: Mapping[str, bytes]) -> Iterator[list[bytes]]:
        """Yield what `read_files` does, and note the order of the rows, and the content that nothing separates."""
        for digests in self.read_files(group, bodies) if self._rows else ():
            if self._row_order is not None:
                self._row_order.add_content(group.first, digests)
            yield digests
        for stream, order in self._orders.items():
            if stream in group.files:
                file = group.files[stream]
                order.add_content(file, content.decompress_blocks(bodies[stream], file.key, self._shapes[stream].codec))

    def expect(self, records: Records) -> list[bytes]:
        """Return the digests of the rows that records should be."""
        streams: dict[str, list[bytes]] = {stream: rows.digest_records(records) for stream, rows in self._rows.items()}
        if self._without_data and "data" in streams:
            pairs = zip(streams["data"], records.values, strict=True)
            streams["data"] = [_NO_DATA if value is None else row for row, value in pairs]
        if list(streams) == ["data"]:
            return streams["data"]
        return [digest_row(row) for row in zip(*streams.values(), strict=True)]

    def expect_order(self, records: Records, digests: Sequence[bytes]) -> None:
        """Note the order in which records, with these digests, should be in files."""
        if self._row_order is not None:
            self._row_order.add_records(records.offsets, digests)
        for stream, order in self._orders.items():
            own = records
            if stream == "data" and self._without_data:
                own = records.select([row for row, value in enumerate(records.values) if value is not None])
            order.add_records(own.offsets, self._texts[stream](own))

    def find_misordered(self, needs_records: Callable[[File], bool]) -> Iterator[str]:
        """Yield each file that is not its records in order; `needs_records` is True if Kafka has all of a file."""
        if self._row_order is not None:
            yield from self._row_order.compare(needs_records, "in their order", count=False)
        for order in self._orders.values():
            yield from order.compare(needs_records, "together", count=True)


class FileOrder:
    """Files, and what their records make one after the other, hashed on both sides.

    Attributes:
        is_apart: True if a record's offset determines its file.
    """

    def __init__(self, files: Sequence[File], frame: FramingBytes) -> None:
        """Prepare to compare `files`, in which the units of records are framed so."""
        self._frame, self._files = frame, sorted(files, key=attrgetter("first_offset"))
        neighbours = zip(self._files, self._files[1:], strict=False)
        self.is_apart = all(file.last_offset < other.first_offset for file, other in neighbours)
        self._in_file: dict[str, Any] = {}
        self._in_kafka: dict[str, Any] = {}
        self._records: dict[str, int] = {}
        self._at = 0

    def add_content(self, file: File, blocks: Iterable[bytes]) -> None:
        """Add the content of a file, or more of it."""
        hashed = self._in_file.setdefault(file.key, blake2b(digest_size=DIGEST_BYTES))
        for block in blocks:
            hashed.update(block)

    def add_records(self, offsets: Sequence[int], units: Sequence[bytes]) -> None:
        """Add the units of records, which come in order."""
        for file, own in self._split_by_file(offsets, units):
            before = self._frame.between if file.key in self._in_kafka else self._frame.opening
            hashed = self._in_kafka.setdefault(file.key, blake2b(digest_size=DIGEST_BYTES))
            hashed.update(before + self._frame.between.join(own))
            self._records[file.key] = self._records.get(file.key, 0) + len(own)

    def _split_by_file(self, offsets: Sequence[int], units: Sequence[bytes]) -> Iterator[tuple[File, Sequence[bytes]]]:
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

    def compare(self, needs_records: Callable[[File], bool], how: str, *, count: bool) -> Iterator[str]:
        """Yield each file that differs, also in the number of its records if `count`."""
        for file in self._files:
            if not needs_records(file) or file.key not in self._in_file:
                continue
            records = self._records.get(file.key, 0)
            if count and records != file.records:
                has = format_count(records, "records")
                yield f"{file.key} covers {has} of Kafka, the manifest states {file.records}"
            elif file.key in self._in_kafka:
                self._in_kafka[file.key].update(self._frame.closing)
                if self._in_kafka[file.key].digest() != self._in_file[file.key].digest():
                    yield f"{file.key} is not what records {file.first_offset} to {file.last_offset} make {how}"


def _get_span(file: File) -> tuple[int, int, int]:
    return file.partition, file.first_offset, file.last_offset
