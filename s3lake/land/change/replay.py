"""Replay: dead letters through the present configuration, into the hour that they belong to (docs/design/commit.md).

Each commit that has some is replaced by one that holds its data as new objects, what has landed now, and the dead
letters that are left. So a record is in one listed file at any moment, wherever a process stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from s3lake.errors import ConfigurationError
from s3lake.index.commit.dead_letter_reasons import ReasonTally, merge_reasons
from s3lake.index.commit.documents import (
    DEAD_LETTERS,
    File,
    Manifest,
    Read,
    Recorded,
    RefusalReason,
    ReplayedDeadLetters,
    collect_files,
)
from s3lake.index.commit.protocol import Attempt, Staged, build_name_suffix
from s3lake.index.commit.replacing_attempts import REPLAY
from s3lake.index.plan import tile as tiles
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.reading import open_object
from s3lake.lake.form import form_of
from s3lake.lake.objects.dead_letter_objects import StoredDeadLetter, read_dead_letters
from s3lake.land.change.committed_dead_letters import ReasonFilter, read_committed_dead_letters
from s3lake.land.change.file_sets import copy_file, stage_files
from s3lake.land.change.hour_change import replace_commits, settle_hour
from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
from s3lake.land.request import stage_values
from s3lake.land.request.in_process_tasks import BATCH_RECORDS, InProcessTaskRunner, KafkaRecord, to_record_batch
from s3lake.land.request.run_request import run_request
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.task import outcomes
from s3lake.land.topic.topic_sink import TopicSink, retry_fenced
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.config.model import Sink
    from s3lake.index.store import Stores
    from s3lake.land.task.outcomes import Outcome

_BLOCK_BYTES = 16 * 2**20
Place = tuple[int, int]
"""Topic-partition and offset."""


@dataclass(frozen=True)
class ReplayResult:
    """The result of replaying the chosen dead letters of one commit.

    Attributes:
        replaced: the commit that had them.
        commit: the commit that replaces it; None if nothing changed, or was only tried.
        chosen: how many there were.
        landed: the number of the chosen that landed.
        skipped: the number of the chosen that the present configuration leaves out.
        refused: why the others stay.
    """

    hour: str
    replaced: str
    commit: str | None
    chosen: int
    landed: int
    skipped: int
    refused: tuple[RefusalReason, ...]

    def __str__(self) -> str:
        left = self.chosen - self.landed - self.skipped
        landed = "can be landed" if self.commit is None else f"landed by commit {self.commit}"
        parts = [f"{format_count(self.chosen, 'dead letters')}: {self.landed:,} {landed}"]
        if self.skipped:
            parts.append(f"{self.skipped:,} left out")
        if left:
            reasons = "; ".join(f"{one.count:,} for {one.stage}: {one.reason}" for one in self.refused)
            stay = "1 stays a dead letter" if left == 1 else f"{left:,} stay dead letters"
            parts.append(f"{stay}, {reasons}")
        return ", ".join(parts)


def replay(target: TopicSink, hour: str, chosen: ReasonFilter, *, dry_run: bool = False) -> Iterator[ReplayResult]:
    """Replay the chosen dead letters of an hour, commit by commit, each when the next is requested.

    With `dry_run` it only yields what would become of them, and writes nothing.

    Raises:
        ConfigurationError: they cannot be in one commit with what theirs has landed.
        DataLossError: objects of the commit are missing.
        TransientError: the store, or another writer, was in the way; what was replayed before stays.
    """
    done: set[str] = set()
    while (result := _replay_next(target, hour, chosen, done, dry_run=dry_run)) is not None:
        yield result


@retry_fenced
def _replay_next(
    target: TopicSink, hour: str, chosen: ReasonFilter, done: set[str], *, dry_run: bool
) -> ReplayResult | None:
    """Replay the next commit that has chosen dead letters. Adds to `done` which commits need no further look."""
    stored = target.index.tile(hour)
    if stored is None or not stored[0].commits:
        return None
    tile = stored[0] if dry_run else settle_hour(target, hour)
    for commit in tile.commits:
        if commit in done:
            continue
        manifest, result = target.index.read_listed(hour, commit), None
        if collect_files([manifest], DEAD_LETTERS):
            with target.index.reading(hour, [commit]):
                result = _Replay(target, manifest, chosen).run(dry_run=dry_run)
        done |= {commit, (result and result.commit) or commit}
        if result is not None:
            return result
    return None


def find_form_difference(sink: Sink, manifest: Manifest) -> str:
    """Return why files of the sink cannot be in one commit with the data of `manifest`. Return "" if they can."""
    landed = sink.after_transforms
    if all(file.stream == DEAD_LETTERS for file in manifest.files):
        return ""
    if manifest.nulls not in (landed.nulls, "fail"):
        return f"its nulls are {manifest.nulls!r} then and {landed.nulls!r} now"
    then, now = manifest.form.without_transforms, form_of(landed).without_transforms
    if then.format != now.format:
        return f"its format is {then.format!r} then and {now.format!r} now"
    if then.value != now.value:
        return f"its value converter is {then.value!r} then and {now.value!r} now"
    if then != now:
        return "codec and envelope are others now than then"
    return ""


@dataclass
class _Tried:
    """The chosen dead letters, staged and not visible; `refused` has the ones that are refused again."""

    staged: Staged
    refused: Mapping[Place, int]


@dataclass
class _Replay:
    """One commit and its dead letters.

    Attributes:
        tried: the chosen ones, and why they were refused, as a hash.
        result: the chosen ones after the stages.
    """

    target: TopicSink
    manifest: Manifest
    chosen: ReasonFilter
    tried: dict[Place, int] = field(default_factory=dict)
    result: _Tried | None = None

    def run(self, *, dry_run: bool) -> ReplayResult | None:
        """Replay the chosen ones. Return None if none is chosen."""
        target, manifest = self.target, self.manifest
        for dead_letter in read_committed_dead_letters(target.store, manifest):
            if self.chosen(dead_letter):
                self.tried[dead_letter.partition, dead_letter.offset] = hash((dead_letter.stage, dead_letter.message))
        if not self.tried:
            return None
        self._check_form()
        if dry_run:
            memory = MemoryStore(target.sink.bucket)
            return self._describe(self._try(lambda _: memory, "", build_name_suffix("dry-run")), None)
        done = replace_commits(target, manifest.hour, [manifest], REPLAY, self._write)
        assert self.result is not None
        return self._describe(self.result, done.manifest.id if done else None)

    def _check_form(self) -> None:
        sink, manifest = self.target.sink, self.manifest
        stay = f"sink {sink.name}: dead letters of {self.target.topic} {manifest.hour} stay as they are:"
        if stage_values.build_key_layout(sink.after_transforms, self.target.topic).replaces:
            raise ConfigurationError(
                f"{stay} keys contain no offset, so one would take the place of a later record. Let the layout name "
                "topic-partition and offset"
            )
        why = find_form_difference(sink, manifest)
        if why:
            raise ConfigurationError(
                f"{stay} they cannot be in one commit with what was landed next to them, because {why}. Bring the hour "
                "to the present form with `s3lake reformat` first, set it as it was for the replay, or land the hour "
                "again with `s3lake rewrite`, while Kafka has it"
            )

    def _describe(self, tried: _Tried, commit: str | None) -> ReplayResult:
        reads = tried.staged.reads.values()
        landed, skipped = sum(read.landed for read in reads), sum(read.skipped + read.filtered for read in reads)
        hour, replaced = self.manifest.hour, self.manifest.id
        return ReplayResult(hour, replaced, commit, len(self.tried), landed, skipped, tried.staged.refusal_reasons)

    def _try(
        self,
        stores: Stores,
        commit: str,
        mark: str,
        record: Callable[[Sequence[Outcome]], Recorded] | None = None,
    ) -> _Tried:
        """Stage the chosen ones, with the columns of their commit. Without `record` new columns are not recorded."""
        target, sink, manifest = self.target, self.target.sink, self.manifest
        stored = target.index.columns()
        recorded = stored[0] if stored else None
        if manifest.columns:  # a record that was landed before may hold an empty value where a column came later
            recorded = msgspec.structs.replace(recorded or Recorded({}), columns=dict(manifest.columns))
        hour, now_ms = manifest.hour, self.target.clock()
        work = stage_values.build_work(sink, target.topic, stores, hour, commit=commit, mark=mark, wallclock_ms=now_ms)
        jobs = SparkJobs(target.spark)
        runner = InProcessTaskRunner(lambda reads: {one: self._read(one, *span) for one, span in reads.items()}, jobs)
        reads = {partition: (read.start, read.end) for partition, read in manifest.partitions.items() if read.dead}
        record = record or partial(_unite, [recorded or Recorded({})], sink.max_columns)
        staging = MicroBatchStaging(sink, target.topic, partial(run_request, runner))
        staged = staging.stage(replace(work, tolerant=True), reads, recorded, record)
        refused = {(one.partition, one.offset): hash((one.stage, one.message)) for one in runner.refusals}
        return _Tried(staged, refused)

    def _read(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        rows: list[KafkaRecord] = []
        size = 0
        for dead_letter in read_committed_dead_letters(self.target.store, self.manifest, partition):
            if not self._is_tried(dead_letter) or not start <= dead_letter.offset < end:
                continue
            place = dead_letter.topic, partition, dead_letter.offset, dead_letter.timestamp_ms
            rows.append(KafkaRecord(*place, dead_letter.key, dead_letter.value, dead_letter.headers))
            size += len(dead_letter.line)
            if len(rows) == BATCH_RECORDS or size >= _BLOCK_BYTES:
                yield to_record_batch(rows)
                rows, size = [], 0
        if rows:
            yield to_record_batch(rows)

    def _write(self, attempt: Attempt, files: list[File]) -> Staged | None:
        """Stage the commit in which the accepted ones have landed. Return None if nothing would change."""
        target, manifest = self.target, self.manifest
        record = partial(outcomes.record, target.index, target.sink.max_columns, manifest.hour, attempt.commit)
        tried = self.result = self._try(target.stores, attempt.commit, attempt.suffix, record)
        files += tried.staged.files
        if tried.refused == self.tried:
            return None
        reasons = self._keep_others(attempt, files)
        data = [file for file in manifest.files if file.stream != DEAD_LETTERS]
        stage_files([(file.bytes, partial(copy_file, target, manifest, file, attempt.commit)) for file in data], files)
        taken = tiles.join_offset_ranges(
            (number, offset, offset + 1) for number, offset in self.tried.keys() - tried.refused.keys()
        )
        form = tried.staged.form
        transformed = tuple(sorted({*form.transformed, *manifest.form.transformed}))
        transforms = form.transforms or manifest.form.transforms
        return replace(
            tried.staged,
            reads=self._count(tried),
            form=msgspec.structs.replace(form, transformed=transformed, transforms=transforms),
            clocks=(),  # the replayed records were transformed at another time than those between them
            waits=manifest.waits,
            refusal_reasons=merge_reasons([tried.staged.refusal_reasons, reasons]),
            taken=(
                *manifest.taken,
                *([ReplayedDeadLetters(attempt.commit, self.target.clock(), taken)] if taken else ()),
            ),
        )

    def _keep_others(self, attempt: Attempt, files: list[File]) -> tuple[RefusalReason, ...]:
        """Stage the dead letters that are not chosen, as they are. Return their reasons."""
        target, manifest, tally = self.target, self.manifest, ReasonTally()
        keys = stage_values.build_key_layout(target.sink.after_transforms, target.topic, attempt.suffix)
        for file in collect_files([manifest], DEAD_LETTERS):
            rows, offsets = set[int](), list[int]()
            with open_object(target.store, file.key, file.bytes, manifest.id) as body:
                for row, dead_letter in enumerate(read_dead_letters(body, file.key)):
                    if self._is_tried(dead_letter):
                        rows.add(row)
                    else:
                        offsets.append(dead_letter.offset)
                        tally.add(dead_letter.stage, dead_letter.message, dead_letter.partition, dead_letter.offset)
            if offsets:
                key = keys.dead_letters_key(file.partition, offsets[0])
                (kept,) = copy_file(target, manifest, file, attempt.commit, key, rows)
                files.append(msgspec.structs.replace(kept, first_offset=offsets[0], last_offset=offsets[-1]))
        return tally.reasons

    def _is_tried(self, dead_letter: StoredDeadLetter) -> bool:
        return (dead_letter.partition, dead_letter.offset) in self.tried

    def _count(self, tried: _Tried) -> dict[int, Read]:
        """Count what the commit holds then: chosen ones that are not refused again are no dead letters any more."""
        reads = dict(self.manifest.partitions)
        for partition, read in tried.staged.reads.items():
            before = reads[partition]
            # The first time counted that they were read and late. A record that is refused again stays a dead letter.
            change = msgspec.structs.replace(read, read=0, late=0, dead=read.dead - read.read)
            reads[partition] = before.plus(change)
        return reads


def _unite(seen: list[Recorded], limit: int, outcomes_: Sequence[Outcome]) -> Recorded:
    """Unite the columns that were seen so far with the ones that tasks saw now."""
    seen[0] = outcomes.unite_recorded(seen[0], outcomes_, limit)
    return seen[0]
