"""What stands in the bucket against what stood in Kafka, with no code of the product's: `soak.py` ends with it.

Files are read by the tests' `kit/object_rows.py`, the index as JSON by what docs/design/commit.md says of
it, Kafka by `truth.py`.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import boto3
import numpy as np
from botocore.config import Config

from s3lake_tests.kit.object_rows import read_rows
from trials.truth import Identity, Poison, Truth

INDEX = ".indexes"
_TILE = len("2026-11-22T10.json")
_HOUR = "%Y-%m-%dT%H"

Intervals = dict[int, list[tuple[int, int]]]
"""By topic-partition, of offsets: half-open."""


class Left(NamedTuple):
    """What a connector left of a topic, in one sink's place: its objects, and what they hold."""

    topic: str
    objects: Mapping[str, bytes]


class Former(NamedTuple):
    """A topic that was deleted, and created again.

    Attributes:
        landed: by sink, what the index said was landed just before it was deleted.
        since: by sink, the first hour of the next topic of this name.
    """

    topic: str
    landed: Mapping[str, Intervals]
    since: Mapping[str, str]


@dataclass
class Found:
    """What is wrong with one sink; all zero and empty where nothing is.

    Attributes:
        given_up: records that a topic which was deleted still had, and that were not landed then: nobody promised them.
        misplaced: records in an hour of an earlier or later topic of the same name.
        expired: offsets that the index says Kafka had deleted before they were landed.
        erased: records that the index says were erased.
    """

    lost: int = 0
    duplicated: int = 0
    made_up: int = 0
    misplaced: int = 0
    given_up: int = 0
    unlisted: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    rows: int = 0
    files: int = 0
    sealed: int = 0
    expired: int = 0
    erased: int = 0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.made_up or self.misplaced or self.unlisted or self.absent)


class Bucket:
    """An S3 bucket, read by boto3."""

    def __init__(self, endpoint_url: str, key: str, secret: str, name: str) -> None:
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint_url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 10}),
        )
        self.name = name
        self.gone: type[Exception] = self._client.exceptions.NoSuchKey

    def objects(self) -> dict[str, float]:
        """Every key, and when it was written."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {one["Key"]: one["LastModified"].timestamp() for page in pages for one in page.get("Contents", ())}

    def body(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def uploads(self) -> dict[str, str]:
        """The id of each upload that was begun and not ended, and its key."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self.name)
        return {one["UploadId"]: one["Key"] for page in pages for one in page.get("Uploads", ())}


def since(bucket: Bucket, sink: str, topic: str) -> str | None:
    """The first hour that is landed of the present topic; None where there is no hour at all."""
    return _since(bucket, bucket.objects(), sink, topic)


def landed(bucket: Bucket, sink: str, topic: str) -> Intervals:
    """What of the present topic is landed, by the index."""
    return _landed(_present(bucket, bucket.objects(), sink, topic))


def committed(bucket: Bucket, routes: Iterable[tuple[str, str]], start: str) -> dict[tuple[str, str, int], int]:
    """Up to where each sink has all of the topics that there are now, by sink, topic and topic-partition.

    An hour without a tile ends it: what was landed after that hour is not all there is.

    Args:
        start: the first hour of every sink.
    """
    objects = bucket.objects()
    reached: dict[tuple[str, str, int], int] = {}
    waiting: set[tuple[str, str, int]] = set()
    for sink, topic in routes:
        due = _since(bucket, objects, sink, topic) or start
        for tile in _present(bucket, objects, sink, topic):
            if tile["hour"] != due:
                break
            due = _next_hour(due)
            for number, part in tile["partitions"].items():
                place = sink, topic, int(number)
                if place not in waiting:
                    reached[place] = max(reached.get(place, 0), int(part["committed"]))
                if part["committed"] != part["end"]:
                    waiting.add(place)
    return reached


def check(
    bucket: Bucket,
    sink: str,
    topics: Sequence[str],
    truth: Truth,
    left: Left | None = None,
    formers: Sequence[Former] = (),
) -> Found:
    """One sink, whose files lie below a prefix of its own name."""
    found, objects = Found(), bucket.objects()
    files: dict[str, _File] = {}
    claimed: dict[tuple[str, int], Intervals] = {}
    for topic in topics:
        lives = [former.since[sink] for former in formers if former.topic == topic]
        tiles = list(_tiles(bucket, objects, sink, topic))
        for life in range(len(lives) + 1):
            claimed[topic, life] = _landed(tile for tile in tiles if _life(tile, lives) == life)
        for tile in tiles:
            ends = [part["end"] for part in tile["partitions"].values()]
            found.sealed += None not in ends and all(
                part["end"] == part["committed"] for part in tile["partitions"].values()
            )
            found.expired += sum(end - first for _, first, end in tile.get("expired", ()))
            for commit in tile["commits"]:
                manifest = json.loads(bucket.body(f"{INDEX}/{sink}/{topic}/{tile['hour']}/{commit}.json"))
                found.erased += sum(read.get("erased", 0) for read in manifest["partitions"].values())
                files |= {file["key"]: _File(topic, _life(tile, lives), file) for file in manifest["files"]}
    visible = {key for key in objects if key.startswith(f"{sink}/")}
    theirs = left.objects if left else {}
    found.unlisted = sorted(visible - files.keys() - theirs.keys())
    found.absent = sorted((files.keys() | theirs.keys()) - visible)
    rows: Counter[Identity] = Counter()
    letters: Counter[Identity] = Counter()
    for key, body in theirs.items():
        if key in visible and bucket.body(key) != body:
            found.absent.append(f"{key}, as it was")
        rows.update(_ids(key, body))
    for key, file in files.items():
        if key not in visible:
            continue
        found.files += 1
        names: list[Identity] = []
        if file.entry["kind"] == "dead_letters":
            names = list(_letters(bucket.body(key)))
            letters.update(names)
        elif file.entry["kind"] == "data":
            names = list(_ids(key, bucket.body(key)))
            rows.update(names)
        found.misplaced += sum(truth.places[name].life != file.life for name in names if name in truth.places)
    found.rows = rows.total()
    promised = _Promises(sink, truth, formers, claimed)
    good = (name for name, seen in truth.seen.items() if seen.topic in topics)
    poison = (one for one in truth.poison if one[0] in topics)
    _compare(found, rows, _wanted(good, truth, rows), promised)
    _compare(found, letters, _wanted(poison, truth, letters), promised)
    return found


def data_files(bucket: Bucket, sink: str, topic: str) -> Counter[str]:
    """The data files that the tiles of a sink and topic list."""
    root = f"{INDEX}/{sink}/{topic}"
    listed = [
        (tile["hour"], commit) for tile in _tiles(bucket, bucket.objects(), sink, topic) for commit in tile["commits"]
    ]
    manifests = [json.loads(bucket.body(f"{root}/{hour}/{commit}.json")) for hour, commit in listed]
    return Counter(file["key"] for manifest in manifests for file in manifest["files"] if file["kind"] == "data")


def freshness(bucket: Bucket, sink: str, topics: Iterable[str], truth: Truth) -> float:
    """The 95th percentile of the seconds until a record was in a file, of files that no others have replaced yet."""
    objects, ages = bucket.objects(), [0.0]
    for topic in topics:
        for tile in _present(bucket, objects, sink, topic):
            for commit in tile["commits"]:
                manifest = json.loads(bucket.body(f"{INDEX}/{sink}/{topic}/{tile['hour']}/{commit}.json"))
                for file in manifest["files"]:
                    key = file["key"]
                    if file["kind"] != "data" or key not in objects or _holds_anew(file, key):
                        continue
                    with contextlib.suppress(bucket.gone):  # its hour is being merged
                        names = [name for name in _ids(key, bucket.body(key)) if name in truth.seen]
                        ages += [objects[key] - truth.seen[name].at for name in names]
    return round(float(np.percentile(ages, 95)), 1)


class _File(NamedTuple):
    """A file that a tile lists: of which topic of a name, and what its manifest says of it."""

    topic: str
    life: int
    entry: Mapping[str, Any]


class _Promises(NamedTuple):
    """Which records have to be there, though their topic is not."""

    sink: str
    truth: Truth
    formers: Sequence[Former]
    claimed: Mapping[tuple[str, int], Intervals]

    def given_up(self, identity: Identity) -> bool:
        """Whether a record was not landed when its topic was deleted, and the index does not say that it is now."""
        topic = self.truth.seen[identity].topic if isinstance(identity, str) else identity[0]
        formers = [former for former in self.formers if former.topic == topic]
        place = self.truth.places.get(identity)
        if place is None or place.life >= len(formers):
            return False
        landed = formers[place.life].landed[self.sink], self.claimed[topic, place.life]
        return not any(first <= place.offset < end for one in landed for first, end in one.get(place.partition, ()))


def _holds_anew(file: Mapping[str, Any], key: str) -> bool:
    """Whether a file took the place of others: its name says so, and its age is not that of its records."""
    return bool(file.get("digest")) or "~" in key


def _wanted(seen: Iterable[Identity], truth: Truth, held: Counter[Identity]) -> Counter[Identity]:
    """As often as Kafka has each; what it has compacted away may have been landed before."""
    times = {one: truth.seen[one].times if isinstance(one, str) else 1 for one in seen}
    return Counter({one: min(often, held[one]) if one in truth.gone else often for one, often in times.items()})


def _compare(found: Found, held: Counter[Identity], wanted: Counter[Identity], promised: _Promises) -> None:
    missing, surplus = wanted - held, held - wanted
    lost = [name for name in missing if not promised.given_up(name)]
    unknown = {name: count for name, count in surplus.items() if name not in wanted}
    found.lost += len(lost)
    found.given_up += len(missing) - len(lost)
    found.made_up += sum(unknown.values())
    found.duplicated += surplus.total() - sum(unknown.values())
    for what, names in (("lost", lost), ("surplus", list(surplus))):
        found.examples += [f"{what}: {name}" for name in names[:5]]


def _life(tile: Mapping[str, Any], since: Sequence[str]) -> int:
    """How often the topic had been created again that a tile is of."""
    return sum(tile["hour"] >= first for first in since)


def _landed(tiles: Iterable[Mapping[str, Any]]) -> Intervals:
    """What they say is landed, without what had expired before it was."""
    intervals: Intervals = {}
    for tile in tiles:
        for number, part in tile["partitions"].items():
            at = int(part["start"])
            expired = sorted((first, end) for one, first, end in tile.get("expired", ()) if one == int(number))
            for first, end in [*expired, (int(part["committed"]), 0)]:
                if at < first:
                    intervals.setdefault(int(number), []).append((at, first))
                at = max(at, end)
    return intervals


def _tiles(bucket: Bucket, objects: Iterable[str], sink: str, topic: str) -> Iterator[dict[str, Any]]:
    root = f"{INDEX}/{sink}/{topic}/"
    for key in sorted(objects):
        name = key.removeprefix(root)
        if key.startswith(root) and len(name) == _TILE and name.endswith(".json") and name.startswith("20"):
            yield json.loads(bucket.body(key))


def _present(bucket: Bucket, objects: Iterable[str], sink: str, topic: str) -> Iterator[dict[str, Any]]:
    """Tiles of the topic that there is now."""
    first = _since(bucket, objects, sink, topic) or ""
    yield from (tile for tile in _tiles(bucket, objects, sink, topic) if tile["hour"] >= first)


def _next_hour(hour: str) -> str:
    return (datetime.strptime(hour, _HOUR) + timedelta(hours=1)).strftime(_HOUR)


def _since(bucket: Bucket, objects: Iterable[str], sink: str, topic: str) -> str | None:
    key = f"{INDEX}/{sink}/{topic}/topic.json"
    head = json.loads(bucket.body(key)) if key in objects else {}
    return (head.get("since") or "") if head.get("hours") else None


def _ids(key: str, body: bytes) -> Iterator[str]:
    yield from (str(row["id"]) for row in read_rows(key, body, ["id"]))


def _letters(body: bytes) -> Iterator[Poison]:
    for line in body.splitlines():
        letter = json.loads(line)
        yield letter["topic"], int(letter["partition"]), int(letter["offset"]), letter["value"]
