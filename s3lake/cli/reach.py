"""What `check --connect` tries: that everything a configuration names answers, and lets us do what landing does."""

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from s3lake.errors import S3LakeError
from s3lake.sink import Config, Sink
from s3lake.store import COMMIT, Store

if TYPE_CHECKING:
    from s3lake.source.offsets import Offsets

Attempt = tuple[str, Callable[[], object]]
"""What is tried, and how."""
UNTRIED = "not tried, after what failed before it"


def attempts(config: Config) -> Iterator[Sequence[Attempt]]:
    """Everything to try, in the order in which a run would meet it; of a group what follows needs what precedes."""
    from s3lake.source.opening import opened
    from s3lake.store.connection import S3Connection
    from s3lake.store.probe import probe
    from s3lake.store.s3 import S3Store

    source = opened(config)
    topics = sorted(set(chain.from_iterable(sink.topics for sink in config.sinks)))
    yield [(source.place, functools.partial(_topics, source.offsets, topics))]
    for sink in config.sinks:
        if sink.converter.registry is not None and sink.converter.registry.url:
            yield [(f"registry {sink.converter.registry.url} of sink {sink.name}", functools.partial(_registry, sink))]
    for sink in config.sinks:
        # Who asks wants to know how it is now.
        connection = replace(S3Connection.of(config.s3_of(sink)), patience_s=0)
        store, place = S3Store(connection, sink.bucket), f"{sink.index.prefix}/{sink.name}"
        where = f"bucket {sink.bucket} of sink {sink.name}"
        group: list[Attempt] = [(where, functools.partial(_some_key, store, f"{place}/"))]
        if sink.exactly_once:
            group.append((f"conditional writes in {where}", functools.partial(probe, store, place, sink.root)))
        group.append((f"uploads in {where}", functools.partial(_upload, store, f"{sink.root}.probe/{uuid.uuid4()}")))
        yield group


def outcome(attempt: Callable[[], object]) -> str:
    """`ok`, or why not."""
    try:
        attempt()
    except S3LakeError as error:
        return str(error)
    return "ok"


def _topics(offsets: "Offsets", topics: Sequence[str]) -> None:
    """Whether this user may see the offsets of every topic; one that is not there yet has none."""
    offsets.topics()
    for topic in topics:
        offsets.ranges(topic)


def _registry(sink: Sink) -> None:
    from s3lake.schema.registry import UnknownSchema, client

    assert sink.converter.registry is not None
    with suppress(UnknownSchema):  # then it has answered, which is all that was asked
        client(sink.converter.registry.connection).schema(1)


def _some_key(store: Store, prefix: str) -> str | None:
    # A listing knows a bucket that is not there; the head of an object does not tell which of both is missing.
    return next(iter(store.list(prefix)), None)


def _upload(store: Store, key: str) -> None:
    """Begin an upload where data goes, send a part, and drop both: nothing becomes visible."""
    upload = store.create_upload(key, {COMMIT: "check"})
    try:
        store.upload_part(key, upload, 1, b"x")
    except S3LakeError:
        with suppress(S3LakeError):  # what went wrong first is what is told
            store.abort_upload(key, upload)
        raise
    store.abort_upload(key, upload)
