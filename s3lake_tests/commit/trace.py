"""Requests and answers as a trace shows them to people."""

from collections.abc import Iterator

import msgspec

from s3lake.commit.documents import Manifest, TopicHead
from s3lake.plan.tile import Tile
from s3lake.source.offsets import TopicOffsets
from s3lake.store import Document, Head
from s3lake_tests.commit.bucket import PREFIX


def short(what: object) -> str:
    """An argument or an answer as a trace shows it."""
    if isinstance(what, Document):
        return short(what.body)
    if isinstance(what, Head):
        return str(dict(what.metadata) or "no metadata")
    if isinstance(what, TopicOffsets):
        logs = ", ".join(
            f"{p}:[{r.log_start}..{r.hour_start}..{r.hour_end}..{r.log_end}]" for p, r in what.partitions.items()
        )
        return f"{what.topic_id} {logs}"
    if isinstance(what, bytes):
        return _document(what)
    if isinstance(what, str) and len(what) == 34 and what.startswith('"'):
        return what[1:7]  # an ETag
    if isinstance(what, Iterator):
        return "keys"
    text = str(what).removeprefix(PREFIX + "/")
    return text if len(text) <= 120 else f"{text[:117]}..."


def _document(body: bytes) -> str:
    for kind in (Tile, Manifest, TopicHead):
        try:
            document = msgspec.json.decode(body, type=kind, strict=True)
        except msgspec.MsgspecError:
            continue
        if isinstance(document, Tile) and document.hour:
            spans = " ".join(
                f"{partition}:[{span.start}..{span.committed}..{'' if span.end is None else span.end}]"
                for partition, span in document.partitions.items()
            )
            more = " ".join(
                f"{name}={getattr(document, name)}"
                for name in ("commits", "pending", "garbage", "burnt", "expired", "foreign")
                if getattr(document, name)
            )
            return f"<tile {document.hour} rev {document.rev} {spans} {more}>"
        if isinstance(document, Manifest):
            reads = " ".join(
                f"{partition}:[{read.start}..{read.end}]" for partition, read in document.partitions.items()
            )
            return f"<manifest {document.id} {reads} {len(document.files)} files replaces {document.replaces}>"
        if isinstance(document, TopicHead):
            new = document.new.hour if document.new else None
            return f"<head rev {document.rev} {document.topic_id} {document.hours} new {new} since {document.since}>"
    return body.decode()
