"""Clean: remove what dead writers left behind, and the manifests that nothing needs any more."""

from dataclasses import dataclass
from typing import Literal

from s3lake.commit.index import Manifest, TopicIndex
from s3lake.commit.recovery import PACE, Pace, sweep

DAY_MS = 86_400_000
Action = Literal["fence and sweep", "delete manifest"]


@dataclass(frozen=True)
class Cleaned:
    """One manifest that clean acts on."""

    hour: str
    commit: str
    files: int
    action: Action


def clean(
    index: TopicIndex,
    *,
    now_ms: int,
    spare_ms: int = DAY_MS,
    keep_ms: int = 14 * DAY_MS,
    dry_run: bool = False,
    pace: Pace = PACE,
) -> list[Cleaned]:
    """Fence and sweep every commit that no tile lists, and delete its manifest once it is old.

    Args:
        index: the index of the sink and topic.
        now_ms: the clock that ages are measured with.
        spare_ms: manifests younger than this are left alone, to spare live writers; a matter of speed, not of safety.
        keep_ms: manifests older than this are swept once more and deleted: longer than the bucket's lifecycle rule
            and than any request, because a completion that was under way may become visible late.
        dry_run: only say what would be done.
        pace: of the sweeping.
    """
    done: list[Cleaned] = []
    for tile in list(index.tiles()):
        for commit in index.manifest_ids(tile.hour):
            if commit in tile.commits or commit == tile.pending:
                continue
            manifest = index.manifest(tile.hour, commit)
            age = now_ms - (manifest.created_ms if manifest else 0)
            if manifest is None or age < spare_ms:
                continue
            old = age >= keep_ms
            if not old and index.store.head(_swept_key(index, manifest)) is not None:
                continue
            done.append(
                Cleaned(tile.hour, commit, len(manifest.files), "delete manifest" if old else "fence and sweep")
            )
            if not dry_run and _fence(index, tile.hour, commit):
                sweep(index, tile.hour, pace)
                _forget(index, manifest) if old else index.store.put(_swept_key(index, manifest), b"{}")
    return done


def _fence(index: TopicIndex, hour: str, commit: str) -> bool:
    """Enter `commit` in the tile's garbage, so its writer can no longer enter it as pending; False if it won."""
    while True:
        found = index.tile(hour)
        if found is None:
            return False
        tile, etag = found
        if commit in tile.commits or commit == tile.pending:
            return False
        if commit in tile.garbage or index.swap_tile(tile.changed(garbage=(*tile.garbage, commit)), etag):
            return True


def _forget(index: TopicIndex, manifest: Manifest) -> None:
    index.store.delete(_swept_key(index, manifest))
    index.store.delete(index.manifest_key(manifest.hour, manifest.id))


def _swept_key(index: TopicIndex, manifest: Manifest) -> str:
    """Says that a young manifest was swept already, so that cleaning twice changes nothing."""
    return index.manifest_key(manifest.hour, manifest.id).removesuffix(".json") + ".swept"
