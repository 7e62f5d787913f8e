"""A sink's contract on real parts: one topic by each rule, and old and new producers of JSON Schema side by side."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from s3lake import hours
from s3lake.cli import app
from s3lake.commit.evolution import present
from s3lake.errors import GateError, RecordError
from s3lake.land.landing import Landing
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake_tests.lake import START, Lake, at
from s3lake_tests.schema.registry.server import framed, serving

NEXT = hours.shift(START, 1)
TOLERANT = "format: {type: parquet}, errors: {tolerance: all}"


def texts(*rows: dict[str, Any]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def contract(rule: str, gate: str, prefix: str) -> str:
    rules = "rules: {properties: {id: {minimum: 1}}}"
    changes = f"on_new_field: {rule}, on_type_change: dead_letter"
    return f"prefix: {prefix}, {TOLERANT}, schema: {{{changes}, required: [id], {rules}, gate: {{max_broken: {gate}}}}}"


def figures(lake: Lake, landing: Landing) -> tuple[int, int, dict[str, int]]:
    """Rows, dead letters and fields left out of the second hour, all of it verified."""
    _, second = landing.land([START, NEXT])
    assert lake.verify(landing).differences == ()
    return second.sums.landed, second.sums.dead, dict(second.sums.dropped)


@pytest.mark.slow("a case more on real parts; each behaviour of landing stays once")
def test_one_topic_lands_by_each_rule_of_its_sink(lake: Lake) -> None:
    topic = lake.filled(texts({"id": 1, "to": {"zip": "a"}}, {"id": 2}), at(START, 5))
    lake.produce(topic, texts({"id": 3, "note": "x"}, {"id": 4}, {"id": "x"}, {"n": 1}, {"id": -1}), at(NEXT, 5))
    after = at(NEXT, 200)
    landings = {
        rule: lake.landing(topic, contract(rule, "60%", rule), after, name=rule.replace("_", "-"))
        for rule in ("evolve", "drop", "dead_letter", "fail")
    }
    assert figures(lake, landings["evolve"]) == (2, 3, {})
    assert list(present(landings["evolve"].index)) == ["id", "to", "note"]
    assert figures(lake, landings["drop"]) == (2, 3, {"note": 1})
    assert list(present(landings["drop"].index)) == ["id", "to"]
    assert figures(lake, landings["dead_letter"]) == (1, 4, {})
    with pytest.raises(RecordError, match="field 'note' is new"):
        landings["fail"].land([START, NEXT])
    gate = lake.landing(topic, contract("evolve", "10%", "gate"), after, name="gate")
    with pytest.raises(GateError, match=r"2 of 5 records \(40.00%\) lack a required field or break a rule"):
        gate.land([START, NEXT])
    for closed in (landings["fail"], gate):
        assert [len(closed.report(hour).tile.commits) for hour in (START, NEXT)] == [1, 0]


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
