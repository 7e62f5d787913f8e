"""Landing on real parts: a broker, an S3 API, a Spark session; compared with Kafka in the end."""

import itertools
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from s3lake import hours
from s3lake.errors import FencedError
from s3lake.lake.readback.spark_frame import read_frame
from s3lake.land.hour.landing import land, rewrite
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.conftest import slow_after
from s3lake_tests.kit.lake import AFTER, START, Lake, assert_all_landed, at, values
from s3lake_tests.kit.processes import until
from s3lake_tests.kit.targets import refuse_session

NINE, TEN, ELEVEN = "2026-01-05T09", "2026-01-05T10", "2026-01-05T11"
SMALL = "flush: {merge: false}"


def rows(landed: LandedHour) -> int:
    return sum(read.landed for manifest in landed.manifests for read in manifest.partitions.values())


def intervals(landed: LandedHour, partition: int = 0) -> list[tuple[int, int]]:
    """What each commit covered of a topic-partition, in order."""
    found = [manifest.partitions.get(partition) for manifest in landed.manifests]
    return [(read.start, read.end) for read in found if read]


class TestHours:
    def test_many_are_landed_in_order_in_one_session(self, lake: Lake) -> None:
        topic = lake.topic(partitions=2)
        wanted = list(hours.span(START, ELEVEN))
        for number, hour in enumerate(wanted):
            for partition in (0, 1):
                lake.produce(topic, values(200 + number), at(hour, 5), partition)
        target = lake.target(topic, "flush: {count: 100}", AFTER)
        landed = land(target, wanted)
        assert [one.tile.hour for one in landed] == wanted
        assert [rows(one) for one in landed] == [400, 402, 404, 406]
        assert all(one.tile.complete for one in landed)
        commits = [one.manifests[0].created_ms for one in landed]
        assert commits == sorted(commits)
        assert_all_landed(lake, target, 1612)

    def test_each_small_commit_of_it_is_nine_requests(self, lake: Lake) -> None:
        topic = lake.filled(values(10), at(TEN, 5))
        land(lake.target(topic, SMALL, now_ms=at(TEN, 10)), [TEN])
        lake.produce(topic, values(7, first=10), at(TEN, 20))
        target = lake.target(topic, SMALL, now_ms=at(TEN, 25))
        land(target, [TEN])
        upload = dict.fromkeys(("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"), 1)
        # Of the topic, the hour, and the commit once it is written; the commit, and the hour twice.
        assert target.requests == {**upload, "GetObject": 3, "PutObject": 3}

    def test_a_complete_one_is_a_no_op_that_writes_nothing(self, lake: Lake) -> None:
        topic = lake.filled(values(10), at(TEN, 5))
        land(lake.target(topic, now_ms=AFTER), [TEN])
        again = replace(lake.target(topic, now_ms=AFTER), spark=refuse_session)
        (landed,) = land(again, [TEN])
        assert landed.new == 0
        assert rows(landed) == 10
        assert set(again.requests) <= {"GetObject", "HeadObject"}


class TestAProducerThatNeverStops:
    """A run lands what was there when it began, in files by the flush rules; the sensor decides about the next one."""

    def test_is_not_followed(self, lake: Lake) -> None:
        topic = lake.filled(values(250), at(TEN, 5))
        target = lake.target(topic, now_ms=at(TEN, 10))
        stop = threading.Event()

        def produce() -> None:
            for number in itertools.count(250):
                lake.produce(topic, values(1, first=number), at(TEN, 5))
                if stop.wait(0.01):
                    return

        producer = threading.Thread(target=produce)
        producer.start()
        try:
            began = [lake.offsets.log_ranges(topic)[0][1]]
            (first,) = land(target, [TEN])
            began.append(lake.offsets.log_ranges(topic)[0][1])
            (second,) = land(target, [TEN])
        finally:
            stop.set()
            producer.join()
        assert [first.new, second.new] == [1, 1]
        (_, one), (other, _) = intervals(second)
        assert one == other
        assert began[0] <= one < began[1] <= intervals(second)[1][1]
        assert [len(manifest.files) for manifest in second.manifests] == [1, 1]
        target = replace(target, clock=lambda: AFTER)
        land(target, [TEN])
        assert_all_landed(lake, target, lake.offsets.log_ranges(topic)[0][1])


class TestRetention:
    def test_records_that_expired_before_landing_are_recorded_and_the_rest_lands(self, lake: Lake) -> None:
        topic = lake.filled(values(10), at(TEN, 5))
        land(lake.target(topic, SMALL, now_ms=at(TEN, 10)), [TEN])
        lake.produce(topic, values(30, first=10), at(TEN, 20))
        lake.expire(topic, before=25)
        target = lake.target(topic, SMALL, now_ms=AFTER)
        (landed,) = land(target, [TEN])
        assert landed.tile.expired == ((0, 10, 25),)
        assert rows(landed) == 25
        assert landed.tile.complete
        report = lake.verify(target)
        assert report.clean
        assert report.not_checkable == 25


class TestTransactions:
    """Markers carry the broker's clock, so these are about the present hour."""

    @pytest.fixture
    def now(self) -> str:
        """The hour under way; one more may begin while a test runs."""
        return hours.key_of_ms(int(time.time() * 1000))

    def landed_now(self, lake: Lake, topic: str, first: str) -> tuple[TopicSink, int]:
        target = lake.target(topic)
        last = hours.key_of_ms(int(time.time() * 1000))
        return target, sum(map(rows, land(target, list(hours.span(first, last)))))

    def test_an_open_one_holds_back_what_follows_until_it_ends(self, lake: Lake, now: str) -> None:
        topic, stamp = lake.topic(), int(time.time() * 1000)
        lake.produce(topic, values(5), stamp)
        transaction = lake.transaction(topic, values(7, first=5), stamp)
        lake.produce(topic, values(3, first=12), stamp)
        _, landed = self.landed_now(lake, topic, now)
        assert landed == 5
        transaction.commit_transaction(10)
        until(lambda: lake.offsets.log_ranges(topic) == {0: (0, 16)})  # the marker comes after the answer
        target, landed = self.landed_now(lake, topic, now)
        assert landed == 15
        assert_all_landed(lake, target, 15)


class TestRewrite:
    def test_replaces_the_files_by_others_with_the_same_records(self, lake: Lake) -> None:
        topic = lake.filled(values(100), at(TEN, 5))
        target = lake.target(topic, "flush: {count: 30}", AFTER)
        land(target, [TEN])
        before = lake.objects()
        landed = rewrite(target, TEN)
        assert landed.tile.complete
        assert len(landed.tile.commits) == 1
        assert len(before) == len(lake.objects()) == 4
        assert set(before) & set(lake.objects()) == set()
        assert_all_landed(lake, target, 100)


class TestAtLeastOnce:
    def test_objects_are_visible_before_the_commit_and_complete_after_it(self, lake: Lake) -> None:
        topic = lake.filled(values(100), at(TEN, 5), partitions=2)
        target = lake.target(topic, "exactly_once: false, flush: {count: 30}, batch_records: 100", AFTER)
        (landed,) = land(target, [TEN])
        assert landed.tile.complete
        assert landed.new == 2
        assert_all_landed(lake, target, 200)


class TestTwoWriters:
    def land_at_once(self, targets: Sequence[TopicSink], wanted: Sequence[str]) -> list[object]:
        """What each returns in the end: hours, or an error."""
        message: list[object] = [None] * len(targets)
        barrier = threading.Barrier(len(targets))

        def run(number: int) -> None:
            barrier.wait()
            try:
                message[number] = land(targets[number], wanted)
            except Exception as error:
                message[number] = error

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(targets))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return message

    def test_two_writers_of_the_same_hours_land_every_record_once(self, lake: Lake) -> None:
        topic = lake.topic(partitions=2)
        for hour in (NINE, TEN):
            for partition in (0, 1):
                lake.produce(topic, values(300), at(hour, 5), partition)
        targets = [lake.target(topic, "flush: {count: 50}, batch_records: 250", AFTER) for _ in range(2)]
        for message in self.land_at_once(targets, [NINE, TEN]):
            assert isinstance(message, list | FencedError), message
        land(targets[0], [NINE, TEN])
        assert_all_landed(lake, targets[0], 1200)


FORMATS = [
    "format: {type: json, codec: gzip}",
    "format: {type: csv}, columns: {id: int64, type: string}",
    "format: {type: avro, codec: zstd}, envelope: {}",
    "format: {type: parquet}, envelope: {}",
    "format: {type: json_array}",
    "format: {type: text, codec: zstd}",
    "format: {type: bytes, framing: {}}",
    "format: {type: avro}",
    "format: {type: json}, envelope: {}",
    "format: {type: json}, envelope: {style: flat, fields: [key, value, offset, timestamp, headers]}",
    "format: {type: csv, framing: {closing: ''}}, envelope: {style: flat, fields: [value, key, timestamp]}",
    "format: {type: json}, envelope: {style: iggy, stream: s, topic: t}",
]


class TestFormats:
    @pytest.mark.parametrize(
        "settings", slow_after(4, "another format on real parts; encode/ and verify/ try each in memory", FORMATS)
    )
    def test_hold_every_record(self, lake: Lake, settings: str) -> None:
        topic = lake.filled(values(150), at(START, 5), partitions=2)
        target = lake.target(topic, f"{settings}, flush: {{count: 60}}", AFTER)
        (landed,) = land(target, [START])
        assert rows(landed) == 300
        assert_all_landed(lake, target, 300)
        read = read_frame(lake.session, target.sink, topic, target.stores, [START])
        assert len(read.collect()) == 300

    def test_sidecars_lie_next_to_their_data(self, lake: Lake) -> None:
        topic = lake.filled([b"1", None, b"3"], at(START, 5))
        layout = (
            "layout: {template: '{topic}/{topic}+{partition}+{offset:010}', "
            "tombstones: '{topic}/tombstone/{topic}+{partition}+{offset:010}'}"
        )
        target = lake.target(topic, f"{layout}, nulls: write, sidecars: {{keys: json}}", AFTER)
        (landed,) = land(target, [START])
        assert rows(landed) == 3
        assert lake.objects() == [
            f"{topic}/{topic}+0+0000000000.json",
            f"{topic}/{topic}+0+0000000000.keys.json",
            f"{topic}/tombstone/{topic}+0+0000000001.keys.json",
        ]
        assert_all_landed(lake, target, 3)


class TestSql:
    def landed(self, lake: Lake) -> list[object]:
        data = [key for key in lake.objects() if "_dead_letters" not in key]
        return [json.loads(line) for key in data for line in lake.body(key).splitlines()]

    def test_projects_and_filters(self, lake: Lake) -> None:
        topic = lake.filled(values(10), at(START, 5), partitions=2)
        sql = "sql: {select: 'id * 2 AS twice, _key AS k, _partition AS p, missing', where: 'id % 5 = 1'}"
        target = lake.target(topic, sql, AFTER)
        (landed,) = land(target, [START])
        assert sorted(map(str, self.landed(lake))) == sorted(
            str({"twice": n * 2, "k": f"k{n}", "p": p, "missing": None}) for p in (0, 1) for n in (1, 6)
        )
        counts = [(read.read, read.landed, read.filtered) for m in landed.manifests for read in m.partitions.values()]
        assert counts == [(10, 2, 8), (10, 2, 8)]
