"""Opening, closing and writing, one behaviour at a time. `test_traces.py` has what happens when actors meet."""

from types import SimpleNamespace

import pytest

from s3lake.errors import (
    FencedError,
    ForeignObjectError,
    KafkaUnavailableError,
    MissingDocumentError,
    StoreDeniedError,
)
from s3lake.index.commit import open_and_close, protocol
from s3lake.index.commit.documents import File
from s3lake.index.commit.protocol import Staged
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import UNKNOWN_END, Tile, TileRange
from s3lake_tests.index.commit.actors import Actor, Work, completes, enters_pending
from s3lake_tests.index.commit.bucket import Circumstances
from s3lake_tests.index.commit.by_hand import begin, tile
from s3lake_tests.index.commit.kafka import hour, ms
from s3lake_tests.index.commit.works import closing, materialise, recovering, void
from s3lake_tests.index.commit.world import World

# -------------------------------------------------------------------------------------------------------------- opening


def test_a_topic_that_does_not_exist_yet_gets_no_tile(world: World):
    world.kafka.delete_topic()

    assert open_and_close.open_hour(world.index, world.kafka, hour(0)) is None
    assert world.view().tiles == {}


def test_only_a_topic_that_the_index_knows_is_waited_for(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    assert not world.kafka.waited_for
    begin(world, 0)
    assert world.kafka.waited_for


def test_an_hour_that_has_a_tile_is_opened_without_asking_kafka_or_writing(world: World):
    world.do("A", materialise(0))
    reader = world.start("B", lambda me: void(open_and_close.open_hour(me.index, me.offsets, hour(0))))

    world.run(reader)

    assert [line.split()[1] for line in map(str, world.log) if line.startswith(reader.name)] == ["get"]


def test_a_tile_next_to_it_that_is_not_there_is_looked_for_again_and_then_named(world: World):
    world.do("A", materialise(0))
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.revise(new=None), etag)  # as after another tile's creation
    del world.bucket.objects[world.index.tile_key(hour(0))]

    with pytest.raises(
        MissingDocumentError, match=r"orders/2026-11-20T00.json is not there, although .*topic.json nam"
    ):
        open_and_close.open_hour(world.index, world.kafka, hour(5))


def test_a_tile_that_shows_late_is_settled_and_closed_before_the_next_one_is_cut(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.do("A", materialise(0), until=completes).crash()
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.revise(new=None), etag)  # as after another tile's creation
    key = world.index.tile_key(hour(0))
    hidden = {key: world.bucket.objects.pop(key)}
    late = SimpleNamespace(sleep=lambda seconds: seconds and world.bucket.objects.update(hidden))
    monkeypatch.setattr("s3lake.index.commit.topic_index.time", late)
    open_and_close.open_hour(world.index, world.kafka, hour(1))

    assert world.index.existing_tile(hour(0))[0].partitions == {0: TileRange(0, 5, 5)}
    assert world.index.existing_tile(hour(1))[0].partitions == {0: TileRange(5, 5)}


@pytest.mark.parametrize(
    ("since", "burnt"), [(None, {0: 5}), (hour(0), {0: UNKNOWN_END})], ids=["whole", "created again"]
)
def test_names_of_unknown_ends_are_burnt_to_the_end_of_a_log_that_was_never_shorter(
    since: str | None, burnt: object, world: World
):
    world.minute = 65
    world.do("A", materialise(0))
    tile, etag = world.index.existing_tile(hour(0))
    world.index.swap_tile(tile.revise(burnt={0: UNKNOWN_END}), etag)
    head, etag = world.index.head()
    world.index.swap(world.index.head_key, head.revise(since=since), etag)
    open_and_close.open_hour(world.index, world.kafka, hour(1))

    assert world.index.existing_tile(hour(1))[0].burnt == burnt


@pytest.mark.parametrize(
    ("now_ms", "noted"), [(ms(70), {0: (1, ms(7 * 24 * 60))}), (ms(7 * 24 * 60), {})], ids=["ahead", "not ahead"]
)
def test_opening_and_closing_an_hour_note_a_record_that_is_stamped_ahead_of_the_clock(
    now_ms: int, noted: object, world: World
):
    world.kafka.logs[0].stamps = [ms(5)]
    open_and_close.open_hour(world.index, world.kafka, hour(0), now_ms=now_ms)
    world.kafka.produce(0, 7 * 24 * 60, 6, 65)
    assert tile(world, 0).stamped_ahead == {}
    open_and_close.open_hour(world.index, world.kafka, hour(1), now_ms=now_ms)

    assert (tile(world, 0).stamped_ahead, tile(world, 1).stamped_ahead) == (noted, noted)


@pytest.mark.parametrize("minute", [10, 60], ids=["open", "over"])
def test_planning_an_open_hour_notes_a_record_that_is_stamped_ahead_and_closes_the_hour_that_is_over(
    minute: float, world: World
):
    world.kafka.logs[0].stamps = [ms(5)]
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    world.kafka.produce(0, 7 * 24 * 60)
    world.minute = minute
    begin(world, 0)

    assert tile(world, 0).stamped_ahead == {0: (1, ms(7 * 24 * 60))}
    assert tile(world, 0).closed == (minute == 60)


@pytest.mark.parametrize(("earliest", "start"), [(0, 4), (1, 0)])
def test_the_first_hour_begins_at_the_log_start_if_it_is_the_earliest(earliest: int, start: int, world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(1), earliest_hour=hour(earliest))

    assert tile(world, 1).partitions == {0: TileRange(start, start)}


def test_a_tile_that_was_only_announced_is_written_before_another_one_is_announced(world: World):
    for number in (0, 5, 2):
        open_and_close.open_hour(world.index, world.kafka, hour(number))
    announced = world.index.existing_tile(hour(2))
    del world.bucket.objects[world.index.tile_key(hour(2))]
    open_and_close.open_hour(world.index, world.kafka, hour(7))

    assert world.index.tile(hour(2)) == announced


def test_a_commit_under_way_is_left_to_its_writer_by_who_opens_the_next_hour(world: World):
    world.minute = 65
    world.do("A", materialise(0), until=completes)
    open_and_close.open_hour(world.index, world.kafka, hour(1))

    assert (tile(world, 0).pending, tile(world, 0).closed) == ("c1", True)


# -------------------------------------------------------------------------------------------------------------- closing


def test_within_its_grace_an_hour_waits_for_late_records_and_takes_none_of_the_next_hours(world: World):
    world.minute = 64
    world.do("A", materialise(0, grace=10))
    assert tile(world, 0).partitions == {0: TileRange(0, 4)}

    world.kafka.produce(0, 63, 64)
    world.do("B", materialise(0, grace=10))
    assert tile(world, 0).partitions == {0: TileRange(0, 4)}

    world.minute = 70
    world.do("C", materialise(0, 1, grace=10))
    assert tile(world, 0).partitions == {0: TileRange(0, 4, 4)}
    assert tile(world, 1).partitions == {0: TileRange(4, 7)}


@pytest.mark.parametrize("work", [materialise(0), closing(0), materialise(1), materialise(3)])
def test_a_topic_partition_that_kafka_leaves_out_once_ends_nowhere(world: World, work: Work):
    world.add_partition()
    world.kafka.produce(1, 1, 2)
    world.do("A", materialise(0))
    world.kafka.produce(1, 40, 50)
    world.minute = 65
    before = tile(world, 0)
    world.kafka.unseen = {1}

    actor = world.do("B", work)

    assert isinstance(actor.error, KafkaUnavailableError)
    assert "topic-partition 1 is in the index, and missing in what the brokers report" in str(actor.error)
    assert tile(world, 0) == before
    world.kafka.unseen = set()
    world.do("C", materialise(3))
    assert tile(world, 0).partitions[1] == TileRange(0, 2, 4)


def test_an_hour_that_is_over_is_closed_and_planned_by_one_look_at_its_tile_and_one_at_kafka(world: World):
    world.do("A", materialise(0, rounds=0))
    world.minute = 61
    asked = len(world.log)

    world.do("B", materialise(0))

    methods = [line.split()[1] for line in map(str, world.log[asked:]) if line.startswith("B#")]
    # The ends of the topic, its head, the tile; then it is closed, and its records are read.
    assert methods[: methods.index("read")] == ["log_ranges", "get", "get", "snapshot", "put"]


# -------------------------------------------------------------------------------------------------------------- writing


def test_an_hour_is_landed_up_to_where_the_run_began_up_to_its_end_once_it_is_over_and_closed_after_the_grace(
    world: World,
):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    head, _ = world.index.head()

    def planned(now_ms: int, until: int) -> tuple[int, int]:
        attempt = protocol.begin_micro_batch(
            world.index, world.kafka, head, hour(0), limit=99, now_ms=now_ms, grace_ms=1, until={0: until}
        )
        assert attempt is not None
        return attempt.batch.intervals[0]

    assert planned(ms(60) - 1, until=3) == (0, 3)
    assert planned(ms(60) - 1, until=9) == (0, 5)
    assert planned(ms(60), until=9) == (0, 4)
    assert not tile(world, 0).closed
    assert planned(ms(60) + 1, until=9) == (0, 4)
    assert tile(world, 0).closed


def test_an_hour_without_records_is_landed_without_a_commit(world: World):
    world.minute = 300
    world.do("A", materialise(3))

    assert tile(world, 3).landed
    assert tile(world, 3).commits == ()


def test_a_wholly_expired_interval_is_committed_without_files(world: World):
    world.do("A", materialise(0, rounds=0))
    world.kafka.retain(0, 4)
    world.minute = 61

    world.do("B", materialise(0))

    (manifest,) = world.view().manifests.values()
    assert manifest.files == ()
    assert manifest.expired == ((0, 0, 4),)
    assert tile(world, 0).landed
    assert tile(world, 0).expired == ((0, 0, 4),)
    assert world.view().data == {}


def test_the_fenced_writers_message_names_the_winner(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    world.do("B", materialise(0))

    with pytest.raises(
        FencedError, match=r"orders 2026-11-20T00 first \(revision 2, commit c2\); nothing of commit c1"
    ):
        protocol.commit_attempt(world.index, attempt, Staged((), {}))


def test_an_hour_whose_tile_was_only_announced_is_begun(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    del world.bucket.objects[world.index.tile_key(hour(0))]

    assert begin(world, 0).batch.intervals == {0: (0, 5)}


def test_an_hour_without_a_tile_cannot_be_written(index: TopicIndex):
    with pytest.raises(MissingDocumentError, match=r"2026-11-20T00\.json is not there"):
        protocol.prepare_tile(index, hour(0))


# --------------------------------------------------------------------------------------------------------- rolling back


def interrupted(world: World) -> Actor:
    """A writer that stopped after its commit was entered and one of three files was visible."""
    a = world.do("A", materialise(0), until=completes)
    world.step(a, "crash after")
    return a


def test_whoever_comes_next_finishes_a_commit_and_tags_each_object_with_the_records_that_it_holds(world: World):
    interrupted(world)

    world.do("B", recovering(0))

    manifest = world.index.manifest(hour(0), "c1")
    assert manifest is not None
    held = {file.key: (file.first_offset, file.last_offset, file.records) for file in manifest.files}
    assert world.bucket.tagged == held
    assert (tile(world, 0).commits, tile(world, 0).partitions) == (("c1",), {0: TileRange(0, 5)})
    assert len(held) == 3


def test_names_are_the_layouts_own_again_beyond_what_was_rolled_back(world: World):
    interrupted(world)
    world.lose_upload(min(world.bucket.uploads))
    world.do("B", materialise(0), chunk=9)
    assert tile(world, 0).burnt == {0: 5}

    world.kafka.produce(0, 6, 7)
    world.do("C", materialise(0), chunk=9)
    world.minute = 65
    world.kafka.produce(0, 66)
    world.do("D", materialise(1), chunk=9)

    assert list(world.view().data) == ["data/orders/0+0~c2", "data/orders/0+5", "data/orders/0+7"]


def test_a_writer_whose_own_upload_vanished_reports_that_nothing_is_visible(world: World):
    open_and_close.open_hour(world.index, world.kafka, hour(0))
    attempt = begin(world, 0)
    missing = File("data/orders/0+0", "upload-of-yore", ('"x"',), 0, 0, 4, 5, 9)

    with pytest.raises(
        FencedError, match="commit c1 of orders 2026-11-20T00 was rolled back: an upload could not be comp"
    ):
        protocol.commit_attempt(world.index, attempt, Staged((missing,), {}))
    assert tile(world, 0).burnt


def test_a_pending_commit_without_a_manifest_is_rolled_back_and_not_waited_for(world: World):
    interrupted(world)
    del world.bucket.objects[world.index.manifest_key(hour(0), "c1")]

    world.do("B", materialise(0))

    assert tile(world, 0).partitions == {0: TileRange(0, 5)}
    assert tile(world, 0).commits == ("c2",)
    assert tile(world, 0).burnt


def test_garbage_that_may_not_be_deleted_stops_no_landing_and_is_reported_when_all_is_landed(world: World, caplog):
    world.bucket.circumstances = Circumstances(keeps_data=True)
    interrupted(world)
    world.lose_upload(min(world.bucket.uploads))

    assert world.do("B", materialise(0), chunk=9).error is None
    assert tile(world, 0).partitions == {0: TileRange(0, 5)}
    assert tile(world, 0).garbage == ("c1",)
    assert "files of commits that were given up stay visible: DeleteObject data/orders/0+0 was refused" in caplog.text

    world.minute = 65
    error = world.do("C", materialise(0)).error
    assert isinstance(error, StoreDeniedError)
    assert "s3:DeleteObject" in str(error)
    assert tile(world, 0).landed

    world.bucket.circumstances = Circumstances()
    assert world.do("D", materialise(0)).error is None
    assert tile(world, 0).complete
    assert list(world.view().data) == ["data/orders/0+0~c2"]


def test_an_upload_that_the_store_refuses_to_complete_for_good_rolls_back_and_the_hour_goes_on(world: World):
    world.bucket.circumstances = Circumstances(refuses=True)
    a = world.do("A", materialise(0), chunk=1, until=completes)
    world.step(a)
    world.step(a, twist="refused")
    world.run(a)

    assert a.error is None
    assert tile(world, 0).pending is None
    assert tile(world, 0).partitions == {0: TileRange(0, 5)}
    assert [file.split("~")[1] for file in world.view().data] == ["c2"] * 5
    assert world.bucket.uploads == {}


# ------------------------------------------------------------------------------------------------------ foreign objects


def meeting_foreign(world: World) -> Actor:
    """A writer that finds another program's object at the first of its keys."""
    a = world.do("A", materialise(0), chunk=3, until=enters_pending)
    world.place_foreign("data/orders/0+0")
    world.run(a)
    return a


def test_a_key_taken_by_another_program_rolls_the_commit_back_with_a_clear_message(world: World):
    a = meeting_foreign(world)

    assert isinstance(a.error, ForeignObjectError)
    assert str(a.error) == (
        "s3://memory/data/orders/0+0 was not written by this sink (its s3lake-commit metadata is None); nothing of "
        "orders 2026-11-20T00 was landed over it: if the sink had another name, set index.name to that name; else move "
        "the object away, or give the sink another prefix"
    )
    assert tile(world, 0).foreign == ("data/orders/0+0",)
    assert tile(world, 0).commits == ()
    assert list(world.view().data) == ["data/orders/0+0"]
    assert world.bucket.uploads == {}


def test_nothing_is_tried_under_another_name_while_the_object_is_there(world: World):
    meeting_foreign(world)
    written = len(world.log)

    b = world.do("B", materialise(0))

    assert isinstance(b.error, ForeignObjectError)
    assert not [line for line in map(str, world.log[written:]) if "upload" in line]


def test_an_object_is_in_the_way_only_where_the_sink_writes(index: TopicIndex):
    index.data = "data/"
    index.store.put("former/orders/0+0", b"not ours")
    index.create(index.tile_key(hour(0)), Tile(hour(0), {0: TileRange(0, 0)}, foreign=("former/orders/0+0",)))

    assert protocol.prepare_tile(index, hour(0))[0].foreign == ()


def test_the_next_write_goes_on_when_the_foreign_object_is_deleted(world: World):
    meeting_foreign(world)
    world.remove_foreign()

    b = world.do("B", materialise(0))

    assert b.error is None
    assert tile(world, 0).foreign == ()
    assert tile(world, 0).partitions == {0: TileRange(0, 5)}
