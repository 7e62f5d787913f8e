"""What the driver makes of what tasks return: counts that add up, and columns that the index has for all of them."""

import pyarrow as pa
import pytest

from s3lake.index.commit.documents import Changed, Read, Recorded
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.memory import MemoryStore
from s3lake.land.task.outcomes import Done, Grown, merge_reads, record, unite_recorded, with_seen
from s3lake.land.task.pipeline import find_time_range
from s3lake.records.schema.columns.changes import Change
from s3lake.records.schema.columns.types import from_document

HOUR = "2026-11-20T05"
NEXT = "2026-11-20T06"


def grown(*columns: str) -> Grown:
    return Grown(0, 0, dict.fromkeys(columns, "int64"))


def new(column: str) -> Change:
    return Change(column, None, "int64")


# Counts


def test_every_count_of_several_tasks_is_their_sum_and_times_are_the_outermost() -> None:
    one = Read(5, 9, read=1, landed=20, skipped=300, dead=4000, late=50_000, oldest_ms=700, newest_ms=900, erased=6)
    other = Read(0, 5, read=2, landed=10, skipped=100, dead=1000, late=10_000, oldest_ms=600, newest_ms=800, erased=1)
    whole = Read(0, 9, read=3, landed=30, skipped=400, dead=5000, late=60_000, oldest_ms=600, newest_ms=900, erased=7)
    assert merge_reads([{0: one}, {0: other}]) == merge_reads([{0: other}, {0: one}]) == {0: whole}


def test_a_task_whose_records_have_no_time_reports_no_times() -> None:
    assert merge_reads([{0: Read(0, 1)}, {0: Read(1, 2, oldest_ms=5, newest_ms=6)}]) == {
        0: Read(0, 2, oldest_ms=5, newest_ms=6)
    }
    assert merge_reads([{0: Read(0, 1)}, {0: Read(1, 2)}]) == {0: Read(0, 2)}


@pytest.mark.parametrize(
    ("stamps", "ends"),
    [([7, 3, 5], (3, 7)), ([0, 5, 9], (5, 9)), ([-1, 1], (1, 1)), ([0], (0, 0)), ([], (0, 0)), ([None], (0, 0))],
)
def test_the_outermost_times_are_of_records_that_have_one(stamps: list[int | None], ends: tuple[int, int]) -> None:
    assert find_time_range(pa.array(stamps, pa.int64())) == ends


# Columns


@pytest.fixture
def index() -> TopicIndex:
    return TopicIndex(MemoryStore(), ".indexes/events", "orders")


def test_the_first_columns_are_recorded_with_the_hour_and_the_commit_that_saw_them(index: TopicIndex) -> None:
    columns = record(index, 9, HOUR, "c1", [grown("a")])
    assert columns == Recorded({"a": "int64"}, history=(Changed(HOUR, "c1", (new("a"),)),))
    stored = index.columns()
    assert stored is not None
    assert stored[0] == columns


def test_columns_that_come_later_are_recorded_next_to_the_first(index: TopicIndex) -> None:
    first = record(index, 9, HOUR, "c1", [grown("a")])
    columns = record(index, 9, NEXT, "c2", [grown("a", "b")])
    added = Changed(NEXT, "c2", (new("b"),))
    assert columns == Recorded({"a": "int64", "b": "int64"}, history=(*first.history, added), rev=1)
    stored = index.columns()
    assert stored is not None
    assert stored[0] == columns


def test_no_more_columns_are_recorded_than_a_sink_may_have(index: TopicIndex) -> None:
    assert list(record(index, 1, HOUR, "c1", [grown("a"), grown("b")]).columns) == ["a"]
    assert list(record(index, 2, HOUR, "c2", [grown("a", "b"), grown("a", "c")]).columns) == ["a", "b"]


def test_shapes_that_sql_reads_are_recorded_once(index: TopicIndex) -> None:
    record(index, 2, HOUR, "c1", [Grown(0, 0, {}, shapes=("b", "a")), Grown(1, 0, {}, shapes=("a",))])
    assert record(index, 2, HOUR, "c1", [Grown(0, 0, {}, shapes=("c", "a"))]).shapes == ("a", "b", "c")


def test_columns_are_not_written_if_no_task_saw_anything_new_of_them(
    index: TopicIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = record(index, 9, HOUR, "c1", [grown("a")])
    monkeypatch.setattr(index, "swap", lambda *_: pytest.fail("written"))
    assert record(index, 9, NEXT, "c2", [grown("a")]) == columns


@pytest.mark.parametrize("there", [False, True])
def test_columns_that_another_landing_recorded_in_between_stay(index: TopicIndex, there: bool) -> None:
    if there:
        record(index, 9, HOUR, "c1", [grown("a")])
    columns = index.columns

    def overtaken() -> tuple[Recorded, str] | None:
        index.columns = columns  # type: ignore[method-assign]
        before = columns()
        record(index, 9, HOUR, "other", [grown("theirs")])
        return before

    index.columns = overtaken  # type: ignore[method-assign]
    assert {"ours", "theirs"} <= record(index, 9, HOUR, "c2", [grown("ours")]).columns.keys()


def test_changes_that_one_attempt_sees_in_several_steps_are_one_entry_of_the_history(index: TopicIndex) -> None:
    record(index, 9, HOUR, "c1", [Grown(0, 0, {"a": "int32"})])
    record(index, 9, NEXT, "c2", [grown("b")])
    record(index, 9, NEXT, "c3", [grown("a")])
    columns = record(index, 9, NEXT, "c3", [Grown(0, 0, {"a": "double", "c": "int64"})])
    assert columns.history == (
        Changed(HOUR, "c1", (Change("a", None, "int32"),)),
        Changed(NEXT, "c2", (new("b"),)),
        Changed(NEXT, "c3", (Change("a", "int32", "double"), new("c"))),
    )


def test_the_earlier_record_decides_of_two_whose_schemas_disagree() -> None:
    later = Done([], {1: Read(0, 1), 2: Read(0, 9)}, {}, seen={"a": "string", "c": "bool"})
    earlier = Done([], {1: Read(7, 8), 0: Read(5, 9)}, {}, seen={"a": "int64", "b": "bool"})
    for done in ([earlier, later], [later, earlier]):
        assert with_seen({}, done) == from_document({"a": "int64", "b": "bool", "c": "bool"})


def test_the_words_of_the_last_schema_are_kept() -> None:
    done = [Done([], {}, {}, words={"a": "of the first"}), Done([], {}, {}, words={"a": "of the last", "b": "new"})]
    columns = unite_recorded(Recorded({}, words={"z": "of before"}), done, 9)
    assert (columns.words, columns.rev) == ({"z": "of before", "a": "of the last", "b": "new"}, 1)


def test_a_type_that_fits_no_column_is_a_change_once() -> None:
    apart = Done([], {}, {}, seen={"a": "string"})
    columns = unite_recorded(Recorded({"a": "int64"}), [apart], 9, HOUR, "c1")
    assert columns.history == (Changed(HOUR, "c1", (Change("a", "int64", "string, in files of its own"),)),)
    assert unite_recorded(columns, [apart], 9, NEXT, "c2") is columns
