"""Catalogues beside SQLite: the same table in Glue, as moto has it."""

from collections.abc import Callable

import pytest

from s3lake.demo.s3 import EmbeddedS3
from s3lake_tests.table.iceberg.shelf import FIVE, SIX, Shelf, loaded, rows

pytestmark = pytest.mark.s3


def test_a_table_in_glue_follows_replaces_and_is_found_again(make: Callable[..., Shelf], s3_server: EmbeddedS3) -> None:
    catalog = {"type": "glue", "glue.endpoint": s3_server.endpoint_url}
    shelf = make(table={"name": "lake_{sink}.{topic}", "catalog": catalog})
    first = shelf.commit(FIVE)
    shelf.table().follow()
    shelf.commit(SIX)
    shelf.commit(FIVE, rows=4, replaces=[first.id])
    shelf.table().follow()
    assert len(rows(shelf)) == shelf.listed() == 14
    assert shelf.table().follow() == []
    assert loaded(shelf).location() == f"s3://{shelf.bucket}/.tables/lake_events.db/orders"
