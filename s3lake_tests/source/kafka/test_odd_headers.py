"""Records with a header whose name is not UTF-8, which confluent-kafka cannot decode."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake.config import native
from s3lake.demo.kafka import EmbeddedKafka
from s3lake.errors import RecordError
from s3lake.sink import Config
from s3lake.source.kafka.reader import Brokers
from s3lake.source.records import Range, take_unreadable
from s3lake.store.memory import MemoryStore
from s3lake.verify import log
from s3lake.verify.kafka_side import KafkaLog
from s3lake_tests.lake import START, at
from s3lake_tests.source.inline import body, inline, verified
from s3lake_tests.source.kafka.odd_headers import mock_broker, produce

ODD = b"\xff\xfe"
MANY = [(b"4", ODD)] * 500
"""So many that Python has specialised the loop that reads them: from then on it does not check what a call returns."""


@pytest.fixture(scope="module")
def mock_servers() -> Iterator[str]:
    with mock_broker() as servers:
        produce(servers, "t", (b"0", b"plain"), (b"1", ODD), (b"2", None), (b"3", b"other"), *MANY)
        yield servers


def test_the_reader_hands_over_the_record_without_them(mock_servers: str) -> None:
    (batch,) = Brokers(mock_servers).batches("t", [Range(0, 0, 4)], ("offset", "value", "headers"))
    readable, unreadable = take_unreadable(batch)
    assert unreadable == [1]
    assert readable.column("value").to_pylist() == [b"0", b"1", b"2", b"3"]
    first, odd, none, last = readable.column("headers").to_pylist()
    assert (first, last) == ([{"key": "plain", "value": b"v"}], [{"key": "other", "value": b"v"}])
    assert (odd, none) == (None, None)


def test_many_of_them_do_not_crash_the_process(mock_servers: str) -> None:
    batches = list(Brokers(mock_servers).batches("t", [Range(0, 0, 4 + len(MANY))], ("offset", "headers")))
    assert sum(len(take_unreadable(batch)[1]) for batch in batches) == 1 + len(MANY)


def test_verify_marks_the_record(mock_servers: str) -> None:
    with KafkaLog(mock_servers, {}) as kafka:
        batches = list(kafka.read("t", {0: (0, 4 + len(MANY))}, ("headers",)))
    marks = [headers is log.UNREADABLE for records in batches for headers in records.headers]
    assert marks == [False, True, False, False, *([True] * len(MANY))]


def configuration(kafka: EmbeddedKafka, tolerance: str) -> Config:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(f"odd-{tolerance}", 1, 1)])[f"odd-{tolerance}"].result()
    return native.loads(
        f"kafka: {{bootstrap_servers: '{kafka.bootstrap_servers}'}}\n"
        f"sinks:\n  - {{name: events, topics: [odd-{tolerance}], bucket: lake, start: {START}, format: {{type: json}},"
        f" envelope: {{fields: [value, headers]}}, errors: {{tolerance: {tolerance}}}}}\n",
        "f",
    )


def test_the_record_is_a_dead_letter_and_the_topic_goes_on(kafka: EmbeddedKafka) -> None:
    config, topic = configuration(kafka, "all"), "odd-all"
    produce(kafka.bootstrap_servers, topic, (b"0", b"plain"), (b"1", ODD), (b"2", b"other"), stamp_ms=at(START))
    lander = inline(config, topic, MemoryStore("lake"), lambda: at(START, 90))
    lander.land([START])
    assert [json.loads(line)["value"] for line in body(lander, START).splitlines()] == [0, 2]
    (file,) = (file for one in lander.report(START).manifests for file in one.files if file.kind == "dead_letters")
    found = lander.store.get(file.key)
    assert found is not None
    letter = json.loads(found.body)
    assert (letter["offset"], letter["value"], letter["headers"], letter["stage"]) == (1, "1", [], "read")
    assert "a header's name is not UTF-8" in letter["message"]
    report = verified(config, lander)
    assert report.clean
    assert (report.landed, report.dead_letters) == (2, 1)


def test_the_record_is_named_if_the_sink_tolerates_no_errors(kafka: EmbeddedKafka) -> None:
    config, topic = configuration(kafka, "none"), "odd-none"
    produce(kafka.bootstrap_servers, topic, (b"0", None), (b"1", ODD), stamp_ms=at(START))
    lander = inline(config, topic, MemoryStore("lake"), lambda: at(START, 90))
    with pytest.raises(RecordError, match=r"topic 'odd-none', partition 0, offset 1, stage read: a header's name"):
        lander.land([START])
