"""The example of a source that another package brings, installed as packages are, landed and verified."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3lake.config import native
from s3lake.config.model import Config
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import START, at
from s3lake_tests.kit.plugins import install_package
from s3lake_tests.source.inline import body, inline, verified

POINT = "[s3lake.sources]\nlines = lines_source:LinesSource\n"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "logs" / "clicks").mkdir(parents=True)
    with install_package(tmp_path / "packages", "lines_source", POINT):
        yield tmp_path / "logs"


def config(directory: Path) -> Config:
    return native.load_text(
        f"source: {{type: lines, options: {{directory: '{directory}'}}}}\n"
        f"sinks:\n  - {{name: events, topics: [clicks], bucket: lake, start: {START}, format: {{type: json}}}}\n",
        "f",
    )


def test_a_source_of_another_package_is_landed_and_verified(directory: Path) -> None:
    lines = [f'{at(START, minute)} {{"minute": {minute}}}\n' for minute in (0, 30, 60)]
    for partition in range(2):
        (directory / "clicks" / f"{partition}.txt").write_text("".join(lines))
    configured = config(directory)
    target = inline(configured, "clicks", MemoryStore("lake"), lambda: at(START, 90))
    (landed,) = land(target, [START])
    assert landed.tile.complete
    rows = [json.loads(line) for line in body(target, START).splitlines()]
    assert [row["minute"] for row in rows] == [0, 30, 0, 30]
    report = verified(configured, target)
    assert report.clean
    assert [(one.partition, one.landed) for one in report.checked] == [(0, 2), (1, 2)]
