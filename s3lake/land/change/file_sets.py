"""Files of commits that hold the same records, and files of a new commit that are made of them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import pyarrow as pa

from s3lake import hours
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest
from s3lake.index.commit.protocol import build_name_suffix
from s3lake.index.store import COMMIT, Store
from s3lake.index.store.reading import open_object
from s3lake.index.store.upload import PART_BYTES, Spill, stage_object
from s3lake.lake.objects import avro_objects, content, csv_objects
from s3lake.lake.objects.shape import LINE_FRAMING, ObjectShape
from s3lake.land.request import stage_values
from s3lake.records.encode import Disk, FileFormat, Out
from s3lake.records.encode.avro_file import AvroEncoder
from s3lake.records.encode.column_bytes import wrap_encoded
from s3lake.records.encode.formats import FORMATS
from s3lake.records.encode.text_file import TextEncoder

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.land.topic.topic_sink import TopicSink

_AT_ONCE = 8
"""Small objects: most of their time is spent waiting for the store."""


@dataclass(frozen=True)
class FileSet:
    """Files of one commit that hold the same records: data and sidecars by stream, or dead letters."""

    manifest: Manifest
    files: Mapping[str, File]

    @property
    def first(self) -> File:
        """One of the files: all have the same records."""
        return next(iter(self.files.values()))

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files.values())


def list_file_sets(manifests: Iterable[Manifest]) -> list[FileSet]:
    """Return the file sets of commits."""
    file_sets: list[FileSet] = []
    for manifest in manifests:
        sets: dict[tuple[int, str | None, int], dict[str, File]] = {}
        for file in manifest.files:  # dead letters have no group
            sets.setdefault((file.partition, file.group, file.first_offset), {})[file.stream] = file
        file_sets += (FileSet(manifest, files) for files in sets.values())
    return file_sets


def shape_of_stream(manifest: Manifest, stream: str) -> ObjectShape:
    """Return the shape of a commit's files of one stream."""
    if stream == DEAD_LETTERS:
        return ObjectShape("json")
    shape = ObjectShape.from_manifest(manifest)
    return shape if stream == "data" else shape.sidecar(stream)


def read_whole(store: Store, manifest: Manifest, file: File) -> bytes:
    """Read a file of a commit.

    Raises:
        DataLossError: the object is missing, or is another one.
    """
    with open_object(store, file.key, file.bytes, manifest.id) as body:
        return body.read()


def key_in_commit(target: TopicSink, manifest: Manifest, file: File, commit: str) -> str:
    """Return the key of a file that `commit` makes of this one: with its mark instead of the mark of `manifest`.

    A key without a mark gets it before its ending.
    """
    old, new = build_name_suffix(manifest.id), build_name_suffix(commit)
    if old in file.key:
        return file.key.replace(old, new)
    landed, shape = target.sink.after_transforms, shape_of_stream(manifest, file.stream)
    own = FORMATS[shape.format].extension(shape.codec)
    endings = (*landed.sidecars.endings, f".{file.stream}{own}", landed.extension, own)
    ending = max((one for one in endings if one and file.key.endswith(one)), key=len, default="")
    return file.key.removesuffix(ending) + new + ending


def is_placed_as_now(landed: Sink, topic: str, manifest: Manifest) -> bool:
    """Return whether a commit's files could be in these places in the present layout."""
    # The time of another micro-batch is not another layout.
    keys = stage_values.build_key_layout(landed, topic, wallclock_ms=None, hour_ms=hours.start_ms(manifest.hour))
    return all(
        keys.can_contain(file.group, file.partition)
        for file in manifest.files
        if file.stream != DEAD_LETTERS and file.group
    )


def copy_file(
    target: TopicSink, manifest: Manifest, file: File, commit: str, key: str = "", without: Set[int] = frozenset()
) -> list[File]:
    """Stage a file of `manifest` as one of `commit`: byte by byte, or without some rows, counted from 0.

    Args:
        commit: the id of the new commit.
        key: the key of the new object; empty for `key_in_commit`.
        without: the rows that are left out; not all of them.

    Raises:
        DataLossError: the object is missing, or is another one.
        UnreadableError: it is not a file of its shape.
    """
    key = key or key_in_commit(target, manifest, file, commit)

    def write(out: Out, disk: Spill) -> None:
        with open_object(target.store, file.key, file.bytes, manifest.id) as body:
            if without:
                shape = shape_of_stream(manifest, file.stream)
                level = _choose_level(target.sink.after_transforms, file.stream, shape)
                _write_without(without, shape, level, body, file.key, out, disk)
                return
            while block := body.read(PART_BYTES):
                out(block)

    new = stage_object(target.store, key, {COMMIT: commit}, write)
    changes = {"upload": new.upload, "parts": new.parts, "records": file.records - len(without), "bytes": new.size}
    return [msgspec.structs.replace(file, key=key, **changes)]


def stage_files(
    tasks: Iterable[tuple[int, Callable[[], Iterable[File]]]], files: list[File], large_at_once: int = 1
) -> None:
    """Run tasks that stage files, several at once. Adds what they stage to `files`, also if one of them fails.

    Args:
        tasks: bytes of the sources, and the task.
        files: the files of the new commit.
        large_at_once: tasks with sources above the size of a part; each holds parts and row groups in memory.
    """
    parts: dict[bool, list[Callable[[], Iterable[File]]]] = {True: [], False: []}
    for size, task in tasks:
        parts[size < PART_BYTES].append(task)
    for is_small, some in parts.items():
        with ThreadPoolExecutor(_AT_ONCE if is_small else large_at_once, "s3lake-maintenance") as pool:
            running = [pool.submit(lambda stage: files.extend(stage()), task) for task in some]
        for stage in running:
            stage.result()


# A file without some of its rows: the others as they are, in text files and Avro byte by byte


def _choose_level(landed: Sink, stream: str, shape: ObjectShape) -> int | None:
    """Return the sink's level of compression. Return None if its files have another format or codec by now."""
    now = stage_values.build_file_rule(landed).formats.get(stream)
    return now.level if now is not None and (now.type, now.codec) == (shape.format, shape.codec) else None


def _write_without(
    rows: Set[int], shape: ObjectShape, level: int | None, body: BinaryIO, key: str, out: Out, disk: Disk
) -> None:
    """Write a file of this shape again without some rows; `disk` takes what memory cannot hold."""
    if shape.format == "parquet":
        _write_parquet(rows, FileFormat("parquet", shape.codec, level), body, out, disk)
    elif shape.format == "avro":
        _write_avro(rows, FileFormat("avro", shape.codec, level), body, out, disk)
    else:
        _write_text(rows, shape, level, body, key, out)


def _write_text(rows: Set[int], shape: ObjectShape, level: int | None, body: BinaryIO, key: str, out: Out) -> None:
    frame = shape.frame or LINE_FRAMING
    framing = (frame.opening.decode(), frame.between.decode(), frame.closing.decode())
    encoder = TextEncoder(FileFormat(shape.format, shape.codec, level, header=False, framing=framing), out)
    first = -1 if shape.header and shape.in_columns else 0  # the header line is not a row
    for texts in _records(shape, body, key):
        kept = [text for number, text in enumerate(texts, first) if number not in rows]
        encoder.write(pa.array(kept, pa.binary()))
        first += len(texts)
    encoder.close()


def _records(shape: ObjectShape, body: BinaryIO, key: str) -> Iterator[list[bytes]]:
    if not shape.in_columns:
        yield from content.split_records(shape, body, key)
        return
    frame = shape.frame or LINE_FRAMING
    yield list(
        csv_objects.split_csv_records(
            content.strip_framing(content.decompress_blocks(body, key, shape.codec), frame, key), frame.between
        )
    )


def _write_avro(rows: Set[int], form: FileFormat, body: BinaryIO, out: Out, disk: Disk) -> None:
    import fastavro

    blocks: Any = fastavro.block_reader(body)
    schema = blocks.metadata["avro.schema"]
    plain = fastavro.parse_schema(avro_objects.mark_logical_types(json.loads(schema)))
    encoder = AvroEncoder(form, out, disk)
    first = 0
    for block in blocks:
        data, kept = block.bytes_.getbuffer(), []
        stream = io.BytesIO(data)
        for number in range(first, first + block.num_records):
            start = stream.tell()
            fastavro.schemaless_reader(stream, plain, None)
            if number not in rows:
                kept.append(bytes(data[start : stream.tell()]))
        first += block.num_records
        encoder.write(wrap_encoded(pa.array(kept, pa.binary()), schema.encode()))
    encoder.close()


def _write_parquet(rows: Set[int], form: FileFormat, body: BinaryIO, out: Out, disk: Disk) -> None:
    import pyarrow.parquet as pq

    from s3lake.records.encode.parquet_file import ParquetEncoder

    file = pq.ParquetFile(body)
    encoder = ParquetEncoder(form, out, disk, sys.maxsize)
    first = 0
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, use_threads=False).replace_schema_metadata(None)
        kept = [row for row in range(table.num_rows) if first + row not in rows]
        first += table.num_rows
        for batch in table.take(pa.array(kept, pa.int64())).combine_chunks().to_batches():
            encoder.write(batch)
        encoder.drain()
    encoder.close()
