"""An index with committed files of Parquet in a real S3 API, made without Kafka and Spark, and its table."""

import io
import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.index.commit.documents import File, FileForm, Manifest, Read
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Sums, Tile, TileRange
from s3lake.index.store.s3_store import S3Store
from s3lake.lake.table.iceberg import LakeTable
from s3lake_tests.kit.crashes import Crash, Crashing
from s3lake_tests.kit.indexes import write_tiles
from s3lake_tests.kit.s3 import connection_to
from s3lake_tests.kit.sinks import make_sink

FIVE, SIX, SEVEN = "2026-11-20T05", "2026-11-20T06", "2026-11-20T07"


@dataclass
class Shelf:
    """One sink and topic; offsets go on from commit to commit."""

    server: EmbeddedS3
    home: Path
    changes: dict[str, Any] = field(default_factory=dict)
    bucket: str = field(default_factory=lambda: f"lake-{uuid.uuid4()}")
    offset: int = 0

    def __post_init__(self) -> None:
        self.server.create_bucket(self.bucket)
        self.connection = connection_to(self.server)
        catalog = {"type": "sql", "uri": f"sqlite:///{self.home}/catalog.db"}
        table = {"name": "lake.{topic}", "catalog": catalog, **self.changes.pop("table", {})}
        self.sink = make_sink(bucket=self.bucket, start=FIVE, format={"type": "parquet"}, table=table, **self.changes)
        self.index = TopicIndex(S3Store(self.connection, self.bucket), ".indexes/events", "orders")

    def configuration(self) -> str:
        """A file that has all of it."""
        keys = {"access_key_id": self.server.access_key_id, "secret_access_key": self.server.secret_access_key}
        sink = self.sink.model_dump(mode="json", by_alias=True, exclude_unset=True)
        sink["table"]["catalog"] = dict(self.sink.table.catalog) if self.sink.table else {}
        path = self.home / "s3lake.yaml"
        path.write_text(
            json.dumps(
                {
                    "kafka": {"bootstrap_servers": "127.0.0.1:1"},
                    "s3": {"endpoint_url": self.server.endpoint_url, "credentials": keys},
                    "sinks": [sink],
                }
            )
        )
        return str(path)

    def table(self) -> LakeTable:
        """As a process sees it that has just begun."""
        assert self.sink.table is not None
        return LakeTable(self.sink, self.sink.table, self.index, self.connection)

    def commit(
        self, hour: str, *tables: pa.Table, replaces: Sequence[str] = (), rows: int = 10, files: int = 1
    ) -> Manifest:
        """A commit of these files, of `files` with `rows` rows each without them, in place of others."""
        commit = uuid.uuid4().hex
        made = [self._put(hour, commit, table) for table in tables or [self.rows(rows) for _ in range(files)]]
        start, self.offset = self.offset, self.offset + sum(file.records for file in made)
        records = sum(file.records for file in made)
        manifest = Manifest(
            id=commit,
            topic="orders",
            hour=hour,
            partitions={0: Read(start, self.offset, read=records, landed=records)},
            files=tuple(made),
            replaces=tuple(replaces),
            form=FileForm("parquet"),
        )
        self.index.record(manifest)
        stored, span = self.index.tile(hour), TileRange(start, self.offset, self.offset)
        tile = stored[0] if stored else Tile(hour, {0: span})
        kept = [commit for commit in tile.commits if commit not in replaces]
        write_tiles(self.index, tile.revise(commits=(*kept, commit), sums=Sums()))
        return manifest

    def rows(self, count: int) -> pa.Table:
        """Rows with a column that counts through all of them."""
        first = self.offset
        numbers = list(range(first, first + count))
        return pa.table({"id": numbers, "type": ["a" if number % 2 else "b" for number in numbers]})

    def listed(self, *asked: str) -> int:
        """Rows that the index lists now, of these hours or of all."""
        return sum(
            read.landed
            for tile in self.index.tiles()
            if not asked or tile.hour in asked
            for commit in tile.commits
            for read in self.index.read_listed(tile.hour, commit).partitions.values()
        )

    def _put(self, hour: str, commit: str, table: pa.Table) -> File:
        body = io.BytesIO()
        pq.write_table(table, body)
        key = f"orders/{hour}/{uuid.uuid4().hex}.parquet"
        self.index.store.put(key, body.getvalue(), metadata={"s3lake-commit": commit})
        return File(key, "", (), 0, self.offset, self.offset, table.num_rows, len(body.getvalue()))


def rows(shelf: Shelf, snapshot: int | None = None) -> list[dict[str, Any]]:
    """What the table holds, read by pyiceberg."""
    return loaded(shelf).scan(snapshot_id=snapshot).to_arrow().to_pylist()  # type: ignore[no-any-return]


def loaded(shelf: Shelf) -> Any:
    """The table, as pyiceberg has it now."""
    return shelf.table().load()


def compacted(shelf: Shelf) -> None:
    """What another program does that makes few files of many: the same rows, in files of its own."""
    table = loaded(shelf)
    table.overwrite(table.scan().to_arrow())


def crash_following(table: LakeTable, number: int, *, after: bool) -> bool:
    """Follow, and crash before or after call `number` of the calls that write to S3 or ask the catalog.

    Returns False if there are not as many.
    """
    from pyiceberg.io.pyarrow import PyArrowFile  # a quarter of a second, in all that collect

    crashing, catalog = Crashing(number, after=after), type(table.catalog)
    with pytest.MonkeyPatch.context() as patch, suppress(Crash):
        for owner, name in ((PyArrowFile, "create"), (catalog, "commit_table"), (catalog, "load_table")):
            crashing.count(patch, owner, name)
        table.sync()
        return False
    return True
