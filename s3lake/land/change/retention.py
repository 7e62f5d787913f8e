"""Retention: hours that are older than a sink keeps them leave objects, index and table together.

The tile stays, with a commit that has no files and records how many records it had, so no run takes the hour for one
that was never landed, and lands it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

import msgspec

from s3lake import hours as hourly
from s3lake.errors import ConfigurationError, StoreUnavailableError
from s3lake.hours import DAY_MS
from s3lake.index.commit.clean import delete_replaced_manifests, list_document_names
from s3lake.index.commit.commit_files import map_in_parallel
from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, collect_files
from s3lake.index.commit.protocol import Attempt, Staged
from s3lake.land.change.hour_change import HourChange, Plan, carry_over, change_hours
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.text.quantities import format_count

REASON = "retention"


def expire_hours(target: TopicSink, *, yes: bool, older_than_s: float | None = None) -> Iterator[HourChange]:
    """Yield the hours that are too old, and with `yes` delete their objects, and the manifests that name these.

    `older_than_s` is how long hours are kept after their end; None for the sink's setting.

    Raises:
        ConfigurationError: neither sets it.
        S3LakeError: the store or the table was in the way; this can be repeated.
    """
    seconds, now_ms = kept_s(target, older_than_s), hourly.now_ms()
    old = list(takewhile(lambda hour: hourly.end_ms(hour) + seconds * 1000 <= now_ms, target.hours()))
    yield from change_hours(target, old, REASON, plan_expire, yes=yes)
    if yes:
        below = list_document_names(target.index)
        for hour in old:
            if len(below.get(hour, ())) > 1:  # also what an earlier try has left
                delete_replaced_manifests(target.index, hour, REASON)


def kept_s(target: TopicSink, older_than_s: float | None) -> float:
    """Return for how long hours are kept: as requested, else as the sink sets it.

    Raises:
        ConfigurationError: neither sets it.
    """
    seconds = target.sink.retention if older_than_s is None else older_than_s
    if seconds is None:
        raise ConfigurationError(
            f"sink {target.sink.name} keeps its hours for ever: give it `retention: 30d`, or use --older-than"
        )
    return seconds


def plan_expire(target: TopicSink, hour: str, manifests: list[Manifest]) -> Plan | None:
    """Plan what expires with an hour. Return None if it has no objects."""
    files = collect_files(manifests)
    records = sum(file.records for file in files if file.stream in ("data", DEAD_LETTERS))
    size = sum(file.bytes for file in files)
    of_files = f"{format_count(len(files), 'files')} of {format_count(size, 'bytes')}"
    summary = f"{format_count(records, 'records')} in {of_files} {'goes' if records == 1 else 'go'}"
    change = HourChange(hour, summary, records, len(files), size)
    return Plan(change, [(manifests, partial(_count_as_erased, target, manifests))]) if files else None


def _count_as_erased(target: TopicSink, manifests: Sequence[Manifest], _: Attempt, __: list[File]) -> Staged:
    _require_visible(target, manifests)
    whole = carry_over(manifests)
    reads = {
        number: msgspec.structs.replace(read, landed=0, dead=0, erased=read.erased + read.landed + read.dead)
        for number, read in whole.reads.items()
    }
    return replace(whole, reads=reads, refusal_reasons=())


def _require_visible(target: TopicSink, manifests: Iterable[Manifest]) -> None:
    """Refuse to expire young objects that cannot be seen yet: they would appear after the sweep, and be forgotten."""
    since_ms = time.time() * 1000 - DAY_MS
    files = collect_files(manifest for manifest in manifests if manifest.created_ms > since_ms)
    store = target.store
    heads = map_in_parallel(lambda file: store.head(file.key), files, target.index.pace)
    for file, head in zip(files, heads, strict=True):
        if head is None:
            raise StoreUnavailableError(
                f"s3://{store.bucket}/{file.key} was committed within a day, and the store does not show it: the hour "
                "stays for now. Run again"
            )
