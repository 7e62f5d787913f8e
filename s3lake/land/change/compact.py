"""Compact: one commit replaces the commits of an hour, with few large files instead of many small ones.

A landing does it too, when an hour is complete: `merge`. Committed objects are joined at the level of their format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from s3lake.index.commit.documents import DEAD_LETTERS, MOST_FILES, File, Manifest, collect_files
from s3lake.index.commit.protocol import Attempt, Committed, Staged
from s3lake.index.commit.replacing_attempts import MERGE
from s3lake.lake.form import form_of
from s3lake.land.change.file_sets import FileSet, is_placed_as_now, list_file_sets, shape_of_stream, stage_files
from s3lake.land.change.hour_change import (
    CannotChange,
    HourChange,
    Plan,
    carry_over,
    change_hours,
    replace_commits,
)
from s3lake.land.change.join_files import FileJoiner
from s3lake.land.request import stage_values
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink

SIZE = 512 * 2**20
REASON = "compact"


@dataclass(frozen=True)
class CompactOptions:
    """The choice of files that become one; the defaults are the same as in `s3lake compact`.

    Attributes:
        size: bytes of a new file, about; larger files stay.
        count: records of a new file at most.
        is_merge: True at the end of a landing. Half of the files have to go: joining few large ones costs what landing
            them did. New files are not compared with their sources: Kafka was just read.
    """

    size: int = SIZE
    count: int = 2**63 - 1
    is_merge: bool = False

    @classmethod
    def at_hour_end(cls, sink: Sink) -> CompactOptions:
        """Return the options of a landing that finds an hour complete in several commits."""
        rule = stage_values.build_file_rule(sink)
        return cls(rule.size, rule.count, is_merge=True)


class Merge(NamedTuple):
    """Commits that become one; `outputs` are the file sets of each new one, in the order of their offsets."""

    manifests: list[Manifest]
    outputs: list[list[FileSet]]


def compact_hours(target: TopicSink, hours: Iterable[str], *, yes: bool, size: int = SIZE) -> Iterator[HourChange]:
    """Yield what compacting would do to each hour, or, with `yes`, has done."""
    return change_hours(target, hours, REASON, partial(plan_compact, size=size), yes=yes)


def plan_compact(target: TopicSink, hour: str, manifests: list[Manifest], size: int = SIZE) -> Plan | None:
    """Plan to compact an hour. Return None if it has few files already. Raise CannotChange if it stays as it is."""
    options, files = CompactOptions(size), collect_files(manifests)
    count, size = len(files), sum(file.bytes for file in files)
    merges = plan_merges(target.sink, target.topic, manifests, options)
    # An output has as many files as its first source.
    left = count - sum(len(source.files) for merge in merges for sources in merge.outputs for source in sources[1:])
    now = f"{format_count(count, 'files')} of {format_count(size, 'bytes')}"
    change = HourChange(hour, f"{now} become {left:,}", 0, count, size)
    replacements = [(merge.manifests, partial(_join, target, merge, options)) for merge in merges]
    return Plan(change, replacements) if left < count else None


def merge(target: TopicSink, hour: str, manifests: Sequence[Manifest], options: CompactOptions) -> Iterator[Committed]:
    """Merge commits of `hour`, each time when the next is requested; none if nothing is to be gained.

    Replaced objects that cannot be deleted yet stay, and the tile lists them.

    Raises:
        CannotChange: the hour stays as it is; the reason.
        S3LakeError: the store was in the way, or another writer was faster; the hour is as it was, or whoever comes
            next finishes.
    """
    for planned in plan_merges(target.sink, target.topic, manifests, options):
        write = partial(_join, target, planned, options)
        done = replace_commits(target, hour, planned.manifests, MERGE, write, keeps_garbage=True)
        if done is not None:
            yield done


def _join(target: TopicSink, planned: Merge, options: CompactOptions, attempt: Attempt, files: list[File]) -> Staged:
    sink, whole = target.sink, carry_over(planned.manifests)
    rule, keys = (
        stage_values.build_file_rule(sink),
        stage_values.build_key_layout(sink.after_transforms, target.topic, attempt.suffix),
    )
    streams = () if options.is_merge else (*rule.formats, DEAD_LETTERS)
    shapes = {stream: shape_of_stream(planned.manifests[-1], stream) for stream in streams}
    join = FileJoiner(target.store, attempt.commit, keys, rule, shapes)
    tasks = [(sum(source.bytes for source in sources), partial(join, sources)) for sources in planned.outputs]
    stage_files(tasks, files, large_at_once=1 if options.is_merge else 2)
    if len(files) > MOST_FILES:
        raise CannotChange(f"{len(files):,} files would be left, and one commit has at most {MOST_FILES:,}")
    return whole


def plan_merges(sink: Sink, topic: str, manifests: Sequence[Manifest], options: CompactOptions) -> list[Merge]:
    """Return the commits that become one; none if nothing is to be gained.

    Only commits that follow each other and have equal columns become one: records of earlier files may hold an empty
    list or object where a later commit has a column, and that would not be a value of the later type.

    Raises:
        CannotChange: the hour stays as it is; the reason.
    """
    groups = [list(group) for _, group in groupby(manifests, attrgetter("columns", "form"))]
    merges = [Merge(group, plan_outputs(group, options)) for group in groups if len(group) > 1 or not options.is_merge]
    merges = [merge for merge in merges if _is_worth_it(merge.outputs, options)]
    blocker = find_join_blocker(sink, topic, manifests) if merges else ""
    if blocker:
        raise CannotChange(blocker)
    return merges


def _is_worth_it(outputs: Sequence[Sequence[FileSet]], options: CompactOptions) -> bool:
    sources = sum(map(len, outputs))
    return len(outputs) < sources and (not options.is_merge or len(outputs) <= sources / 2)


def plan_outputs(manifests: Iterable[Manifest], options: CompactOptions) -> list[list[FileSet]]:
    """Return the file sets that become one each: of one topic-partition and output partition, in offset order."""
    outputs: list[list[FileSet]] = []
    file_sets = list_file_sets(manifests)
    file_sets.sort(key=lambda one: (one.first.partition, one.first.group or "", one.first.first_offset))
    for _, sources in groupby(file_sets, attrgetter("first.partition", "first.group")):
        size = count = 0
        outputs.append([])
        for source in sources:
            size, count = size + source.bytes, count + source.first.records
            if outputs[-1] and (size > options.size or count > options.count):
                size, count = source.bytes, source.first.records
                outputs.append([])
            outputs[-1].append(source)
    return outputs


def find_join_blocker(sink: Sink, topic: str, manifests: Sequence[Manifest]) -> str:
    """Return the reason why files of these commits cannot be joined as `sink` writes now. Return "" if they can."""
    landed, rule = sink.after_transforms, stage_values.build_key_layout(sink.after_transforms, topic)
    if not sink.exactly_once:
        return "exactly_once is off"
    if rule.numbers & {"min_timestamp", "max_timestamp"}:
        return "its names contain timestamps of records, which are not known any more"
    if sink.flush.span is not None:
        return "flush.span closes its files by timestamps of records, which are not known any more"
    form = form_of(landed)
    if form.format == "csv" and form.envelope is None and not form.header:
        return "of CSV without header lines each file may have columns of its own"
    if landed.format.one_record_an_object:
        return "format bytes without a framing has one record an object, and nothing would tell two in one apart"
    now = (form.without_transforms, landed.nulls)
    if any((one.form.without_transforms, one.nulls) != now for one in manifests):
        return "some of it was landed with another configuration"
    if not all(is_placed_as_now(landed, topic, manifest) for manifest in manifests):
        return "some of it was landed with another layout"
    return ""
