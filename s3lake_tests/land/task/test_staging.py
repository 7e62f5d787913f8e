"""Staging: one open file per output partition, closed by count and size, inside a memory budget."""

import gzip
import io
import json
import random
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.errors import StoreUnavailableError, TooManyFilesError
from s3lake.index.commit.documents import File
from s3lake.index.store import COMMIT
from s3lake.index.store import upload as uploads
from s3lake.index.store.memory import MemoryStore
from s3lake.land.request import in_process_tasks as records_at_hand
from s3lake.land.request import stage_values
from s3lake.land.task.refused_records import RefusedRecords
from s3lake.land.task.staging import FileRule, Staging, StagingRows
from s3lake.records.layout.object_keys import RecordColumns
from s3lake_tests.kit.cost import count_calls

MB = 10**6


def staging(store: MemoryStore, *, budget: int | None = None, **changes: Any) -> Staging:
    fixed = {"name": "s", "topics": ("t",), "bucket": "lake", "start": "2026-11-20T00", "layout": {"template": None}}
    sink = Sink(**{**fixed, **changes})
    rule = stage_values.build_file_rule(sink)
    if budget is not None:
        rule = FileRule(**{**vars(rule), "budget": budget})
    return Staging(store, stage_values.build_key_layout(sink, "t"), rule, "c1")


def lines(*values: bytes) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def offsets(first: int, count: int) -> pa.Int64Array:
    return pa.array(range(first, first + count), pa.int64())


def rows(offsets: pa.Int64Array, payload: Any, timestamps: Sequence[int] | None = None, **sidecars: Any) -> StagingRows:
    """Rows whose timestamps no layout needs, unless they are given."""
    stamps = pa.array(timestamps if timestamps is not None else [0] * len(offsets), pa.int64())
    return StagingRows(offsets, stamps, {"data": payload, **sidecars})


def add(to: Staging, first: int, payload: Any, timestamps: Sequence[int] | None = None) -> None:
    group = to.keys.fixed_group(0)
    assert group is not None
    to.add(0, group, rows(offsets(first, len(payload)), payload, timestamps))


def groups(to: Staging, *values: str, partition: int = 0) -> pa.StringArray:
    """The output partitions of records whose field `a` has these values."""
    fields = RecordColumns(values=[json.dumps({"a": value}).encode() for value in values])
    return pa.array(to.keys.groups(partition, fields, len(values)), pa.string())


def bodies(store: MemoryStore, files: list[File]) -> dict[str, bytes]:
    """What the files hold once they are visible."""
    for file in files:
        if file.key not in store.objects:
            assert store.complete_upload(file.key, file.upload, file.parts) == "completed"
        assert len(store.objects[file.key][0]) == file.bytes
    return {file.key: store.objects[file.key][0] for file in files}


def events(count: int, seed: int = 0) -> pa.BinaryArray:
    """JSON of about 200 bytes each that compresses to about a third."""
    dice = random.Random(seed)
    made = [
        json.dumps({"id": dice.getrandbits(64), "user": f"user-{dice.randrange(5000)}", "text": "lorem ipsum " * 10})
        for _ in range(count)
    ]
    return pa.array([one.encode() for one in made], pa.binary())


# Reports


def test_a_report_has_all_that_a_manifest_needs() -> None:
    store = MemoryStore()
    files = staging(store)
    add(files, 7, lines(b"one", b"three"))
    (file,) = files.finish()
    (upload,) = store.uploads
    assert file == File("t/0/000000000007.json", upload, file.parts, 0, 7, 8, 2, 10, group="t/0/\x1f\x1f")
    assert len(file.parts) == 1
    assert bodies(store, [file]) == {"t/0/000000000007.json": b"one\nthree\n"}
    assert store.objects["t/0/000000000007.json"][1].metadata == {COMMIT: "c1"}


# Size


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(1, 60),
    st.integers(1, 9),
)
def test_plain_files_are_as_large_as_they_must_and_no_larger(batches: list[list[int]], size: int, count: int) -> None:
    store = MemoryStore()
    files = staging(store, flush={"size": size, "count": count})
    first = 0
    for batch in batches:
        add(files, first, lines(*(b"x" * length for length in batch)))
        first += len(batch)
    written = list(bodies(store, files.finish()).values())
    assert b"".join(written).count(b"\n") == first
    for body in written[:-1]:
        assert len(body) >= size or body.count(b"\n") == count
    for body in written:
        before_the_last = body[: body.rstrip(b"\n").rfind(b"\n") + 1] if body.strip(b"\n") else body[:-1]
        assert len(before_the_last) < size


def numbers(count: int, seed: int) -> pa.RecordBatch:
    """Rows of a number and a text that no codec makes small."""
    dice = random.Random(seed)
    columns = [[dice.getrandbits(62) for _ in range(count)], [f"{dice.randrange(10**9)}" for _ in range(count)]]
    return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names=["id", "text"])


@pytest.mark.parametrize(
    ("type", "codec", "payload"),
    [
        ("json", "gzip", events),
        ("json", "zstd", events),
        ("parquet", "snappy", numbers),
        ("parquet", "gzip", numbers),
        ("avro", "snappy", numbers),
        ("csv", "gzip", numbers),
    ],
)
def test_compressed_files_are_within_a_twentieth_of_their_size(
    type: str, codec: str, payload: Callable[[int, int], Any]
) -> None:
    files = staging(MemoryStore(), format={"type": type, "codec": codec}, flush={"size": MB // 2})
    for number in range(10):
        add(files, number * 8000, payload(8000, number))
    sizes = [file.bytes for file in files.finish()]
    assert len(sizes) > 1
    assert all(0.475 * MB <= size <= 0.525 * MB for size in sizes[:-1]), sizes
    assert sizes[-1] <= 0.525 * MB


def test_a_row_that_is_larger_than_a_file_may_be_is_one_by_itself() -> None:
    files = staging(MemoryStore(), format={"type": "parquet"}, flush={"size": 1000})
    add(files, 0, pa.record_batch([pa.array([random.Random(row).randbytes(5000) for row in range(3)])], names=["n"]))
    assert [file.records for file in files.finish()] == [1, 1, 1]


def test_incompressible_lines_are_not_larger_than_they_may_be() -> None:
    store = MemoryStore()
    files = staging(store, format={"type": "json", "codec": "gzip"}, flush={"size": 200_000})
    dice = random.Random(1)
    add(files, 0, lines(*(dice.randbytes(100).hex().encode() for _ in range(5000))))
    assert all(file.bytes <= 210_000 for file in files.finish())


# Time span


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=5), st.integers(1, 30))
def test_no_file_spans_more_time_than_allowed_and_each_is_closed_as_late_as_possible(
    batches: list[list[int]], span: int
) -> None:
    files = staging(MemoryStore(), flush={"span": f"{span}ms"})
    first = 0
    for batch in batches:
        add(files, first, lines(*[b"v"] * len(batch)), batch)
        first += len(batch)
    stamps = [stamp for batch in batches for stamp in batch]
    closed = files.finish()
    assert [file.first_offset for file in closed[1:]] == [file.last_offset + 1 for file in closed[:-1]]
    for file in closed:
        within = stamps[file.first_offset : file.last_offset + 1]
        assert max(within) - min(within) < span
        if file.last_offset + 1 < len(stamps):
            longer = stamps[file.first_offset : file.last_offset + 2]
            assert max(longer) - min(longer) >= span


@pytest.mark.parametrize("field", [False, True], ids=["timestamps", "a field"])
def test_a_span_counts_no_record_of_another_output_partition(field: bool) -> None:
    files = staging(MemoryStore(), flush={"span": "10s"}, layout={"partition_by": ["a"]})
    for first, values, times in ((0, "xy", [0, 60_000]), (2, "xy", [5_000, 65_000])):
        stamped = rows(offsets(first, 2), lines(*[b"v"] * 2), [0, 0] if field else times)
        if field:
            stamped = replace(stamped, clock=pa.array(times, pa.int64()))
        files.add(0, groups(files, *values), stamped)
    assert sorted((file.key, file.records) for file in files.finish()) == [
        ("t/a=x/t(0_000000000000).json", 2),
        ("t/a=y/t(0_000000000001).json", 2),
    ]


def test_a_name_contains_the_times_of_its_own_records() -> None:
    template = "{field:a}/{partition}-{offset}_{min_timestamp}_{max_timestamp}"
    files = staging(MemoryStore(), layout={"template": template})
    files.add(0, groups(files, *"xy"), rows(offsets(0, 2), lines(b"v", b"v"), [1_000, 60_000]))
    assert sorted(file.key for file in files.finish()) == ["x/0-0_1000_1000.json", "y/0-1_60000_60000.json"]


def test_rows_of_several_batches_are_one_after_the_other_with_what_their_span_counts_by() -> None:
    first, second = (
        replace(rows(offsets(at, 2), lines(b"%d" % at, b"x"), [at, at]), clock=pa.array([at + 7, at + 8], pa.int64()))
        for at in (0, 2)
    )
    both = StagingRows.concat([first, second])
    assert both.offsets.to_pylist() == [0, 1, 2, 3]
    assert both.timestamps.to_pylist() == [0, 0, 2, 2]
    assert both.streams["data"].to_pylist() == [b"0", b"x", b"2", b"x"]
    assert both.times.to_pylist() == [7, 8, 9, 10]


# Schemas


def test_each_schema_has_a_file_of_its_own_in_each_output_partition() -> None:
    files = staging(MemoryStore(), format={"type": "parquet"}, layout={"partition_by": ["a"]})
    for first, column in ((0, [1, 2]), (2, ["x", "y"]), (4, [3, 4])):
        table = pa.record_batch([pa.array(column)], names=["n"])
        files.add(0, groups(files, *"uv"), rows(offsets(first, 2), table))
    assert sorted((file.first_offset, file.last_offset, file.records) for file in files.finish()) == [
        (0, 4, 2),
        (1, 5, 2),
        (2, 2, 1),
        (3, 3, 1),
    ]


# Sidecars


def sidecars(first: int, *values: bytes) -> StagingRows:
    keys = pa.record_batch([pa.array([b"k" + value for value in values])], names=["key"])
    return rows(offsets(first, len(values)), lines(*values), keys=keys)


def test_sidecars_are_closed_with_their_data() -> None:
    store = MemoryStore()
    files = staging(
        store,
        sidecars={"keys": "parquet"},
        layout={"template": "{topic}+{partition}+{offset:010}"},
        flush={"count": 2},
    )
    group = files.keys.fixed_group(0)
    assert group is not None
    files.add(0, group, sidecars(0, b"1", b"2", b"3"))
    reported = files.finish()
    assert [(file.key, file.stream, file.records) for file in reported] == [
        ("t+0+0000000000.json", "data", 2),
        ("t+0+0000000000.keys.parquet", "keys", 2),
        ("t+0+0000000002.json", "data", 1),
        ("t+0+0000000002.keys.parquet", "keys", 1),
    ]
    written = bodies(store, reported)
    assert written["t+0+0000000000.json"] == b"1\n2\n"
    assert pq.read_table(io.BytesIO(written["t+0+0000000002.keys.parquet"]))["key"].to_pylist() == [b"k3"]


def test_a_file_is_full_by_what_its_sidecars_hold_too() -> None:
    layout = {"template": "{topic}+{partition}+{offset:010}"}
    files = staging(MemoryStore(), sidecars={"keys": "json"}, layout=layout, flush={"size": 2000})
    group = files.keys.fixed_group(0)
    assert group is not None
    files.add(0, group, rows(offsets(0, 100), lines(*[b"v"] * 100), keys=lines(*[b'"%s"' % (b"k" * 98)] * 100)))
    assert max(file.records for file in files.finish()) <= 20


# Names that are known at the end


def test_a_name_may_contain_what_only_the_closed_file_knows() -> None:
    store = MemoryStore()
    files = staging(store, layout={"connector_names": True}, flush={"count": 2})
    add(files, 5, lines(b"a", b"b", b"c"), [300, 100, 200])
    reported = files.finish()
    assert bodies(store, reported) == {
        "t/0/000000000006_100_300.json": b"a\nb\n",
        "t/0/000000000007_200_200.json": b"c\n",
    }


def test_nothing_is_uploaded_before_the_name_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(uploads, "PART_BYTES", MB)
    files = staging(store, layout={"connector_names": True})
    add(files, 0, lines(b"x" * 2 * MB), [0])
    assert store.uploads == {}
    assert files.buffered < MB
    files.abort()


# Keys without an offset


def latest(store: MemoryStore, **changes: Any) -> Staging:
    return staging(store, layout={"template": "{key}"}, exactly_once=False, **changes)


def keyed(to: Staging, *keys: bytes) -> pa.StringArray:
    return pa.array(to.keys.groups(0, RecordColumns(keys=keys), len(keys)), pa.string())


def test_the_last_record_of_a_key_without_offset_stays() -> None:
    store = MemoryStore()
    files = latest(store)
    files.add(0, keyed(files, b"a", b"b", b"a"), rows(offsets(0, 3), lines(b"1", b"2", b"3")))
    files.add(1, keyed(files, b"b"), rows(offsets(3, 1), lines(b"4")))
    reported = files.finish()
    assert bodies(store, reported) == {"a.json": b"3\n", "b.json": b"4\n"}
    assert [(file.partition, file.first_offset, file.records) for file in reported] == [(0, 2, 1), (1, 3, 1)]


def test_the_last_record_of_a_key_without_offset_stays_though_it_came_with_an_earlier_part() -> None:
    store = MemoryStore()
    files = latest(store)
    files.add(0, keyed(files, b"a", b"a"), rows(pa.array([0, 3]), lines(b"1", b"4")))
    files.add(0, keyed(files, b"a", b"a"), rows(pa.array([1, 2]), lines(b"2", b"3")))
    assert bodies(store, files.finish()) == {"a.json": b"4\n"}


def test_only_the_last_record_of_a_key_counts_against_memory() -> None:
    files = latest(MemoryStore(), budget=2000)
    for offset in range(100):
        files.add(0, keyed(files, b"a"), rows(offsets(offset, 1), lines(b"x" * 200)))
    assert [(file.first_offset, file.records) for file in files.finish()] == [(99, 1)]


def test_more_keys_than_memory_are_written_as_they_come() -> None:
    store = MemoryStore()
    files = latest(store, budget=2000)
    for turn in range(4):
        values = lines(*(f"{turn} {number}".encode() * 10 for number in range(40)))
        files.add(0, keyed(files, *(b"%d" % n for n in range(40))), rows(offsets(turn * 40, 40), values))
    closed = files.finish()
    assert len(closed) > 40
    last = {file.key: file for file in closed}  # the one that is reported last stays
    assert {b"".join(store.uploads[file.upload].parts.values()) for file in last.values()} == {
        b"3 %d" % n * 10 + b"\n" for n in range(40)
    }


# Output partitions


def test_a_busy_output_partition_does_not_cut_another_ones_file() -> None:
    files = staging(MemoryStore(), flush={"count": 2}, layout={"partition_by": ["a"]})
    files.add(0, groups(files, *"xxxxy"), rows(offsets(0, 5), lines(*[b"v"] * 5)))
    files.add(0, groups(files, "y"), rows(offsets(5, 1), lines(b"v")))
    assert [(file.key, file.records) for file in files.finish()] == [
        ("t/a=x/t(0_000000000000).json", 2),
        ("t/a=x/t(0_000000000002).json", 2),
        ("t/a=y/t(0_000000000004).json", 2),
    ]


_routed = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), min_size=1, max_size=6)


@given(_routed, st.integers(1, 5), st.sampled_from([200, 2000, 64 * MB]), st.sampled_from(["json", "gzip", "parquet"]))
def test_every_row_lands_once_in_order_in_its_own_directory(
    batches: list[list[str]], count: int, budget: int, kind: str
) -> None:
    store = MemoryStore()
    format = (
        {"type": "parquet"} if kind == "parquet" else {"type": "json", "codec": "gzip" if kind == "gzip" else "none"}
    )
    files = staging(store, budget=budget, format=format, flush={"count": count}, layout={"partition_by": ["a"]})
    first = 0
    expected: dict[str, list[int]] = {}
    for batch in batches:
        numbers = range(first, first + len(batch))
        if kind == "parquet":
            payload: Any = pa.record_batch([pa.array(numbers)], names=["n"])
        else:
            payload = lines(*(str(number).encode() for number in numbers))
        files.add(0, groups(files, *batch), rows(offsets(first, len(batch)), payload))
        for number, one in zip(numbers, batch, strict=True):
            expected.setdefault(f"t/a={one}", []).append(number)
        first += len(batch)
    reported = sorted(files.finish(), key=lambda file: file.first_offset)
    found: dict[str, list[int]] = {}
    written = bodies(store, reported)
    for file in reported:
        body = written[file.key]
        if kind == "parquet":
            numbers_read = pq.read_table(io.BytesIO(body))["n"].to_pylist()
        else:
            numbers_read = list(map(int, (gzip.decompress(body) if kind == "gzip" else body).split()))
        assert (numbers_read[0], numbers_read[-1], len(numbers_read)) == (
            file.first_offset,
            file.last_offset,
            file.records,
        )
        assert file.records <= count
        found.setdefault(file.key.rpartition("/")[0], []).extend(numbers_read)
    assert found == expected


# Memory


class Sieve(MemoryStore):
    """A store that remembers how much it was given, and nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        self.bytes += len(body)
        return super().upload_part(key, upload, number, b"")


def _scattered(to: Staging, count: int, records: int, seed: int) -> pa.StringArray:
    dice = random.Random(seed)
    return groups(to, *(str(dice.randrange(count)) for _ in range(records)))


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_many_output_partitions_stay_inside_the_budget_and_still_have_one_file_each(codec: str) -> None:
    store, budget = MemoryStore(), MB
    files = staging(store, budget=budget, format={"codec": codec}, layout={"partition_by": ["a"]})
    payload = events(1000)
    for turn in range(12):
        files.add(0, _scattered(files, 150, 1000, turn), rows(offsets(turn * 1000, 1000), payload))
        assert files.buffered <= budget // 2
    reported = files.finish()
    assert len(reported) == len({file.key.rpartition("/")[0] for file in reported}) == 150
    assert sum(file.records for file in reported) == 12_000
    for body in bodies(store, reported).values():
        if codec == "gzip":
            body = gzip.decompress(body)
        elif codec == "zstd":
            body = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(body), read_across_frames=True).read()
        assert all(map(json.loads, body.splitlines()))


@pytest.mark.parametrize("ends", [Staging.finish, Staging.abort])
def test_the_bytes_in_memory_are_those_of_open_files_and_none_are_left_at_the_end(
    ends: Callable[[Staging], object],
) -> None:
    files = staging(MemoryStore(), format={"codec": "none"}, flush={"count": 3}, layout={"partition_by": ["a"]})
    files.add(0, groups(files, "x", "y", "x"), rows(offsets(0, 3), lines(b"1", b"22", b"333")))
    assert files.buffered == len(b"1\n22\n333\n")
    files.add(0, groups(files, "x", "z"), rows(offsets(3, 2), lines(b"4444", b"5")))  # the file of x is full
    assert files.buffered == len(b"22\n5\n")
    ends(files)
    assert files.buffered == 0


def test_a_batch_of_one_file_costs_no_more_calls_when_many_files_are_open() -> None:
    def count(open_ones: int) -> int:
        files = staging(MemoryStore(), layout={"partition_by": ["a"]})
        names = [str(number) for number in range(open_ones)]
        files.add(0, groups(files, *names), rows(offsets(0, open_ones), events(open_ones)))
        one = groups(files, "0")
        return count_calls(lambda: files.add(0, one, rows(offsets(open_ones, 1), events(1))))

    assert count(1000) < count(1) + 100


@pytest.mark.long
def test_the_budget_is_kept_by_what_python_and_arrow_really_hold() -> None:
    budget = 4 * MB
    store = Sieve()
    files = staging(store, budget=budget, layout={"partition_by": ["a"]})
    payload, wanted = events(1000), [_scattered(files, 200, 1000, turn) for turn in range(30)]
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    tracemalloc.start()
    try:
        for turn, directories in enumerate(wanted):
            files.add(0, directories, rows(offsets(turn * 1000, 1000), payload))
            most = max(most, pool.bytes_allocated() - before)
        _, peak = tracemalloc.get_traced_memory()
        assert len(files.finish()) == 200
    finally:
        tracemalloc.stop()
    assert peak + most < budget
    assert store.bytes > budget


# Dead letters


def test_dead_letters_are_one_object_in_the_order_of_offsets() -> None:
    store = MemoryStore()
    files = staging(store, format={"type": "parquet"})
    files.add_dead_letters(3, [(9, b'{"offset":9}'), (5, b'{"offset":5}')])
    (file,) = files.finish()
    assert file == File(
        "_dead_letters/s/t/3/000000000005.json", file.upload, file.parts, 3, 5, 9, 2, 26, "dead_letters"
    )
    assert bodies(store, [file])[file.key] == b'{"offset":5}\n{"offset":9}\n'


def dead_letter_objects(most: int) -> list[bytes]:
    """What two records that are refused one after the other become where so many bytes are held at most."""
    store = MemoryStore()
    files = staging(store)
    dead_letters = RefusedRecords(files, None, None, most)
    for offset in (0, 1):
        dead_letters.add(
            "t",
            0,
            records_at_hand.to_record_batch([records_at_hand.KafkaRecord("t", 0, offset, 0, None, b"{", ())]),
            "convert",
            {0: "not JSON"},
        )
    dead_letters.finish()
    return list(bodies(store, files.finish()).values())


@pytest.mark.parametrize(("more", "lines"), [(0, [1, 1]), (1, [2])])
def test_dead_letters_become_an_object_when_their_bytes_reach_the_limit(more: int, lines: list[int]) -> None:
    both = dead_letter_objects(10_000)[0]
    (one, _) = both.splitlines()
    assert [body.count(b"\n") for body in dead_letter_objects(len(one) + more)] == lines


# Giving up


class Broken(MemoryStore):
    """A store that fails from the n-th part on, and can refuse to abort too."""

    def __init__(self, parts: int, aborts: bool = True) -> None:
        super().__init__()
        self._parts, self._aborts = parts, aborts

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        if self._parts == 0:
            raise StoreUnavailableError("the store is away")
        self._parts -= 1
        return super().upload_part(key, upload, number, body)

    def abort_upload(self, key: str, upload: str) -> None:
        if not self._aborts:
            raise StoreUnavailableError("the store is away")
        super().abort_upload(key, upload)


def test_a_task_stops_before_it_has_more_files_than_one_commit_may_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake.land.task.staging.MOST_FILES", 3)
    store = MemoryStore()
    files = staging(store, flush={"count": 1})
    add(files, 0, lines(b"a", b"b"))
    files.add_dead_letters(0, [(7, b"{}")])
    with pytest.raises(TooManyFilesError, match=r"raise flush\.count or flush\.size"):
        add(files, 2, lines(b"c"))
    with pytest.raises(TooManyFilesError):
        files.add_dead_letters(0, [(8, b"{}")])
    files.abort()
    assert store.uploads == {}


def test_open_files_count_next_to_closed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake.land.task.staging.MOST_FILES", 3)
    files = staging(MemoryStore(), flush={"count": 2}, layout={"partition_by": ["a"]})
    files.add(0, groups(files, *"xyyzz"), rows(offsets(0, 5), lines(*[b"v"] * 5)))
    with pytest.raises(TooManyFilesError):
        files.add(0, groups(files, "w"), rows(offsets(5, 1), lines(b"v")))


def test_aborting_drops_open_and_closed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "PART_BYTES", MB)
    store = MemoryStore()
    files = staging(store, flush={"count": 2})
    add(files, 0, lines(b"a", b"b", b"x" * 2 * MB))
    files.add_dead_letters(0, [(7, b"{}")])
    assert len(store.uploads) == 3
    files.abort()
    assert store.uploads == {}
    assert files.finish() == []


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_file_that_fails_while_it_is_closed_leaves_no_upload(parts: int) -> None:
    store = Broken(parts)
    files = staging(store, layout={"partition_by": ["a"]})
    files.add(0, groups(files, *"xyz"), rows(offsets(0, 3), lines(b"x", b"y", b"z")))
    with pytest.raises(StoreUnavailableError):
        files.finish()
    files.abort()
    assert store.uploads == {}


def test_dead_letters_that_fail_leave_no_upload_and_are_one_error_if_it_cannot_be_dropped() -> None:
    store = Broken(0)
    for files in (staging(store), staging(Broken(0, aborts=False))):
        with pytest.raises(StoreUnavailableError):
            files.add_dead_letters(0, [(7, b"{}")])
        files.abort()
    assert store.uploads == {}


def test_an_unavailable_store_is_not_a_second_error() -> None:
    files = staging(Broken(1, aborts=False), flush={"count": 1})
    add(files, 0, lines(b"a"))
    files.abort()
    assert files.finish() == []
