"""Compacting: the same records in few files, whatever the hour was made of, wherever a process stops."""

import io
import tempfile
from typing import Any, BinaryIO

import pytest

from s3lake.index.store import Document, reading
from s3lake.land.change.compact import compact_hours
from s3lake.records.encode.text_file import TextJoiner
from s3lake_tests.conftest import short_id
from s3lake_tests.lake.verify.world import HOUR, texts
from s3lake_tests.land.change.parts import Parts, holding, land_two_commits, number_values, planned_changes, run_change


def test_records_that_nothing_separates_are_compared_as_what_they_are_together() -> None:
    framing = {"between": "", "closing": ""}
    world = Parts(format={"type": "bytes", "framing": framing}, converter={"value": "bytes"}, flush={"count": 1})
    world.land(b"", b"ab", b"c")
    assert run_change("compact", holding(world)).summary.endswith("become 1")
    world.verify_clean()
    (manifest,) = holding(world).manifests(HOUR) or []
    world.overwrite(manifest.files[0], b"abd", manifest.id)
    assert any("is not what records 0 to 2 make together" in text for text in texts(world.verified(), "object"))


def test_a_commit_of_many_files_becomes_a_commit_of_one_file() -> None:
    world = Parts(flush={"count": 2}).land(*number_values(*range(6)))
    (planned,) = planned_changes("compact", holding(world))
    assert str(planned) == f"{HOUR}: 3 files of 54 bytes become 1"
    assert run_change("compact", holding(world)) == planned
    assert list(world.bodies().values()) == [b"".join(value + b"\n" for value in number_values(*range(6)))]
    assert planned_changes("compact", holding(world)) == []


def test_files_of_the_size_that_is_asked_for_stay() -> None:
    world = Parts(flush={"count": 2}).land(*number_values(*range(6)))
    assert list(compact_hours(holding(world), [HOUR], yes=False, size=18)) == []
    (planned,) = compact_hours(holding(world), [HOUR], yes=False, size=36)
    assert str(planned).endswith("become 2")


def test_files_that_cannot_be_joined_stay_with_a_reason() -> None:
    world = Parts(format={"type": "csv", "header": False}, flush={"count": 1}).land(*number_values(1, 2))
    before = dict(world.store.objects)
    (planned,) = planned_changes("compact", holding(world))
    assert "CSV without header lines" in planned.blocker
    assert planned.files == len(world.bodies()) == 2
    assert run_change("compact", holding(world)) == planned
    assert world.store.objects == before


def test_objects_of_one_record_each_stay() -> None:
    world = Parts(format={"type": "bytes"}, converter={"value": "bytes"}).land(b"1", b"2")
    assert "has one record an object" in str(run_change("compact", holding(world)))
    assert list(world.bodies().values()) == [b"1", b"2"]
    world.verify_clean()


@pytest.mark.parametrize(
    "sink", [{"format": {"type": "json"}}, {"format": {"type": "json", "codec": "zstd"}}], ids=short_id
)
def test_a_file_that_would_not_hold_its_sources_records_is_not_made_visible(
    sink: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = land_two_commits(**sink)
    before = world.bodies()
    join = TextJoiner.add

    def join_twice(joiner: TextJoiner, body: BinaryIO) -> int | None:
        join(joiner, body)
        body.seek(0)
        return join(joiner, body)

    monkeypatch.setattr(TextJoiner, "add", join_twice)
    blocker = run_change("compact", holding(world)).blocker
    assert "would not hold the records of the files that it is made of" in blocker
    assert (world.bodies(), world.store.uploads) == (before, {})
    world.verify_clean()


def test_a_disk_that_takes_a_part_of_each_write_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reluctant(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    world = land_two_commits()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Reluctant())
    assert run_change("compact", holding(world)).blocker == ""
    world.verify_clean()
    assert len(world.bodies()) == 2


def test_joined_and_compared_files_are_read_from_the_store_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = land_two_commits()
    monkeypatch.setattr(reading, "PART_BYTES", 16)
    asked, get = list[Any](), world.store.get

    def note(key: str, span: tuple[int, int] | None = None) -> Document | None:
        asked.append((key, span))
        return get(key, span)

    monkeypatch.setattr(world.store, "get", note)
    run_change("compact", holding(world))
    read = [one for one in asked if one[1] is not None]
    assert len(read) == len(set(read)) > 20
