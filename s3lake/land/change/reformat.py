"""Reformat: commits of landed hours in the form that the sink has now, made of their committed objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.commit.documents import LETTERS, Manifest, files_of
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import abort
from s3lake.land import binding
from s3lake.land.recast import Recast, Unformattable, obstacle
from s3lake.land.replace import carry_over, group_compatible, replace_commits, settle_hour
from s3lake.land.replay.beside import copied_as
from s3lake.land.replay.letters import letters_of
from s3lake.land.target import TopicSink, retry_fenced
from s3lake.layout.pieces import Time

if TYPE_CHECKING:
    from s3lake.sink import Sink

REASON = "reformat"


@dataclass(frozen=True)
class Reformation:
    """What becomes of an hour.

    Attributes:
        commits: that are written anew.
        files: of them.
        bytes: of these.
        was: their form.
        obstacle: why it stays; empty where it does not.
    """

    hour: str
    commits: int
    files: int
    bytes: int
    was: str
    obstacle: str = ""

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.hour}: it stays {self.was}: {self.obstacle}"
        return f"{self.hour}: {self.files:,} files of {self.bytes:,} bytes, {self.was}, are written anew"


def reformations(target: TopicSink, hours: Iterable[str]) -> Iterator[Reformation]:
    """What reformatting would do; nothing is said of hours that have the sink's present form."""
    for hour in hours:
        stored = target.index.tile(hour)
        manifests = target.manifests(hour)
        if manifests is None:
            if stored is not None and stored[0].commits:
                yield Reformation(hour, 0, 0, 0, "as it is", "it is not landed as a whole")
            continue
        stale = _stale(target, manifests)
        if stale:
            yield _reformation(hour, stale, _obstacle(target, stale))


def reformat(target: TopicSink, hour: str) -> Reformation:
    """Write an hour anew where it has another form than the sink: one commit for each form that it has.

    Raises:
        FencedError: other writers were faster, again and again.
        S3LakeError: the store or the table was in the way; the hour is as it was, or this can be repeated.
    """
    return retry_fenced(partial(_reformatted, target, hour))


def _reformatted(target: TopicSink, hour: str) -> Reformation:
    settle_hour(target, hour)
    stale = _stale(target, target.manifests(hour) or [])
    why = _obstacle(target, stale)
    try:
        for group in () if why else group_compatible(stale):
            replace_commits(target, hour, group, REASON, partial(_staged, target, group))
    except Unformattable as error:
        why = str(error)
    return _reformation(hour, stale, why)


def _reformation(hour: str, stale: Sequence[Manifest], why: str) -> Reformation:
    files = files_of(stale)
    forms = sorted({f"{one.format} {one.shape.codec}".strip() for one in stale})
    return Reformation(hour, len(stale), len(files), sum(one.bytes for one in files), " and ".join(forms), why)


def _stale(target: TopicSink, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Commits that have another form than the sink would give them."""
    landed, topic = target.sink.after_transforms, target.topic
    now = (landed.format.type, landed.converter.value)
    return [
        manifest
        for manifest in manifests
        if manifest.files
        and (
            (manifest.format, manifest.converter) != now
            or manifest.shape.form != binding.written_by(landed).form
            or not _placed_so(landed, topic, manifest)
        )
    ]


def _placed_so(landed: Sink, topic: str, manifest: Manifest) -> bool:
    """Whether the present layout has places like those of a commit's files."""
    if any(isinstance(piece, Time) and piece.clock == "wallclock" for piece in landed.layout.pieces):
        return True  # the time of another micro-batch is no other layout
    keys = binding.key_rule(landed, topic, hour_ms=hourly.start_ms(manifest.hour))
    return all(
        keys.can_contain(file.group, file.partition) for file in manifest.files if file.kind != LETTERS and file.group
    )


def _obstacle(target: TopicSink, stale: Sequence[Manifest]) -> str:
    return obstacle(target.sink, target.topic, stale)


def _staged(target: TopicSink, manifests: Sequence[Manifest], attempt: Attempt) -> Staged:
    """What takes the place of commits: their data anew, their dead letters as they are."""
    sink, index, hour = target.sink, target.index, manifests[0].hour
    keys = binding.key_rule(sink.after_transforms, index.topic, attempt.suffix, hour_ms=hourly.start_ms(hour))
    dead: dict[int, set[int]] = {}
    for manifest in manifests:
        for letter in letters_of(target.store, manifest):
            dead.setdefault(letter.partition, set()).add(letter.offset)
    data = Recast(sink, index, target.stores, hour, manifests, dead).staged(attempt)
    files = list(data.files)
    try:
        for manifest in manifests:
            for file in manifest.files:
                if file.kind == LETTERS:
                    key = keys.dead_letters_key(file.partition, file.first_offset)
                    files.append(copied_as(index.store, manifest, file, key, attempt.commit))
    except BaseException:
        abort(index.store, files)
        raise
    return replace(
        carry_over(manifests),
        files=tuple(sorted(files, key=attrgetter("key"))),
        format=data.format,
        converter=data.converter,
        nulls=data.nulls,
        shape=data.shape,
        columns=data.columns,
    )
