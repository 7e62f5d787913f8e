"""What the tasks of a micro-batch are given, and what becomes of what they return."""

from collections import Counter
from typing import Any

import pytest

from s3lake.errors import ConfigurationError, RecordError, TooManyFilesError
from s3lake.index.commit.documents import Read, Recorded
from s3lake.land.hour.landing import land
from s3lake.land.micro_batch import micro_batch_staging
from s3lake.land.request import run_request
from s3lake.land.task.outcomes import Done, Failed, Refused
from s3lake.source.kafka import dead_letter_topic
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.land.at_hand import FIRST, SECOND, Given, TopicInMemory
from s3lake_tests.source.kafka.dead_letter_topics import DEAD_LETTER_TARGET, FakeProducer


def world(*values: bytes, **settings: Any) -> TopicInMemory:
    return TopicInMemory(**settings).produce(0, *(values or (b'{"id":1}', b'{"id":2}', b'{"id":3}')))


def keys(made: TopicInMemory) -> list[str]:
    """Of its objects but for the index."""
    return [key for key in made.store.objects if not key.startswith(".indexes/")]


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({"flush": {"count": 2}}, [(0, 3), (3, 6), (6, 9), (9, 10)]),
        ({"flush": {"count": 3}}, [(0, 10)]),
        ({}, [(0, 3), (3, 6), (6, 9), (9, 10)]),
        ({"flush": {"count": 2}, "layout": {"partition_by": ["id"]}}, [(0, 10)]),
    ],
)
def test_each_offset_is_read_by_one_task_and_a_long_range_by_several_unless_fields_are_in_the_key(
    settings: dict[str, Any], tasks: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_request, "TASK_RECORDS", 2)
    made = world(*(b'{"id":%d}' % number for number in range(10)), **settings)
    target = made.target(reader=(given := Given(made)))
    (landed,) = land(target, [FIRST])
    assert sorted(given.tasks) == [(TOPIC, OffsetRange(0, *ends)) for ends in tasks]
    assert (made.session.jobs, landed.sums.landed) == ([len(tasks)], 10)


def test_a_first_look_at_the_columns_reads_the_first_offsets_in_the_order_of_topic_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(micro_batch_staging, "SAMPLE_RECORDS", 2)
    made = TopicInMemory(partitions=3, format={"type": "parquet"}).produce(0, b'{"id":1}')
    made.produce(0, *[b'{"id":1}'] * 3, partition=1).produce(0, b'{"id":1}', partition=2)
    land(made.target(reader=(given := Given(made))), [FIRST])
    assert sorted(given.tasks[:2]) == [(TOPIC, OffsetRange(0, 0, 1)), (TOPIC, OffsetRange(1, 0, 1))]
    assert sorted(given.tasks[2:]) == [(TOPIC, OffsetRange(at, 0, end)) for at, end in ((0, 1), (1, 3), (2, 1))]


def test_a_later_record_of_a_lower_topic_partition_decides_despite_a_first_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(micro_batch_staging, "SAMPLE_RECORDS", 1)
    made = TopicInMemory(partitions=2, format={"type": "parquet"}, errors={"tolerance": "all"})
    made.produce(0, b'{"id":1}', b'{"id":2,"name":"a"}').produce(0, b'{"name":3}', partition=1)
    target = made.target()
    (landed,) = land(target, [FIRST])
    recorded = target.index.columns()
    assert recorded is not None
    assert recorded[0].columns == {"id": "int64", "name": "string"}
    assert {partition: read.dead for partition, read in landed.manifests[0].partitions.items()} == {0: 0, 1: 1}


def test_a_fraction_in_the_first_look_decides_before_a_large_integer_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch_staging, "SAMPLE_RECORDS", 1)
    made = TopicInMemory(format={"type": "parquet"}, errors={"tolerance": "all"})
    target = made.produce(0, b'{"id":0.5}', b'{"id":9007199254740993}').target()
    (landed,) = land(target, [FIRST])
    recorded = target.index.columns()
    assert recorded is not None
    assert (recorded[0].columns, landed.sums.dead) == ({"id": "double"}, 1)


def test_the_time_of_their_micro_batch_is_the_landing_s_clock() -> None:
    made = world(layout={"template": "{time:yyyy-MM-dd-HH-mm}/{partition}-{offset}", "time": {"source": "wallclock"}})
    land(made.target(now_minute=601), [FIRST])
    assert [key.split("/")[-2] for key in keys(made)] == ["2026-11-20-10-01"]


def test_refused_records_are_sent_to_the_dead_letter_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_topic.DeadLetterTarget, "create_if_missing", lambda _: None)
    producer = FakeProducer()
    monkeypatch.setattr(dead_letter_topic, "make_producer", lambda *_: producer)
    land(world(b"{", b"{}", errors={"tolerance": "all"}).target(dead_letter_topic=DEAD_LETTER_TARGET), [FIRST])
    assert [record["value"] for record in producer.taken] == [b"{"]


def test_a_record_that_they_refuse_is_named_with_its_topic_and_the_remedy() -> None:
    words = "record refused in topic 'orders', partition 0, offset 0, stage convert.*Set errors.tolerance: all"
    with pytest.raises(RecordError, match=words):
        land(world(b"{").target(), [FIRST])


def test_the_first_refusal_of_the_first_topic_partition_is_named_despite_other_failures() -> None:
    refused = [Refused(*place, "convert", "no JSON") for place in ((1, 3), (0, 9), (0, 7))]
    made = world()
    made.session.outcomes = [Failed("KafkaUnavailableError", "no broker answers"), *refused]
    with pytest.raises(RecordError, match="partition 0, offset 7"):
        land(made.target(), [FIRST])


def test_columns_are_not_read_for_a_format_that_has_none() -> None:
    made = world()
    target = made.target()
    target.index.create(target.index.columns_key, Recorded({"id": "no type"}))
    (landed,) = land(target, [FIRST])
    assert landed.sums.landed == 3


def test_a_column_whose_type_is_another_than_its_files_have_is_refused() -> None:
    made = world(format={"type": "parquet"})
    made.produce(1, b'{"id":4}')
    land(made.target(), [FIRST])
    made.settings["columns"] = {"id": "string"}
    with pytest.raises(ConfigurationError, match=r"column 'id' is string now, and .* in the files of topic 'orders'"):
        land(made.target(), [SECOND])


def test_sql_that_only_names_fields_is_done_by_the_tasks_themselves() -> None:
    made = world(
        b'{"id":1, "x": 1e2, "o":{"a": 0.10}}',
        b'{"x":2}',
        b"[]",
        b"{",
        sql={"select": "x, o.a"},
        errors={"tolerance": "all"},
    )
    (landed,) = land(made.target(), [FIRST])
    (data,) = [key for key in keys(made) if "_dead_letters" not in key]
    assert made.store.objects[data][0] == b'{"x":1e2,"a":0.10}\n{"x":2,"a":null}\n{"x":null,"a":null}\n'
    assert (landed.sums.landed, landed.sums.dead) == (3, 1)


def test_requests_are_those_of_the_driver_and_of_every_task() -> None:
    made = world()
    made.session.outcomes = [Done([], {0: Read(0, 3, read=3, landed=3)}, {"put": 2}, retries=1)] * 2
    made.store.requests = Counter(put=1)  # type: ignore[attr-defined]
    target = made.target()
    land(target, [FIRST])
    assert (target.requests, target.retries) == ({"put": 5}, 2)


def test_a_micro_batch_of_more_files_than_a_commit_lists_is_dropped_and_made_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(micro_batch_staging, "MOST_FILES", 2)
    made = world(layout={"partition_by": ["id"]}, flush={"merge": False})
    (landed,) = land(made.target(), [FIRST])
    assert [len(manifest.files) for manifest in landed.manifests] == [1, 1, 1]
    assert (len(keys(made)), made.store.uploads) == (3, {})


@pytest.mark.parametrize("limit", [0, 1])
def test_a_micro_batch_that_cannot_be_smaller_is_named_with_its_topic_and_hour(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batch_staging, "MOST_FILES", limit)
    made = world(b"{}")
    if limit:
        (landed,) = land(made.target(), [FIRST])
        assert len(landed.manifests[0].files) == limit
        return
    with pytest.raises(TooManyFilesError, match=f"a micro-batch of orders {FIRST} has 1 files, one commit may have 0"):
        land(made.target(), [FIRST])
    assert made.store.uploads == {}


def test_the_last_of_several_files_with_one_key_stays() -> None:
    made = TopicInMemory(partitions=2, exactly_once=False, layout={"template": "latest/{key}"}).produce(
        0, b"1", b"2", key=b"k"
    )
    made.produce(0, b"3", partition=1, key=b"k")
    (landed,) = land(made.target(), [FIRST])
    (manifest,) = landed.manifests
    assert [made.store.objects[key][0] for key in keys(made)] == [b"3\n"]
    assert (made.store.uploads, manifest.replacing, landed.sums.landed) == ({}, True, 3)
