"""Reformat: commits of landed hours in the form that the sink has now, made of their committed objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.commit.documents import LETTERS, File, Manifest, files_of
from s3lake.commit.protocol import Attempt, Staged
from s3lake.land import binding
from s3lake.land.maintenance.dead_letters import letters_of
from s3lake.land.maintenance.file_sets import copy_file
from s3lake.land.maintenance.kafka_records import Parts
from s3lake.land.maintenance.reencode import Reencoder, keeps_rows
from s3lake.land.maintenance.replace import (
    HourChange,
    Plan,
    carry_over,
    change_hour,
    change_hours,
    group_compatible,
    stay,
)
from s3lake.land.target import TopicSink
from s3lake.layout.pieces import Time
from s3lake.objects import Shape

if TYPE_CHECKING:
    from s3lake.sink import Sink

REASON = "reformat"
_EMPTY_NULLS = ("text", "bytes")
"""Formats in which null and an empty value are the same."""


def reformat_hours(target: TopicSink, hours: Iterable[str], *, yes: bool) -> Iterator[HourChange]:
    """Yield what reformatting would do to each hour, or, with `yes`, has done."""
    return change_hours(target, hours, REASON, plan_reformat, yes=yes)


def reformat(target: TopicSink, hour: str) -> HourChange:
    """Write an hour again if it has another form than the sink: one commit for each form that it has."""
    return change_hour(target, hour, REASON, plan_reformat)


def plan_reformat(target: TopicSink, hour: str) -> Plan | None:
    """Plan to reformat an hour. Return None if it has the sink's present form."""
    stored, manifests = target.index.tile(hour), target.manifests(hour)
    if manifests is None:
        is_begun = stored is not None and stored[0].commits
        return Plan(stay(HourChange(hour, ""), "it is not landed as a whole")) if is_begun else None
    stale = _find_stale(target, manifests)
    if not stale:
        return None
    files = files_of(stale)
    size = sum(file.bytes for file in files)
    form = " and ".join(sorted({f"{one.form.format} {one.form.codec}".strip() for one in stale}))
    summary = f"{len(files):,} files of {size:,} bytes, {form}, are written again"
    change = HourChange(hour, summary, 0, len(files), size)
    blocker = find_blocker(target.sink, target.topic, stale)
    if blocker:
        return Plan(stay(change, blocker))
    return Plan(change, [(group, partial(_write, target, group)) for group in group_compatible(stale)])


def _find_stale(target: TopicSink, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the commits that have another form than the sink would give them."""
    landed = target.sink.after_transforms
    now = binding.form_of(landed).without_transforms
    return [
        manifest
        for manifest in manifests
        if manifest.files
        and (manifest.form.without_transforms != now or not _is_placed_as_now(landed, target.topic, manifest))
    ]


def _is_placed_as_now(landed: Sink, topic: str, manifest: Manifest) -> bool:
    """Return whether a commit's files could be in these places in the present layout."""
    if any(isinstance(piece, Time) and piece.clock == "wallclock" for piece in landed.layout.pieces):
        return True  # the time of another micro-batch is not another layout
    keys = binding.key_rule(landed, topic, hour_ms=hourly.start_ms(manifest.hour))
    return all(
        keys.can_contain(file.group, file.partition) for file in manifest.files if file.stream != LETTERS and file.group
    )


def find_blocker(sink: Sink, topic: str, manifests: Sequence[Manifest]) -> str:
    """Return the reason why the data of commits cannot have the present form of `sink`. Return "" if it can."""
    landed = sink.after_transforms
    keys = binding.key_rule(landed, topic)
    if keys.numbers & {"min_timestamp", "max_timestamp", "last_offset"} or landed.flush.span is not None:
        return "the layout names timestamps or last offsets of records, which objects need not say"
    with_data = [one for one in manifests if any(file.stream != LETTERS for file in one.files)]
    return next(filter(None, (_find_blocker_of(one, landed, topic) for one in with_data)), "")


def _find_blocker_of(manifest: Manifest, landed: Sink, topic: str) -> str:
    shape, keys = Shape.from_manifest(manifest), binding.key_rule(landed, topic)
    if shape.sidecars.keys or shape.sidecars.headers or landed.sidecars.types:
        return "key and header files belong to the data row by row"
    if keeps_rows(shape, landed):
        if keys.needs("key") or keys.needs("header") or keys.needs("timestamp") or keys.has_tombstones:
            return "the layout names parts of a record that its columns do not hold"
        return ""
    if manifest.nulls == "write" and shape.format in _EMPTY_NULLS and landed.format.type not in _EMPTY_NULLS:
        return f"records without a value are empty in format {shape.format}, as are those whose value is empty"
    needed = set[str](landed.envelope.fields if landed.envelope else ())
    needed |= {"timestamp", "offset"} if "metadata" in needed else set()
    of_keys = {"key": keys.needs("key"), "headers": keys.needs("header"), "timestamp": keys.needs("timestamp")}
    needed |= {part for part, is_needed in of_keys.items() if is_needed}
    parts = Parts.from_shape(shape)
    lacks = sorted(part for part in needed & {"key", "headers", "timestamp", "offset"} if not getattr(parts, part))
    return parts.lacking or (f"it does not hold the {' and '.join(lacks)}" if lacks else "")


def _write(target: TopicSink, manifests: Sequence[Manifest], attempt: Attempt, files: list[File]) -> Staged:
    """Stage the data of commits in the present form, and copies of their dead letters."""
    sink, hour = target.sink, manifests[0].hour
    keys = binding.key_rule(sink.after_transforms, target.topic, attempt.suffix, hour_ms=hourly.start_ms(hour))
    dead: dict[int, set[int]] = {}
    for manifest in manifests:
        for letter in letters_of(target.store, manifest):
            dead.setdefault(letter.partition, set()).add(letter.offset)
    data = Reencoder(target, manifests, dead).write(attempt, files)
    for manifest in manifests:
        for file in manifest.files:
            if file.stream == LETTERS:
                key = keys.dead_letters_key(file.partition, file.first_offset)
                files += copy_file(target, manifest, file, attempt.commit, key)
    return replace(carry_over(manifests), form=data.form, nulls=data.nulls, columns=data.columns)
