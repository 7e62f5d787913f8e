"""A table follows its index: commits by reference, once, whoever asks and however often."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyiceberg.table.update.snapshot import _OverwriteFiles

from s3lake.errors import TableConflictError, TableUnavailableError
from s3lake.index.commit.documents import Watermark
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.table.iceberg import LakeTable, table_commits
from s3lake.lake.table.iceberg.entries import Footers
from s3lake.orchestration.hour_checks import check_hours, names_of
from s3lake_tests.conftest import short_id
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SEVEN, SIX, Shelf, compacted, crash_following, loaded, rows
from s3lake_tests.orchestration.world import catalog


def test_the_files_of_a_commit_are_listed_and_none_is_written(shelf: Shelf) -> None:
    commit = shelf.commit(FIVE, files=3)
    (followed,) = shelf.table().sync([FIVE])
    assert (followed.commits, followed.files, followed.rows, followed.removed) == (1, 3, 30, 0)
    paths = {task.file.file_path for task in loaded(shelf).scan().plan_files()}
    assert paths == {f"s3://{shelf.bucket}/{file.key}" for file in commit.files}
    assert sorted(row["id"] for row in rows(shelf)) == sorted([*range(10)] * 3)


def test_each_row_has_its_hour_though_no_file_has_it(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    shelf.commit(SIX)
    shelf.table().sync()
    assert {f"{row['landed_hour']:%Y-%m-%dT%H}" for row in rows(shelf)} == {FIVE, SIX}
    assert loaded(shelf).scan(row_filter="landed_hour = '2026-11-20T06:00:00+00:00'").count() == 10


def test_a_snapshot_has_its_commits_offsets_and_hours_and_the_last_sealed_hour(shelf: Shelf) -> None:
    first, second = shelf.commit(FIVE), shelf.commit(FIVE)
    head, etag = shelf.index.head()
    shelf.index.swap(shelf.index.head_key, head.revise(sealed=Watermark(FIVE, SIX)), etag)
    shelf.table().sync([FIVE])
    summary = loaded(shelf).current_snapshot().summary
    assert summary["s3lake.commits"] == f"{first.id},{second.id}"
    assert json.loads(summary["s3lake.offsets"]) == {"0": [[0, 20]]}
    assert (summary["s3lake.hours"], summary["s3lake.sealed-up-to"]) == (FIVE, SIX)
    assert summary["s3lake.index"] == f"s3://{shelf.bucket}/.indexes/events/orders"


def test_expiring_snapshots_keeps_the_ledger(shelf: Shelf) -> None:
    for _ in range(3):
        shelf.commit(FIVE)
        shelf.table().sync([FIVE])
    table = loaded(shelf)
    kept = table.current_snapshot().snapshot_id
    table.maintenance.expire_snapshots().by_ids(
        [one.snapshot_id for one in table.snapshots() if one.snapshot_id != kept]
    ).commit()
    assert shelf.table().sync() == []
    assert len(rows(shelf)) == 30


def test_a_commit_without_files_is_noted_where_there_is_a_table(shelf: Shelf) -> None:
    shelf.commit(FIVE, files=0, rows=0)
    assert shelf.table().sync() == []
    shelf.commit(SIX)
    shelf.table().sync()
    assert list(shelf.table().find_differences()) == []


def test_a_commit_that_replaces_others_is_one_snapshot(shelf: Shelf) -> None:
    first, second = shelf.commit(FIVE), shelf.commit(FIVE)
    other = shelf.commit(SIX)
    shelf.table().sync()
    snapshots = len(loaded(shelf).snapshots())
    shelf.commit(FIVE, rows=20, replaces=[first.id, second.id])
    (followed,) = shelf.table().sync([FIVE])
    assert (followed.commits, followed.files, followed.removed) == (1, 1, 2)
    assert len(loaded(shelf).snapshots()) == snapshots + 1
    assert len(rows(shelf)) == 30
    assert f"s3://{shelf.bucket}/{other.files[0].key}" in {t.file.file_path for t in loaded(shelf).scan().plan_files()}


def test_a_replacement_is_tried_again_when_pyiceberg_misses_files_that_are_there(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shelf.commit(FIVE)
    shelf.commit(SIX)
    shelf.table().sync()
    shelf.commit(FIVE, rows=4, replaces=[first.id])
    find = _OverwriteFiles._deleted_entries

    def misses(producer: _OverwriteFiles) -> Any:
        monkeypatch.setattr(_OverwriteFiles, "_deleted_entries", find)
        return producer._validate_required_deletes([])

    monkeypatch.setattr(_OverwriteFiles, "_deleted_entries", misses)
    (followed,) = shelf.table().sync([FIVE])
    assert (followed.files, followed.removed) == (1, 1)
    assert len(rows(shelf)) == 14


def test_every_snapshot_has_the_rows_that_the_index_had(shelf: Shelf) -> None:
    expected = []
    first = shelf.commit(FIVE)
    for change in (
        lambda: shelf.commit(FIVE, rows=7),
        lambda: shelf.commit(SIX, rows=3, files=2),
        lambda: shelf.commit(FIVE, rows=4, replaces=[first.id]),
    ):
        shelf.table().sync()
        expected.append(shelf.listed())
        change()
    shelf.table().sync()
    expected.append(shelf.listed())
    counts = [loaded(shelf).scan(snapshot_id=one.snapshot_id).count() for one in loaded(shelf).snapshots()]
    assert counts == expected == [10, 17, 23, 17]


class TestColumns:
    def test_later_ones_are_added_and_are_null_before(self, shelf: Shelf) -> None:
        shelf.commit(FIVE, pa.table({"id": [1]}))
        shelf.table().sync()
        shelf.commit(SIX, pa.table({"id": [2], "deep": [{"x": 1, "names": ["a"]}]}))
        shelf.table().sync()
        assert [(row["id"], row["deep"]) for row in sorted(rows(shelf), key=lambda row: row["id"])] == [
            (1, None),
            (2, {"x": 1, "names": ["a"]}),
        ]

    def test_a_column_that_grew_wider_holds_the_narrow_files_too(self, shelf: Shelf) -> None:
        shelf.commit(FIVE, pa.table({"id": pa.array([1], pa.int32())}))
        shelf.table().sync()
        shelf.commit(SIX, pa.table({"id": pa.array([2**40], pa.int64())}))
        shelf.commit(SEVEN, pa.table({"id": pa.array([3], pa.int32())}))
        shelf.table().sync()
        assert sorted(row["id"] for row in rows(shelf)) == [1, 3, 2**40]

    @pytest.mark.parametrize("other", [pa.array([1.5]), pa.array([{"x": 1}]), pa.array(["a"])], ids=short_id)
    def test_one_of_another_type_is_refused_with_the_remedy(self, shelf: Shelf, other: pa.Array) -> None:
        shelf.commit(FIVE, pa.table({"id": [1]}))
        shelf.table().sync()
        shelf.commit(SIX, pa.table({"id": other}))
        with pytest.raises(TableConflictError, match="`columns`"):
            shelf.table().sync()
        assert len(rows(shelf)) == 1

    def test_the_names_that_files_are_read_by_are_kept_in_the_table(self, shelf: Shelf) -> None:
        shelf.commit(FIVE, pa.table({"id": [1]}))
        shelf.table().sync()
        shelf.commit(SIX, pa.table({"id": [2], "late": [True]}))
        shelf.table().sync()
        mapped = json.loads(loaded(shelf).properties["schema.name-mapping.default"])
        assert [field["names"] for field in mapped] == [["landed_hour"], ["id"], ["late"]]


class TestPartitions:
    def test_are_the_fields_that_the_layout_names(self, make: Callable[..., Shelf]) -> None:
        shelf = make(table={"partition": ["hour", "type"]}, layout={"partition_by": ["type"]})
        shelf.commit(FIVE, pa.table({"id": [1], "type": ["a"]}), pa.table({"id": [2], "type": ["b"]}))
        shelf.table().sync()
        tasks = loaded(shelf).scan(row_filter="type = 'b'").plan_files()
        assert [task.file.partition[1] for task in tasks] == ["b"]

    def test_a_field_that_is_missing_is_null(self, make: Callable[..., Shelf]) -> None:
        shelf = make(table={"partition": ["hour", "type"]}, layout={"partition_by": ["type"]})
        nothing = pa.table({"id": [2], "type": pa.array([None], pa.string())})
        shelf.commit(FIVE, pa.table({"id": [1], "type": ["a"]}), nothing, pa.table({"id": [3]}))
        shelf.table().sync()
        parts = [task.file.partition[1] for task in loaded(shelf).scan().plan_files()]
        assert sorted(map(str, parts)) == ["None", "None", "a"]

    @pytest.mark.parametrize("mixed", [["a", "b"], ["a", None]], ids=short_id)
    def test_a_file_of_two_values_is_refused(self, make: Callable[..., Shelf], mixed: list[Any]) -> None:
        shelf = make(table={"partition": ["hour", "type"]}, layout={"partition_by": ["type"]})
        shelf.commit(FIVE, pa.table({"id": [1, 2], "type": mixed}))
        with pytest.raises(TableConflictError, match=r"layout\.partition_by"):
            shelf.table().sync()


class TestOwners:
    def test_two_indexes_do_not_share_a_table(self, shelf: Shelf, make: Callable[..., Shelf]) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        other = make()
        other.commit(FIVE)
        with pytest.raises(TableConflictError, match="be another"):
            other.table().sync()

    def test_an_empty_table_of_another_program_is_used_with_its_properties(self, shelf: Shelf) -> None:
        catalog = shelf.table().catalog
        catalog.create_namespace("lake")
        schema = pa.schema([("landed_hour", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("note", pa.string())])
        table = catalog.create_table("lake.orders", schema, properties={"a": "b"})
        shelf.commit(FIVE)
        with pytest.raises(TableConflictError, match="not partitioned by landed_hour"):
            shelf.table().sync()
        with table.update_spec() as spec:
            spec.add_identity("landed_hour")
        shelf.table().sync()
        assert rows(shelf)[0].keys() == {"landed_hour", "id", "note", "type"}
        assert loaded(shelf).properties["a"] == "b"


def test_errors_of_a_catalog_have_no_secrets(make: Callable[..., Shelf]) -> None:
    catalog = {"type": "sql", "uri": "postgresql+psycopg2://me:hunter2@127.0.0.1:1/lake"}
    shelf = make(table={"catalog": catalog})
    shelf.commit(FIVE)
    with pytest.raises(TableUnavailableError, match="What is landed stays landed") as refused:
        shelf.table().sync()
    assert "hunter2" not in str(refused.value) + repr(shelf.table()) + repr(shelf.sink)


def test_the_catalog_is_opened_again_with_new_keys(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"access-key-id": "ASIA1", "secret-access-key": "hush"}
    monkeypatch.setattr("s3lake.lake.table.iceberg.iceberg_catalog.find_catalog_keys", lambda _: dict(keys))
    table = shelf.table()
    first = table.catalog
    assert table.catalog is first
    keys["access-key-id"] = "ASIA2"  # the role is assumed again before its keys expire
    assert table.catalog.properties["s3.access-key-id"] == "ASIA2"


class TestOthers:
    """Writers of the same table that are not s3lake, or not this process."""

    def test_a_row_that_another_program_deleted_stays_deleted(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        loaded(shelf).delete("id = 3")
        assert shelf.table().sync() == []
        assert len(rows(shelf)) == 9

    def test_sync_by_files_restores_deleted_rows(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.commit(SIX)
        shelf.table().sync()
        loaded(shelf).delete("id = 3")
        assert [one.hour for one in shelf.table().find_differences(by_files=True)] == [FIVE]
        shelf.table().sync(by_files=True)
        assert sorted(row["id"] for row in rows(shelf)) == list(range(20))
        assert shelf.table().sync(by_files=True) == []

    def test_a_compaction_between_is_replaced_as_a_whole(self, shelf: Shelf) -> None:
        first, second = shelf.commit(FIVE), shelf.commit(FIVE)
        shelf.commit(SIX)
        shelf.table().sync()
        compacted(shelf)
        shelf.commit(FIVE, rows=4, replaces=[first.id])
        shelf.table().sync()
        assert len(rows(shelf)) == shelf.listed() == 24
        kept = {task.file.file_path for task in loaded(shelf).scan().plan_files()}
        assert f"s3://{shelf.bucket}/{second.files[0].key}" in kept

    def test_a_compaction_is_no_reason_to_add_anything_again(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        compacted(shelf)
        shelf.commit(FIVE)
        (followed,) = shelf.table().sync()
        assert (followed.commits, len(rows(shelf))) == (1, 20)

    def test_a_table_that_was_rolled_back_is_refused_and_then_restored(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        before = loaded(shelf).current_snapshot().snapshot_id
        shelf.commit(SIX)
        shelf.table().sync()
        loaded(shelf).manage_snapshots().rollback_to_snapshot(before).commit()
        with pytest.raises(TableConflictError, match="--by-files"):
            shelf.table().sync()
        shelf.table().sync(by_files=True)
        assert len(rows(shelf)) == 20
        assert shelf.table().sync() == []

    def test_a_table_has_properties_that_keep_other_programs_from_deleting_its_files(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        assert loaded(shelf).properties["gc.enabled"] == "false"

    def test_two_that_follow_at_once_add_each_commit_once(self, shelf: Shelf) -> None:
        shelf.commit(FIVE)
        shelf.table().sync()
        for hour in (FIVE, SIX, SEVEN, FIVE):
            shelf.commit(hour)
        with ThreadPoolExecutor(4) as pool:
            asked: list[list[str] | None] = [[FIVE], [SIX], [SEVEN], None]
            list(pool.map(lambda hours: shelf.table().sync(hours), asked))
        assert len(rows(shelf)) == shelf.listed() == 50

    def test_an_hour_that_is_replaced_while_it_is_added_ends_as_the_index_has_it(
        self, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = shelf.commit(FIVE)
        read = Footers.read

        def replaced(self: Footers, *asked: Any) -> Any:
            monkeypatch.setattr(Footers, "read", read)
            shelf.commit(FIVE, rows=4, replaces=[first.id])
            shelf.index.store.delete(first.files[0].key)
            return read(self, *asked)

        monkeypatch.setattr(Footers, "read", replaced)
        shelf.table().sync()
        assert len(rows(shelf)) == shelf.listed() == 4


@pytest.mark.slow("follows once for each request")
def test_killed_at_any_request_the_next_one_mends_it(make: Callable[..., Shelf], tmp_path: Path) -> None:
    """The requests of a commit are what it writes to S3 and to the catalog; each is not sent, or its answer is lost."""
    for lost in (False, True):
        for number in range(20):
            catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/{number}-{lost}.db"}
            shelf = make(table={"catalog": catalog})
            first, _ = shelf.commit(FIVE), shelf.commit(SIX)
            shelf.table().sync()
            shelf.commit(FIVE, rows=4, replaces=[first.id])
            shelf.commit(SIX, pa.table({"id": [1], "late": [1.5]}))
            killed = crash_following(shelf.table(), number, after=lost)
            assert shelf.listed() == 15
            shelf.table().sync()
            assert len(rows(shelf)) == 15
            assert shelf.table().sync() == []
            if not killed:
                break
        assert number > 4


# The asset check of a table: it reports, and nothing fails because of it


def verdicts(shelf: Shelf) -> dict[str, dg.AssetCheckEvaluation]:
    target: Any = SimpleNamespace(
        index=shelf.index, sink=shelf.sink, topic="orders", table=shelf.table(), clock=lambda: 0
    )
    with dg.DagsterInstance.ephemeral() as instance:
        looked = check_hours(instance, catalog(shelf.sink), target, [FIVE, SIX], ["table"])
        return {str(one.partition): one for one in looked if isinstance(one, dg.AssetCheckEvaluation)}


def test_the_check_passes_if_the_table_is_as_the_index_has_it(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    shelf.commit(SIX)
    shelf.table().sync([FIVE])
    found = verdicts(shelf)
    assert (found[FIVE].passed, found[SIX].passed) == (True, False)
    assert str(found[SIX].metadata["behind"].value).startswith("the table lacks 1 commit, and has 0 that are replaced")


def test_the_check_reports_an_unavailable_catalog(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    assert shelf.sink.table is not None
    shelf.sink.table.catalog["uri"] = "sqlite:////nowhere/at/all.db"
    assert "unable to open database file" in str(verdicts(shelf)[FIVE].metadata["behind"].value)


def test_a_sink_without_a_table_has_no_such_check(shelf: Shelf) -> None:
    assert "table" in names_of(shelf.sink)
    assert "table" not in names_of(shelf.sink.model_copy(update={"table": None}))


# The properties of a table that name the commits it holds


IDS = ("a" * 32, "b" * 32)


def test_hours_are_kept_by_month_with_short_ids_and_read_again() -> None:
    hours = {"2026-11-30T23": table_commits.shorten_ids(IDS), "2026-12-01T00": ("c" * 12,)}
    properties = table_commits.update_properties({}, hours)
    assert properties["s3lake.landed.2026-11"] == "30T23=aaaaaaaaaaaa,bbbbbbbbbbbb"
    assert table_commits.read_ledger({**properties, "owner": "me"}) == hours
    assert table_commits.update_properties(hours, dict.fromkeys(hours, ())) == dict.fromkeys(properties, "")


def test_only_months_that_change_are_written_and_whole() -> None:
    before = {"2026-10-01T00": ("a",), "2026-11-30T22": ("b",), "2026-11-30T23": ("c",)}
    assert table_commits.update_properties(before, {"2026-11-30T23": ("d",)}) == {
        "s3lake.landed.2026-11": "30T22=b 30T23=d"
    }


def test_a_catalog_that_does_not_open_is_reported_in_one_line_with_the_remedy(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'unmounted' / 'catalog.db'}"}
    sink = make_sink(format={"type": "parquet"}, table={"name": "lake.orders", "catalog": catalog})
    assert sink.table is not None
    table = LakeTable(sink, sink.table, TopicIndex(MemoryStore(), ".indexes/events", "orders"), S3Connection())
    with pytest.raises(TableUnavailableError) as error:
        table.check()
    assert str(error.value) == (
        "table lake.orders of sink events: OperationalError: (sqlite3.OperationalError) unable to open database file. "
        "What is landed stays landed; the next run of the hour or `s3lake table sync` brings the table to it"
    )
