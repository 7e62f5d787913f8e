"""Empty lists and objects without a column while hours are landed and changed: their counts stay what they are."""

import json
from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.land.hour.landing import land
from s3lake.orchestration.hour_metadata import hour_metadata
from s3lake_tests.kit.crashes import Crash, Crashing
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.at_hand import FIRST, SECOND, TopicInMemory
from s3lake_tests.land.change.parts import Parts, holding, run_change

PARQUET = {"format": {"type": "parquet"}}


def values(*rows: dict[str, Any]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def make_topic(**settings: Any) -> TopicInMemory:
    """Return two hours' records of two topic-partitions: in the second hour one of the fields gets a column."""
    made = TopicInMemory(2, **PARQUET, **settings)
    made.produce(0, *values({"id": 1, "tags": []}, {"id": 2, "to": {}}, {"id": 3}), partition=0)
    made.produce(0, *values({"id": 4, "tags": [], "to": {"at": []}}), partition=1)
    made.produce(1, *values({"id": 5, "tags": [], "to": {}}, {"id": 6, "to": None}), partition=0)
    made.produce(1, *values({"id": 7}, {"id": 8, "to": {"zip": "a", "at": []}}), partition=1)
    return made


@pytest.mark.parametrize("batch_rows", [1, 10_000])
@pytest.mark.parametrize("settings", [{}, {"batch_records": 2}, {"batch_records": 2, "flush": {"merge": True}}])
def test_empty_fields_are_counted_in_commits_hours_and_their_metadata(
    settings: dict[str, Any], batch_rows: int
) -> None:
    made = make_topic(**settings)
    made.batch_rows = batch_rows
    target = made.target()
    first, second = land(target, [FIRST, SECOND])
    assert (first.sums.landed, first.sums.fields_left_out) == (4, {"empty:tags": 2, "empty:to": 2})
    assert second.sums.fields_left_out["empty:tags"] == 1
    if not settings:  # all records of the hour are read with the columns that any of them shows
        assert second.sums.fields_left_out == {"empty:tags": 1, "empty:to.at": 1}
    table = hour_metadata(first, target.index)["fields_left_out"]
    assert [(row.data["field"], row.data["records"]) for row in table.records] == [("empty:tags", 2), ("empty:to", 2)]


@pytest.mark.parametrize("method", ["record", "swap_tile"])
@pytest.mark.parametrize("after", [False, True])
def test_a_landing_after_one_that_crashed_counts_each_record_once(
    monkeypatch: pytest.MonkeyPatch, method: str, after: bool
) -> None:
    made = TopicInMemory(**PARQUET)
    made.produce(0, *values({"id": 1, "tags": []}, {"id": 2, "to": {}}, {"id": 3, "tags": []}))
    with monkeypatch.context() as patch:
        Crashing(0, after=after).count(patch, TopicIndex, method)
        with pytest.raises(Crash):
            land(made.target(), [FIRST])
    (landed,) = land(made.target(), [FIRST])
    assert (landed.sums.landed, landed.sums.fields_left_out) == (3, {"empty:tags": 2, "empty:to": 1})


ROWS = values({"id": 1, "a": {}}, {"id": 2, "a": {}}, {"id": 3, "b": [[]]}, {"id": 4})


def count_left_out(world: Parts) -> dict[str, int]:
    world.verify_clean()
    manifests = holding(world).manifests(HOUR) or []
    assert manifests
    return dict(sum((manifest.counts for manifest in manifests[1:]), manifests[0].counts).fields_left_out)


def test_compacting_and_erasing_keep_the_counts() -> None:
    world = Parts(**PARQUET, flush={"count": 2}).land(*ROWS)
    assert count_left_out(world) == {"empty:a": 2, "empty:b": 1}
    run_change("compact", holding(world))
    assert count_left_out(world) == {"empty:a": 2, "empty:b": 1}
    erase_hour(holding(world), HOUR, EraseConditions(Condition("id = 2"), None))
    assert count_left_out(world) == {"empty:a": 2, "empty:b": 1}


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_lines_that_are_written_again_as_columns_count_what_these_do_not_hold(format: str) -> None:
    world = Parts(format={"type": "json"}, flush={"count": 2}).land(*ROWS)
    assert count_left_out(world) == {}
    world.sink = Sink.model_validate({**world.sink.model_dump(exclude_unset=True), "format": {"type": format}})
    run_change("reformat", holding(world))
    assert count_left_out(world) == {"empty:a": 2, "empty:b": 1}
    world.sink = Sink.model_validate(
        {**world.sink.model_dump(exclude_unset=True), "format": {"type": format, "codec": "zstd"}}
    )
    run_change("reformat", holding(world))
    assert count_left_out(world) == {"empty:a": 2, "empty:b": 1}
