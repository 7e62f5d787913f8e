"""The marker of a sealed hour: an object of s3lake's own next to the data, once for each content of the hour.

Its metadata names the content that it marks, so that it is written once, renewed by a rewrite, never by who
comes late with an older tile, and never taken for data. Nobody but those who look at the bucket reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from s3lake.config.model.marker import build_marker_key
from s3lake.errors import ForeignObjectError, StoreConflictError
from s3lake.index.commit.documents import Manifest, collect_files
from s3lake.index.commit.sums import Commits
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.sealed import digest_commits
from s3lake.index.plan.tile import Tile
from s3lake.index.store import Store

if TYPE_CHECKING:
    from s3lake.config.model import Sink

CONTENT, REVISION = "s3lake-sealed", "s3lake-revision"
_TRIES = 3


def renew_marker(store: Store, key: str, tile: Tile, body: bytes) -> bool:
    """Let the marker at `key` mark the present content of a sealed hour. Return False if it does already.

    Raises:
        ForeignObjectError: another program's object is there.
        StoreConflictError: others write it just now.
    """
    metadata = {CONTENT: digest_commits(tile.commits), REVISION: str(tile.rev)}
    # Not a retry of tenacity: each try decides by what is at the key now, by a create or a swap.
    for _ in range(_TRIES):
        head = store.head(key)
        if head is None:
            if store.put(key, body, if_absent=True, metadata=metadata) is not None:
                return True
            continue
        if CONTENT not in head.metadata:
            raise ForeignObjectError(
                f"s3://{store.bucket}/{key} is where the marker of {tile.hour} belongs, and was not written by s3lake: "
                "move the object away, or set sealed.marker to another, or to none"
            )
        revision = head.metadata.get(REVISION, "")
        if head.metadata[CONTENT] == metadata[CONTENT] or (revision.isdigit() and int(revision) > tile.rev):
            return False
        if store.put(key, body, if_match=head.etag, metadata=metadata) is not None:
            return True
    raise StoreConflictError(f"s3://{store.bucket}/{key} is being written by others. Run again.")


def renew_existing_marker(index: TopicIndex, sink: Sink, tile: Tile) -> None:
    """Renew the marker of an hour that has one, after its commits were replaced: its keys may contain too much.

    Raises:
        ForeignObjectError: another program's object is there.
        StoreConflictError: others write it just now.
    """
    key = build_marker_key(sink, index.topic, tile.hour)
    head = None if key is None else index.store.head(key)
    if key is not None and head is not None and head.metadata.get(CONTENT) != digest_commits(tile.commits):
        manifests = Commits(index, tile.hour, tile.commits)
        renew_marker(index.store, key, tile, build_marker_body(sink.sealed.marker, index.topic, tile, manifests))


def build_marker_body(
    marker: Literal["none", "success", "objects"], topic: str, tile: Tile, manifests: Iterable[Manifest]
) -> bytes:
    """Return the body of a marker: empty, or the list of the hour's objects."""
    if marker != "objects":
        return b""
    objects: list[dict[str, Any]] = [
        {
            "key": file.key,
            "kind": file.stream,
            "rows": file.records,
            "bytes": file.bytes,
            "partition": file.partition,
            "first_offset": file.first_offset,
            "last_offset": file.last_offset,
        }
        for file in collect_files(manifests)
    ]
    offsets = {str(number): [span.start, span.end] for number, span in sorted(tile.partitions.items())}
    return msgspec.json.format(
        msgspec.json.encode({"topic": topic, "hour": tile.hour, "offsets": offsets, "objects": objects}), indent=1
    )
