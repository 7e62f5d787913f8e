"""Clean: remove what crashed writers left behind, and the manifests that nothing needs any more.

One listing names every document. Whether a tile lists all manifests of its hour is asked of the tile once, and then
remembered by the day: nothing can happen to the commits of an hour that leaves the names of its manifests as they were.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import msgspec

from s3lake import hours
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import StoreDeniedError
from s3lake.hours import DAY_MS
from s3lake.index.commit.commit_files import map_in_parallel
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.recovery import fence_commit, settle_pending_commit, sweep_garbage
from s3lake.index.commit.replacing_attempts import REWRITE
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile
from s3lake.text.quantities import format_count

_log = logging.getLogger(__name__)
_MANIFEST, _SWEPT = ".json", ".swept"
Action = Literal["settle", "fence and sweep", "delete manifest", "end uploads"]
Names = Mapping[str, set[str]]
"""Hour -> names below it: `<commit>.json` is a manifest, `<commit>.swept` marks it as swept while it was young."""


@dataclass(frozen=True)
class Cleaned:
    """A commit that clean acts on, or the uploads that no manifest names: they have neither hour nor commit."""

    hour: str
    commit: str
    files: int
    action: Action

    def __str__(self) -> str:
        place = f"{self.hour}, commit {self.commit}: " if self.commit else ""
        return f"{place}{self.action}, {format_count(self.files, 'files')}"


class Settled(msgspec.Struct, frozen=True):
    """`clean.state`: days on which tiles listed every manifest, with a digest of the names that these had."""

    days: dict[str, str] = {}


_decode_settled = msgspec.json.Decoder(Settled).decode


def clean_index(
    index: TopicIndex,
    *,
    now_ms: int,
    spare_ms: int = DAY_MS,
    keep_ms: int = 14 * DAY_MS,
    dry_run: bool = False,
    keys: KeySpace | None = None,
) -> list[Cleaned]:
    """Fence and sweep every commit that no tile lists, and delete its manifest once it is old.

    One whose objects were made visible at once waits until what it held is landed by others. What follows the index is
    brought to each day first that is not noted as settled: no run comes to its hours any more. If it cannot follow, the
    objects of replaced commits stay, and their manifests.

    A writer that crashed before it wrote a manifest, or while it tried the store, left uploads whose ids only the store
    has: uploads of a key that the sink can give are ended when they are older than `spare_ms`, as a bucket's lifecycle
    rule would; uploads of a key that it could give in another format when they are older than `keep_ms`.

    Args:
        index: the index of the sink and topic.
        now_ms: the clock that ages are measured with.
        spare_ms: manifests younger than this are left alone, to spare live writers; a matter of speed, not of safety.
        keep_ms: manifests older than this are swept again and deleted: longer than the bucket's lifecycle rule
            and than any request, because a completion that was under way may become visible late.
        dry_run: True to only report what would be done.
        keys: the keys that the sink gives; None to leave uploads that no manifest names alone.
    """
    names, before = list_document_names(index), _read_settled(index)
    spared_ms, kept_ms = now_ms - spare_ms, now_ms - keep_ms
    done: list[Cleaned] = []
    named: set[str] = set()
    days: dict[str, str] = {}
    for day, hours_of_day in groupby(sorted(names), lambda hour: hour[:10]):
        of_day = {hour: names[hour] for hour in hours_of_day}
        if before.days.get(day) == (digest := _digest(of_day)):
            days[day] = digest
            continue
        unfollowed = None if dry_run else index.follow(*of_day)
        if unfollowed is not None:
            _log.warning("%s %s: replaced objects stay until the table can follow: %s", index.topic, day, unfollowed)
        # One day at a time: the manifests of all hours may be too many for memory.
        tiles = dict(zip(of_day, map_in_parallel(index.tile, of_day, index.pace), strict=True))
        for tile in (stored[0] for stored in tiles.values() if stored is not None):
            for manifest in _list_unlisted(index, tile, of_day[tile.hour]):
                named.update(file.upload for file in manifest.files)
                is_young, is_old = manifest.created_ms > spared_ms, manifest.created_ms <= kept_ms
                action = _choose_action(index, tile, manifest, of_day[tile.hour], is_young=is_young, is_old=is_old)
                if action is None or (unfollowed is not None and action != "settle"):
                    continue
                if dry_run or _take_action(index, manifest, action, of_day[tile.hour]):
                    done.append(Cleaned(tile.hour, manifest.id, len(manifest.files), action))
        if unfollowed is None and all(_lists_all(tiles[hour], of_day[hour]) for hour in of_day):
            days[day] = _digest(of_day)
    if keys is not None:
        done += _end_uploads(index, keys, named, spared_ms, kept_ms, dry_run=dry_run)
    settled = Settled(days)
    if settled != before and not dry_run:
        index.store.put(index.settled_key, msgspec.json.encode(settled))
    return done


def _choose_action(
    index: TopicIndex, tile: Tile, manifest: Manifest, names: set[str], *, is_young: bool, is_old: bool
) -> Action | None:
    """Return what is to be done about a commit that the tile does not list. Return None to leave it alone."""
    if manifest.id == tile.pending:
        return "settle" if not is_young and _is_former(index, tile.hour) else None
    waits = is_young or (not is_old and manifest.id + _SWEPT in names)
    if waits and manifest.id not in tile.garbage:
        return None
    if manifest.at_once and not is_landed_by_others(index, manifest):
        return None
    return "delete manifest" if is_old else "fence and sweep"


def _take_action(index: TopicIndex, manifest: Manifest, action: Action, names: set[str]) -> bool:
    """Take an action about a commit, and note it in `names`. Return False if its objects had to stay."""
    if action == "settle":
        settle_pending_commit(index, manifest.hour)
        return True
    if not fence_commit(index, manifest.hour, manifest.id):
        return False  # its writer made it visible meanwhile
    swept = sweep_garbage(index, manifest.hour)
    if swept and manifest.id in swept[0].garbage:
        return False  # they may be listed elsewhere still: the next clean comes back to it
    if action == "delete manifest":
        _forget(index, manifest)
        names.difference_update((manifest.id + _MANIFEST, manifest.id + _SWEPT))
    else:
        index.store.put(_swept_key(index, manifest), b"{}")
    return True


def delete_replaced_manifests(index: TopicIndex, hour: str, reason: str) -> None:
    """Delete the manifests of replaced commits of an hour, if one of its commits replaced others for `reason`.

    The keys in them may contain what was to be erased. If the tile lists no garbage, no process has to sweep again what
    was replaced by a commit that had read its objects. A rewrite has not read them: an object of a young commit may
    appear after the sweep, so that manifest is left to `clean`.
    """
    stored = index.tile(hour)
    if stored is None or stored[0].garbage or stored[0].pending is not None:
        return
    documents = map_in_parallel(lambda commit: index.manifest(hour, commit), index.manifest_ids(hour), index.pace)
    manifests = [manifest for manifest in documents if manifest is not None]
    if any(manifest.reason == reason for manifest in manifests):
        by = {commit: manifest for manifest in manifests for commit in manifest.replaces}
        # The oldest first: if a process crashes in between, the rest still shows what was replaced.
        for manifest in sorted(manifests, key=lambda manifest: _steps(manifest.id, by), reverse=True):
            replaced = by.get(manifest.id)
            if replaced is None or manifest.id in stored[0].commits:
                continue
            if replaced.reason != REWRITE or replaced.created_ms - manifest.created_ms >= DAY_MS:
                _forget(index, manifest)


def _is_former(index: TopicIndex, hour: str) -> bool:
    """Return whether the hour is one of a former topic: no run recovers a pending commit there."""
    stored = index.head()
    return stored is not None and stored[0].since is not None and hour < stored[0].since


def _steps(commit: str, by: Mapping[str, Manifest]) -> int:
    """Count the commits that replaced a commit one after the other, up to the listed one."""
    return 1 + _steps(by[commit].id, by) if commit in by else 0


def _lists_all(stored: tuple[Tile, str] | None, names: set[str]) -> bool:
    """Return whether the tile lists every manifest. Return True if there is no tile: no process will list one."""
    return stored is None or names <= {commit + _MANIFEST for commit in stored[0].commits}


def _list_unlisted(index: TopicIndex, tile: Tile, names: set[str]) -> Iterator[Manifest]:
    """Yield the manifests of commits that the tile does not list; one of them may be pending."""
    for name in sorted(names):
        commit = name.removesuffix(_MANIFEST)
        if name.endswith(_MANIFEST) and commit not in tile.commits:
            manifest = index.manifest(tile.hour, commit)
            if manifest is not None:
                yield manifest


def _end_uploads(
    index: TopicIndex,
    keys: KeySpace,
    named: Set[str],
    until_ms: int,
    former_until_ms: int,
    *,
    dry_run: bool,
) -> list[Cleaned]:
    """End uploads of the sink's keys, and later of the keys that it had in a former format.

    Those may be another sink's of the same prefix. When they are as old as a manifest that is deleted, no commit of
    that one is to be completed any more.
    """
    head = index.head()
    if head is None or not head[0].hours:
        return []
    since_ms = hours.start_ms(head[0].hours[0][0])  # nothing of this index is older; moto returns 2010 for every upload
    try:
        dead = [
            upload
            for begin in keys.prefixes
            for upload in index.store.list_uploads(begin)
            if since_ms <= upload.begun_ms <= until_ms
            and upload.upload not in named
            and (
                keys.contains(upload.key) or (upload.begun_ms <= former_until_ms and keys.contained_before(upload.key))
            )
        ]
    except StoreDeniedError as error:
        _log.warning("uploads of writers that crashed early are left to the bucket's lifecycle rule: %s", error)
        return []
    if not dry_run:
        map_in_parallel(lambda one: index.store.abort_upload(one.key, one.upload), dead, index.pace)
    return [Cleaned("", "", len(dead), "end uploads")] if dead else []


def is_landed_by_others(index: TopicIndex, manifest: Manifest) -> bool:
    """Return whether other commits have landed all offsets of a commit, so that no process takes its names any more.

    Objects that are visible before a tile lists them have no other fence: a name that was freed while a writer may
    still take it could be deleted again, by a clean that looked at it before.
    """
    head = index.head()
    at = {partition: read.start for partition, read in manifest.partitions.items()}
    for hour in hours.expand(head[0].hours) if head else ():
        stored = index.tile(hour) if hour >= manifest.hour else None
        for partition, span in stored[0].partitions.items() if stored else ():
            if span.start <= at.get(partition, -1) < span.committed:
                at[partition] = span.committed
        if all(at[partition] >= read.end for partition, read in manifest.partitions.items()):
            return True
    return False


def _forget(index: TopicIndex, manifest: Manifest) -> None:
    index.store.delete(_swept_key(index, manifest))
    index.store.delete(index.manifest_key(manifest.hour, manifest.id))


def _swept_key(index: TopicIndex, manifest: Manifest) -> str:
    """A mark that a young manifest was swept already, so that cleaning twice changes nothing."""
    return index.manifest_key(manifest.hour, manifest.id).removesuffix(_MANIFEST) + _SWEPT


def list_document_names(index: TopicIndex) -> Names:
    """List the names of the documents below each hour, by one request."""
    names: dict[str, set[str]] = {}
    for key in index.store.list(f"{index.root}/"):
        hour, below, name = key.removeprefix(f"{index.root}/").partition("/")
        if below:
            names.setdefault(hour, set()).add(name)
    return names


def _read_settled(index: TopicIndex) -> Settled:
    stored = index.store.get(index.settled_key)
    try:
        return _decode_settled(stored.body) if stored else Settled()
    except msgspec.MsgspecError:
        return Settled()  # another version's; every tile is asked again


def _digest(names: Names) -> str:
    text = "".join(f"{hour}/{name}\n" for hour in sorted(names) for name in sorted(names[hour]))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
