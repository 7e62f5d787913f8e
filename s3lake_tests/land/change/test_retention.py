"""Retention: hours that are too old leave the objects, and the index shows where their records went."""

from types import SimpleNamespace
from unittest import mock

import pytest

from s3lake import hours
from s3lake.errors import ConfigurationError, StoreUnavailableError
from s3lake.land.change import retention
from s3lake.land.change.retention import expire_hours, kept_s
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.parts import Parts, holding, number_values, run_change

DAY_S = 86_400.0
OLD_MS = hours.end_ms(HOUR) + 86_400_000


def landed(**sink: object) -> Parts:
    world = Parts(flush={"count": 2}, **sink).land(*number_values(1, 2, 3), b"no JSON")
    world.land(*number_values(4))
    return world


def test_an_hour_is_too_old_when_it_is_over_for_longer_than_it_is_kept() -> None:
    world = landed()
    with mock.patch.object(hours, "now_ms", return_value=OLD_MS - 1):
        assert list(expire_hours(holding(world), yes=False, older_than_s=DAY_S)) == []
    with mock.patch.object(hours, "now_ms", return_value=OLD_MS):
        (expiry,) = expire_hours(holding(world), yes=False, older_than_s=DAY_S)
    assert (expiry.records, expiry.files) == (5, 4)
    assert list(world.bodies()) != []


def test_an_expired_hour_is_not_expired_again() -> None:
    world = landed()
    (done,) = expire_hours(holding(world), yes=True, older_than_s=DAY_S)
    assert str(done).startswith(f"{HOUR}: 5 records in 4 files")
    after = dict(world.store.objects)
    assert list(expire_hours(holding(world), yes=True, older_than_s=DAY_S)) == []
    run_change("retention", holding(world))
    assert world.store.objects == after


def test_objects_of_others_next_to_the_hours_stop_nothing() -> None:
    world = landed()
    copy = f"{world.index.root}/backup of yesterday/topic.json"
    world.store.put(copy, b"{}")
    world.store.put(f"{copy}.2", b"{}")
    assert len(list(expire_hours(holding(world), yes=True, older_than_s=DAY_S))) == 1
    assert copy in world.store.objects


def test_an_hour_stays_while_an_object_of_a_young_commit_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would appear after the sweep, and no manifest would be left that names it."""
    world = landed()
    manifest, *_ = before = holding(world).manifests(HOUR) or []
    del world.store.objects[manifest.files[0].key]

    monkeypatch.setattr(retention, "time", SimpleNamespace(time=lambda: manifest.created_ms / 1000 + DAY_S - 1))
    with pytest.raises(StoreUnavailableError, match="was committed within a day, and the store does not show it"):
        run_change("retention", holding(world))
    assert holding(world).manifests(HOUR) == before

    monkeypatch.setattr(retention, "time", SimpleNamespace(time=lambda: manifest.created_ms / 1000 + DAY_S))
    run_change("retention", holding(world))
    assert world.bodies() == {}


def test_the_option_of_the_command_wins_over_the_sinks_retention() -> None:
    def of(**sink: object) -> TopicSink:
        return holding(Parts(**sink))

    assert (kept_s(of(retention="30d"), None), kept_s(of(retention="30d"), 7.0)) == (30 * DAY_S, 7.0)
    with pytest.raises(ConfigurationError, match=r"`retention: 30d`, or use --older-than"):
        kept_s(of(), None)
