"""Each dead letter answers for its record: with its value, at its offset, once, and nowhere else."""

import base64
import json
from typing import Any

import pytest

from s3lake.index.commit.documents import Read
from s3lake.lake.verify.log import UNREADABLE, Headers
from s3lake_tests.lake.verify.world import IN_TIME, VerifiedTopic, dead_letter_line, difference_types, texts

GOOD = [b"1", b"2", b"3"]
BAD = b"\xff{"


def with_dead_letters(
    *dead_letters: bytes, offsets: tuple[int, ...] = (1,), bad: bytes | None = BAD, **sink: Any
) -> VerifiedTopic:
    """Offset 1 is refused, 0, 2 and 3 have landed."""
    world = VerifiedTopic(**sink)
    world.log.add([GOOD[0], bad, *GOOD[1:]])
    data = world.lines("c1", GOOD, 0, 3)
    dead = world.lines("c1", dead_letters, min(offsets), max(offsets), stream="dead_letters")
    world.commit("c1", [data, dead], {0: Read(0, 4, read=4, landed=3, skipped=0, dead=len(dead_letters))})
    return world


def encoded(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


@pytest.mark.parametrize(
    ("bad", "value"),
    [(BAD, encoded(BAD)), (b"", ""), ("Łódź\n".encode(), "Łódź\n"), (b'"', '"'), (None, None)],
)
@pytest.mark.parametrize("nulls", ["skip", "fail"])
def test_a_dead_letter_counts_as_landed(bad: bytes | None, value: Any, nulls: str) -> None:
    report = with_dead_letters(dead_letter_line(1, value), bad=bad, nulls=nulls).verify()
    assert report.clean
    assert (report.compared, report.landed, report.dead_letters) == (4, 3, 1)
    assert (report.files, report.dead_letter_files) == (1, 1)


@pytest.mark.parametrize(
    ("dead_letters", "message", "missing", "duplicated"),
    [
        *(
            ([dead_letter_line(1, value)], "offset 1 has another value in Kafka", 1, 0)
            for value in ("other", encoded(BAD + b"!"), None, "")
        ),
        ([dead_letter_line(1, encoded(BAD))] * 2, "offset 1 is a dead letter twice", 0, 1),
        ([dead_letter_line(1, encoded(BAD), partition=1)], "", 1, 1),
        ([dead_letter_line(1, encoded(BAD), topic="other")], "", 1, 1),
        ([dead_letter_line(9, encoded(BAD))], "", 1, 1),
        *(
            ([line], "row 0 is not a dead letter", 1, 0)
            for line in (b"{}", b"", b"nothing", dead_letter_line(1, 5), dead_letter_line(1, {"base64": "?"}))
        ),
    ],
)
def test_a_dead_letter_that_is_not_of_its_record_is_found(
    dead_letters: list[bytes], message: str, missing: int, duplicated: int
) -> None:
    report = with_dead_letters(*dead_letters, offsets=tuple(range(1, 1 + len(dead_letters)))).verify()
    assert message in texts(report, "dead_letter")[0]
    assert (report.missing, report.duplicated) == (missing, duplicated)


@pytest.mark.parametrize(
    ("timestamp", "key", "headers"),
    [
        (IN_TIME + 1, b"k", [("h", b"\xff"), ("h", None)]),
        (IN_TIME, None, [("h", b"\xff"), ("h", None)]),
        (IN_TIME, b"k", [("h", None), ("h", b"\xff")]),
    ],
)
def test_a_dead_letter_with_another_key_timestamp_or_headers_is_found(
    timestamp: int, key: bytes | None, headers: Headers
) -> None:
    line = json.loads(dead_letter_line(1, encoded(BAD)))
    line |= {"key": "k", "headers": [{"name": "h", "value": encoded(b"\xff")}, {"name": "h", "value": None}]}
    world = with_dead_letters(json.dumps(line).encode())
    world.log.more[0, 1] = (b"k", [("h", b"\xff"), ("h", None)])
    assert world.verify().clean
    world.log.records[0][1] = (timestamp, BAD)
    world.log.more[0, 1] = (key, headers)
    assert texts(world.verify(), "dead_letter") == ["offset 1 has another key, timestamp or headers in Kafka"]


def test_the_headers_of_a_dead_letter_are_not_compared_if_verify_cannot_read_those_of_its_record() -> None:
    line = json.loads(dead_letter_line(1, encoded(BAD))) | {"headers": [{"name": "\ufffd", "value": "v"}]}
    world = with_dead_letters(json.dumps(line).encode())
    world.log.more[0, 1] = (None, UNREADABLE)
    world.log.more[0, 2] = (None, UNREADABLE)  # of a record that landed without headers
    assert world.verify().clean


def test_a_dead_letter_whose_record_also_landed_is_found() -> None:
    report = with_dead_letters(dead_letter_line(1, encoded(BAD)), dead_letter_line(2, "2"), offsets=(1, 2)).verify()
    assert report.duplicated == 1
    assert "row 1: Kafka has no such value" in texts(report, "duplicated")[0]
    assert "count" in difference_types(report)


def test_a_refused_record_without_dead_letter_is_missing() -> None:
    world = VerifiedTopic()
    world.log.add([GOOD[0], BAD, *GOOD[1:]])
    world.commit("c1", [world.lines("c1", GOOD, 0, 3)], {0: Read(0, 4, read=4, landed=3, skipped=0, dead=1)})
    report = world.verify()
    assert report.missing == 1
    assert "offset 1:" in texts(report, "missing")[0]


def test_a_dead_letter_without_a_record_is_found() -> None:
    world = with_dead_letters(dead_letter_line(1, encoded(BAD)), dead_letter_line(4, "?"), offsets=(1, 4))
    world.log.marker()
    read = Read(0, 5, read=4, landed=3, skipped=0, dead=2)
    world.change("c1", partitions={0: read})
    world.span(0, 5, 5)
    report = world.verify()
    assert texts(report, "dead_letter") == ["offset 4: Kafka has no such record"]
    assert report.duplicated == 1


def test_verify_finds_an_object_with_fewer_dead_letters_than_its_manifest_has() -> None:
    world = with_dead_letters(dead_letter_line(1, encoded(BAD)))
    _, dead = world.manifests["c1"].files
    world.overwrite(dead, b"")
    report = world.verify()
    assert f"{dead.key} has 0 records, the manifest states 1" in texts(report, "count")
    assert report.missing == 1
    world.store.delete(dead.key)
    assert f"{dead.key} of commit c1 is missing" in texts(world.verify(), "object")
