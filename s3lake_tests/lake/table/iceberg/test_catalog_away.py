"""A catalog is away for an hour, in which hours are landed, sealed, rewritten, changed and cleaned up: scans work."""

from pathlib import Path
from typing import Any

import pytest

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import TableUnavailableError
from s3lake.index.commit.documents import collect_files
from s3lake.index.commit.sums import Commits
from s3lake.lake.table.iceberg import LakeTable
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.lake.table.iceberg.shelf import Shelf
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, TopicInMemory
from s3lake_tests.land.change.parts import run_change

DAY = 24 * 60
ALICE = EraseConditions(Condition("user = 'alice'"))


class LakeWithCatalog(TopicInMemory):
    """The world's topic in a bucket behind HTTP, and its table in a catalog that can be taken away."""

    def __init__(self, server: EmbeddedS3, home: Path) -> None:
        self.home = home / "catalog"
        self.home.mkdir()
        self.shelf = Shelf(server, self.home)
        assert self.shelf.sink.table is not None
        self.settings_of_table = {"name": "lake.orders", "catalog": dict(self.shelf.sink.table.catalog)}
        super().__init__(
            bucket=self.shelf.bucket,
            format={"type": "parquet"},
            table=self.settings_of_table,
            batch_records=2,
        )
        self.store: Any = self.shelf.index.store

    def target(self, now_minute: float = 600, **others: Any) -> TopicSink:
        assert self.sink.table is not None
        self.table = LakeTable(self.sink, self.sink.table, self.shelf.index, self.shelf.connection)
        return super().target(now_minute, **others)

    def catalog_goes(self) -> None:
        self.home.rename(self.home.with_name("away"))

    def catalog_comes(self) -> None:
        self.home.with_name("away").rename(self.home)

    def objects(self) -> set[str]:
        """Keys of all data in the bucket."""
        return {key for key in self.store.list("") if not key.startswith((".indexes/", ".tables/"))}

    def listed(self) -> set[str]:
        """Keys of all data that the index lists."""
        index = self.shelf.index
        return {file.key for tile in index.tiles() for file in collect_files(Commits(index, tile.hour, tile.commits))}


@pytest.fixture
def lake(s3_server: EmbeddedS3, tmp_path: Path) -> LakeWithCatalog:
    """Three hours, each in two commits or more, which the table lists."""
    made = LakeWithCatalog(s3_server, tmp_path)
    for number, hour in enumerate([FIRST, SECOND, THIRD]):
        made.produce(
            number,
            *(b'{"id":%d,"user":"%s"}' % (10 * number + one, b"alice" if one == 1 else b"bob") for one in range(4)),
        )
        land(made.target(60 * number + 30), [hour])
    return made


def test_a_table_is_scanned_while_its_catalog_is_unavailable_and_clean_brings_it_to_the_index(
    lake: LakeWithCatalog,
) -> None:
    every = sorted([0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23])
    lake.target()
    last_known = lake.table.load()

    def ids() -> list[int]:
        return sorted(last_known.scan().to_arrow()["id"].to_pylist())

    assert ids() == every
    lake.catalog_goes()

    landed = land(lake.target(), [FIRST, SECOND, THIRD])  # closes them: their small files would be merged
    assert [(hour.tile.complete, len(hour.tile.commits)) for hour in landed] == [(True, 2)] * 3
    assert ids() == every

    rewrite(lake.target(), FIRST)
    assert lake.shelf.index.existing_tile(FIRST)[0].garbage
    assert ids() == every

    held = lake.target().require_exactly_once()
    for change in (
        lambda: erase_hour(held, SECOND, ALICE),
        lambda: run_change("compact", held, SECOND),
        lambda: run_change("retention", held, THIRD),
    ):
        with pytest.raises(TableUnavailableError):
            change()
        assert ids() == every

    land(lake.target(), [FIRST, SECOND, THIRD])
    assert ids() == every
    for days in (0, 2, 30):
        lake.target(600 + days * DAY).clean()
        assert ids() == every

    lake.catalog_comes()
    erase_hour(lake.target().require_exactly_once(), SECOND, ALICE)
    lake.target(600 + 2 * DAY).clean()
    assert all(tile.complete for tile in lake.shelf.index.tiles())
    assert lake.objects() == lake.listed()
    assert list(lake.table.find_differences(by_files=True)) == []
    rows = lake.table.load().scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == [one for one in every if one != 11]
