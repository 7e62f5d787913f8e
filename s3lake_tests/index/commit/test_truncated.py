"""A log that an unclean election cut below what is landed, and that grew again: other records at landed offsets."""

import json

import pytest

from s3lake.errors import ConfigurationError, DataLossError, KafkaUnavailableError
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.operator_decisions import accept_present_log
from s3lake.index.commit.protocol import Attempt, require_log_unchanged
from s3lake.index.commit.replacing_attempts import begin_rewrite
from s3lake.index.commit.sealing import Sealing
from s3lake.index.plan.tile import Interval, TileRange
from s3lake.lake.verify import index_checks
from s3lake_tests.index.commit.actors import ActorRequest, completes
from s3lake_tests.index.commit.by_hand import begin, tile
from s3lake_tests.index.commit.kafka import PartitionLog, hour, ms
from s3lake_tests.index.commit.works import accepting, materialise
from s3lake_tests.index.commit.world import World

TOLD = r"topic-partition 0: offsets 4 to 9\).*only copy.*`s3lake index accept --topic orders`"


@pytest.fixture
def world(ten_landed: World) -> World:
    return ten_landed


@pytest.fixture
def cut(world: World) -> World:
    """A leader that lacked offsets 4 to 9, and eight records written since."""
    world.kafka.elect(0, end=4)
    world.kafka.produce(0, *[6] * 8)
    world.minute = 65
    return world


def go_on(world: World, number: int) -> None:
    """Accept the log, and land the hour of that number."""
    accept_present_log(world.index, world.kafka)
    world.minute = max(world.minute, 60 * number + 5)
    world.do("C", materialise(number), chunk=99)


def test_records_at_offsets_that_were_landed_before_are_reported_and_not_skipped(cut: World):
    head, _ = cut.index.head()
    with pytest.raises(DataLossError, match=TOLD):
        protocol.begin_micro_batch(cut.index, cut.kafka, head, hour(0), limit=99, now_ms=0)
    with pytest.raises(DataLossError, match=TOLD):
        open_and_close.close_hour(cut.index, cut.kafka, head, hour(0), 0)
    with pytest.raises(DataLossError, match=TOLD):
        open_and_close.open_hour(cut.index, cut.kafka, hour(3))
    assert tile(cut, 0).partitions == {0: TileRange(0, 10), 1: TileRange(0, 2)}


def test_records_at_landed_offsets_are_reported_when_the_hour_was_closed_before(world: World):
    world.minute = 65
    world.do("B", materialise(0))
    world.kafka.elect(0, end=4)
    world.kafka.produce(0, *[6] * 8)

    with pytest.raises(DataLossError, match=TOLD):
        open_and_close.open_hour(world.index, world.kafka, hour(1))
    head, _ = world.index.head()
    with pytest.raises(DataLossError, match=TOLD):
        begin_rewrite(world.index, world.kafka, head, hour(0))


def test_another_leader_that_lacks_nothing_changes_nothing(world: World):
    world.kafka.elect(0)
    world.kafka.produce(0, *[6] * 3)

    world.do("B", materialise(0))

    assert tile(world, 0).partitions == {0: TileRange(0, 13), 1: TileRange(0, 2)}
    assert tile(world, 0).epochs == {0: 1, 1: 0}


def test_a_log_that_has_expired_up_to_what_is_landed_lacks_nothing_that_a_leader_cut(cut: World):
    cut.kafka.retain(0, 10)

    cut.do("B", materialise(0))

    assert tile(cut, 0).partitions[0] == TileRange(0, 12, 12)


def test_the_epoch_is_kept_through_recovery_and_the_next_tile(world: World):
    world.kafka.elect(0)
    world.kafka.produce(0, 6)
    world.do("A", materialise(0), until=lambda request: request.method == "complete_upload").crash()
    world.minute = 65
    world.do("B", materialise(1))

    assert (tile(world, 0).epochs[0], tile(world, 1).epochs[0]) == (1, 1)


def test_kafka_is_asked_about_its_log_only_after_an_election(world: World):
    world.kafka.produce(0, 6)
    b = world.do("B", materialise(0))

    assert not [line for line in map(str, world.log) if line.startswith(b.name) and " cut " in line]


def test_accepted_the_new_records_are_landed_next_to_the_former_ones(cut: World):
    assert accept_present_log(cut.index, cut.kafka) == hour(1)
    cut.kafka.produce(0, 66)
    cut.kafka.produce(1, 66)

    cut.do("B", materialise(1), chunk=99)

    assert tile(cut, 0).partitions == {0: TileRange(0, 10, 10), 1: TileRange(0, 2, 2)}
    assert tile(cut, 1).partitions == {0: TileRange(4, 13), 1: TileRange(2, 3)}
    (new,) = [key for key in cut.view().data if key.startswith("data/orders/0+4")]
    assert "~" in new
    assert [record[2] for record in json.loads(cut.view().data[new][0])] == list(range(4, 13))
    with pytest.raises(ConfigurationError, match="is the one that the index was cut from"):
        accept_present_log(cut.index, cut.kafka)


def test_a_dry_run_of_accept_returns_the_new_hour_and_changes_nothing(cut: World):
    before = dict(cut.bucket.objects)

    assert accept_present_log(cut.index, cut.kafka, dry_run=True) == hour(1)
    assert cut.bucket.objects == before


def test_a_log_that_is_cut_once_more_after_accept_is_landed_from_that_cut(cut: World):
    accept_present_log(cut.index, cut.kafka)
    cut.kafka.elect(0, end=2)
    cut.kafka.produce(0, 66)

    cut.do("B", materialise(1), chunk=99)

    assert tile(cut, 1).partitions[0] == TileRange(2, 3)


def test_a_topic_that_was_accepted_once_and_is_cut_in_its_first_hour_is_accepted_again(cut: World):
    go_on(cut, 1)
    cut.kafka.elect(0, end=8)
    cut.kafka.produce(0, 67)

    assert accept_present_log(cut.index, cut.kafka) == hour(2)
    head, _ = cut.index.head()
    assert head.begins == {0: 8, 1: 2}


@pytest.mark.parametrize("log_start", [0, 5])
def test_a_topic_partition_that_has_landed_nothing_is_landed_from_its_log_start(log_start: int):
    with World(partitions=2, mute=("I4", "I5")) as world:
        world.kafka.produce(0, *[1] * 10)
        world.kafka.produce(1, *[1] * log_start)
        world.kafka.retain(1, log_start)
        world.do("A", materialise(0), chunk=9)
        world.kafka.elect(0, end=4)
        world.kafka.produce(0, 6)

        accept_present_log(world.index, world.kafka)

        head, _ = world.index.head()
        assert head.begins == {0: 4, 1: log_start}


def test_a_topic_partition_that_an_hour_has_not_seen_yet_is_none_of_it_after_accept(world: World):
    world.minute = 65
    head, _ = world.index.head()
    open_and_close.close_hour(world.index, world.kafka, head, hour(0), ms(65))
    world.kafka.logs.append(PartitionLog())
    world.kafka.produce(2, 61)
    world.do("B", materialise(1))
    world.kafka.elect(0, end=4)
    world.kafka.produce(0, 66)

    accept_present_log(world.index, world.kafka)

    assert set(tile(world, 0).partitions) == {0, 1}


@pytest.mark.parametrize("end", [0, 4])
def test_a_log_that_is_still_shorter_than_what_is_landed_can_be_accepted(end: int, world: World):
    world.kafka.elect(0, end=end)
    world.minute = 65

    accept_present_log(world.index, world.kafka)
    world.kafka.produce(0, 66)
    world.do("B", materialise(1))

    assert tile(world, 1).partitions[0] == TileRange(end, end + 1)


def offsets(world: World, partition: int) -> list[int]:
    """Of all records in listed files."""
    return sorted(
        offset for body, _ in world.view().data.values() for _, one, offset in json.loads(body) if one == partition
    )


def test_accepted_what_a_later_hour_had_landed_is_not_landed_again(world: World):
    """An hour is left unfinished behind one that landed: what it lacks is recorded as expired."""
    world.kafka.produce(1, 3, 4)
    world.do("A", materialise(0, rounds=1), limit=1)
    world.kafka.produce(0, 61)
    world.kafka.produce(1, 61, 62)
    world.minute = 65
    world.do("B", materialise(1))
    world.kafka.elect(0, end=10)
    world.kafka.produce(0, 66)
    assert tile(world, 0).partitions[1] == TileRange(0, 3, 4)
    assert tile(world, 1).partitions == {0: TileRange(10, 11), 1: TileRange(4, 6)}

    go_on(world, 2)

    assert tile(world, 2).partitions == {0: TileRange(10, 11), 1: TileRange(6, 6)}
    assert tile(world, 0).expired == ((1, 3, 4),)
    assert offsets(world, 1) == [0, 1, 2, 4, 5]


def test_accepted_what_an_earlier_hour_has_landed_after_the_cut_is_not_landed_again(world: World):
    """Hour 0 lacks offsets 10 and 11 of topic-partition 0 when the log is cut at 11, and lands them then."""
    world.kafka.produce(0, 3, 4)
    world.minute = 65
    open_and_close.open_hour(world.index, world.kafka, hour(1))
    world.kafka.produce(0, 61, 62)
    world.do("B", materialise(1))
    world.kafka.elect(0, end=11)
    world.kafka.produce(0, *[66] * 3)
    world.do("B", materialise(0))
    assert [tile(world, number).partitions[0] for number in range(2)] == [TileRange(0, 12, 12), TileRange(12, 14)]

    go_on(world, 2)

    assert tile(world, 2).partitions[0] == TileRange(12, 14)


def two_landed_behind_one_that_is_not(world: World) -> None:
    """Hour 0 lacks offsets of topic-partition 1; hours 1 and 2 have landed."""
    world.kafka.produce(1, 3, 4, 5)
    world.do("A", materialise(0, rounds=1), limit=1)
    world.kafka.produce(0, 61, 121)
    world.minute = 125
    for number in (1, 2):
        world.do("B", materialise(number))


@pytest.fixture
def behind(world: World) -> World:
    """Hour 0 lacks offsets 3 and 4 of topic-partition 1, hour 1 has nothing of it, hour 2 is open; 0 was cut at 11."""
    two_landed_behind_one_that_is_not(world)
    world.kafka.elect(0, end=11)
    world.kafka.produce(0, 126)
    world.minute = 185
    assert [tile(world, number).partitions[1] for number in range(3)] == [
        TileRange(0, 3, 5),
        TileRange(5, 5, 5),
        TileRange(5, 5),
    ]
    return world


def test_accepted_records_that_are_landed_from_there_on_are_not_counted_as_expired(behind: World):
    go_on(behind, 3)

    assert [tile(behind, number).partitions[1] for number in range(4)] == [
        TileRange(0, 3, 3),
        TileRange(3, 3, 3),
        TileRange(3, 3, 3),
        TileRange(3, 5),
    ]
    assert [tile(behind, number).expired for number in range(4)] == [()] * 4
    assert offsets(behind, 1) == [0, 1, 2, 3, 4]


def test_accepted_hours_that_gave_offsets_on_are_sealed_and_verify_finds_nothing_wrong(behind: World):
    behind.minute = 250
    go_on(behind, 3)

    sealing = Sealing(behind.index, behind.view().head)
    assert [sealing.flaw(hour(number)) for number in range(4)] == [None] * 4
    message: list[str] = []
    for number in range(3):
        manifests = behind.view().listed(tile(behind, number))
        list(index_checks.find_commit_ranges(tile(behind, number), manifests, lambda *what: message.append(str(what))))
        if number:
            message.extend(map(str, index_checks.check_edges(tile(behind, number - 1), tile(behind, number))))
    assert message == []


@pytest.mark.parametrize(
    ("end", "landed_until", "expired"), [(4, 12, ((0, 10, 12),)), (10, 12, ((0, 10, 12),)), (11, 10, ())]
)
def test_accepted_what_the_cut_took_before_it_was_landed_is_expired_unless_some_of_it_is_landed(
    world: World, end: int, landed_until: int, expired: tuple[Interval, ...]
):
    """Hour 0 is closed, and lacks offsets 10 and 11 of topic-partition 0."""
    world.kafka.produce(0, 3, 4)
    world.minute = 65
    open_and_close.open_hour(world.index, world.kafka, hour(1))
    world.kafka.elect(0, end=end)
    world.kafka.produce(0, *[66] * 9)

    go_on(world, 2)

    assert (tile(world, 0).partitions[0], tile(world, 0).expired) == (TileRange(0, landed_until, landed_until), expired)
    assert tile(world, 2).partitions[0] == TileRange(min(end, 10), end + 9)


def test_a_log_that_was_cut_behind_all_that_is_landed_needs_no_accept_and_is_landed_once_it_has_grown(world: World):
    """The next hour was opened since, and begins where the former log had ended."""
    world.kafka.produce(1, 3, 4)
    world.minute = 65
    head, _ = world.index.head()
    open_and_close.close_hour(world.index, world.kafka, head, hour(0), ms(65))
    world.kafka.elect(1, end=3)
    open_and_close.open_hour(world.index, world.kafka, hour(1))
    with pytest.raises(DataLossError, match=r"expects offsets up to 4, Kafka has them up to 3.*index accept"):
        begin(world, 0)
    with pytest.raises(
        ConfigurationError, match=r"'orders'.*topic-partition 1 ends at offset 3, .*T01 begins at 4: landing goes on"
    ):
        accept_present_log(world.index, world.kafka)

    world.kafka.produce(1, 66, 66)
    for number in (0, 1):
        world.do("B", materialise(number))

    assert offsets(world, 1) == [0, 1, 2, 3, 4]


@pytest.fixture
def under_way(world: World) -> World:
    """A commit of hour 0's last two records is under way when a leader is elected that lacks them."""
    world.kafka.produce(0, 3, 4)
    world.minute = 65
    b = world.start("B", materialise(0))
    world.run(b, until=completes)
    world.kafka.elect(0, end=10)
    world.kafka.produce(0, 66, 66)
    return world


def test_no_hour_is_opened_behind_a_commit_under_way_of_records_that_were_cut(under_way: World):
    with pytest.raises(DataLossError, match=r"topic-partition 0: offsets 10 to 11\)"):
        open_and_close.open_hour(under_way.index, under_way.kafka, hour(1))

    assert tile(under_way, 0).partitions[0] == TileRange(0, 12, 12)


def test_accepted_what_is_under_way_is_landed_first(under_way: World):
    accept_present_log(under_way.index, under_way.kafka)

    assert (tile(under_way, 0).pending, tile(under_way, 0).partitions[0]) == (None, TileRange(0, 12, 12))
    assert len(offsets(under_way, 0)) == 12


@pytest.mark.parametrize("end", [None, 5])
def test_names_that_may_have_been_used_are_not_used_again_where_offsets_are_landed_from_there_on(
    behind: World, end: int | None
):
    last, etag = behind.index.tile(hour(2))
    behind.index.swap_tile(
        last.revise(partitions={0: TileRange(11, 12, 12), 1: TileRange(5, 5, end)}, burnt={0: 20}), etag
    )

    go_on(behind, 3)

    assert tile(behind, 3).burnt == {0: 20, 1: 5}


def writes(request: ActorRequest) -> bool:
    return request.method == "put"


@pytest.mark.parametrize("written", range(5))
def test_an_accept_that_crashes_around_any_write_is_done_by_the_next_one(behind: World, written: int):
    a = behind.do("accept", accepting(), until=writes)
    for _ in range(written):
        behind.step(a)
        behind.run(a, until=writes)
    if a.alive:
        a.crash()
    behind.do("accept", accepting())
    behind.do("C", materialise(3))

    assert [tile(behind, number).expired for number in range(4)] == [()] * 4
    assert offsets(behind, 1) == [0, 1, 2, 3, 4]


# Step 2, once all is read: whether what was read is what the log holds


@pytest.fixture
def unlanded(ten_landed: World) -> World:
    """Three records of each topic-partition, after the landed ones."""
    ten_landed.kafka.produce(0, 3, 4, 5)
    ten_landed.kafka.produce(1, 3, 4, 5)
    return ten_landed


def check(world: World, attempt: Attempt | None) -> None:
    head, _ = world.index.head()
    require_log_unchanged(world.index, world.kafka, head, attempt)


def test_read_records_are_not_the_log_if_another_leader_lacked_some(unlanded: World):
    attempt = begin(unlanded, 0)
    unlanded.kafka.elect(0, end=11)
    unlanded.kafka.elect(1, end=3)
    with pytest.raises(
        KafkaUnavailableError,
        match=r"topic 'orders': .* \(topic-partition 0 was cut off at offset 11, "
        r"topic-partition 1 was cut off at offset 3\); nothing",
    ):
        check(unlanded, attempt)


def test_read_records_are_the_log_if_its_leader_was_elected_before(unlanded: World):
    unlanded.kafka.elect(0)
    unlanded.kafka.produce(0, 6)
    check(unlanded, begin(unlanded, 0))


def test_waiting_records_are_reported_before_lost_landed_ones(unlanded: World):
    attempt = begin(unlanded, 0)
    unlanded.kafka.elect(0, end=4)
    unlanded.kafka.elect(1, end=3)
    with pytest.raises(DataLossError, match=r"'orders'.*\(topic-partition 0: offsets 4 to 9\)"):
        check(unlanded, attempt)
