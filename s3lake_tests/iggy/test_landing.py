"""Iggy's topics landed by Spark's tasks, in every way in which Kafka's are, and compared by code of verifying's own."""

import functools
import json
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from s3lake.commit.recreated import accept
from s3lake.config import native
from s3lake.demo.s3 import EmbeddedS3
from s3lake.errors import DataLossError
from s3lake.land import fleet
from s3lake.land.fleet import TopicLanding
from s3lake.land.landing import Landing
from s3lake.orchestration.resources import S3Resource, landing, source_of
from s3lake.sink import Config
from s3lake.store.s3 import S3Store
from s3lake.verify import Grid, Report, verify_against
from s3lake.verify.logs import log_of
from s3lake_tests.iggy.server import PASSWORD, USER, IggyServer, header, serving
from s3lake_tests.lake import START, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.s3]
NEXT = "2026-01-05T09"


class Stream:
    """Topics of an Iggy server, a bucket, and what lands one in the other."""

    def __init__(self, server: IggyServer, s3: EmbeddedS3, spark: "SparkSession") -> None:
        self.server, self._s3, self._spark = server, s3, spark
        self.bucket = f"lake-{uuid.uuid4()}"
        s3.create_bucket(self.bucket)

    def config(self, settings: str = "", topics: str = "shop.orders") -> Config:
        s3, more = self._s3, f", {settings}" if settings else ""
        keys = f"access_key_id: {s3.access_key_id}, secret_access_key: {s3.secret_access_key}"
        return native.loads(
            f"source: {{type: iggy, address: '{self.server.address}', transport: http, username: {USER}, "
            f"password: {PASSWORD}}}\n"
            f"s3: {{endpoint_url: '{s3.endpoint_url}', credentials: {{{keys}}}}}\n"
            f"sinks:\n  - {{name: events, topics: [{topics}], bucket: {self.bucket}, start: {START}{more}}}\n",
            "f",
        )

    def landing(self, settings: str = "", topic: str = "shop.orders") -> Landing:
        config = self.config(settings, topic)
        made = landing(config.sinks[0], topic, source_of(config), S3Resource(config.s3), spark=None)
        made.spark = lambda: self._spark
        made.clock = lambda: at(NEXT, 90)
        return made

    def verified(self, landed: Landing, settings: str = "") -> Report:
        tiles = [tile.hour for tile in landed.index.tiles()]
        grid = Grid.of(landed.sink, landed.clock(), min(tiles), max(tiles))
        with log_of(self.config(settings, landed.topic)) as log:
            return verify_against(landed.sink, landed.index, log, grid)

    def body(self, landed: Landing) -> bytes:
        """All that is landed in the first hour, in the order of keys."""
        store: S3Store = landed.store
        keys = [file.key for one in landed.report(START).manifests for file in one.files]
        found = [store.get(key) for key in sorted(keys)]
        return b"".join(one.body for one in found if one is not None)


@pytest.fixture
def stream(s3_server: EmbeddedS3, spark: "SparkSession") -> Iterator[Stream]:
    with serving() as server:
        server.topic("shop", "orders", 2)
        for partition in (0, 1):
            stamps = [at(START, 59.999) * 1000 + 59_999 + (number >= 3) * 60_000 for number in range(5)]
            values = [b'{"id": %d}' % (10 * partition + number) for number in range(5)]
            server.append("shop", "orders", values, stamps, partition, [header("tier", "uint8", b"\x07")], first_id=7)
        yield Stream(server, s3_server, spark)


def test_hours_are_cut_by_the_servers_microseconds_and_verify(stream: Stream) -> None:
    lander = stream.landing("format: {type: parquet}")
    first, second = lander.land([START, NEXT])
    assert [one.tile.complete for one in (first, second)] == [True, True]
    assert [(span.start, span.committed) for span in first.tile.partitions.values()] == [(0, 3), (0, 3)]
    assert [(span.start, span.committed) for span in second.tile.partitions.values()] == [(3, 5), (3, 5)]
    report = stream.verified(lander)
    assert report.clean
    assert sum(one.landed for one in report.checked) == 10


def test_ids_headers_and_times_land_in_the_envelope(stream: Stream) -> None:
    settings = (
        "format: {type: json}, envelope: {style: flat, fields: [key, headers, timestamp, offset, partition, value]}"
    )
    lander = stream.landing(settings)
    lander.land([START])
    line = json.loads(stream.body(lander).splitlines()[0])
    assert line["key"] == "7" or line["key"] == 7
    assert stream.verified(lander, settings).clean


def test_a_message_that_is_no_json_is_a_dead_letter(stream: Stream) -> None:
    stream.server.append("shop", "orders", [b"no json"], at(NEXT, 1) * 1000)
    settings = "format: {type: parquet}, errors: {tolerance: all}"
    lander = stream.landing(settings)
    lander.land([START, NEXT])
    report = stream.verified(lander, settings)
    assert report.clean
    assert sum(one.dead_letters for one in report.checked) == 1


def test_a_topic_that_was_purged_is_refused_until_that_is_accepted(stream: Stream) -> None:
    lander = stream.landing()
    lander.land([START])
    stream.server.purge("shop", "orders")
    for partition in (0, 1):
        stream.server.append("shop", "orders", [b'{"id": 1}'] * 9, at(NEXT, 5) * 1000, partition)
    with pytest.raises(DataLossError, match="what it has at their offsets was written since"):
        lander.land([NEXT])
    assert accept(lander.index, lander.offsets) == NEXT
    (landed,) = lander.land([NEXT])
    assert [span.committed for span in landed.tile.partitions.values()] == [9, 9]
    assert stream.verified(lander).clean


def test_topics_of_several_streams_share_a_job(stream: Stream) -> None:
    stream.server.topic("web", "clicks")
    stream.server.append("web", "clicks", [b'{"at": 1}'] * 3, at(START, 1) * 1000)
    landers = [stream.landing(topic=topic) for topic in ("shop.orders", "web.clicks")]
    works = [TopicLanding(one, functools.partial(one.land, [START])) for one in landers]
    together = fleet.together(works, lambda: stream._spark)
    assert [outcome.result()[0].tile.complete for outcome in together.outcomes] == [True, True]
    assert [stream.verified(one).clean for one in landers] == [True, True]


def test_sql_reads_messages_as_it_reads_records(stream: Stream) -> None:
    settings = "format: {type: parquet}, sql: {select: 'id, _offset', where: 'id > 1'}"
    lander = stream.landing(settings)
    (landed,) = lander.land([START])
    assert sum(one.rows for manifest in landed.manifests for one in manifest.files) == 4
    assert stream.verified(lander, settings).clean
