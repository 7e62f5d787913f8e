"""Both ways of taking messages give what was written: the loop in Python, and columns.c as it is compiled here."""

import json
import logging
import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config import native
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import ConfigurationError
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake.source.kafka import columns, librdkafka, reader
from s3lake.source.kafka.columns import CompiledTake, Take, take_in_python
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.record_batches import KAFKA_SCHEMA, OffsetRange
from s3lake_tests.kit.lake import START, at
from s3lake_tests.source.inline import body, inline, verified
from s3lake_tests.source.kafka import mock_broker
from s3lake_tests.source.kafka.mock_broker import Writer, WrittenRecord

ROOT = Path(__file__).parents[3]
NAMES = st.binary(max_size=5).filter(lambda name: 0 not in name)
RECORDS = st.builds(
    WrittenRecord,
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=5),
    st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=5)), max_size=4),
    st.sampled_from([1, 1_700_000_000_000, 1_700_000_000_000_000_000, 2**63 - 1]),
)


@pytest.fixture(params=["columns.c", "loop"])
def take(request: pytest.FixtureRequest) -> Take:
    return take_in_python if request.param == "loop" else request.getfixturevalue("compiled")


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    with mock_broker.start() as writer:
        yield writer


def read(
    servers: str, topic: str, span: tuple[int, int], take: Take, most_bytes: int = reader.BATCH_BYTES
) -> list[pa.RecordBatch]:
    """All columns of a range, batch by batch."""
    bounded: Take = lambda messages, wanted, columns, _: take(messages, wanted, columns, most_bytes)  # noqa: E731
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reader, "choose_take", lambda: bounded)
        return list(KafkaReader(servers).batches(topic, [OffsetRange(0, *span)], KAFKA_SCHEMA.names))


def rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(batches, KAFKA_SCHEMA).cast(unscaled()).to_pylist()


def unscaled() -> pa.Schema:
    """The schema with timestamps as numbers, because Python has none so late."""
    return KAFKA_SCHEMA.set(KAFKA_SCHEMA.get_field_index("timestamp"), pa.field("timestamp", pa.int64()))


def expected(offset: int, record: WrittenRecord) -> dict[str, Any]:
    headers = [{"key": name.decode(errors="replace"), "value": value} for name, value in record.headers]
    return {
        "partition": 0,
        "offset": offset,
        "timestamp": record.stamp_ms,
        "value": record.value,
        "key": record.key,
        "headers": headers or None,
    }


@given(records=st.lists(RECORDS, min_size=1, max_size=12), data=st.data())
def test_any_range_of_any_records_is_what_was_written(
    writer: Writer, compiled: CompiledTake, records: list[WrittenRecord], data: st.DataObject
) -> None:
    topic = f"any-{os.urandom(8).hex()}"
    writer.write(topic, *records)
    start = data.draw(st.integers(0, len(records) - 1), label="start")
    end = data.draw(st.integers(start + 1, len(records)), label="end")
    most_bytes = data.draw(st.sampled_from([1, 30, 10**6]), label="most_bytes")
    wanted = [expected(offset, record) for offset, record in enumerate(records)][start:end]
    by_c = read(writer.servers, topic, (start, end), compiled, most_bytes)
    by_loop = read(writer.servers, topic, (start, end), take_in_python, most_bytes)
    assert rows(by_c) == wanted
    assert rows(by_loop) == wanted
    for batch in by_c:
        batch.validate(full=True)


def test_a_batch_ends_before_the_record_that_would_make_it_too_large(writer: Writer, take: Take) -> None:
    sizes = [40, 40, 20, 1, 500, 99, 1]
    writer.write("sizes", *[WrittenRecord(bytes(size - 1), b"k") for size in sizes])
    batches = read(writer.servers, "sizes", (0, len(sizes)), take, most_bytes=100)
    assert [batch["offset"].to_pylist() for batch in batches] == [[0, 1, 2], [3], [4], [5, 6]]


def test_headers_count_for_the_size_of_a_batch(writer: Writer, take: Take) -> None:
    writer.write("large-headers", *[WrittenRecord(b"v", None, [(b"name", bytes(50))])] * 3)
    batches = read(writer.servers, "large-headers", (0, 3), take, most_bytes=110)
    assert [batch.num_rows for batch in batches] == [2, 1]


def test_a_header_name_ends_before_its_first_nul_byte(writer: Writer, take: Take) -> None:
    """librdkafka gives names as C strings, without their length; docs/envelope.md names it."""
    writer.write("nul", WrittenRecord(b"v", None, [(b"trace\0id", b"a\0b"), (b"\0", None), (b"x", b"")]))
    (row,) = rows(read(writer.servers, "nul", (0, 1), take))
    assert [(one["key"], one["value"]) for one in row["headers"]] == [("trace", b"a\0b"), ("", None), ("x", b"")]


def test_only_the_columns_that_are_asked_for_are_made(writer: Writer, take: Take) -> None:
    writer.write("columns", WrittenRecord(b"v", b"k", [(b"h", b"1")], 5))
    for names in (["value", "partition"], ["headers"], ["offset"], ["key", "timestamp"]):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(reader, "choose_take", lambda: take)
            (batch,) = KafkaReader(writer.servers).batches("columns", [OffsetRange(0, 0, 1)], names)
        assert batch.schema == pa.schema([KAFKA_SCHEMA.field(name) for name in names])


@pytest.mark.long
def test_220_000_records_are_the_same_by_both(writer: Writer, compiled: CompiledTake) -> None:
    headers: list[list[tuple[bytes, bytes | None]]] = [[], [(b"a", b"1"), (b"a", None)], [("é".encode(), b"")]]
    kinds = [
        WrittenRecord(
            None if at % 7 == 0 else b"" if at % 11 == 0 else b"%d " % at * (at % 30), None if at % 5 else b"k"
        )
        for at in range(1000)
    ]
    records = [kinds[at % 1000]._replace(headers=headers[at % 3], stamp_ms=1 + at) for at in range(220_000)]
    writer.write("many", *records)
    by_c = read(writer.servers, "many", (0, len(records)), compiled)
    by_loop = read(writer.servers, "many", (0, len(records)), take_in_python)
    assert pa.Table.from_batches(by_c) == pa.Table.from_batches(by_loop)
    assert sum(batch.num_rows for batch in by_c) == len(records)


class TestWhichOneReads:
    @pytest.fixture(autouse=True)
    def new_process(self) -> Iterator[None]:
        columns.choose_take.cache_clear()
        yield
        columns.choose_take.cache_clear()

    def test_is_logged_once(
        self, compiled: CompiledTake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(columns, "CompiledTake", lambda _: compiled)
        caplog.set_level(logging.INFO)
        assert [columns.choose_take(), columns.choose_take()] == [compiled, compiled]
        assert caplog.messages == ["records of Kafka are read by columns.c"]

    def test_is_the_loop_if_nothing_is_compiled(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(columns, "LIBRARY", tmp_path / "libcolumns.so")
        assert columns.choose_take() is take_in_python
        (message,) = caplog.messages
        assert message.startswith("records of Kafka are read by a loop in Python, which takes more CPU")

    @pytest.mark.usefixtures("compiled")
    def test_is_the_loop_if_another_columns_c_was_compiled(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compile_library = runpy.run_path(str(ROOT / "hatch_build.py"))["compile_library"]
        text = (ROOT / "s3lake/source/kafka/columns.c").read_text()
        (tmp_path / "columns.c").write_text(text.replace("int64_t messages, rows", "int64_t more, messages, rows"))
        assert compile_library(tmp_path / "columns.c", tmp_path / "libcolumns.so") is None
        monkeypatch.setattr(columns, "LIBRARY", tmp_path / "libcolumns.so")
        assert columns.choose_take() is take_in_python
        assert "libcolumns.so was compiled of another columns.c" in caplog.text


class TestAnotherLibrdkafka:
    @pytest.fixture(autouse=True)
    def new_process(self) -> Iterator[None]:
        librdkafka.load_librdkafka.cache_clear()
        yield
        librdkafka.load_librdkafka.cache_clear()

    def test_that_is_too_old_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(librdkafka, "OLDEST_VERSION", 0x7F000000)
        with pytest.raises(ConfigurationError, match=r"its version is 0x02\w+, and the oldest .* is 0x7f000000"):
            librdkafka.load_librdkafka()

    def test_a_library_that_lacks_a_function_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(librdkafka.FUNCTIONS, "no_such", (None,))
        with pytest.raises(ConfigurationError, match="rd_kafka_no_such"):
            librdkafka.load_librdkafka()


def test_a_record_with_a_header_name_that_is_not_utf_8_lands(kafka: EmbeddedKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic("odd", 1, 1)])["odd"].result()
    config = native.load_text(
        f"kafka: {{bootstrap_servers: '{kafka.bootstrap_servers}'}}\n"
        f"sinks:\n  - {{name: events, topics: [odd], bucket: lake, start: {START}, format: {{type: json}},"
        " envelope: {fields: [value, headers]}}\n",
        "f",
    )
    with mock_broker.connect(kafka.bootstrap_servers) as writer:
        names = [b"plain", b"\xff\xfe", "é".encode()]
        writer.write("odd", *[WrittenRecord(b"1", None, [(name, b"v")], at(START)) for name in names])
    target = inline(config, "odd", MemoryStore("lake"), lambda: at(START, 90))
    land(target, [START])
    assert [json.loads(line)["headers"] for line in body(target, START).splitlines()] == [
        {"plain": "v"},
        {"\ufffd\ufffd": "v"},
        {"é": "v"},
    ]
    report = verified(config, target)
    assert (report.landed, report.differences) == (3, ())


@pytest.mark.parametrize("settings", ["format: {type: json}", "format: {type: parquet}", "errors: {tolerance: all}"])
def test_a_record_that_is_stamped_in_nanoseconds_lands_with_its_timestamp(kafka: EmbeddedKafka, settings: str) -> None:
    topic, is_refused = f"nanoseconds-{os.urandom(8).hex()}", "tolerance" in settings
    stamps = [at(START, 1), at(START, 2) * 1_000_000, 2**63 - 1]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    config = native.load_text(
        f"kafka: {{bootstrap_servers: '{kafka.bootstrap_servers}'}}\n"
        f"sinks:\n  - {{name: events, topics: [{topic}], bucket: lake, start: {START}, {settings},"
        " envelope: {fields: [value, metadata]}}\n",
        "f",
    )
    with mock_broker.connect(kafka.bootstrap_servers) as writer:
        writer.write(topic, *[WrittenRecord(b"{" if is_refused else b'{"a":1}', None, [], stamp) for stamp in stamps])
    target = inline(config, topic, MemoryStore("lake"), lambda: at(START, 30))
    land(target, [START])
    report = verified(config, target)
    assert (report.landed, report.dead_letters) == ((0, 3) if is_refused else (3, 0))
    assert report.differences == ()
