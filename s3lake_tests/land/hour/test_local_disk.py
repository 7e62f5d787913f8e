"""What a directory of temporary files that is full, or can only be read, leaves of a landing and of what it needs."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3lake.config import native
from s3lake.config.model import Spark
from s3lake.errors import LocalDiskError
from s3lake.index.store.memory import MemoryStore
from s3lake.land import spark
from s3lake.land.hour.landing import land
from s3lake.land.spark.launch import launch
from s3lake.records.schema.protobuf import compiler
from s3lake_tests.kit.lake import START, at
from s3lake_tests.kit.plugins import install_package
from s3lake_tests.source.inline import inline, verified

PROTO = 'syntax = "proto3"; message Event { int64 id = 1; }'


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A topic of a source that needs no server."""
    topic = tmp_path / "logs" / "clicks"
    topic.mkdir(parents=True)
    point = "[s3lake.sources]\nlines = lines_source:LinesSource\n"
    with install_package(tmp_path / "packages", "lines_source", point):
        yield topic / "0.txt"


@pytest.mark.parametrize("directory", ["full", "closed"])
def test_an_hour_that_no_disk_was_left_for_leaves_nothing_behind_and_is_landed_where_there_is_some(
    directory: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = "x" * 50_000
    records = [json.dumps({"type": number % 50, "text": text}) for number in range(100)]
    log.write_text("".join(f"{at(START, 1)} {record}\n" for record in records) + f"{at(START, 60)} {{}}\n")
    config = native.load_text(
        f"source: {{type: lines, options: {{directory: '{log.parents[1]}'}}}}\n"
        f"sinks:\n  - {{name: events, topics: [clicks], bucket: lake, start: {START}, format: {{type: json}}, "
        "layout: {partition_by: [type]}}\n",
        "f",
    )
    small = config.sinks[0].model_copy(update={"memory_budget": 2**21})  # so few records would never wait on disk
    config = config.model_copy(update={"sinks": (small,)})
    store = MemoryStore("lake")
    target = inline(config, "clicks", store, lambda: at(START, 90))
    scarce = request.getfixturevalue(directory)
    with pytest.raises(LocalDiskError, match=f"{scarce}.*Nothing half written is visible"):
        land(target, [START])
    assert store.uploads == {}
    assert [key for key in store.objects if not key.startswith(".indexes/")] == []
    assert list(scarce.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (landed,) = land(target, [START])
    assert landed.tile.complete
    report = verified(config, target)
    assert report.clean
    assert [checked.landed for checked in report.checked] == [100]


def test_a_schema_that_no_disk_was_left_to_compile_is_not_called_wrong(full: Path) -> None:
    (full / "other").write_bytes(bytes(2**20 - 4096))
    long = f"{PROTO}\n" + "\n".join(f"message M{number} {{ int64 id = 1; }}" for number in range(1000))
    with pytest.raises(LocalDiskError, match=f"{full}.*TMPDIR"):
        compiler.read_comments(long, {})
    assert [file.name for file in full.iterdir()] == ["other"]


def test_a_directory_that_can_only_be_read_is_named_before_a_schema_is_judged(closed: Path) -> None:
    with pytest.raises(LocalDiskError, match=f"nothing can be written to {closed}"):
        compiler.read_comments(PROTO, {})


def test_a_session_names_the_directory_that_it_cannot_put_its_settings_into(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)  # the one that tests share may run already
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(LocalDiskError, match=f"nothing can be written to {closed}"):
        launch(spark.settings(Spark(master="sc://127.0.0.1:1")))
