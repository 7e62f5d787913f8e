"""Replay: dead letters through the present configuration, into the hour that they belong to (docs/design/commit.md).

Each commit that has some is replaced by one that holds its data as new objects, beside them what has landed now, and
the dead letters that are left. So a record is in one listed file at any moment, and whoever stops in between leaves
every commit as it was or as it is to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from s3lake import hours
from s3lake.commit.documents import LETTERS, File, Manifest, Read, Reason, Recorded, Taken
from s3lake.commit.letters import Tally, united
from s3lake.commit.protocol import Attempt, Staged, mark_of
from s3lake.commit.recovery import abort
from s3lake.commit.replace import REPLAY
from s3lake.errors import ConfigurationError, FencedError
from s3lake.land import binding
from s3lake.land.given import BATCH, Batches, GivenEngine, Record, batch
from s3lake.land.job import Job, staged
from s3lake.land.replace import replace_commits, settle_hour
from s3lake.land.replay.beside import copied, find_form_difference
from s3lake.land.replay.letters import Chosen, letters_of
from s3lake.land.task import outcomes
from s3lake.land.task.staging import Staging
from s3lake.plan import tile as tiles
from s3lake.plan.batch import Intervals
from s3lake.store.memory import MemoryStore

if TYPE_CHECKING:
    import pyarrow as pa

    from s3lake.land.landing import Landing
    from s3lake.land.task.outcomes import Outcome
    from s3lake.land.task.pipeline import Stores

_TRIES = 5
_BLOCK_BYTES = 16 * 2**20
Place = tuple[int, int]
"""Topic-partition and offset."""


@dataclass(frozen=True)
class Replayed:
    """What became of the chosen dead letters of one commit.

    Attributes:
        replaced: the commit that had them.
        commit: that took its place; None where nothing changed, or was only to be tried.
        chosen: how many there were.
        landed: of them.
        skipped: of them: the present configuration leaves them out.
        refused: why the others stay.
    """

    hour: str
    replaced: str
    commit: str | None
    chosen: int
    landed: int
    skipped: int
    refused: tuple[Reason, ...]

    def __str__(self) -> str:
        left = self.chosen - self.landed - self.skipped
        parts = [f"{self.chosen:,} dead letters: {self.landed:,} can be landed"]
        if self.commit is not None:
            parts = [f"{self.chosen:,} dead letters: {self.landed:,} landed by commit {self.commit}"]
        if self.skipped:
            parts.append(f"{self.skipped:,} left out")
        if left:
            reasons = "; ".join(f"{one.count:,} for {one.stage}: {one.reason}" for one in self.refused)
            parts.append(f"{left:,} stay dead letters, {reasons}")
        return ", ".join(parts)


def replay(lander: Landing, hour: str, chosen: Chosen, *, dry_run: bool = False) -> Iterator[Replayed]:
    """Replay the chosen dead letters of an hour, commit by commit, each when the next is asked for.

    Args:
        lander: the sink and the topic.
        hour: an hour; one without dead letters costs a request.
        chosen: which of them.
        dry_run: only tell what would become of them, and write nothing.

    Raises:
        ConfigurationError: they cannot stand beside what their commit has landed.
        DataLossError: objects of the commit are gone.
        TransientError: the store, or another writer, was in the way; what was replayed before stays.
    """
    done: set[str] = set()
    for tries in range(1, _TRIES + 1):
        stored = lander.index.tile(hour)
        if stored is None or not stored[0].commits:
            return
        tile = stored[0] if dry_run else settle_hour(lander.target, hour)
        try:
            for commit in tile.commits:
                manifest = None if commit in done else lander.index.listed(hour, commit)
                if manifest is None or all(file.kind != LETTERS for file in manifest.files):
                    continue
                with lander.index.reading(hour, [commit]):
                    replayed = _Replay(lander, manifest, chosen).run(dry_run=dry_run)
                done |= {commit, (replayed and replayed.commit) or commit}
                if replayed is not None:
                    yield replayed
        except FencedError:
            if tries == _TRIES:
                raise
            continue
        return


@dataclass
class _Run:
    """The chosen dead letters after the stages, staged and not visible."""

    staged: Staged
    refused: Mapping[Place, int]


@dataclass
class _Replay:
    """One commit and its dead letters.

    Attributes:
        tried: the chosen ones, and why they were refused, as a hash.
        ran: the chosen ones after the stages.
    """

    lander: Landing
    manifest: Manifest
    chosen: Chosen
    tried: dict[Place, int] = field(default_factory=dict)
    ran: _Run | None = None

    def run(self, *, dry_run: bool) -> Replayed | None:
        """Replay them; None where none is chosen."""
        lander, manifest = self.lander, self.manifest
        for letter in letters_of(lander.store, manifest):
            if self.chosen(letter):
                self.tried[letter.partition, letter.offset] = hash((letter.stage, letter.message))
        if not self.tried:
            return None
        self._refuse_misfits()
        if dry_run:
            memory = MemoryStore(lander.sink.bucket)
            return self._told(self._through(lambda _: memory, "", mark_of("dry-run"), manifest.columns), None)
        done = replace_commits(lander.target, manifest.hour, [manifest], REPLAY, self._write)
        assert self.ran is not None
        return self._told(self.ran, done.manifest.id if done else None)

    def _write(self, attempt: Attempt) -> Staged | None:
        """Stage the commit in which the accepted ones have landed. Return None if nothing would change."""
        lander, manifest = self.lander, self.manifest
        record = partial(outcomes.record, lander.index, lander.sink.max_columns, manifest.hour, attempt.commit)
        run = self.ran = self._through(lander.stores, attempt.commit, attempt.suffix, manifest.columns, record)
        if run.refused == self.tried:
            abort(lander.store, run.staged.files)
            return None
        return self._beside(run, attempt)

    def _refuse_misfits(self) -> None:
        sink, manifest = self.lander.sink, self.manifest
        if binding.key_rule(sink.after_transforms, self.lander.topic).replaces:
            raise ConfigurationError(
                f"sink {sink.name}: dead letters of {self.lander.topic} {manifest.hour} stay as they are: keys say no "
                "offset, so one would take the place of a later record. Let the layout name topic-partition and offset"
            )
        why = find_form_difference(sink, manifest)
        if why:
            raise ConfigurationError(
                f"sink {sink.name}: dead letters of {self.lander.topic} {manifest.hour} stay as they are: they cannot "
                f"be in one commit with what was landed next to them, because {why}. Bring the hour to the present "
                "form with `s3lake reformat` first, set it as it was for the replay, or land the hour again with "
                "`s3lake rewrite`, while Kafka has it"
            )

    def _told(self, run: _Run, commit: str | None) -> Replayed:
        reads = run.staged.reads.values()
        landed = sum(read.landed for read in reads)
        skipped = sum(read.skipped + read.filtered for read in reads)
        hour, replaced = self.manifest.hour, self.manifest.id
        return Replayed(hour, replaced, commit, len(self.tried), landed, skipped, run.staged.letters)

    def _through(
        self,
        stores: Stores,
        commit: str,
        mark: str,
        columns: Mapping[str, Any] | None,
        record: Callable[[Sequence[Outcome]], Recorded] | None = None,
    ) -> _Run:
        """The chosen ones through the stages, beside data of such columns.

        Without `record` columns that they bring are not recorded.
        """
        lander, manifest = self.lander, self.manifest
        stored = lander.index.columns()
        recorded = stored[0] if stored else None
        if columns:  # a column that came later may stand, empty, in a record that was landed before
            recorded = msgspec.structs.replace(recorded or Recorded({}), columns=dict(columns))
        work = binding.work(
            lander.sink,
            lander.topic,
            stores,
            commit=commit,
            renamed=mark,
            hour_start_ms=hours.start_ms(manifest.hour),
            columns={},
            wallclock_ms=lander.clock(),
        )
        engine = GivenEngine(self._batches, lander.spark)
        job = Job(lander.sink, lander.topic, engine, lander.spark)
        reads = {partition: (read.start, read.end) for partition, read in manifest.partitions.items() if read.dead}
        told = record or partial(_united, [recorded or Recorded({})], lander.sink.max_columns)
        done, work = job.staged(replace(work, tolerant=True), reads, recorded, told)
        refused = {(one.partition, one.offset): hash((one.stage, one.message)) for one in engine.refusals}
        return _Run(staged(lander.sink, lander.topic, stores(lander.sink.bucket), work, done), refused)

    def _batches(self, reads: Intervals) -> Batches:
        return {partition: self._batches_of(partition, span) for partition, span in reads.items()}

    def _batches_of(self, partition: int, span: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        rows: list[Record] = []
        size = 0
        for letter in letters_of(self.lander.store, self.manifest, partition):
            if (partition, letter.offset) not in self.tried or not span[0] <= letter.offset < span[1]:
                continue
            place = letter.topic, partition, letter.offset, letter.timestamp_ms
            rows.append(Record(*place, letter.key, letter.value, letter.headers))
            size += len(letter.line)
            if len(rows) == BATCH or size >= _BLOCK_BYTES:
                yield batch(rows)
                rows, size = [], 0
        if rows:
            yield batch(rows)

    def _beside(self, run: _Run, attempt: Attempt) -> Staged:
        """Return the commit that replaces this one: its data as copies, and what has landed now."""
        lander, manifest = self.lander, self.manifest
        files = [*run.staged.files]
        try:
            kept, reasons = self._kept(attempt)
            files += kept
            files += copied(lander.sink, lander.store, manifest, attempt.commit)
        except BaseException:
            abort(lander.store, files)
            raise
        taken = tiles.joined((number, offset, offset + 1) for number, offset in self.tried.keys() - run.refused.keys())
        transformed = tuple(sorted({*run.staged.shape.transformed, *manifest.shape.transformed}))
        transforms = run.staged.shape.transforms or manifest.shape.transforms
        return replace(
            run.staged,
            files=tuple(sorted(files, key=attrgetter("key"))),
            reads=self._reads(run),
            shape=msgspec.structs.replace(run.staged.shape, transformed=transformed, transforms=transforms),
            clocks=(),  # the replayed records were transformed at another time than those between them
            waits=manifest.waits,
            dropped=Counter(manifest.dropped) + Counter(run.staged.dropped),
            filled=Counter(manifest.filled) + Counter(run.staged.filled),
            letters=united([run.staged.letters, reasons]),
            taken=(*manifest.taken, *([Taken(attempt.commit, lander.clock(), taken)] if taken else ())),
        )

    def _kept(self, attempt: Attempt) -> tuple[list[File], Iterable[Reason]]:
        """Those that are not chosen, staged as they are, and their reasons."""
        lander, tally = self.lander, Tally()
        keys = binding.key_rule(lander.sink.after_transforms, lander.topic, attempt.suffix)
        staging = Staging(lander.store, keys, binding.file_rule(lander.sink), attempt.commit)
        lines: list[tuple[int, bytes]] = []
        size, partition = 0, -1
        try:
            for letter in letters_of(lander.store, self.manifest):
                if lines and (letter.partition != partition or size >= _BLOCK_BYTES):
                    staging.add_dead_letters(partition, lines)
                    lines, size = [], 0
                partition = letter.partition
                if (partition, letter.offset) not in self.tried:
                    lines.append((letter.offset, letter.line))
                    size += len(letter.line)
                    tally.add(letter.stage, letter.message, partition, letter.offset)
            if lines:
                staging.add_dead_letters(partition, lines)
            return staging.finish(), tally.reasons
        except BaseException:
            staging.abort()
            raise

    def _reads(self, run: _Run) -> dict[int, Read]:
        """What the commit holds then: chosen ones that are not refused again are dead no more."""
        reads = dict(self.manifest.partitions)
        for partition, read in run.staged.reads.items():
            before = reads[partition]
            reads[partition] = msgspec.structs.replace(
                before,
                landed=before.landed + read.landed,
                skipped=before.skipped + read.skipped,
                filtered=before.filtered + read.filtered,
                dead=before.dead - read.landed - read.skipped - read.filtered,
            )
        return reads


def _united(seen: list[Recorded], most: int, told: Sequence[Outcome]) -> Recorded:
    """Columns that were seen so far, and what tasks saw now."""
    seen[0] = outcomes.recorded(seen[0], told, most)
    return seen[0]
