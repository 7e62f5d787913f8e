"""A sink's contract while it lands: what is left out is reported, a gate that is closed leaves nothing, and changes of
columns are known by hour and commit."""

import json
from typing import Any

import pytest

from s3lake.errors import GateError, RecordError, TerminalError
from s3lake.index.commit.column_history import list_column_steps, read_present_columns
from s3lake.land.hour.landing import land
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake_tests.kit.avro_messages import datum, record
from s3lake_tests.land.at_hand import FIRST, SECOND, THIRD, TopicInMemory
from s3lake_tests.records.schema.registry.server import framed, serving

PARQUET = {"format": {"type": "parquet"}}
TOLERANT = {"errors": {"tolerance": "all"}}


def values(*rows: dict[str, Any]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def world(**settings: Any) -> TopicInMemory:
    """With an hour of orders, and one more in which they have a note and an id that is not a number."""
    made = TopicInMemory(**PARQUET, **settings)
    made.produce(0, *values({"id": 1, "to": {"zip": "a"}}, {"id": 2, "to": {"zip": "b"}}))
    made.produce(1, *values({"id": 3, "note": "x", "to": {"zip": "c", "street": "d"}}, {"id": "x"}, {"id": 5}))
    return made


def test_fields_that_are_left_out_are_counted_in_the_commit_the_hour_and_its_metadata() -> None:
    made = world(schema={"on_new_field": "drop", "on_type_change": "drop"})
    target = made.target()
    first, second = land(target, [FIRST, SECOND])
    assert (first.sums.fields_left_out, second.sums.landed) == ({}, 3)
    assert (
        second.sums.fields_left_out
        == second.manifests[0].counts.fields_left_out
        == {"note": 1, "to.street": 1, "id": 1}
    )
    table = hour_metadata(second, target.index)["fields_left_out"]
    assert [(row.data["field"], row.data["records"]) for row in table.records] == [
        ("id", 1),
        ("note", 1),
        ("to.street", 1),
    ]
    assert "fields_left_out" not in hour_metadata(first, target.index)
    assert list(read_present_columns(target.index)) == ["id", "to"]


def test_a_merge_and_its_sums_keep_what_was_left_out() -> None:
    made = world(schema={"on_new_field": "drop"}, batch_records=2, flush={"merge": True}, **TOLERANT)
    made.produce(2, *values({"id": 6, "note": "x"}, {"id": 7, "note": "x"}, {"id": 8, "note": "x"}))
    *_, third = land(made.target(), [FIRST, SECOND, THIRD])
    assert len(third.tile.commits) == 1
    assert third.sums.fields_left_out == third.manifests[0].counts.fields_left_out == {"note": 3}


def test_a_new_field_that_fails_leaves_nothing_and_its_error_ends_the_run() -> None:
    made = world(schema={"on_new_field": "fail"}, **TOLERANT)
    with pytest.raises(
        RecordError, match=r"offset 2, stage schema: field 'note' is new.*nothing.*Write evolve"
    ) as error:
        land(made.target(), [FIRST, SECOND])
    assert isinstance(error.value, TerminalError)
    assert made.store.uploads == {}


def test_a_dead_letter_names_the_field_that_was_new() -> None:
    made = world(schema={"on_new_field": "dead_letter"}, **TOLERANT)
    _, second = land(made.target(), [FIRST, SECOND])
    assert (second.sums.landed, second.sums.dead) == (1, 2)
    dead_letters = [body for key, (body, *_) in made.store.objects.items() if "_dead_letters" in key]
    assert b"field 'note' is new" in dead_letters[0]


GATES = [
    ({"min_rows": 3}, "2 rows of 3 records, fewer than schema.gate.min_rows, 3"),
    ({"max_dead_letters": "10%"}, "1 of 3 records (33.33%) would be dead letters, more than schema.gate.max_dead_lett"),
    ({"max_broken": 0}, "1 of 3 records (33.33%) lack a required field or break a rule, more than schema.gate.max_br"),
]


@pytest.mark.parametrize(("gate", "words"), GATES, ids=["rows", "dead letters", "rules"])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_closed_gate_leaves_nothing_and_its_error_has_hour_figure_and_remedy(
    gate: dict[str, Any], words: str, exactly_once: bool
) -> None:
    made = TopicInMemory(**PARQUET, **TOLERANT, exactly_once=exactly_once, schema={"required": ["id"], "gate": gate})
    made.produce(0, *values({"id": 1}, {"n": 2}, {"id": 3}))
    target = made.target()
    with pytest.raises(GateError) as error:
        land(target, [FIRST])
    assert isinstance(error.value, TerminalError)
    assert f"topic 'orders', hour {FIRST}: nothing of this micro-batch is visible: {words}" in str(error.value)
    assert str(error.value).endswith(("more", "fewer"))
    assert made.store.uploads == {}
    assert [key for key in made.store.objects if not key.startswith(".indexes")] == []
    assert target.report(FIRST).tile.commits == ()
    made.settings["schema"] = {"required": ["id"]}
    (landed,) = land(made.target(), [FIRST])
    assert (landed.sums.landed, landed.sums.dead) == (2, 1)


@pytest.mark.parametrize("gate", [{"min_rows": 1}, {"max_dead_letters": "50%"}, {"max_dead_letters": "60%"}])
def test_a_gate_lets_through_what_is_no_more_and_no_less_than_it_asks_for(gate: dict[str, Any]) -> None:
    made = TopicInMemory(**PARQUET, **TOLERANT, schema={"gate": gate}).produce(0, b'{"id":1}', b"{")
    (landed,) = land(made.target(), [FIRST])
    assert (landed.sums.landed, landed.sums.dead) == (1, 1)


def test_a_gate_lets_through_what_read_no_record() -> None:
    made = TopicInMemory(**PARQUET, schema={"gate": {"min_rows": 1}}).produce(0, None)
    made.settings["nulls"] = "skip"
    with pytest.raises(GateError):
        land(made.target(), [FIRST])
    made.records.clear()
    (landed,) = land(made.target(), [FIRST])
    assert landed.sums.offsets == 1


def test_a_change_belongs_to_the_attempt_that_landed_it() -> None:
    made = world(schema={"gate": {"max_dead_letters": 0}}, **TOLERANT)
    with pytest.raises(GateError):
        land(made.target(), [FIRST, SECOND])
    (step,) = [step for step in list_column_steps(made.target().index) if step.change.column == "note"]
    assert (step.hour, step.commit) == (SECOND, None)
    made.settings["schema"] = {}
    target = made.target()
    (second,) = land(target, [SECOND])
    (step,) = [step for step in list_column_steps(target.index) if step.change.column == "note"]
    assert (step.hour, step.commit) == (SECOND, second.tile.commits[0])


def test_the_hour_that_changed_columns_shows_the_difference() -> None:
    made = world(**TOLERANT)
    made.produce(2, *values({"id": 1.5}))
    target = made.target()
    first, second, third = land(target, [FIRST, SECOND, THIRD])
    assert "schema_changes" not in hour_metadata(first, target.index)
    shown = [hour_metadata(hour, target.index)["schema_changes"] for hour in (second, third)]
    cells = [[tuple(row.data.values()) for row in table.records] for table in shown]
    assert cells == [
        [("to.street", "", "string", second.tile.commits[0]), ("note", "", "string", second.tile.commits[0])],
        [("id", "int64", "double", third.tile.commits[0])],
    ]


V1 = record(("id", "long"))
V2 = record(("id", "long"), ("note", ["null", "string"]))


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize(("compatibility", "sizes"), [("none", [5, 5, 10, 10]), ("backward", [1, 9, 20])])
def test_old_and_new_producers_together_give_a_file_for_each_schema_and_flush_at_most(
    format: str, compatibility: str, sizes: list[int]
) -> None:
    with serving() as registry:
        made = TopicInMemory(
            format={"type": format},
            converter={"value": "avro", "registry": {"url": registry.url}},
            flush={"count": 20 if compatibility == "backward" else 10},
            schema={"compatibility": compatibility},
        )
        old, new = registry.add(V1), registry.add(V2)
        for number in range(15):
            made.produce(0, framed(old, datum(V1, {"id": number})))
            made.produce(0, framed(new, datum(V2, {"id": number, "note": "n"})))
        made.batch_rows = 1
        (landed,) = land(made.target(), [FIRST])
    assert sorted(file.records for file in landed.manifests[0].files) == sizes
    assert landed.sums.landed == 30


def test_fields_that_got_the_default_of_a_newer_schema_are_counted_in_the_commit() -> None:
    defaulted = {**V2, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": "none"}]}
    with serving() as registry:
        made = TopicInMemory(
            **PARQUET,
            converter={"value": "avro", "registry": {"url": registry.url}},
            schema={"compatibility": "backward"},
        )
        old, new = registry.add(V1), registry.add(defaulted)
        made.produce(0, framed(new, datum(defaulted, {"id": 1, "note": "n"})), framed(old, datum(V1, {"id": 2})))
        (landed,) = land(made.target(), [FIRST])
    assert landed.manifests[0].counts.fields_filled == {"note": 1}
