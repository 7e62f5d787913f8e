"""Merging an hour's commits: the same records in few files, and any failure leaves the hour as it is."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import msgspec
import pyarrow.parquet as pq
import pytest

from s3lake.errors import DataLossError
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.protocol import Committed
from s3lake.land.change.compact import CompactOptions, find_join_blocker, merge, plan_outputs
from s3lake.land.change.hour_change import CannotChange
from s3lake_tests.kit.targets import target_of
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.parts import Parts, number_values


def merging(world: Parts, *manifests: Manifest) -> Iterator[Committed]:
    """Merge commits of a world's hour as a landing does at its end."""
    target = target_of(world.sink, world.index)
    return merge(target, HOUR, list(manifests or world.manifests.values()), CompactOptions.at_hour_end(world.sink))


def merged(world: Parts) -> Manifest:
    """The commit that took the place of all others."""
    (done,) = merging(world)
    return done.manifest


def left_alone(world: Parts) -> str:
    """Why an hour is not merged."""
    world.write_index()
    before = dict(world.store.objects)
    with pytest.raises(CannotChange) as caught:
        list(merging(world))
    assert (world.store.objects, world.store.uploads) == (before, {})
    return str(caught.value)


def test_json_lines_of_many_commits_are_one_file() -> None:
    world = Parts()
    for number in range(0, 12, 2):
        world.land(*number_values(number, number + 1))
    manifest = merged(world)
    (file,) = manifest.files
    assert world.store.objects[file.key][0] == b"".join(value + b"\n" for value in number_values(*range(12)))
    assert file.key == f"verified/date=2026-11-20/hour=05/0-000000000000~{manifest.id[:12]}.json"
    assert (file.first_offset, file.last_offset, file.records, file.partition) == (0, 11, 12, 0)
    assert manifest.replaces == ("c0", "c1", "c2", "c3", "c4", "c5")


READERS: dict[str, Callable[[io.BytesIO], list[Any]]] = {
    "parquet": lambda body: pq.read_table(body).to_pylist(),
    "avro": lambda body: list(fastavro.reader(body)),
}


@pytest.mark.parametrize("form", READERS)
def test_files_of_growing_columns_become_a_commit_for_each_schema(form: str) -> None:
    world = Parts(format={"type": form})
    for value in (b'{"a":1,"b":[]}', b'{"a":2}', b'{"a":3,"b":"x"}', b'{"a":4}'):
        world.land(value)
    files = [file for done in list(merging(world)) for file in done.manifest.files]
    rows = [READERS[form](io.BytesIO(world.store.objects[file.key][0])) for file in files]
    assert rows == [[{"a": 1}, {"a": 2}], [{"a": 3, "b": "x"}, {"a": 4, "b": None}]]
    world.verify_clean()


def test_commits_of_other_transforms_are_merged_apart() -> None:
    world = Parts()
    for number in range(4):
        world.land(*number_values(number))
    for commit in ("c0", "c1"):
        world.change(commit, form=msgspec.structs.replace(world.manifests[commit].form, transforms="earlier"))
    world.write_index()
    merge_all = merging(world)
    manifests = [done.manifest for done in merge_all]
    assert [(manifest.replaces, manifest.form.transforms) for manifest in manifests] == [
        (("c0", "c1"), "earlier"),
        (("c2", "c3"), ""),
    ]


def test_a_merge_keeps_the_times_of_transforms_and_is_compared() -> None:
    field = {"type": "iggy.add_fields", "options": {"fields": [{"key": "at", "value": {"computed": "date_time"}}]}}
    world = Parts(transforms=[field])
    for number in range(4):
        world.land(*number_values(number))
    (done,) = merging(world)
    assert done.manifest.clocks == tuple((0, end, 0) for end in (1, 2, 3, 4))
    report = world.verified()
    assert (report.clean, report.not_compared) == (True, 0)


def test_each_output_partition_has_its_file() -> None:
    world = Parts(layout={"partition_by": ["type"]})
    for number in range(4):
        world.land(*(b'{"id":%d,"type":"%d"}' % (number, one) for one in range(3)))
    manifest = merged(world)
    assert sorted(file.key for file in manifest.files) == sorted(
        f"verified/type={one}/verified(0_{one:012})~{manifest.id[:12]}.json" for one in range(3)
    )
    assert [file.records for file in manifest.files] == [4, 4, 4]


def test_files_are_filled_up_to_the_flush_size_and_count() -> None:
    world = Parts(flush={"count": 5})
    for number in range(8):
        world.land(*number_values(number, number))
    assert [file.records for file in merged(world).files] == [4, 4, 4, 4]
    world = Parts(flush={"size": 40})
    for number in range(8):
        world.land(*number_values(number))
    assert [file.bytes for file in merged(world).files] == [36, 36]


def test_sidecars_stay_next_to_their_data() -> None:
    world = Parts(sidecars={"keys": "json", "headers": "avro"})
    for number in range(3):
        world.land_records([(b"k%d" % number, b'{"id":%d}' % number, [("h", b"x")])])
    files = {file.stream: file for file in merged(world).files}
    stem = files["data"].key.removesuffix(".json")
    assert {kind: file.key.removeprefix(stem) for kind, file in files.items()} == {
        "data": ".json",
        "keys": ".keys.json",
        "headers": ".headers.avro",
    }
    assert [json.loads(line) for line in world.store.objects[files["keys"].key][0].splitlines()] == ["k0", "k1", "k2"]
    assert len(list(fastavro.reader(io.BytesIO(world.store.objects[files["headers"].key][0])))) == 3


def test_dead_letters_are_carried() -> None:
    world = Parts()
    for number in range(3):
        world.land(b"broken", *number_values(number))
    dead_letters, data = sorted(merged(world).files, key=lambda file: file.stream, reverse=True)
    assert (dead_letters.stream, dead_letters.records, dead_letters.first_offset, dead_letters.last_offset) == (
        "dead_letters",
        3,
        0,
        4,
    )
    lines = [json.loads(line) for line in world.store.objects[dead_letters.key][0].splitlines()]
    assert [line["offset"] for line in lines] == [0, 2, 4]
    assert data.records == 3
    world.verify_clean()


def test_names_have_the_last_offset_and_the_count_of_the_merged_file() -> None:
    world = Parts(layout={"template": "{topic}/{partition}-{offset:03}-{last_offset:03}-{records}"})
    for number in range(3):
        world.land(*number_values(number, number))
    manifest = merged(world)
    assert [file.key for file in manifest.files] == [f"verified/0-000-005-6~{manifest.id[:12]}.json"]


def test_few_large_files_are_left_alone() -> None:
    world = Parts(flush={"size": 30})
    for number in range(6):
        world.land(*number_values(number, number))
    assert list(merging(world)) == []


def two_files(**sink: Any) -> Parts:
    """Two commits of a file of two records each, the second one with its mark."""
    world = Parts(**sink).land(*number_values(1, 2))
    return world.land(*number_values(3, 4), renamed=True)


LAYOUT = "{topic}/{partition}-{offset}-"
OTHER_WALLCLOCK = {"template": "{time:HH}/" + LAYOUT + "{last_offset}", "time": {"source": "wallclock"}}
WALLCLOCK = {"layout": {**OTHER_WALLCLOCK, "template": "{time:HH}/{topic}/{partition}-{offset}"}}


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ({"exactly_once": False}, None, "exactly_once is off"),
        ({"flush": {"span": "1m"}}, None, "flush.span closes its files by timestamps of records, which are not"),
        ({"format": {"type": "csv", "header": False}}, None, "of CSV without header lines each file may have columns"),
        (
            {"layout": {"template": LAYOUT + "{max_timestamp}"}},
            None,
            "its names contain timestamps of records, which are",
        ),
        ({}, {"nulls": "write"}, "some of it was landed with another configuration"),
        ({}, {"format": {"type": "json", "codec": "gzip"}}, "some of it was landed with another configuration"),
        ({}, {"converter": {"value": "string"}}, "some of it was landed with another configuration"),
        ({}, {"layout": {"template": LAYOUT + "{last_offset}"}}, "some of it was landed with another layout"),
        (WALLCLOCK, {"layout": OTHER_WALLCLOCK}, "some of it was landed with another layout"),
    ],
    ids=[
        *("at least once", "a span of files", "csv without a header", "a timestamp in names"),
        *("other nulls", "another codec", "another converter", "another template", "another wallclock"),
    ],
)
def test_an_hour_whose_files_cannot_be_joined_stays_as_it_is_with_a_reason(
    was: dict[str, Any], now: dict[str, Any] | None, why: str
) -> None:
    world = two_files(**was)
    if now is not None:
        world.sink = Parts(**now).sink
    assert left_alone(world).startswith(why)


def test_a_file_that_differs_from_its_manifest_stays() -> None:
    world = two_files(format={"type": "parquet"})
    (file,) = world.manifests["c1"].files
    world.change("c1", files=(msgspec.structs.replace(file, records=3),))
    assert left_alone(world) == f"{file.key} of commit c1: it holds 2 records, its manifest states 3"


def test_an_object_of_another_commit_is_a_loss() -> None:
    world = two_files()
    (file,) = world.manifests["c1"].files
    world.overwrite(file, world.store.objects[file.key][0], "other")
    world.write_index()
    with pytest.raises(DataLossError, match="of commit c1 has 18 of 18 bytes or is another's"):
        list(merging(world))
    assert world.store.uploads == {}


@pytest.mark.parametrize(("size", "count", "made"), [(0, 0, 1), (-1, 0, 2), (0, -1, 2)])
def test_an_output_file_may_be_as_large_as_its_rule_allows(size: int, count: int, made: int) -> None:
    manifests = list(two_files().manifests.values())
    both = sum(file.bytes for manifest in manifests for file in manifest.files)
    assert len(plan_outputs(manifests, CompactOptions(both + size, 4 + count))) == made


def test_files_of_micro_batches_at_different_times_may_be_one_each() -> None:
    world = two_files(**WALLCLOCK)
    for commit, time in (("c0", "05"), ("c1", "06")):
        (file,) = world.manifests[commit].files
        assert file.group is not None
        world.change(commit, files=(msgspec.structs.replace(file, group=time + file.group[2:]),))
    assert find_join_blocker(world.sink, TOPIC, list(world.manifests.values())) == ""


@pytest.mark.parametrize("format", [{"type": "json"}, {"type": "csv", "header": True}], ids=lambda form: form["type"])
def test_files_with_the_mark_of_their_commit_and_without_may_be_one(format: dict[str, Any]) -> None:
    assert [file.records for file in merged(two_files(format=format)).files] == [4]
