"""The answers that planning gets about topics of Iggy, by the real client."""

import datetime
from collections.abc import Iterator

import pytest

from s3lake import hours
from s3lake.errors import ConfigurationError, SourceUnavailableError
from s3lake.source.iggy.iggy_connection import IggyConnection
from s3lake.source.iggy.offsets import IggyOffsets
from s3lake.source.offsets import Lag, LogRange
from s3lake_tests.source.iggy.iggy_settings import HOUR, START_US, build_connection
from s3lake_tests.source.iggy.server import PASSWORD, USER, IggyServer, serving

END_US = hours.end_ms(HOUR) * 1000


@pytest.fixture
def server() -> Iterator[IggyServer]:
    with serving() as server:
        server.topic("shop", "orders")
        yield server


@pytest.fixture
def offsets(server: IggyServer) -> IggyOffsets:
    return IggyOffsets(build_connection(server))


def test_the_edge_is_the_end_if_no_message_came_since_then(server: IggyServer, offsets: IggyOffsets) -> None:
    server.append("shop", "orders", [b"x"] * 3, START_US - 1)
    assert offsets.snapshot("shop.orders", HOUR).partitions == {
        0: LogRange(log_start=0, log_end=3, hour_start=3, hour_end=3)
    }


def test_an_empty_partition_begins_and_ends_at_0_and_differs_from_one_with_a_message(
    server: IggyServer, offsets: IggyOffsets
) -> None:
    assert offsets.log_ranges("shop.orders") == {0: (0, 0)}
    server.append("shop", "orders", [b"x"], START_US)
    assert offsets.log_ranges("shop.orders") == {0: (0, 1)}


@pytest.mark.parametrize("expired", [3, 5], ids=["some", "all"])
def test_expired_messages_move_the_first_offset_and_not_the_next(
    expired: int, server: IggyServer, offsets: IggyOffsets
) -> None:
    server.append("shop", "orders", [b"x"] * 5, START_US)
    server.expire("shop", "orders", expired)
    assert offsets.log_ranges("shop.orders") == {0: (expired, 5)}


@pytest.mark.parametrize("first", [0, 1])
def test_partitions_are_numbered_as_the_server_does(first: int) -> None:
    with serving(first) as server:
        server.topic("shop", "orders", 2)
        server.append("shop", "orders", [b"x"], START_US, partition=first + 1)
        assert IggyOffsets(build_connection(server)).log_ranges("shop.orders") == {first: (0, 0), first + 1: (0, 1)}


def test_a_poll_by_timestamp_that_begins_too_early_is_searched_after(server: IggyServer, offsets: IggyOffsets) -> None:
    server.append("shop", "orders", [b"x"] * 9, [START_US + number - 5 for number in range(9)])
    server.short_timestamps = True
    assert offsets.snapshot("shop.orders", HOUR).partitions[0].hour_start == 5


def test_a_topic_that_is_not_there_has_no_offsets(offsets: IggyOffsets) -> None:
    assert not offsets.snapshot("shop.returns", HOUR).exists
    assert offsets.log_ends(["shop.orders", "shop.returns"]) == {"shop.orders": {0: 0}}


def test_a_topic_that_was_created_again_under_the_same_number_has_another_id(
    server: IggyServer, offsets: IggyOffsets
) -> None:
    before = offsets.snapshot("shop.orders", HOUR).topic_id
    del server.streams["shop"]["orders"]
    server.topic("shop", "orders")
    assert offsets.snapshot("shop.orders", HOUR).topic_id != before


def test_a_stream_may_have_a_dot_in_its_name(server: IggyServer, offsets: IggyOffsets) -> None:
    server.topic("eu.shop", "orders.new", 3)
    assert len(offsets.log_ranges("eu.shop.orders.new")) == 3
    assert "eu.shop.orders.new" in offsets.topics()


def test_a_name_that_may_be_two_topics_is_refused(server: IggyServer, offsets: IggyOffsets) -> None:
    server.topic("eu", "shop.orders")
    server.topic("eu.shop", "orders")
    with pytest.raises(ConfigurationError, match=r"'shop.orders' of stream 'eu' and 'orders' of stream 'eu.shop'"):
        offsets.log_ranges("eu.shop.orders")


def test_a_name_without_a_stream_is_refused(offsets: IggyOffsets) -> None:
    with pytest.raises(ConfigurationError, match=r"write STREAM.TOPIC"):
        offsets.log_ranges("orders")


def test_the_lag_counts_messages_and_has_the_age_of_the_oldest(server: IggyServer, offsets: IggyOffsets) -> None:
    server.append("shop", "orders", [b"x"] * 4, [START_US + second * 1_000_000 for second in range(4)])
    now_ms = START_US // 1000 + 10_000
    assert offsets.lag("shop.orders", {0: 1}, begin_ms=0, now_ms=now_ms) == Lag(3, 9.0)
    assert offsets.lag("shop.orders", {}, begin_ms=START_US // 1000 + 2_000, now_ms=now_ms) == Lag(2, 8.0)
    assert offsets.lag("shop.orders", {0: 4}, begin_ms=0, now_ms=now_ms) == Lag(0, 0.0)


# Purging


def test_a_log_that_only_grew_was_not_cut(server: IggyServer, offsets: IggyOffsets) -> None:
    server.append("shop", "orders", [b"x"] * 3, START_US)
    epoch = offsets.snapshot("shop.orders", HOUR).partitions[0].epoch
    server.append("shop", "orders", [b"x"] * 3, END_US)
    assert offsets.find_truncations("shop.orders", {0: (3, epoch or 0)}) == {}


@pytest.mark.parametrize("new", [1, 3, 7])
def test_a_purged_topic_is_found_whatever_number_of_messages_it_has_again(
    new: int, server: IggyServer, offsets: IggyOffsets
) -> None:
    server.append("shop", "orders", [b"x"] * 3, START_US)
    epoch = offsets.snapshot("shop.orders", HOUR).partitions[0].epoch
    server.purge("shop", "orders")
    server.append("shop", "orders", [b"x"] * new, END_US)
    assert offsets.find_truncations("shop.orders", {0: (3, epoch or 0)}) == {0: 0}


def test_a_clock_that_went_back_a_little_is_not_a_purge(server: IggyServer, offsets: IggyOffsets) -> None:
    server.append("shop", "orders", [b"x"] * 3, [START_US, START_US + 5_000_000, START_US + 4_000_000])
    epoch = offsets.snapshot("shop.orders", HOUR).partitions[0].epoch
    server.append("shop", "orders", [b"x"], END_US)
    assert offsets.find_truncations("shop.orders", {0: (3, epoch or 0)}) == {}


# A server that does not answer


def test_an_unavailable_server_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3lake.source.iggy.iggy_connection.PAUSE", datetime.timedelta(seconds=0.05))
    with pytest.raises(SourceUnavailableError, match=r"Iggy at 127.0.0.1:1 did not tell the offsets of topic 'a.b'"):
        IggyOffsets(IggyConnection("127.0.0.1:1", "tcp", USER, PASSWORD, timeout_s=3)).log_ranges("a.b")


def test_a_wrong_password_is_refused_and_not_printed(server: IggyServer) -> None:
    with pytest.raises(ConfigurationError, match=r"correct source\.username") as caught:
        IggyOffsets(build_connection(server, password="hunter3")).log_ranges("shop.orders")
    assert "hunter3" not in str(caught.value)
