"""Dead letters in Dagster: an asset's hours that have some, and a check with a threshold."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import dagster as dg
import msgspec
import pytest

from s3lake.commit.sums import Commits
from s3lake.land.observer import LandedHour
from s3lake.orchestration import letters
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.landing_run import TopicReport
from s3lake.orchestration.translator import dead_letters_key, sink_key
from s3lake.sink import Config, Kafka, Sink
from s3lake.sink.errors import Threshold
from s3lake_tests.land.replay.lake import GOOD, MENDED, Lake
from s3lake_tests.orchestration.catalogues import catalogue
from s3lake_tests.verify.world import HOUR, TOPIC

KEY = dead_letters_key("events", TOPIC)


@pytest.fixture
def lake() -> Lake:
    return Lake().landed(7, 4)


def landed(lake: Lake) -> LandedHour:
    (tile,) = lake.index.tiles()
    return LandedHour(tile, Commits(lake.index, HOUR, tile.commits), 1)


def told(lake: Lake) -> dict[str, Any]:
    found = letters.of_hour(landed(lake), lake.landing())
    assert found is not None
    return found


def rows(table: dg.TableMetadataValue) -> list[dict[str, Any]]:
    return [dict(record.data) for record in table.records]


class TestMetadata:
    def test_counts_by_stage_and_reason_and_names_some(self, lake: Lake) -> None:
        found = told(lake)
        assert (found["dead_letters"], found["share"]) == (5, round(5 / 11, 6))
        assert [(one["stage"], one["count"], one["first"]) for one in rows(found["reasons"])] == [
            ("layout", 3, "0@2"),
            ("convert", 2, "0@6"),
        ]
        places = [(one["topic-partition"], one["offset"]) for one in rows(found["samples"])]
        assert places == [("verified-0", offset) for offset in (2, 5, 6, 9, 10)]
        assert all("_dead_letters" in one for one in found["objects"].value)

    def test_nothing_of_a_record_is_told_by_itself(self) -> None:
        lake = Lake()
        lake.land(b'{"password":"hunter2","who":"eva"}', b'{"at":"eva"}')
        lake.write_index()
        assert "eva" not in str(told(lake))
        lake.mended(errors={"tolerance": "all", "samples": "contents"})
        found = rows(told(lake)["samples"])
        assert [one["value"] for one in found] == ['{"password":"********","who":"eva"}', '{"at":"eva"}']

    def test_a_complete_hour_without_any_says_zero_and_an_open_one_nothing(self) -> None:
        lake = Lake()
        lake.land(GOOD % 1)
        lake.write_index()
        hour = landed(lake)
        assert letters.of_hour(hour, lake.landing()) == {"dead_letters": 0, "share": 0.0}
        span = msgspec.structs.replace(hour.tile.partitions[0], end=None)
        opened = replace(hour, tile=hour.tile.changed(partitions={0: span}))
        assert letters.of_hour(opened, lake.landing()) is None

    def test_an_hour_whose_dead_letters_were_all_replayed_says_so(self) -> None:
        lake = Lake()
        lake.land(GOOD % 1, b'{"id":2}')
        lake.write_index()
        lake.mended(**MENDED)
        lake.replay()
        found = told(lake)
        assert (found["dead_letters"], found["replayed"]) == (0, 1)
        assert [(one["commit"], one["dead_letters"]) for one in rows(found["replays"])] == [(lake.commits[0].id, 1)]

    def test_objects_that_cannot_be_read_keep_nothing_from_being_told(self, lake: Lake) -> None:
        for key in [key for key in lake.bodies() if "_dead_letters" in key]:
            lake.store.delete(key)
        found = told(lake)
        assert found["dead_letters"] == 5
        assert "is gone" in found["not_read"]


class Run:
    """A run that remembers the events that it is to store."""

    def __init__(self, lake: Lake) -> None:
        self.catalogue, self.attempt = catalogue(lake.landing().sink, TOPIC), 0
        self.materialised: dict[str, set[str]] = defaultdict(set)
        self.events: list[dg.AssetMaterialization] = []

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def log_event(self, event: dg.AssetMaterialization) -> None:
        self.events.append(event)

    def metadata(self, key: dg.AssetKey) -> dict[str, Any]:
        (event,) = [event for event in self.events if event.asset_key == key]
        return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.parametrize("poison", [[b"{"], []], ids=["one", "none"])
def test_a_run_stores_how_many_dead_letters_a_complete_hour_has_and_a_zero_too(poison: list[bytes]) -> None:
    lake = Lake()
    lake.land(GOOD % 1, *poison)
    lake.write_index()
    run: Any = Run(lake)
    TopicReport(run, lake.landing(), [HOUR]).done(landed(lake))
    assert run.metadata(KEY)["dead_letters"] == len(poison)


def test_an_hour_tells_what_had_to_be_tried_again(lake: Lake) -> None:
    run: Any = Run(lake)
    landing = lake.landing()
    TopicReport(run, landing, [HOUR]).done(landed(lake))
    assert "retried_requests" not in run.metadata(sink_key("events", TOPIC))
    again: Any = Run(lake)
    landing.retries, again.attempt = 4, 2
    TopicReport(again, landing, [HOUR]).done(landed(lake))
    metadata = again.metadata(sink_key("events", TOPIC))
    assert (metadata["retried_requests"], metadata["retried_attempts"]) == (4, 2)


@pytest.mark.parametrize(
    ("threshold", "dead", "fails"),
    [
        ({}, 0, False),
        ({}, 1, True),
        ({"number": 5}, 5, False),
        ({"number": 5}, 6, True),
        ({"share": 0.01}, 10, False),
        ({"share": 0.01}, 11, True),
        ({"share": 0.01, "number": 5}, 6, True),
    ],
)
def test_the_check_fails_above_its_threshold(threshold: dict[str, Any], dead: int, fails: bool) -> None:
    assert Threshold.model_validate(threshold).is_exceeded(dead, 1_000) is fails


def test_a_share_is_at_most_one() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Threshold(share=1.5)


def test_a_sink_that_tolerates_none_has_no_asset_of_dead_letters() -> None:
    for tolerance in ("none", "all"):
        sink = Sink.model_validate(
            {"name": "events", "topics": [TOPIC], "bucket": "lake", "start": HOUR, "errors": {"tolerance": tolerance}}
        )
        made = build_definitions(Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,)))
        assert (KEY in made.resolve_asset_graph().get_all_asset_keys()) is (tolerance == "all")
