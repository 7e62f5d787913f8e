"""Retention: hours that are older than a sink keeps them leave objects, index and table together.

The tile stays, with a commit that has no files and says how many records it had: so nobody takes the hour for one that
was never landed, and lands it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import msgspec

from s3lake import hours as hourly
from s3lake.commit.clean import DAY_MS, forget_replaced, names_below
from s3lake.commit.documents import Manifest, Read, files_of
from s3lake.commit.protocol import Attempt, Staged
from s3lake.commit.recovery import each
from s3lake.errors import ConfigurationError, StoreUnavailableError
from s3lake.land.replace import carry_over, replace_commits, settle_hour
from s3lake.land.target import TopicSink, retry_fenced

REASON = "retention"


@dataclass(frozen=True)
class Expiry:
    """An hour that is too old.

    Attributes:
        records: rows and dead letters that leave it.
        files: objects that hold them.
        bytes: of these.
        obstacle: why it stays; empty where it does not.
    """

    hour: str
    records: int
    files: int
    bytes: int
    obstacle: str = ""

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.hour}: it stays: {self.obstacle}"
        return f"{self.hour}: {self.records:,} records in {self.files:,} files of {self.bytes:,} bytes go"


def kept_s(target: TopicSink, older_than_s: float | None) -> float:
    """For how long hours are kept: as it was asked for, else as the sink says.

    Raises:
        ConfigurationError: neither says it.
    """
    seconds = target.sink.retention if older_than_s is None else older_than_s
    if seconds is None:
        raise ConfigurationError(
            f"sink {target.sink.name} keeps its hours for ever: give it `retention: 30d`, or say --older-than"
        )
    return seconds


def expired(target: TopicSink, hours: Iterable[str], seconds: float, now_ms: int) -> Iterator[Expiry]:
    """Hours that are over for more than `seconds`, and have objects, if only such as an earlier try did not sweep."""
    for hour in _old(hours, seconds, now_ms):
        stored = target.index.tile(hour)
        if stored is None or not stored[0].commits:
            continue
        manifests = target.manifests(hour)
        if manifests is None:
            yield Expiry(hour, 0, 0, 0, "it is not landed as a whole; land it, or what Kafka has left of it")
            continue
        if not any(manifest.files for manifest in manifests):
            unswept = (target.index.manifest(hour, commit) for commit in stored[0].garbage)
            manifests = [manifest for manifest in unswept if manifest is not None]
        if any(manifest.files for manifest in manifests):
            yield _expiry(hour, manifests)


def expire(target: TopicSink, hour: str) -> None:
    """Let the objects of an hour go that is landed as a whole, wherever an earlier try stopped.

    Raises:
        FencedError: other writers were faster, again and again.
        S3LakeError: the store or the table was in the way; this can be repeated.
    """
    retry_fenced(partial(_let_go, target, hour))


def forget(target: TopicSink, seconds: float, now_ms: int) -> None:
    """Delete the manifests of what went of hours that are too old, wherever an earlier try stopped."""
    below = names_below(target.index)
    for hour in _old(target.hours(), seconds, now_ms):
        if len(below.get(hour, ())) > 1:
            forget_replaced(target.index, hour, REASON, target.pace)


def _old(hours: Iterable[str], seconds: float, now_ms: int) -> Iterator[str]:
    return takewhile(lambda hour: hourly.end_ms(hour) + seconds * 1000 <= now_ms, hours)


def _let_go(target: TopicSink, hour: str) -> None:
    settle_hour(target, hour)
    manifests = target.manifests(hour) or []
    if any(manifest.files for manifest in manifests):

        def nothing(_: Attempt) -> Staged:
            _must_be_seen(target, manifests)
            whole = carry_over(manifests)
            return replace(whole, reads={number: _gone(read) for number, read in whole.reads.items()}, letters=())

        replace_commits(target, hour, manifests, REASON, nothing)


def _must_be_seen(target: TopicSink, manifests: Iterable[Manifest]) -> None:
    """What of a young commit cannot be seen yet would appear after it was swept, and nobody would know of it."""
    since_ms = time.time() * 1000 - DAY_MS
    files = files_of(manifest for manifest in manifests if manifest.created_ms > since_ms)
    store = target.store
    heads = each(lambda file: store.head(file.key), files, target.pace)
    for file, head in zip(files, heads, strict=True):
        if head is None:
            raise StoreUnavailableError(
                f"s3://{store.bucket}/{file.key} was committed within a day, and the store does not show it: the hour "
                "stays for now. Run again"
            )


def _gone(read: Read) -> Read:
    return msgspec.structs.replace(read, landed=0, dead=0, erased=read.erased + read.landed + read.dead)


def _expiry(hour: str, manifests: Iterable[Manifest]) -> Expiry:
    files = files_of(manifests)
    records = sum(file.records for file in files if file.kind in ("data", "dead_letters"))
    return Expiry(hour, records, len(files), sum(file.bytes for file in files))
