"""The one engine by which landed hours change: a commit replaces others, made of their committed objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

import msgspec

from s3lake.errors import FencedError
from s3lake.index.commit import dead_letter_reasons, protocol
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import File, Manifest, collect_files
from s3lake.index.commit.protocol import Attempt, Committed, Staged
from s3lake.index.commit.recovery import prepare_tile, settle_pending_commit, sweep_garbage
from s3lake.index.commit.replacing_attempts import begin_replacement, merge_offset_ranges
from s3lake.index.commit.sealed_marker import renew_existing_marker
from s3lake.index.plan.tile import Tile
from s3lake.land.task.outcomes import merge_reads
from s3lake.land.topic.topic_sink import TopicSink, retry_fenced
from s3lake.text.quantities import format_count

Write = Callable[[Attempt, list[File]], Staged | None]
"""Stages the files of an attempt, adds each to the list, and returns the rest of the commit; None to change nothing."""


class CannotChange(Exception):
    """An hour stays as it is; the message has the reason."""


@dataclass(frozen=True)
class ErasedObject:
    """Rows that an object loses; `replaced_by` is the object that holds the others, if any, once it is done."""

    key: str
    stream: str
    rows: int
    of: int
    replaced_by: str = ""


@dataclass(frozen=True)
class HourChange:
    """A change of an hour, planned or done.

    Attributes:
        summary: the same in words.
        records: the number of records that it removes from the hour.
        files: the number of files of the hour, or of the replaced commits; sidecars and dead letters included.
        bytes: the size of these files, in bytes.
        objects: the objects that lose some of their rows; sidecars hold the same records as the data.
        blocker: the reason why the hour stays as it is; empty if it does not.
        uncounted: commits that were replaced before another writer, or the blocker, stopped the change. The other
            attributes are of what was found after that.
    """

    hour: str
    summary: str
    records: int = 0
    files: int = 0
    bytes: int = 0
    objects: tuple[ErasedObject, ...] = ()
    blocker: str = ""
    uncounted: int = 0

    def __str__(self) -> str:
        uncounted = (
            f"; this does not count {format_count(self.uncounted, 'commits')} replaced before" if self.uncounted else ""
        )
        return f"{self.hour}: {self.summary}{': ' if self.blocker else ''}{self.blocker}{uncounted}"

    @property
    def is_possible(self) -> bool:
        """True if the hour changes."""
        return not self.blocker


@dataclass(frozen=True)
class Plan:
    """The plan to change an hour: groups of commits, and what writes the one commit that replaces each group."""

    change: HourChange
    replacements: Sequence[tuple[Sequence[Manifest], Write]] = ()


Planner = Callable[[TopicSink, str, list[Manifest]], Plan | None]
"""Plans the change of an hour that consists of these commits; None if there is nothing to do. Raises CannotChange."""


def change_hours(
    target: TopicSink, hours: Iterable[str], reason: str, plan: Planner, *, yes: bool
) -> Iterator[HourChange]:
    """Yield what `plan` finds to do in each hour; with `yes` it is done."""
    for hour in hours:
        stored = target.index.tile(hour) if yes else None
        if stored is not None and stored[0].landed:
            # An earlier change may have ended before it had deleted what it replaced, or renewed the marker.
            if stored[0].garbage:
                settle_hour(target, hour)
            else:
                renew_existing_marker(target.index, target.sink, stored[0])
        planned = plan_hour(target, hour, plan)
        if planned is not None:
            is_done = yes and planned.change.is_possible
            yield change_hour(target, hour, reason, plan) if is_done else planned.change


@retry_fenced
def plan_hour(target: TopicSink, hour: str, plan: Planner) -> Plan | None:
    """Return what `plan` finds to do in an hour. Return None if it finds nothing, or nothing of the hour is landed."""
    manifests = target.manifests(hour)
    if manifests is None:
        stored = target.index.tile(hour)
        is_begun = stored is not None and stored[0].commits
        return Plan(_stay(HourChange(hour, ""), "it is not complete")) if is_begun else None
    try:
        return plan(target, hour, manifests)
    except CannotChange as error:
        files = collect_files(manifests)
        return Plan(_stay(HourChange(hour, "", 0, len(files), sum(file.bytes for file in files)), str(error)))


def change_hour(target: TopicSink, hour: str, reason: str, plan: Planner) -> HourChange:
    """Do what `plan` finds to do in an hour, wherever an earlier try stopped.

    Raises:
        FencedError: other writers were faster, again and again.
        S3LakeError: the store or the table was in the way; the hour is as it was, or this can be repeated.
    """
    replaced = 0

    @retry_fenced
    def change() -> HourChange:
        nonlocal replaced
        before = replaced
        settle_hour(target, hour)
        planned = plan_hour(target, hour, plan) or Plan(HourChange(hour, "there is nothing to change"))
        try:
            for manifests, write in planned.replacements:
                if replace_commits(target, hour, manifests, reason, write) is not None:
                    replaced += len(manifests)
        except CannotChange as error:
            return replace(_stay(planned.change, str(error)), uncounted=replaced)
        return replace(planned.change, uncounted=before)

    return change()


def _stay(change: HourChange, blocker: str) -> HourChange:
    """Return the change of an hour that stays as it is, and the reason."""
    return replace(change, summary="it stays as it is", blocker=blocker)


def settle_hour(target: TopicSink, hour: str) -> Tile:
    """Finish what is pending, bring the table to the hour and delete its garbage: a change begins only then.

    Raises:
        StoreDeniedError: replaced objects may not be deleted.
        TableUnavailableError: the table, its catalog or the store was in the way, and the table may list them.
        TableConflictError: the table cannot follow before a user has changed something.
    """
    settle_pending_commit(target.index, hour)
    _follow(target, hour)
    tile, _ = prepare_tile(target.index, hour)
    while tile.garbage:  # its deletion was denied, and the caller has to know
        _follow(target, hour)
        swept = sweep_garbage(target.index, hour)
        tile = swept[0] if swept else tile
    renew_existing_marker(target.index, target.sink, tile)  # a change before may have ended between its switch and this
    return tile


def _follow(target: TopicSink, hour: str) -> None:
    error = target.index.follow(hour)
    if error is not None:
        raise error


def replace_commits(
    target: TopicSink,
    hour: str,
    replaced: Sequence[Manifest] | None,
    reason: str,
    write: Write,
    *,
    keeps_garbage: bool = False,
) -> Committed | None:
    """Replace commits of an hour by one commit.

    The table follows, then the replaced objects are deleted. Who changes hours calls `settle_hour` before. If `write`
    fails, or changes nothing, what it has staged is dropped.

    Args:
        replaced: manifests of commits that follow each other; None for all of the hour.
        reason: see `Manifest`.
        write: makes the files of the new commit.
        keeps_garbage: do not raise if replaced objects cannot be deleted yet: the tile lists them.

    Returns:
        None if `write` decided to leave the commits as they are.

    Raises:
        FencedError: another writer was faster; nothing is changed.
        TableUnavailableError: the table could not follow; the replaced objects stay until this is repeated.
    """
    attempt = begin_replacement(target.index, hour, replaced, reason)
    if attempt is None:
        raise FencedError(f"{target.topic} {hour} consists of other commits by now; nothing of it is changed")
    files: list[File] = []
    staged = None
    try:
        with target.index.reading(hour, attempt.replaces):
            staged = write(attempt, files)
    finally:
        if staged is None:
            abort_uploads(target.store, files)
    if staged is None:
        return None
    staged = replace(staged, files=tuple(sorted(files, key=attrgetter("key"))))
    done = commit_staged(target, attempt, staged)
    if done.tile.garbage and not keeps_garbage:
        settle_hour(target, hour)
    return done


def commit_staged(target: TopicSink, attempt: Attempt, staged: Staged) -> Committed:
    """Make a staged attempt visible. If it replaces commits, renew the marker of the hour: it may name their keys.

    Raises:
        FencedError: another writer was faster.
    """
    commit = protocol.commit_attempt if target.sink.exactly_once else protocol.commit_attempt_at_once
    done = commit(target.index, attempt, staged)
    if attempt.replaces:
        renew_existing_marker(target.index, target.sink, done.tile)
    return done


def carry_over(manifests: Sequence[Manifest]) -> Staged:
    """Return all that commits record of their records and form, without files."""
    last = manifests[-1]
    return Staged(
        files=(),
        reads=merge_reads(one.partitions for one in manifests),
        form=last.form,
        nulls=last.nulls,
        columns=last.columns,
        waits=tuple(chain.from_iterable(one.waits for one in manifests)),
        refusal_reasons=dead_letter_reasons.merge_reasons(one.refusal_reasons for one in manifests),
        taken=tuple(chain.from_iterable(one.taken for one in manifests)),
        clocks=tuple(chain.from_iterable(one.clocks for one in manifests)),
    )


def group_compatible(manifests: Sequence[Manifest]) -> list[list[Manifest]]:
    """Group commits whose files are read the same way, so that one commit can replace them.

    Commits that do not follow each other stay alone.
    """
    groups: dict[bytes, list[Manifest]] = {}
    for manifest in manifests:
        form = (manifest.form, manifest.nulls, manifest.columns)
        groups.setdefault(msgspec.json.encode(form), []).append(manifest)
    return [
        part
        for group in groups.values()
        for part in ([group] if merge_offset_ranges(group) else [[one] for one in group])
    ]
