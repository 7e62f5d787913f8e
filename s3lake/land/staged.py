"""What the tasks of a micro-batch have staged, as one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from s3lake import hours
from s3lake.commit import letters
from s3lake.commit.files import files_of
from s3lake.commit.index import MOST_FILES
from s3lake.commit.protocol import Staged
from s3lake.commit.recovery import abort
from s3lake.errors import TooManyFilesError
from s3lake.land import binding
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import Done
from s3lake.land.task.pipeline import Work
from s3lake.schema.types import to_document
from s3lake.store import Store

if TYPE_CHECKING:
    from s3lake.sink import Sink


def staged(sink: Sink, topic: str, store: Store, work: Work, done: Sequence[Done]) -> Staged:
    """The commit of a topic that `done` make together.

    Raises:
        TooManyFilesError: one commit cannot list their files, which are dropped.
    """
    landed, files = sink.after_transforms, files_of(done)
    if work.keys.replaces:  # of several files with one key the last one stays
        last = {file.key: file for file in files}
        abort(store, [file for file in files if last[file.key] is not file])
        files = list(last.values())
    if len(files) > MOST_FILES:
        abort(store, files)
        hour = hours.key_of_ms(work.hour_start_ms)
        raise TooManyFilesError(
            f"a micro-batch of {topic} {hour} has {len(files):,} files, one commit may have {MOST_FILES:,}: raise "
            "flush.count or flush.size, or let the layout name fewer places"
        )
    reads = outcomes.merged(one.reads for one in done)
    return Staged(
        files=tuple(sorted(files, key=attrgetter("key"))),
        reads=reads,
        clocks=tuple((partition, read.end, work.wallclock_ms) for partition, read in sorted(reads.items()))
        if work.chain
        else (),
        format=landed.format.type,
        converter=landed.converter.value,
        nulls=landed.nulls,
        shape=binding.written_by(landed),
        columns=None
        if work.file_columns is None
        else to_document(outcomes.with_seen(work.file_columns, done, work.conversion.integral)),
        replacing=work.keys.replaces,
        letters=letters.united(one.letters for one in done),
        dropped=sum((Counter(one.dropped) for one in done), Counter()),
        filled=sum((Counter(one.filled) for one in done), Counter()),
    )
