"""What becomes of a record does not depend on where its topic-partition was cut into micro-batches, tasks and batches.

It depends on the record, on the columns of the sink, and on the records before it that gave the sink columns.
"""

import io
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import fastavro
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.index.commit.documents import Recorded
from s3lake.land.micro_batch.micro_batch_staging import MicroBatchStaging
from s3lake.land.request.read_request import ReadRequest
from s3lake.land.task.outcomes import Done, Outcome, unite_recorded
from s3lake.land.task.pipeline import run
from s3lake_tests.land.task.task_runs import TaskBucket, TaskRecord, build_task, to_record_batch

Cut = Sequence[Sequence[Sequence[int]]]
"""Micro-batches of tasks of batches: the number of records of each."""


@dataclass
class CutResult:
    """What became of the records of a topic-partition.

    Attributes:
        rows: the rows without nulls, by their field `n`, which is the offset.
        refused: offset -> why.
        left_out: the counts of fields that were left out.
        columns: the recorded columns in the end.
    """

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    columns: dict[str, Any] = field(default_factory=dict)


def land(
    values: Sequence[dict[str, Any]], cut: Cut, columns: dict[str, Any] | None = None, **changes: Any
) -> CutResult:
    """Land values as a sink would whose records come in these micro-batches, tasks and batches."""
    landed, bucket, start = CutResult(columns=dict(columns or {})), TaskBucket(), 0
    recorded = Recorded(landed.columns)
    changes = {"format": {"type": "parquet"}, "errors": {"tolerance": "all"}, **changes}
    sink = Sink(**{"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", **changes})
    most = changes.get("max_columns", sys.maxsize)
    for number, tasks in enumerate(cut):
        work = replace(build_task(bucket, **changes), commit=f"c{number}")
        end = start + sum(map(sum, tasks))
        refused: dict[int, str] = {}

        def run_tasks(request: ReadRequest, tasks: Any = tasks, start: int = start, refused: Any = refused) -> Any:
            refused.clear()
            head = request.reads[0][1]
            outcomes: list[Outcome] = []

            def note(_: int, offset: int, __: str, reason: str) -> None:
                refused[offset] = reason

            for batches in tasks:
                ranges = [*pairwise(accumulate(batches, initial=start))]
                start = ranges[-1][1]
                given = [
                    [TaskRecord(json.dumps({"n": at, **values[at]}).encode(), offset=at) for at in range(first, last)]
                    for first, last in ((first, min(last, head)) for first, last in ranges)
                    if first < last
                ]
                watched = replace(request.work, witness=note)
                outcomes += run(watched, [to_record_batch(request.work, one) for one in given])
            return outcomes

        def record(results: Sequence[Outcome]) -> Recorded:
            nonlocal recorded
            recorded = unite_recorded(recorded, results, most)
            return recorded

        known = recorded if number or columns else None
        staged = MicroBatchStaging(sink, "t", run_tasks).stage(work, {0: (start, end)}, known, record)
        bucket.visible(Done(list(staged.files), {}, {}))
        for file in staged.files:
            if file.stream == "data":
                rows = read_rows(changes["format"]["type"], bucket.store.objects[file.key][0])
                landed.rows |= {row["n"]: without_nulls(row) for row in rows}
        landed.refused |= refused
        landed.left_out += Counter(staged.reads[0].fields_left_out)
        landed.columns, start = recorded.columns, end
    return landed


def read_rows(format: str, body: bytes) -> list[Any]:
    match format:
        case "avro":
            return list(fastavro.reader(io.BytesIO(body)))
        case "csv":
            nulls = pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
            return pyarrow.csv.read_csv(io.BytesIO(body), convert_options=nulls).to_pylist()
    return pq.read_table(io.BytesIO(body)).to_pylist()


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return list(map(without_nulls, value)) if isinstance(value, list) else value


def without_empty(value: Any) -> Any:
    """Return a value without what holds nothing, which is null until its field has a column."""
    if isinstance(value, dict):
        kept = {name: without_empty(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner is not None} or None
    if isinstance(value, list):
        items = list(map(without_empty, value))
        return items if any(item is not None for item in items) else None
    return value


def one_batch(count: int) -> Cut:
    return [[[count]]]


def each_alone(count: int) -> Cut:
    """Each record in a micro-batch of its own."""
    return [[[1]]] * count


NOTHING = [{}, [], [{}], [[]], [None], {"b": None}, {"b": {}}, {"b": [], "c": [None]}]
SOMETHING = [5, 1.5, "x", "2026-11-20", True, [5], ["x"], [[5]], [{"x": 1}], {"x": 1}, {"b": {"x": 1}}]
WITHIN = {
    "a field": lambda value: value,
    "a field of an object": lambda value: {"i": 1, "o": value},
    "an item of a list": lambda value: [value],
    "a field of an object in a list": lambda value: [{"i": 1, "o": value}],
}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("nothing", NOTHING, ids=json.dumps)
def test_an_empty_value_lands_next_to_any_other_in_any_order_and_cut(within: str, nothing: Any) -> None:
    empty = {f"f{at}": WITHIN[within](nothing) for at in range(len(SOMETHING))}
    full = {f"f{at}": WITHIN[within](something) for at, something in enumerate(SOMETHING)}
    for values in ([empty, full], [full, empty]):
        landed = [land(values, cut) for cut in (one_batch(2), [[[1, 1]]], [[[1], [1]]], each_alone(2))]
        assert landed[0] == landed[1] == landed[2]
        assert [one.refused for one in landed] == [{}] * 4
        assert [one.columns for one in landed] == [landed[0].columns] * 4
        assert landed[0].rows[values.index(full)] == {"n": values.index(full), **full}
        rows = [{at: without_empty(row) for at, row in one.rows.items()} for one in landed]
        assert rows == [rows[0]] * 4


_leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "x", "2026-11-20", 2**70])
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", 'q"']), inner, max_size=2),
    max_leaves=4,
)
_objects = st.dictionaries(st.sampled_from(["a", "b", "c-d"]), _values, max_size=3)
_numbers = st.fixed_dictionaries({"a": st.sampled_from([1, 2**53 + 1, 2**53 + 2, 0.5, 2**70])})


@st.composite
def cuts(draw: st.DrawFn, count: int, *, whole: bool) -> Cut:
    """Any cut of so many records; a `whole` one has one micro-batch."""
    ends = ["none", "batch", "task", *([] if whole else ["micro-batch"])]
    cut = [[[1]]]
    for end in draw(st.lists(st.sampled_from(ends), min_size=count - 1, max_size=count - 1)):
        match end:
            case "none":
                cut[-1][-1][-1] += 1
            case "batch":
                cut[-1][-1].append(1)
            case "task":
                cut[-1].append([1])
            case "micro-batch":
                cut.append([[1]])
    return cut


FORMS: list[dict[str, Any]] = [
    {},
    {"format": {"type": "avro"}},
    {"format": {"type": "csv"}},
    {"max_columns": 4},
    {"columns": {"a": "date", "b": {"struct": {"x": "int64"}}}},
]


@given(st.data(), st.lists(_objects, min_size=1, max_size=6), st.sampled_from(FORMS))
def test_batches_and_tasks_change_nothing(data: st.DataObject, values: list[Any], changes: dict[str, Any]) -> None:
    cut = data.draw(cuts(len(values), whole=True))
    assert land(values, cut, **changes) == land(values, one_batch(len(values)), **changes)


@given(st.data(), st.lists(_numbers, min_size=1, max_size=6), st.sampled_from(FORMS[:2]))
def test_batches_and_tasks_change_nothing_of_large_integers_next_to_fractions(
    data: st.DataObject, values: list[Any], changes: dict[str, Any]
) -> None:
    cut = data.draw(cuts(len(values), whole=True))
    assert land(values, cut, **changes) == land(values, one_batch(len(values)), **changes)


@given(st.data(), st.lists(_objects, min_size=1, max_size=6), st.sampled_from(FORMS))
def test_micro_batches_change_only_what_holds_nothing(
    data: st.DataObject, values: list[Any], changes: dict[str, Any]
) -> None:
    apart, together = (
        land(values, data.draw(cuts(len(values), whole=False)), **changes),
        land(values, one_batch(len(values)), **changes),
    )
    assert (apart.refused.keys(), apart.columns) == (together.refused.keys(), together.columns)
    assert {at: without_empty(row) for at, row in apart.rows.items()} == {
        at: without_empty(row) for at, row in together.rows.items()
    }
