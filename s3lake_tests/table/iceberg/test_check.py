"""The asset check of a table: it reports, and nothing fails because of it."""

from types import SimpleNamespace
from typing import Any

import dagster as dg

from s3lake.orchestration.checks import check_hours, names_of
from s3lake_tests.orchestration.catalogs import catalog
from s3lake_tests.table.iceberg.shelf import FIVE, SIX, Shelf


def verdicts(shelf: Shelf) -> dict[str, dg.AssetCheckEvaluation]:
    lander: Any = SimpleNamespace(
        index=shelf.index, sink=shelf.sink, topic="orders", table=shelf.table(), clock=lambda: 0
    )
    with dg.DagsterInstance.ephemeral() as instance:
        looked = check_hours(instance, catalog(shelf.sink), lander, [FIVE, SIX], ["table"])
        return {str(one.partition): one for one in looked if isinstance(one, dg.AssetCheckEvaluation)}


def test_it_passes_where_the_table_is_as_the_index_has_it(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    shelf.commit(SIX)
    shelf.table().follow([FIVE])
    found = verdicts(shelf)
    assert (found[FIVE].passed, found[SIX].passed) == (True, False)
    assert str(found[SIX].metadata["behind"].value).startswith("1 commits are not in the table, 0 are replaced")


def test_a_catalog_that_is_gone_is_what_it_says(shelf: Shelf) -> None:
    shelf.commit(FIVE)
    assert shelf.sink.table is not None
    shelf.sink.table.catalog["uri"] = "sqlite:////nowhere/at/all.db"
    assert "unable to open database file" in str(verdicts(shelf)[FIVE].metadata["behind"].value)


def test_a_sink_without_a_table_has_no_such_check(shelf: Shelf) -> None:
    assert "table" in names_of(shelf.sink)
    assert "table" not in names_of(shelf.sink.model_copy(update={"table": None}))
