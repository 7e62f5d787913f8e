"""Replaying dead letters: what is accepted now is data of its hour, exactly once; the rest stays, with its reason."""

import json
from typing import Any

import pytest

from s3lake.errors import ConfigurationError
from s3lake.index.commit.dead_letter_reasons import normalize_reason
from s3lake.index.commit.documents import Recorded
from s3lake.land.change.committed_dead_letters import read_committed_dead_letters
from s3lake_tests.conftest import short_id
from s3lake_tests.land.change.parts import run_change
from s3lake_tests.land.change.refused import GOOD, MENDED, ODD, TEMPLATE, LakeWithRefusals


@pytest.fixture
def lake() -> LakeWithRefusals:
    return LakeWithRefusals().landed(7, 4)


def test_records_that_are_accepted_now_become_data_and_the_rest_keeps_its_reason(lake: LakeWithRefusals) -> None:
    assert set(lake.dead_letters()) == {2, 5, 6, 9, 10}
    lake.mended(**MENDED)
    first, second = lake.replay()
    assert (first.chosen, first.landed, [one.count for one in first.refused]) == (3, 2, [1])
    assert (second.chosen, second.landed) == (2, 1)
    assert lake.dead_letters().keys() == {6, 10}
    report = lake.verify_clean()
    assert (report.landed, report.dead_letters, report.compared) == (9, 2, 11)


def test_each_is_marked_by_the_commit_that_took_it(lake: LakeWithRefusals) -> None:
    lake.mended(**MENDED)
    replayed = lake.replay()
    assert [one.commit for one in replayed] == [one.id for one in lake.commits]
    assert [[(one.commit, one.offsets) for one in each.taken] for each in lake.commits] == [
        [(replayed[0].commit, ((0, 2, 3), (0, 5, 6)))],
        [(replayed[1].commit, ((0, 9, 10),))],
    ]
    assert {each.reason for each in lake.commits} == {"replay"}


def test_a_record_that_fails_again_for_another_reason_has_the_new_one(lake: LakeWithRefusals) -> None:
    assert "field at" in lake.dead_letters()[2]
    lake.mended(layout={"template": TEMPLATE, "time": {"source": "field", "field": "when"}})
    assert [(one.landed, bool(one.commit)) for one in lake.replay()] == [(0, True), (0, True)]
    assert "field when" in lake.dead_letters()[2]
    assert [one.taken for one in lake.commits] == [(), ()]
    lake.verify_clean()


def test_the_chosen_that_fail_again_and_the_others_of_their_object_are_in_one_object_each(
    lake: LakeWithRefusals,
) -> None:
    lake.mended(layout={"template": TEMPLATE, "time": {"source": "field", "field": "when"}})
    lake.replay("layout:")
    files = [file for manifest in lake.commits for file in manifest.files if file.stream == "dead_letters"]
    assert [(file.first_offset, file.last_offset, file.records) for file in files] == [
        *((2, 5, 2), (6, 6, 1)),
        *((9, 9, 1), (10, 10, 1)),
    ]
    run_change("compact", lake.target())
    assert lake.dead_letters().keys() == {2, 5, 6, 9, 10}
    lake.verify_clean()


def test_only_the_chosen_reason_is_replayed(lake: LakeWithRefusals) -> None:
    reasons = [[(one.stage, one.count, one.offset) for one in each.refusal_reasons] for each in lake.commits]
    assert reasons == [[("layout", 2, 2), ("convert", 1, 6)], [("convert", 1, 10), ("layout", 1, 9)]]
    lake.mended(**MENDED)
    assert [one.chosen for one in lake.replay("layout:")] == [2, 1]
    assert [one.chosen for one in lake.replay("truncated")] == []
    assert set(lake.dead_letters()) == {6, 10}
    assert [[(one.stage, one.count) for one in each.refusal_reasons] for each in lake.commits] == [[("convert", 1)]] * 2


def test_a_reason_is_found_as_it_is_counted() -> None:
    lake = LakeWithRefusals().land(GOOD % 1, b'{"at":"noon"}', b'{"at":"midnight"}')
    (message, other) = lake.dead_letters().values()
    assert normalize_reason(message) == normalize_reason(other) != message
    lake.mended(**MENDED)
    assert [one.landed for one in lake.replay(f"layout: {normalize_reason(message)}")] == [2]


def test_a_dry_run_reports_the_same_and_changes_nothing(lake: LakeWithRefusals) -> None:
    lake.mended(**MENDED)
    before = dict(lake.store.objects)
    would = lake.replay(dry_run=True)
    assert (lake.store.objects, lake.store.uploads) == (before, {})
    did = lake.replay()
    assert [(one.chosen, one.landed, one.refused) for one in would] == [
        (one.chosen, one.landed, one.refused) for one in did
    ]
    assert {one.commit for one in would} == {None}


def test_an_hour_of_dead_letters_only_fits_any_configuration() -> None:
    lake = LakeWithRefusals(layout={}, converter={"value": "json"}, format={"type": "json"}).land(
        b"\xff", b"no json", b""
    )
    lake.mended(converter={"value": "bytes"}, format={"type": "parquet"})
    assert [one.landed for one in lake.replay()] == [3]
    report = lake.verify_clean()
    assert (report.landed, report.dead_letters) == (3, 0)


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ({}, {"format": {"type": "parquet"}}, "its format is 'json' then and 'parquet' now"),
        ({}, {"format": {"type": "json", "codec": "gzip"}}, "codec and envelope are others now than then"),
        ({"converter": {"value": "string"}, "layout": {}}, {"converter": {"value": "json"}}, "its value converter is"),
        ({"nulls": "skip"}, {"nulls": "write"}, "its nulls are 'skip' then and 'write' now"),
    ],
    ids=short_id,
)
def test_a_commit_of_another_form_is_refused_with_what_helps(
    was: dict[str, Any], now: dict[str, Any], why: str
) -> None:
    lake = LakeWithRefusals(**was).land(GOOD % 1, b"no JSON", ODD % 2, b"\xff")
    lake.mended(**{"layout": {}, **now})
    before = lake.bodies()
    with pytest.raises(ConfigurationError, match=why) as caught:
        lake.replay()
    assert "`s3lake reformat` first" in str(caught.value)
    assert (lake.bodies(), lake.store.uploads) == (before, {})


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({}, {"format": {"type": "parquet"}}),
        ({}, {"format": {"type": "avro"}, "flush": {"count": 1}}),
        ({"format": {"type": "avro", "codec": "deflate"}}, {"format": {"type": "parquet"}, "flush": {"count": 2}}),
    ],
    ids=short_id,
)
def test_a_commit_of_another_form_is_reformatted_and_replayed(was: dict[str, Any], now: dict[str, Any]) -> None:
    lake = LakeWithRefusals(**was).landed(7, 4)
    lake.mended(**{"layout": {}, **now})
    run_change("reformat", lake.target())
    assert sum(one.landed for one in lake.replay()) == 3
    report = lake.verify_clean()
    assert (report.landed, report.dead_letters, report.compared) == (9, 2, 11)
    assert lake.bodies().keys() == {file.key for one in lake.commits for file in one.files}
    assert lake.store.uploads == {}


def test_nulls_that_failed_land_once_they_may() -> None:
    lake = LakeWithRefusals(layout={}, nulls="fail").land(b"1", None, b"2")
    lake.mended(nulls="skip")
    assert [(one.landed, one.skipped) for one in lake.replay()] == [(0, 1)]
    report = lake.verify_clean()
    assert (report.landed, report.dead_letters, report.skipped) == (2, 0, 1)


@pytest.mark.parametrize("form", ["parquet", "avro", "csv"])
def test_tables_have_the_columns_that_their_commit_had(form: str) -> None:
    lake = LakeWithRefusals(format={"type": form}).land(
        GOOD % 1, ODD % 2, b"{ broken", b'{"at":1767600000000,"more":"x"}'
    )
    (before,) = lake.commits
    lake.mended(**MENDED)
    assert [(one.landed, len(one.refused)) for one in lake.replay("layout")] == [(1, 0)]
    report = lake.verify_clean()
    assert (report.landed, report.dead_letters) == (3, 1)
    assert lake.commits[0].columns == before.columns


def test_a_column_that_came_later_is_none_of_the_commit() -> None:
    lake = LakeWithRefusals(format={"type": "parquet"}).land(b'{"at":1767600000000,"tags":[]}', ODD % 2)
    later = {**(lake.commits[0].columns or {}), "tags": "list<string>"}
    lake.index.create(lake.index.columns_key, Recorded(later))
    lake.mended(**MENDED)
    assert [one.landed for one in lake.replay()] == [1]
    lake.verify_clean()


def test_a_dead_letter_comes_back_as_it_was() -> None:
    lake = LakeWithRefusals(layout={})
    headers: list[tuple[str, bytes | None]] = [("a", b"\xff"), ("a", None), ("é", b"")]
    lake.land_records([(b"\x00k", b"\xff{", headers)])
    (dead_letter,) = read_committed_dead_letters(lake.store, lake.commits[0])
    assert (dead_letter.key, dead_letter.value, dead_letter.headers) == (b"\x00k", b"\xff{", tuple(headers))
    assert json.loads(dead_letter.line)["stage"] == dead_letter.stage == "convert"
