"""A topic and its landed hours, built by hand: nothing here is written by the code that lands."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from s3lake import hours
from s3lake.config.model import Sink
from s3lake.index.commit.documents import File, Manifest, Read, RefusalReason, TopicHead
from s3lake.index.commit.sums import sum_commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.hour_grid import Grid
from s3lake.index.plan.tile import Tile, TileRange, join_offset_ranges
from s3lake.index.store import COMMIT
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.form import form_of, shape_of
from s3lake.lake.objects import open_columns
from s3lake.lake.verify import Advance, VerifyReport, verify_against
from s3lake.lake.verify.log import Headers, LogStartMovedError, Records
from s3lake.records.schema.columns.arrow_types import from_arrow
from s3lake.records.schema.columns.types import to_document
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake_tests.kit.codecs import compress
from s3lake_tests.records.schema.registry.server import SchemaRegistry

HOUR = "2026-11-20T05"
NEXT = "2026-11-20T06"
TOPIC = "verified"
IN_TIME = hours.start_ms(HOUR)


@dataclass
class MemoryLog:
    """A topic without Kafka: per topic-partition offset -> (timestamp, value); `more` has keys and headers."""

    records: dict[int, dict[int, tuple[int, bytes | None]]] = field(default_factory=dict)
    more: dict[tuple[int, int], tuple[bytes | None, Headers]] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    end: dict[int, int] = field(default_factory=dict)
    topic_id: str = "one"
    compacted: bool = False
    batch: int = 3
    reads: list[Mapping[int, tuple[int, int]]] = field(default_factory=list)

    def add(self, values: Sequence[bytes | None], *, partition: int = 0, timestamp: int = IN_TIME) -> None:
        end = self.end.get(partition, 0)
        log = self.records.setdefault(partition, {})
        log.update({end + n: (timestamp, value) for n, value in enumerate(values)})
        self.end[partition] = end + len(values)

    def marker(self, partition: int = 0, count: int = 1) -> None:
        """Offsets without a record."""
        self.records.setdefault(partition, {})
        self.end[partition] = self.end.get(partition, 0) + count

    def expire(self, low: int, partition: int = 0) -> None:
        self.low[partition] = low

    def snapshot(self, topic: str, hour: str) -> TopicOffsets:
        assert topic == TOPIC
        hours.parse_hour(hour)
        known = {one: LogRange(self.low.get(one, 0), end, 0, *self._after(one, hour)) for one, end in self.end.items()}
        return TopicOffsets(self.topic_id, known if self.topic_id else {})

    def _after(self, partition: int, hour: str) -> tuple[int, None, int | None]:
        """The first offset after an hour, no epoch, and the timestamp of its record."""
        end, log = hours.end_ms(hour), self.records[partition]
        offset = min((offset for offset, (stamp, _) in log.items() if stamp >= end), default=None)
        stamp = None if offset is None else self.records[partition][offset][0]
        return self.end[partition] if offset is None else offset, None, stamp

    def find_offset_since(self, topic: str, epoch_ms: int) -> Mapping[int, int]:
        assert topic == TOPIC
        found = {}
        for one, end in self.end.items() if self.topic_id else ():
            young = (offset for offset, (stamp, _) in self.records[one].items() if stamp >= epoch_ms)
            found[one] = max(self.low.get(one, 0), min(young, default=end))
        return found

    def is_compacted(self, topic: str) -> bool:
        assert topic == TOPIC
        return self.compacted

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]], parts: Collection[str] = ()) -> Iterator[Records]:
        assert topic == TOPIC
        self.reads.append(dict(ranges))
        for partition, (start, end) in ranges.items():
            if start < self.low.get(partition, 0):
                raise LogStartMovedError
            assert end <= self.end[partition], "a consumer would wait for ever"
            found = [(o, *r) for o, r in sorted(self.records[partition].items()) if start <= o < end]
            for at in range(0, len(found), self.batch):
                offsets, timestamps, values = zip(*found[at : at + self.batch], strict=True)
                more = [self.more.get((partition, offset), (None, ())) for offset in offsets]
                keys = [key for key, _ in more] if "key" in parts else ()
                headers = [headers for _, headers in more] if "headers" in parts else ()
                yield Records(partition, list(offsets), list(timestamps), list(values), keys, headers)


def put(store: MemoryStore, key: str, body: bytes, commit: str) -> None:
    upload = store.create_upload(key, {COMMIT: commit})
    store.delete(key)
    store.complete_upload(key, upload, [store.upload_part(key, upload, 1, body)])


def give_reasons(files: Sequence[File]) -> tuple[RefusalReason, ...]:
    """The reasons of the dead letters in these files."""
    dead = [file for file in files if file.stream == "dead_letters"]
    return tuple(RefusalReason("convert", "refused", file.records, file.partition, file.first_offset) for file in dead)


def dead_letter_line(offset: int, value: Any, *, partition: int = 0, topic: str = TOPIC) -> bytes:
    """The line of a dead letter."""
    return json.dumps(
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": IN_TIME,
            "key": None,
            "value": value,
            "headers": [],
            "stage": "convert",
            "error": "RecordError",
            "message": "refused",
        }
    ).encode()


def parquet(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, codec: str = "snappy") -> bytes:
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), out, store_schema=False, compression=codec)
    return out.getvalue()


def optional(name: str, type: Any) -> dict[str, Any]:
    """Return a field of an Avro schema that may be null."""
    return {"name": name, "type": ["null", type], "default": None}


def avro(rows: Sequence[Mapping[str, Any]], fields: Sequence[Mapping[str, Any]], codec: str = "null") -> bytes:
    """An Avro file by the reference writer."""
    import fastavro

    out = BytesIO()
    fastavro.writer(out, {"type": "record", "name": "row", "fields": list(fields)}, rows, codec=codec)
    return out.getvalue()


class VerifiedTopic:
    """One sink, one topic, a log, and an index that a test writes as it likes."""

    def __init__(self, **sink: Any) -> None:
        given = {"name": "events", "topics": (TOPIC,), "bucket": "lake", "start": HOUR, **sink}
        self.sink = Sink.model_validate(given)
        self.store = MemoryStore("lake")
        self.log = MemoryLog()
        self.index = TopicIndex(self.store, ".indexes/events", TOPIC)
        self.tiles: dict[str, Tile] = {}
        self.manifests: dict[str, Manifest] = {}
        self.since: str | None = None
        self.earlier: tuple[str, ...] = ()

    def file(
        self,
        commit: str,
        body: bytes,
        first: int,
        last: int,
        *,
        records: int,
        partition: int = 0,
        stream: str = "data",
        name: str = "",
    ) -> File:
        """An object, and how a manifest lists it."""
        extension = self.sink.format.extension if stream == "data" else ".json"
        where = "data" if stream in ("keys", "headers") else stream
        suffix = f".{stream}" if stream in ("keys", "headers") else ""
        key = f"{where}/{partition}/{first:012}{name}~{commit}{suffix}{extension}"
        text = stream == "data" and self.sink.format.type not in ("avro", "parquet")
        body = compress(self.sink.format.codec, body) if text else body
        put(self.store, key, body, commit)
        return File(key, "upload", ("etag",), partition, first, last, records, len(body), stream)

    def lines(self, commit: str, lines: Sequence[bytes], first: int, last: int | None = None, **more: Any) -> File:
        """A file of lines, by default one an offset."""
        body = b"".join(line + b"\n" for line in lines)
        end = first + len(lines) - 1 if last is None else last
        return self.file(commit, body, first, end, records=len(lines), **more)

    def dead_letters(self, commit: str, lines: Mapping[int, bytes], **more: Any) -> File:
        """A dead-letter object."""
        return self.lines(commit, list(lines.values()), min(lines), max(lines), stream="dead_letters", **more)

    def commit(
        self,
        commit: str,
        files: Sequence[File],
        reads: Mapping[int, Read] | None = None,
        *,
        hour: str = HOUR,
        expired: tuple[tuple[int, int, int], ...] = (),
    ) -> None:
        """List a commit; by default it covers exactly what its files hold, and the tile ends where it ends."""
        if reads is None:
            reads = {}
            for partition in {file.partition for file in files}:
                own = [file for file in files if file.partition == partition]
                landed = sum(file.records for file in own if file.stream == "data")
                dead = sum(file.records for file in own if file.stream != "data")
                start, end = min(file.first_offset for file in own), max(file.last_offset for file in own) + 1
                reads[partition] = Read(start, end, read=landed + dead, landed=landed, skipped=0, dead=dead)
        self.manifests[commit] = Manifest(
            commit,
            TOPIC,
            hour,
            dict(reads),
            tuple(files),
            expired=expired,
            form=form_of(self.sink.after_transforms),
            nulls=self.sink.nulls,
            refusal_reasons=give_reasons(files),
        )
        tile = self.tiles.get(hour, Tile(hour, {}))
        spans = dict(tile.partitions)
        for partition, read in reads.items():
            start = min(read.start, spans[partition].start) if partition in spans else read.start
            end = max(read.end, spans[partition].committed) if partition in spans else read.end
            spans[partition] = TileRange(start, end, end)
        commits = tuple(dict.fromkeys((*tile.commits, commit)))
        self.tiles[hour] = msgspec.structs.replace(
            tile, partitions=spans, commits=commits, expired=join_offset_ranges((*tile.expired, *expired))
        )

    def landed(self, values: Sequence[bytes], *, commit: str = "c1", hour: str = HOUR, partition: int = 0) -> File:
        """Records in Kafka and, as lines, in one file of one commit."""
        first = self.log.end.get(partition, 0)
        self.log.add(values, partition=partition, timestamp=hours.start_ms(hour))
        file = self.lines(commit, values, first, partition=partition)
        self.commit(commit, [file], hour=hour)
        return file

    def span(self, start: int, committed: int, end: int | None, *, partition: int = 0, hour: str = HOUR) -> None:
        """Give a tile's topic-partition these offsets."""
        tile = self.tiles.get(hour, Tile(hour, {}))
        spans = {**tile.partitions, partition: TileRange(start, committed, end)}
        self.tiles[hour] = msgspec.structs.replace(tile, partitions=spans)

    def change(self, commit: str, **changes: Any) -> None:
        """Change a manifest."""
        self.manifests[commit] = msgspec.structs.replace(self.manifests[commit], **changes)

    def overwrite(self, file: File, body: bytes, commit: str = "c1") -> None:
        """Other content under a file's key."""
        put(self.store, file.key, body, commit)

    def write_index(self) -> None:
        head = TopicHead(topic_id="one", hours=tuple(hours.ranges(self.tiles)), since=self.since, earlier=self.earlier)
        self.store.put(self.index.head_key, msgspec.json.encode(head))
        for hour, tile in self.tiles.items():
            sums = sum_commits(self.manifests[commit] for commit in tile.commits if commit in self.manifests)
            document = msgspec.structs.replace(tile, sums=sums)
            self.store.put(self.index.tile_key(hour), msgspec.json.encode(document))
        for commit, manifest in self.manifests.items():
            self.store.put(self.index.manifest_key(manifest.hour, commit), msgspec.json.encode(manifest))

    def record(
        self, value: bytes | None, key: bytes | None = None, headers: Headers = (), timestamp: int = IN_TIME
    ) -> None:
        """A record in topic-partition 0."""
        offset = self.log.end.get(0, 0)
        self.log.add([value], timestamp=timestamp)
        self.log.more[0, offset] = (key, headers)

    def landed_as(
        self, body: bytes, *, columns: dict[str, Any] | None = None, records: int | None = None, **sidecars: bytes
    ) -> None:
        """All records of topic-partition 0 in one file of one commit that recorded its shape."""
        end = self.log.end[0]
        records = end if records is None else records
        files = [self.file("c1", body, 0, end - 1, records=records)]
        files += [self.file("c1", one, 0, end - 1, records=records, stream=stream) for stream, one in sidecars.items()]
        self.commit("c1", files, {0: Read(0, end, read=end, landed=records, skipped=end - records)})
        form = self.sink.format.type
        if columns is None and body and form in ("avro", "parquet"):
            schema = open_columns(shape_of(self.sink), body, "the test's").schema
            columns = to_document(from_arrow(schema))
        self.change("c1", columns=columns)

    def verify_changed(self, key: str, document: msgspec.Struct) -> VerifyReport:
        """Verify the index with another document at this key."""
        self.write_index()
        self.store.put(key, msgspec.json.encode(document))
        return verify_against(self.sink, self.index, self.log, self.grid())

    def grid(self, first: str | None = None, last: str | None = None, now_ms: int | None = None) -> Grid:
        """By default when the last tile's hour is just over, so that the hours of the tiles are all that is due."""
        over = hours.end_ms(max(self.tiles, default=HOUR)) - 1
        return Grid.from_sink(self.sink, over if now_ms is None else now_ms, first, last)

    def verify(self, *, advance: Advance = lambda _: None, **grid: Any) -> VerifyReport:
        self.write_index()
        return verify_against(self.sink, self.index, self.log, self.grid(**grid), advance)


def difference_types(report: VerifyReport) -> set[str]:
    return {difference.type for difference in report.differences}


def texts(report: VerifyReport, type: str) -> list[str]:
    return [difference.detail for difference in report.differences if difference.type == type]


def build_registered_topic(registry: SchemaRegistry, sink: dict[str, Any], converter: dict[str, Any]) -> VerifiedTopic:
    count = 1 if sink["format"]["type"] == "bytes" else 3
    return VerifiedTopic(
        **sink,
        converter={**converter, "registry": {"url": registry.url}},
        errors={"tolerance": "all"},
        nulls="skip",
        flush={"count": count},
    )
