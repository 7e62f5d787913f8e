"""Packs: which files of an hour's commits become one, and why they may not. Pure rules over manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake.commit.documents import File, Manifest, files_of
from s3lake.commit.protocol import mark_of
from s3lake.land import binding
from s3lake.land.task.staging import key_of
from s3lake.layout.key import Span

if TYPE_CHECKING:
    from s3lake.sink import Sink

LETTERS = "dead_letters"


@dataclass(frozen=True)
class Source:
    """Files of one commit that hold the same records: data and sidecars by stream, or dead letters."""

    commit: str
    files: Mapping[str, File]

    @property
    def first(self) -> File:
        """One of them: all say the same of their records."""
        return next(iter(self.files.values()))

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(file.bytes for file in self.files.values())


@dataclass(frozen=True)
class Rule:
    """Which files become one.

    Attributes:
        size: bytes of a pack, about.
        count: records of a pack at most.
        spared: the share of the files that has to go; joining few large ones costs what landing them did.
        fewest: commits that are worth a look.
    """

    size: int
    count: int
    spared: float = 0.5
    fewest: int = 2

    def worth_it(self, packs_made: Sequence[Pack]) -> bool:
        """Whether enough files go."""
        sources = sum(len(pack.sources) for pack in packs_made)
        return len(packs_made) < sources and len(packs_made) <= sources * (1 - self.spared)


@dataclass(frozen=True)
class Pack:
    """Sources of one topic-partition and one output partition, in offset order, that become one."""

    sources: tuple[Source, ...]

    @property
    def bytes(self) -> int:
        """Of all its sources."""
        return sum(source.bytes for source in self.sources)


def obstacle(sink: Sink, topic: str, manifests: Sequence[Manifest]) -> str | None:
    """Why files of these commits cannot be joined as `sink` writes them now; None where they can."""
    landed, rule = sink.after_transforms, binding.key_rule(sink.after_transforms, topic)
    if not sink.exactly_once:
        return "exactly_once is off"
    if rule.numbers & {"min_timestamp", "max_timestamp"}:
        return "its names say timestamps of records, which are not known any more"
    if sink.flush.span is not None:
        return "flush.span closes its files by timestamps of records, which are not known any more"
    if binding.shape_of(landed).nameless:
        return "of CSV without header lines each file may have columns of its own"
    if landed.format.one_record_an_object:
        return "format bytes without a framing has one record an object, and nothing would tell two in one apart"
    now = (landed.format.type, landed.converter.value, landed.nulls, binding.written_by(landed).form)
    if any((one.format, one.converter, one.nulls, one.shape.form) != now for one in manifests):
        return "some of it was landed with another configuration"
    files = [file for file in files_of(manifests) if file.kind != LETTERS]
    formats = binding.file_rule(sink).formats
    if any(file.kind not in formats for file in files) or not _named_so(sink, topic, manifests):
        return "some of it was landed with another layout"
    return None


def runs(manifests: Iterable[Manifest], fewest: int) -> list[list[Manifest]]:
    """Commits that follow each other and may be one: those of equal columns, written in one way.

    A column that came later is not given to earlier files: their records may hold an empty list or object there, which
    was no column yet and would not be a value of the later type.
    """
    following = (list(run) for _, run in groupby(manifests, attrgetter("columns", "shape")))
    return [run for run in following if len(run) >= fewest]


def packs(manifests: Iterable[Manifest], rule: Rule) -> list[Pack]:
    """The files of these commits, in packs."""
    together: dict[tuple[int, str | None], list[Source]] = {}
    for source in _sources(manifests):
        together.setdefault((source.first.partition, source.first.group), []).append(source)
    return [
        Pack(tuple(some))
        for sources in together.values()
        for some in _filled(sorted(sources, key=lambda one: one.first.first_offset), rule)
    ]


def _sources(manifests: Iterable[Manifest]) -> Iterator[Source]:
    for manifest in manifests:
        beside: dict[tuple[int, str | None, int], dict[str, File]] = {}
        for file in manifest.files:
            beside.setdefault((file.partition, file.group, file.first_offset), {})[file.kind] = file
        yield from (Source(manifest.id, files) for files in beside.values())


def _filled(sources: Iterable[Source], rule: Rule) -> Iterator[list[Source]]:
    pack: list[Source] = []
    pack_bytes = pack_records = 0
    for source in sources:
        if pack and (pack_bytes + source.bytes > rule.size or pack_records + source.first.records > rule.count):
            yield pack
            pack, pack_bytes, pack_records = [], 0, 0
        pack.append(source)
        pack_bytes += source.bytes
        pack_records += source.first.records
    if pack:
        yield pack


def _named_so(sink: Sink, topic: str, manifests: Iterable[Manifest]) -> bool:
    """Whether the present layout gives these files their names, with the mark of their commit or without."""
    plain, files = binding.key_rule(sink.after_transforms, topic), binding.file_rule(sink)
    for manifest in manifests:
        rules = (plain, binding.key_rule(sink.after_transforms, topic, mark_of(manifest.id)))
        for file in manifest.files:
            if file.kind == LETTERS or file.group is None:
                continue
            span = Span(file.first_offset, file.last_offset, 0, 0, file.records)
            try:
                names = {key_of(rule, files, file.group, span, file.kind) for rule in rules}
            except ValueError:  # it has another number of gaps
                return False
            if file.key not in names:
                return False
    return True
