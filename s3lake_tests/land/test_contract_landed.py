"""Old and new producers of JSON Schema side by side, on real parts."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from s3lake import hours
from s3lake.cli import app
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake_tests.lake import START, Lake, at
from s3lake_tests.schema.registry.server import framed, serving

NEXT = hours.shift(START, 1)
TOLERANT = "format: {type: parquet}, errors: {tolerance: all}"


OLD = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
NEW = {**OLD, "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}


@pytest.mark.slow("producers of two schemas; one topic is always tried")
def test_producers_of_two_schemas_side_by_side_give_a_file_for_each_and_flush_and_one_change_that_is_told(
    lake: Lake, tmp_path: Path
) -> None:
    with serving() as registry:
        old, new = registry.add(OLD, "JSON"), registry.add(NEW, "JSON")
        topic = lake.filled([framed(old, b'{"id": 0}')], at(START, 5))
        both = [
            framed(*pair)
            for number in range(1, 21)
            for pair in ((old, b'{"id": %d}' % number), (new, b'{"id": %d, "note": "n"}' % number))
        ]
        lake.produce(topic, both, at(NEXT, 5))
        settings = f"{TOLERANT}, converter: {{value: json_schema, registry: {{url: '{registry.url}'}}}}"
        landing = lake.landing(topic, f"{settings}, flush: {{count: 20}}", at(NEXT, 200))
        first, second = landing.land([START, NEXT])
        report = lake.verify(landing)
        config = tmp_path / "s3lake.yaml"
        config.write_text(lake.config_text(f"name: events, topics: ['{topic}'], {settings}"))
        shown, told = documents("show", config), documents("history", config)
    assert (report.differences, report.landed) == ((), 41)
    assert sorted(file.records for file in second.manifests[0].files) == [20, 20]
    changes = hour_metadata(second, landing.index)["schema_changes"]
    commit = second.tile.commits[0]
    assert [tuple(row.data.values()) for row in changes.records] == [("note", "", "string", commit)]
    assert "schema_changes" not in hour_metadata(first, landing.index)
    assert [(line["column"], line["type"]) for line in shown] == [("id", "int64"), ("note", "string")]
    assert [(line["hour"], line["commit"], line["column"], line["after"]) for line in told] == [
        (START, first.tile.commits[0], "id", "int64"),
        (NEXT, commit, "note", "string"),
    ]


def documents(word: str, config: Path) -> list[dict[str, Any]]:
    """What `s3lake schema` prints of a configuration."""
    done = CliRunner().invoke(app, ["schema", word, str(config), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]
