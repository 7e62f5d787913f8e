"""Reading and writing the index: the only code that touches the documents below `<index.prefix>/<sink>/<topic>/`.

`topic.json` lists a topic's hours, `<hour>.json` is a tile, `<hour>/<commit id>.json` a manifest. Conditional writes
follow rule R4 of docs/design/commit.md: unless the store confirms that it was carried out, read the document. Is it
what was wanted, the write had happened; is it still what the write was to replace, the store refused without a reason,
and the write is sent again; only another document belongs to another process.
"""

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from s3lake import hours
from s3lake.errors import (
    DataLossError,
    MissingDocumentError,
    ReplacedError,
    S3LakeError,
    StoreConflictError,
    StoreUnavailableError,
)
from s3lake.index.commit.documents import Manifest, Recorded, TopicHead
from s3lake.index.plan.tile import VERSION, Tile
from s3lake.index.store import Store

PAUSES_S = (0.1, 0.5, 2.0, 5.0)
"""Between the sendings of a write that the store refuses although its condition holds; longer than a request lasts."""


class _Versioned(msgspec.Struct, frozen=True):
    """The field that all versions of all documents have."""

    version: int = VERSION


T = TypeVar("T", bound=msgspec.Struct)

# Made at import: msgspec ends the process, with a signal, where two threads decode a type of struct for the first time.
_VERSIONED = msgspec.json.Decoder(_Versioned)
_HEAD = msgspec.json.Decoder(TopicHead)
_TILE = msgspec.json.Decoder(Tile)
_MANIFEST = msgspec.json.Decoder(Manifest)
_COLUMNS = msgspec.json.Decoder(Recorded)


@dataclass(frozen=True)
class Pace:
    """How hard recovery tries.

    Attributes:
        parallel: requests that run at once.
        looks: how often a vanished upload's key is looked at, at least, before the commit is rolled back.
        pause_s: seconds before the second look; each pause is twice the one before, up to five seconds.
        patience_s: how long it is looked at while the commit is young: another process' Complete may be running, which
            stores answer with 404 to all others, because some take minutes.
        young_s: how old its manifest is at most.
    """

    parallel: int = 16
    looks: int = 3
    pause_s: float = 0.2
    patience_s: float = 45.0
    young_s: float = 900.0


PACE = Pace()


class Follower(Protocol):
    """Something else that lists objects of the index: the table of its sink."""

    def follow(self, hours: Collection[str]) -> S3LakeError | None:
        """Bring it to what the tiles of these hours list now. Raises no S3LakeError.

        Returns:
            What prevented that; None if it lists no other object of these hours any more.
        """


class TopicIndex:
    """The index of one sink and one topic."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        topic: str,
        data: str = "",
        follower: Follower | None = None,
        pace: Pace = PACE,
    ) -> None:
        """The documents of one sink and topic.

        Args:
            prefix: the prefix of the sink's index: `<index.prefix>/<sink name>`.
            data: the prefix of keys of the sink's data; only a writer must give it.
            follower: what else lists objects of this index, and is asked before one is deleted; a reader needs none.
            pace: the pace of recovery.
        """
        self.store = store
        self.data = data
        self.follower = follower
        self.pace = pace
        self.topic = topic
        self.root = f"{prefix}/{topic}"

    @property
    def head_key(self) -> str:
        return f"{self.root}/topic.json"

    @property
    def columns_key(self) -> str:
        return f"{self.root}/schema.json"

    @property
    def settled_key(self) -> str:
        return f"{self.root}/clean.state"

    def tile_key(self, hour: str) -> str:
        return f"{self.root}/{hour}.json"

    def manifest_key(self, hour: str, commit: str) -> str:
        return f"{self.root}/{hour}/{commit}.json"

    def head(self) -> tuple[TopicHead, str] | None:
        """`topic.json` and its ETag."""
        return self._read(self.head_key, _HEAD)

    def tile(self, hour: str) -> tuple[Tile, str] | None:
        """The tile of `hour` and its ETag."""
        return self._read(self.tile_key(hour), _TILE)

    def announced_tile(self, head: TopicHead, hour: str) -> Tile | None:
        """The tile of `hour`, also if `topic.json` announces it and no process has created it yet."""
        stored = self.tile(hour)
        if stored is None and head.new is not None and head.new.hour == hour:
            return head.new
        return stored[0] if stored else None

    def manifest(self, hour: str, commit: str) -> Manifest | None:
        """The manifest of a commit."""
        stored = self._read(self.manifest_key(hour, commit), _MANIFEST)
        return stored[0] if stored else None

    def columns(self) -> tuple[Recorded, str] | None:
        """The recorded columns and their ETag."""
        return self._read(self.columns_key, _COLUMNS)

    def existing_tile(self, hour: str) -> tuple[Tile, str]:
        """The tile of an hour that `topic.json` lists, and its ETag.

        Raises:
            MissingDocumentError: it is not there, however often one looks.
        """
        return self._existing(self.tile_key(hour), _TILE, self.head_key)

    def read_listed(self, hour: str, commit: str) -> Manifest:
        """The manifest of a commit that the tile of `hour` lists.

        Raises:
            ReplacedError: it listed it a moment ago.
            MissingDocumentError: it is not there, however often one looks.
        """
        manifest = self.manifest(hour, commit)
        if manifest is not None:
            return manifest
        self._refuse_replaced(hour, [commit])
        return self._existing(self.manifest_key(hour, commit), _MANIFEST, self.tile_key(hour))[0]

    @contextmanager
    def reading(self, hour: str, commits: Iterable[str]) -> Iterator[None]:
        """Read objects of commits that the tile of `hour` lists, in a `with` block.

        Raises:
            ReplacedError: one is missing, or another's, and the tile listed its commit a moment ago.
            DataLossError: one is, and the tile lists its commit.
        """
        try:
            yield
        except DataLossError:
            self._refuse_replaced(hour, commits)
            raise

    def _refuse_replaced(self, hour: str, commits: Iterable[str]) -> None:
        stored = self.tile(hour)
        replaced = [commit for commit in commits if stored is not None and commit not in stored[0].commits]
        if replaced:
            raise ReplacedError(
                f"commit {replaced[0]} of {self.topic} {hour} was replaced while it was looked at, and is erased: "
                "look at the hour again"
            )

    def manifest_ids(self, hour: str) -> list[str]:
        """Ids of every manifest of `hour`, listed by its tile or not."""
        prefix = f"{self.root}/{hour}/"
        return [key[len(prefix) : -len(".json")] for key in self.store.list(prefix) if key.endswith(".json")]

    def create(self, key: str, document: msgspec.Struct) -> bool:
        """Write a document that must not exist yet. Return False if another one exists."""
        return self._write(key, document, None) is not None

    def swap(self, key: str, document: msgspec.Struct, etag: str) -> str | None:
        """Compare-and-swap a document. Return the new ETag, or None if another process changed the document first."""
        return self._write(key, document, etag)

    def swap_tile(self, tile: Tile, etag: str) -> str | None:
        """Compare-and-swap of a tile."""
        return self.swap(self.tile_key(tile.hour), tile, etag)

    def create_announced_tile(self, head: TopicHead) -> None:
        """Create the tile that `head` announces. The process that announced it may have crashed before that."""
        if head.new is not None and self.tile(head.new.hour) is None:
            self.create(self.tile_key(head.new.hour), head.new)

    def record(self, manifest: Manifest) -> None:
        """Write a manifest and read it back: a commit without one can never be read or swept.

        Raises:
            StoreConflictError: it is not stored.
        """
        key = self.manifest_key(manifest.hour, manifest.id)
        if not self.create(key, manifest) or not self._holds(key, manifest):
            raise StoreConflictError(
                f"s3://{self.store.bucket}/{key} was written, and the store shows another document there or none; "
                f"nothing of commit {manifest.id} is visible. Run again."
            )

    def follow(self, *hours: str) -> S3LakeError | None:
        """Bring what follows this index to these hours: see `Follower.follow`."""
        return self.follower.follow(hours) if self.follower is not None else None

    def tiles(self) -> Iterator[Tile]:
        """Every tile, by hour."""
        head = self.head()
        for hour in hours.expand(head[0].hours) if head else ():
            if head is not None and (tile := self.announced_tile(head[0], hour)):
                yield tile

    def newest(self, head: TopicHead) -> Iterator[Tile]:
        """The tiles of the present topic, the newest first, each read when it is asked for."""
        for first, last in reversed(head.hours):
            for hour in (hours.shift(last, -back) for back in range(hours.count([(first, last)]))):
                if hour < (head.since or hour):
                    return
                if tile := self.announced_tile(head, hour):
                    yield tile

    def _write(self, key: str, document: msgspec.Struct, replaced: str | None) -> str | None:
        """Write `document` at `key`. Return its ETag, or None if another document is there.

        `replaced` is the ETag of the document that it replaces; None if there must not be one.
        """
        body = msgspec.json.encode(document)
        # Not a retry of tenacity: rule R4 reads the document after each refusal, and only then may the PUT be repeated.
        for pause in (*PAUSES_S, None):
            refusal: StoreUnavailableError | None = None
            try:
                etag = self.store.put(key, body, if_match=replaced, if_absent=replaced is None)
                if etag is not None:
                    return etag
            except StoreUnavailableError as error:
                refusal = error
            now = self.store.get(key)
            if now is not None and now.body == body:
                return now.etag
            if (now.etag if now else None) != replaced:
                return None
            if refusal is not None and not isinstance(refusal, StoreConflictError):
                raise refusal
            if pause is None:
                break
            time.sleep(pause)
        raise StoreConflictError(
            f"PutObject s3://{self.store.bucket}/{key} was refused {1 + len(PAUSES_S)} times in {sum(PAUSES_S):g} s "
            "although its condition held: another request of this key may be under way. Run again."
        )

    def _existing(self, key: str, decoder: msgspec.json.Decoder[T], named_by: str) -> tuple[T, str]:
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda document: document is None),
            wait=tenacity.wait_chain(*map(tenacity.wait_fixed, PAUSES_S)),
            stop=tenacity.stop_after_attempt(1 + len(PAUSES_S)),
            retry_error_callback=lambda _: None,
            sleep=lambda seconds: time.sleep(seconds),
        )
        document: tuple[T, str] | None = retrying(self._read, key, decoder)
        if document is not None:
            return document
        raise MissingDocumentError(
            f"s3://{self.store.bucket}/{key} is not there, although {named_by} names it; the store was asked "
            f"{1 + len(PAUSES_S)} times in {sum(PAUSES_S):g} s. Either it answers wrongly for now, and the next run "
            f"passes, or the document was deleted: then restore it from a version or a copy of the bucket, and let no "
            f"lifecycle rule expire what is below {self.root}/"
        )

    def _holds(self, key: str, document: msgspec.Struct) -> bool:
        now = self.store.get(key)
        return now is not None and now.body == msgspec.json.encode(document)

    def _read(self, key: str, decoder: msgspec.json.Decoder[T], *, again: bool = True) -> tuple[T, str] | None:
        try:
            stored = self.store.get(key)
            version = _VERSIONED.decode(stored.body).version if stored else VERSION
            # First of all: the other fields of a later version are unknown here.
            if version != VERSION:
                raise DataLossError(
                    f"s3://{self.store.bucket}/{key} has version {version}, this s3lake knows {VERSION}: upgrade s3lake"
                )
            document = decoder.decode(stored.body) if stored else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if again:  # it may have been damaged on its way
                return self._read(key, decoder, again=False)
            raise DataLossError(f"s3://{self.store.bucket}/{key} is not an index document of s3lake: {error}") from None
        if stored is None or document is None:
            return None
        return document, stored.etag
