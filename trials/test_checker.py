"""What `checker.py` calls wrong, of topics that are created again and of a connector's objects."""

import json
import time
from typing import Any

from trials.checker import Former, Left, check, committed
from trials.truth import Place, Seen, Truth

FORMER, PRESENT, LATER = "2026-11-20T05", "2026-11-20T06", "2026-11-20T07"


class Bucket:
    """The index and the files of one sink and topic, hour by hour."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def objects(self) -> dict[str, float]:
        return dict.fromkeys(self.bodies, time.time())

    def body(self, key: str) -> bytes:
        return self.bodies[key]

    def head(self, **head: Any) -> None:
        self.bodies[".indexes/events/orders/topic.json"] = json.dumps(head).encode()

    def tile(self, hour: str, span: tuple[int, int, int | None], *ids: str, expired: int = 0, erased: int = 0) -> None:
        """One topic-partition from, committed and end; its file holds these, and its first offsets had expired."""
        key = f"events/orders/{hour}.json"
        self.bodies[key] = b"".join(b'{"id":"%s"}\n' % one.encode() for one in ids)
        part = dict(zip(("start", "committed", "end"), span, strict=True))
        document = {"hour": hour, "partitions": {"0": part}, "commits": ["c"], "expired": [[0, 0, expired]]}
        manifest = {"files": [{"key": key, "kind": "data"}], "partitions": {"0": {**part, "erased": erased}}}
        self.bodies[f".indexes/events/orders/{hour}.json"] = json.dumps(document).encode()
        self.bodies[f".indexes/events/orders/{hour}/c.json"] = json.dumps(manifest).encode()


def checked(bucket: Bucket, *lives: list[str], left: Any = None, landed: int = 0) -> Any:
    """Of topics of one name, of each of which these were seen; of the former so much was landed when it was deleted."""
    truth = Truth("", ("orders",))
    for life, ids in enumerate(lives):
        truth.seen |= {one: Seen("orders", 0.0) for one in ids}
        truth.places |= {one: Place(life, 0, offset) for offset, one in enumerate(ids)}
    formers = [Former("orders", {"events": {0: [(0, landed)]}}, {"events": PRESENT})] if len(lives) > 1 else []
    return check(bucket, "events", ["orders"], truth, left, formers)  # type: ignore[arg-type]


def test_a_record_that_a_deleted_topic_had_not_landed_is_given_up():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 1, 1), "a")
    bucket.tile(PRESENT, (0, 1, None), "x")
    found = checked(bucket, ["a", "b"], ["x"], landed=1)
    assert (found.given_up, found.lost, found.clean) == (1, 0, True)


def test_a_record_that_kafka_has_twice_is_landed_twice():
    for files, lost, doubled in ((["a"], 1, 0), (["a", "a"], 0, 0), (["a", "a", "a"], 0, 1)):
        bucket = Bucket()
        bucket.tile(PRESENT, (0, 2, 2), *files)
        truth = Truth("", ("orders",))
        truth.seen["a"] = Seen("orders", 0.0, times=2)
        found = check(bucket, "events", ["orders"], truth, None, [])  # type: ignore[arg-type]
        assert (found.lost, found.duplicated) == (lost, doubled)


def test_a_record_landed_before_its_topic_was_deleted_is_lost_if_its_file_is_missing():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 1, 1), "a")
    found = checked(bucket, ["a", "b"], [], landed=2)
    assert (found.given_up, found.lost, found.examples) == (0, 1, ["lost: b"])


def test_a_record_that_the_index_counts_as_landed_is_lost_if_its_file_is_missing():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 2, 2), "a")
    found = checked(bucket, ["a", "b"], [], landed=1)
    assert (found.given_up, found.lost) == (0, 1)


def test_nothing_of_the_present_topic_is_given_up():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 1, 1), "a")
    found = checked(bucket, ["a"], ["x"], landed=1)
    assert (found.given_up, found.lost) == (0, 1)


def test_a_record_of_the_present_topic_in_an_hour_of_the_former_one_is_misplaced():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 2, 2), "a", "x")
    found = checked(bucket, ["a"], ["x"], landed=1)
    assert (found.misplaced, found.lost, found.clean) == (1, 0, False)


def test_a_record_that_a_connector_left_counts_once():
    theirs = {"events/orders/theirs.json": b'{"id":"a"}\n'}
    bucket = Bucket()
    bucket.bodies |= theirs
    bucket.tile(PRESENT, (1, 2, None), "b")
    assert checked(bucket, ["a", "b"], left=Left("orders", theirs)).clean

    bucket.tile(PRESENT, (0, 2, None), "a", "b")
    assert checked(bucket, ["a", "b"], left=Left("orders", theirs)).duplicated == 1


def test_a_lost_record_is_told_beside_what_the_index_calls_expired_and_erased():
    bucket = Bucket()
    bucket.tile(PRESENT, (0, 4, None), "c", expired=2, erased=1)
    found = checked(bucket, ["a", "b", "c", "d"])
    assert (found.lost, found.expired, found.erased) == (3, 2, 1)


def test_a_connectors_object_that_was_changed_is_absent():
    bucket = Bucket()
    bucket.bodies["events/orders/theirs.json"] = b'{"id":"a"}\n{"id":"b"}\n'
    found = checked(bucket, ["a"], left=Left("orders", {"events/orders/theirs.json": b'{"id":"a"}\n'}))
    assert found.absent == ["events/orders/theirs.json, as it was"]


def test_a_sink_has_come_to_the_first_hour_that_is_not_whole():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 2, 4))
    bucket.tile(PRESENT, (4, 6, None))
    bucket.head(hours=[[FORMER, PRESENT]], since=None)
    assert committed(bucket, [("events", "orders")], FORMER) == {("events", "orders", 0): 2}  # type: ignore[arg-type]

    bucket.head(hours=[[FORMER, PRESENT]], since=PRESENT)
    assert committed(bucket, [("events", "orders")], FORMER) == {("events", "orders", 0): 6}  # type: ignore[arg-type]


def test_a_sink_has_come_to_the_first_hour_that_has_no_tile_yet():
    bucket = Bucket()
    bucket.tile(FORMER, (0, 2, 2))
    bucket.tile(LATER, (4, 6, None))
    bucket.head(hours=[[FORMER, FORMER], [LATER, LATER]], since=None)
    assert committed(bucket, [("events", "orders")], FORMER) == {("events", "orders", 0): 2}  # type: ignore[arg-type]


def test_a_sink_whose_first_hour_has_no_tile_yet_has_come_nowhere():
    bucket = Bucket()
    bucket.tile(PRESENT, (4, 6, None))
    bucket.head(hours=[[PRESENT, PRESENT]], since=None)
    assert committed(bucket, [("events", "orders")], FORMER) == {}  # type: ignore[arg-type]
