"""Records through one task, as often as it takes until their columns are settled."""

import sys

import pyarrow as pa

from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import Recorded
from s3lake.land.task.outcomes import Done, unite_recorded
from s3lake.land.task.pipeline import Work, run
from s3lake.records.schema.columns.types import from_document, to_document


def settled(work: Work, batch: pa.RecordBatch) -> tuple[Done, Work]:
    """What the task has staged, and the work with the columns of its files."""
    outcomes = list(run(work, [batch]))
    while not work.has_settled_columns(outcomes):
        abort_uploads(
            work.stores(work.bucket), [file for one in outcomes if isinstance(one, Done) for file in one.files]
        )
        columns = from_document(unite_recorded(Recorded(to_document(work.columns)), outcomes, sys.maxsize).columns)
        assert columns != work.columns, outcomes  # else it would go on for ever
        work = work.with_columns(columns)
        outcomes = list(run(work, [batch]))
    (done,) = outcomes
    assert isinstance(done, Done)
    return done, work
