"""Lines: nothing differs when nothing differs, and every way to differ is found and named."""

from typing import Any

import msgspec
import pytest

from s3lake.index.commit.documents import FileForm, Read
from s3lake.index.commit.sums import sum_commits
from s3lake_tests.lake.verify.world import HOUR, IN_TIME, NEXT, VerifiedTopic, difference_types, texts

VALUES = [b'{"n":%d}' % n for n in range(8)]


@pytest.fixture
def world() -> VerifiedTopic:
    return VerifiedTopic()


def test_landed_records_are_clean(world: VerifiedTopic) -> None:
    file = world.landed(VALUES)
    report = world.verify()
    assert report.clean
    assert (report.compared, report.landed, report.dead_letters, report.files) == (8, 8, 0, 1)
    assert (report.missing, report.duplicated, report.not_checkable, report.bytes) == (0, 0, 0, file.bytes)
    (checked,) = report.checked
    assert (checked.hour, checked.partition, checked.kafka_records) == (HOUR, 0, 8)


def test_files_that_overlap_may_have_records_in_any_order(world: VerifiedTopic) -> None:
    world.log.add(VALUES)
    files = [
        world.lines("c1", [VALUES[6], VALUES[0], VALUES[3]], 0, 6),
        world.lines("c1", [VALUES[7], VALUES[5], VALUES[1], VALUES[2], VALUES[4]], 1, 7),
    ]
    world.commit("c1", files)
    assert world.verify().clean


def test_each_commit_and_topic_partition_is_compared_by_itself(world: VerifiedTopic) -> None:
    world.log.add(VALUES)
    world.log.add(VALUES[::-1], partition=3)
    world.commit("c1", [world.lines("c1", VALUES[:4], 0), world.lines("c1", VALUES[:3:-1], 0, partition=3)])
    world.commit("c2", [world.lines("c2", VALUES[4:], 4), world.lines("c2", VALUES[3::-1], 4, partition=3)])
    report = world.verify()
    assert report.clean
    assert [(one.partition, one.landed) for one in report.checked] == [(0, 8), (3, 8)]
    assert len(world.log.reads) == 1


@pytest.mark.parametrize(
    ("old", "new", "missing", "duplicated", "message"),
    [
        pytest.param(b"3}", b"8}", 1, 1, ["offset 3: in no file of commit c1", "KEY row 3: "], id="a changed byte"),
        pytest.param(
            b'{"n":5}\n', b"", 1, 0, ["offset 5: ", "KEY has 7 records, the manifest states 8"], id="a line lost"
        ),
        pytest.param(
            b'{"n":0}', b'{"n":0}\n{"n":0}', 0, 1, ["KEY row 1: Kafka has this value fewer times"], id="a line twice"
        ),
        pytest.param(
            b"7}\n", b"7}\n\n", 0, 1, ["KEY row 8: ", "KEY has 65 bytes, the manifest states 64"], id="an empty line"
        ),
        pytest.param(b"7}\n", b"7}", 0, 0, ["KEY: the last line is not ended"], id="the last newline lost"),
        pytest.param(
            b'{"n":3}\n{"n":4}',
            b'{"n":4}\n{"n":3}',
            *(0, 0, ["KEY is not what records 0 to 7 make in their order"]),
            id="two lines swapped",
        ),
    ],
)
def test_damage_of_a_file_is_found_and_named(
    world: VerifiedTopic, old: bytes, new: bytes, missing: int, duplicated: int, message: list[str]
) -> None:
    file = world.landed(VALUES)
    world.overwrite(file, world.store.objects[file.key][0].replace(old, new))
    report = world.verify()
    assert (report.missing, report.duplicated, report.clean) == (missing, duplicated, False)
    details = "\n".join(difference.detail for difference in report.differences)
    assert [text for text in message if text.replace("KEY", file.key) not in details] == []


def test_missing_records_are_listed_in_runs_and_counted_in_all(world: VerifiedTopic) -> None:
    values = [b'{"n":%d}' % n for n in range(100)]
    world.log.add(values)
    world.commit(
        "c1",
        [world.lines("c1", [values[n] for n in range(50, 100, 2)], 50, 99)],
        {0: Read(0, 100, read=100, landed=25)},
    )
    report = world.verify()
    assert report.missing == 75
    first, *others, rest = texts(report, "missing")
    assert "offsets 0 to 49:" in first
    assert len(others) == 20 - 1
    assert "and 6 more:" in rest


def test_equal_values_count_as_often_as_they_are(world: VerifiedTopic) -> None:
    world.landed([b"1"] * 5)
    assert world.verify().clean
    world.log.records[0][4] = (IN_TIME, b"2")
    report = world.verify()
    assert (report.missing, report.duplicated) == (1, 1)
    assert "offset 4" in texts(report, "missing")[0]
    assert "row 4" in texts(report, "duplicated")[0]


def test_a_missing_object_is_named_with_all_its_records(world: VerifiedTopic) -> None:
    file = world.landed(VALUES)
    world.store.delete(file.key)
    report = world.verify()
    assert texts(report, "object") == [f"{file.key} of commit c1 is missing"]
    assert report.missing == 8
    assert "offsets 0 to 7" in texts(report, "missing")[0]


def test_an_object_of_another_commit_is_found_even_with_equal_content(world: VerifiedTopic) -> None:
    file = world.landed(VALUES)
    world.overwrite(file, world.store.objects[file.key][0], commit="another")
    report = world.verify()
    assert difference_types(report) == {"object"}
    assert "its metadata s3lake-commit is 'another'" in texts(report, "object")[0]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_files_are_read_through(codec: str) -> None:
    world = VerifiedTopic(format={"codec": codec})
    values = [b'{"n":%d,"text":"%s"}' % (n, b"x" * (n % 1000)) for n in range(3000)]
    world.log.batch = 1000
    file = world.landed(values)
    assert world.verify().clean
    compressed = world.store.objects[file.key][0]
    world.overwrite(file, compressed[: len(compressed) // 2])
    report = world.verify()
    assert f"{file.key} is not whole {codec}" in " ".join(texts(report, "object"))
    assert report.missing > 1000
    assert report.duplicated <= 1  # the line that was cut off


def test_lines_longer_than_a_block_are_one_line(world: VerifiedTopic) -> None:
    world.landed([b'"%s"' % (b"x" * 2_500_000), b"1", b'"%s"' % (b"y" * 1_048_573), b"2"])
    report = world.verify()
    assert report.clean
    assert report.landed == 4


@pytest.mark.parametrize(
    ("converter", "value", "line", "is_right"),
    [
        ("string", b"plain", b'"plain"', True),
        ("string", b"\xc5\x81\xc3\xb3d\xc5\xba\n", b'"\xc5\x81\xc3\xb3d\xc5\xba\\n"', True),
        ("string", b'"\\\x01\x7f', b'"\\"\\\\\\u0001\x7f"', True),
        ("string", b"", b'""', True),
        ("bytes", b"\xff\x00\n", b'"/wAK"', True),
        ("bytes", b"", b'""', True),
        ("string", b"plain", b"plain", False),
        ("string", b"1", b"1", False),
        ("bytes", b"plain", b'"plain"', False),
    ],
)
def test_strings_and_bytes_are_json_strings(converter: str, value: bytes, line: bytes, is_right: bool) -> None:
    world = VerifiedTopic(converter={"value": converter}, nulls="write")
    world.log.add([value, None])
    world.commit("c1", [world.lines("c1", [line, b"null"], 0)])
    assert world.verify().clean == is_right
    world.log.records[0][0] = (IN_TIME, value + b"!")
    report = world.verify()
    assert (report.missing, report.duplicated) == (1, 1)


def test_null_records_are_counted_as_skipped(world: VerifiedTopic) -> None:
    world.log.add([b"1", None, None, b"2"])
    world.commit("c1", [world.lines("c1", [b"1", b"2"], 0, 3)], {0: Read(0, 4, read=4, landed=2, skipped=2)})
    report = world.verify()
    assert report.clean
    assert (report.compared, report.landed, report.skipped) == (4, 2, 2)


@pytest.mark.parametrize(("format", "line"), [("json", b"null"), ("text", b"")])
def test_null_records_that_are_written_have_a_line(format: str, line: bytes) -> None:
    world = VerifiedTopic(format={"type": format}, nulls="write")
    world.log.add([b"1", None, b"2"])
    world.commit("c1", [world.lines("c1", [b"1", line, b"2"], 0)])
    assert world.verify().clean
    world.commit("c1", [world.lines("c1", [b"1", b"2"], 0, 2)], {0: Read(0, 3, read=3, landed=2, skipped=1)})
    assert "offset 1" in texts(world.verify(), "missing")[0]


def test_offsets_without_a_record_are_not_missing(world: VerifiedTopic) -> None:
    world.log.marker()
    world.log.add(VALUES[:3])
    world.log.marker(count=4)
    world.log.add(VALUES[3:])
    world.log.marker(count=2)
    world.commit("c1", [world.lines("c1", VALUES, 1, 12)], {0: Read(0, 15, read=8, landed=8)})
    assert world.verify().clean


def test_empty_tiles_and_topic_partitions_are_clean(world: VerifiedTopic) -> None:
    world.landed(VALUES)
    world.log.marker(partition=1, count=0)
    world.span(0, 0, 0, partition=1)
    world.span(8, 8, None, hour=NEXT)
    world.span(0, 0, None, partition=1, hour=NEXT)
    report = world.verify()
    assert report.clean
    assert [(one.hour, one.partition, one.landed) for one in report.checked] == [
        (HOUR, 0, 8),
        (HOUR, 1, 0),
        (NEXT, 0, 0),
        (NEXT, 1, 0),
    ]


def test_only_the_hours_asked_for_are_compared(world: VerifiedTopic) -> None:
    world.landed(VALUES[:4])
    world.landed(VALUES[4:], commit="c2", hour=NEXT)
    assert [one.hour for one in world.verify(first=NEXT, last=NEXT).checked] == [NEXT]
    assert [one.hour for one in world.verify(first=HOUR, last=HOUR).checked] == [HOUR]


def test_progress_counts_offsets_and_ends_at_all_of_them(world: VerifiedTopic) -> None:
    world.landed(VALUES[:5])
    world.log.marker(count=2)
    world.landed(VALUES[5:], commit="c2", hour=NEXT)
    world.span(0, 7, 7)
    world.change("c1", partitions={0: Read(0, 7, read=5, landed=5)})
    seen: list[int] = []
    assert world.verify(advance=seen.append).clean
    assert sum(seen) == 10
    assert min(seen) >= 0


def test_a_rewrite_that_deletes_the_objects_meanwhile_is_followed(
    world: VerifiedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = world.landed(VALUES)
    new = world.lines("c2", VALUES, 0)
    tile = world.tiles[HOUR]
    world.commit("c2", [new])
    world.tiles[HOUR] = tile
    heads = world.store.head

    def head(key: str) -> Any:
        if key == old.key:
            world.store.delete(old.key)
            sums = sum_commits([world.manifests["c2"]])
            rewritten = msgspec.structs.replace(tile, commits=("c2",), garbage=("c1",), sums=sums)
            world.store.put(world.index.tile_key(HOUR), msgspec.json.encode(rewritten))
        return heads(key)

    monkeypatch.setattr(world.store, "head", head)
    assert world.verify().clean


def test_two_commits_that_can_only_be_compared_with_a_registry_are_not_clean(world: VerifiedTopic) -> None:
    world.landed(VALUES[:3])
    world.landed(VALUES[3:], commit="c2")
    for commit in ("c1", "c2"):
        world.change(commit, form=FileForm("json", "avro"))
    report = world.verify()
    (unchecked,) = report.checked[0].not_checkable
    assert (unchecked.first, unchecked.end, unchecked.state) == (0, 8, "incomparable")
    assert "need a Schema Registry" in unchecked.reason
    assert (report.clean, report.compared, report.not_compared) == (False, 0, 8)


def test_a_merge_may_have_records_in_another_order(world: VerifiedTopic) -> None:
    file = world.landed(VALUES)
    world.overwrite(file, b"".join(value + b"\n" for value in VALUES[::-1]))
    world.change("c1", replaces=("c0",), reason="merged")
    assert world.verify().clean
