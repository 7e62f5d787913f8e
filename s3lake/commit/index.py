"""The index: the documents below `<index.prefix>/<sink>/<topic>/`, and the only code that reads or writes them.

`topic.json` lists a topic's hours, `<hour>.json` is a tile, `<hour>/<commit id>.json` a manifest (design: commit.md,
Documents). Every conditional write follows rule R4: when its condition failed or its answer was lost, read the
document, and if it is what was wanted, the write had happened.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from s3lake import hours
from s3lake.errors import DataLossError, StoreUnavailableError
from s3lake.plan.tile import Tile
from s3lake.store import Store

VERSION = 1


class TopicHead(msgspec.Struct, frozen=True):
    """`topic.json`: changed once per new hour.

    Attributes:
        topic_id: Kafka's id of the topic that these tiles are cut from; empty until it was first seen.
        hours: existing tiles as inclusive ranges.
        new: the tile created last, whole, so that anyone can finish its creation.
        since: first hour that is landed here, where an earlier topic of this name was deleted and given up, or a
            connector landed what came before.
    """

    version: int = VERSION
    rev: int = 0
    topic_id: str = ""
    hours: tuple[tuple[str, str], ...] = ()
    new: Tile | None = None
    since: str | None = None

    def changed(self, **changes: Any) -> "TopicHead":
        """The next revision."""
        return msgspec.structs.replace(self, rev=self.rev + 1, **changes)


class File(msgspec.Struct, frozen=True):
    """One object of a commit.

    Attributes:
        kind: `data`, or `dead_letters`.
        parts: ETags of the parts, in order.
        records: records in the file; for dead letters, refused records.
        bytes: size as stored.
    """

    key: str
    upload: str
    parts: tuple[str, ...]
    partition: int
    first_offset: int
    last_offset: int
    records: int
    bytes: int
    kind: str = "data"


class Read(msgspec.Struct, frozen=True):
    """What one topic-partition of a commit held; counts are records.

    `end - start` minus `read` are offsets without a record for a reader of committed data: transaction markers,
    aborted and compacted records, and expired offsets.
    """

    start: int
    end: int
    read: int = 0
    landed: int = 0
    skipped: int = 0
    dead: int = 0
    late: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """What one commit consists of; never changed once written.

    `format`, `converter`, `nulls` and `shape` are the sink's at the time, which may be configured otherwise later.
    """

    id: str
    topic: str
    hour: str
    partitions: dict[int, Read]
    files: tuple[File, ...] = ()
    replaces: tuple[str, ...] = ()
    expired: tuple[tuple[int, int, int], ...] = ()
    format: str = ""
    converter: str = ""
    nulls: str = ""
    shape: dict[str, Any] = {}
    columns: dict[str, Any] | None = None
    created_ms: int = 0
    version: int = VERSION


class Columns(msgspec.Struct, frozen=True):
    """`schema.json`: the columns that every file of this sink and topic has in common.

    Attributes:
        source: of a sink with SQL, what its query reads: columns of values and keys before they are projected.
    """

    columns: dict[str, Any]
    source: dict[str, Any] = {}
    rev: int = 0
    version: int = VERSION


T = TypeVar("T", bound=msgspec.Struct)


class TopicIndex:
    """The index of one sink and one topic."""

    def __init__(self, store: Store, prefix: str, topic: str) -> None:
        """`prefix` is the sink's: `<index.prefix>/<sink name>`."""
        self.store = store
        self.topic = topic
        self.root = f"{prefix}/{topic}"

    @property
    def head_key(self) -> str:
        return f"{self.root}/topic.json"

    @property
    def columns_key(self) -> str:
        return f"{self.root}/schema.json"

    def tile_key(self, hour: str) -> str:
        return f"{self.root}/{hour}.json"

    def manifest_key(self, hour: str, commit: str) -> str:
        return f"{self.root}/{hour}/{commit}.json"

    def head(self) -> tuple[TopicHead, str] | None:
        """`topic.json` and its ETag."""
        return self._read(self.head_key, TopicHead)

    def tile(self, hour: str) -> tuple[Tile, str] | None:
        """The tile of `hour` and its ETag."""
        return self._read(self.tile_key(hour), Tile)

    def manifest(self, hour: str, commit: str) -> Manifest | None:
        """The manifest of a commit."""
        found = self._read(self.manifest_key(hour, commit), Manifest)
        return found[0] if found else None

    def columns(self) -> tuple[Columns, str] | None:
        """The recorded columns and their ETag."""
        return self._read(self.columns_key, Columns)

    def manifest_ids(self, hour: str) -> list[str]:
        """Ids of every manifest of `hour`, listed by its tile or not."""
        prefix = f"{self.root}/{hour}/"
        return [key[len(prefix) : -len(".json")] for key in self.store.list(prefix) if key.endswith(".json")]

    def create(self, key: str, document: msgspec.Struct) -> bool:
        """Write a document that must not exist yet; True also when it stands there already, byte for byte."""
        return self._write(key, document, if_absent=True) is not None

    def swap(self, key: str, document: msgspec.Struct, etag: str) -> str | None:
        """Compare-and-swap: the new ETag, or None when somebody else changed the document first."""
        return self._write(key, document, if_match=etag)

    def swap_tile(self, tile: Tile, etag: str) -> str | None:
        """Compare-and-swap of a tile."""
        return self.swap(self.tile_key(tile.hour), tile, etag)

    def tiles(self) -> Iterator[Tile]:
        """Every tile, by hour."""
        found = self.head()
        for hour in hours.expand(found[0].hours) if found else ():
            tile = self.tile(hour)
            if tile:
                yield tile[0]

    def _write(
        self, key: str, document: msgspec.Struct, *, if_match: str | None = None, if_absent: bool = False
    ) -> str | None:
        body = msgspec.json.encode(document)
        try:
            etag = self.store.put(key, body, if_match=if_match, if_absent=if_absent)
        except StoreUnavailableError:
            etag = self._already(key, body)  # the answer may be lost while the write was not
            if etag is None:
                raise
            return etag
        return etag if etag is not None else self._already(key, body)

    def _already(self, key: str, body: bytes) -> str | None:
        found = self.store.get(key)
        return found.etag if found and found.body == body else None

    def _read(self, key: str, kind: type[T]) -> tuple[T, str] | None:
        found = self.store.get(key)
        if found is None:
            return None
        try:
            document = msgspec.json.decode(found.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataLossError(f"s3://{self.store.bucket}/{key} is no index document of s3lake: {error}") from None
        version = getattr(document, "version", VERSION)
        if version != VERSION:
            raise DataLossError(
                f"s3://{self.store.bucket}/{key} has version {version}, this s3lake knows {VERSION}: upgrade s3lake"
            )
        return document, found.etag
