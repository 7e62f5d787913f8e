"""Keeps what an earlier state of s3lake lands: `python -m s3lake_tests.upgrades.make COMMIT`.

The state itself lands it, on an embedded broker and S3 of its own: this file is run once more with that state's copy
of the repository in front. So it imports of s3lake only what every state has had, and nothing at its top.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EIGHT, NINE, TEN = (f"2026-01-05T{hour:02}" for hour in (8, 9, 10))
SINKS = {
    "lines": "prefix: lines, errors: {tolerance: all}",
    "columns": "prefix: columns, format: {type: parquet}, errors: {tolerance: all}",
}
"""Each has a topic of its own, and dead letters."""

Produced = tuple[str, float, bytes | None]


class Died(BaseException):
    """A writer did."""


def topic_of(commit: str, name: str) -> str:
    """What the topic is called that a state has landed."""
    return f"upgrade-{commit}-{name}"


def landed() -> list[Produced]:
    """What was produced before the last commit of three hours, by hour and minute: a null, a late and a bad record."""
    plain = [(hour, 5.0 * number, body(number)) for hour in (EIGHT, NINE) for number in range(10)]
    return [*plain, (NINE, 55, None), (EIGHT, 59, body(77)), (TEN, 1, b"no JSON"), (TEN, 2, body(1)), (TEN, 3, body(2))]


def pending() -> list[Produced]:
    """What the commit held that a writer left pending when it died."""
    return [(TEN, 20.0 + number, body(number)) for number in range(3)]


def body(number: int) -> bytes:
    """A record."""
    return b'{"id": %d, "name": "n%d", "price": %d.5}' % (number, number, number)


def produce(lake: Any, topic: str, records: list[Produced]) -> None:
    """The same records in both topic-partitions."""
    from s3lake_tests.lake import at

    for partition in (0, 1):
        stamps = [at(hour, minutes) for hour, minutes, _ in records]
        lake.produce(topic, [value for _, _, value in records], stamps, partition)


def make(commit: str) -> None:
    """Have the state land, from a worktree that is gone afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", state, commit], cwd=HERE, check=True)
        try:
            environment = {**os.environ, "PYTHONPATH": str(state)}
            subprocess.run(
                [sys.executable, __file__, commit, "--here"], cwd=directory, env=environment, check=True, timeout=300
            )
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", state], cwd=HERE, check=True)


def keep(commit: str) -> None:
    """Land with the state whose code this is, and write its bucket beside this file."""
    from s3lake.demo.kafka import EmbeddedKafka
    from s3lake.demo.s3 import EmbeddedS3
    from s3lake.sink import Spark
    from s3lake_tests.lake import Lake, at

    try:
        from s3lake.land.spark import session
    except ImportError:  # where it stood before
        from s3lake.spark import session  # type: ignore[import-not-found,no-redef]

    spark = session(Spark(master="local[2]", driver_memory="512m"))
    with EmbeddedKafka.start() as kafka, EmbeddedS3.start() as s3:
        lake = Lake(kafka, s3, lambda: spark)
        for name, settings in SINKS.items():
            topic = lake.topic(2, topic_of(commit, name))
            produce(lake, topic, landed())
            landing = lake.landing(topic, settings, at(TEN, 15))
            landing.land([EIGHT, NINE, TEN])
            landing.rewrite(EIGHT)
            produce(lake, topic, pending())
            dying = lake.landing(topic, settings, at(TEN, 30))
            die_before_the_last_step(dying.store)
            try:
                dying.land([TEN])
            except Died:
                continue
            raise AssertionError(f"{name}: nothing is pending")
        write(lake, HERE / commit)
    spark.stop()


def die_before_the_last_step(store: Any) -> None:
    """Die when the objects are complete and the tile does not list them yet."""
    complete, put = store.complete_upload, store.put
    completed = []

    def completing(*arguments: Any, **options: Any) -> Any:
        completed.append(complete(*arguments, **options))
        return completed[-1]

    def putting(*arguments: Any, **options: Any) -> Any:
        if completed:
            raise Died
        return put(*arguments, **options)

    store.complete_upload, store.put = completing, putting


def write(lake: Any, directory: Path) -> None:
    """Every object as a file, and what S3 keeps beside them as one."""
    metadata = {}
    for key in sorted(lake.store.list("")):
        answer = lake.client.get_object(Bucket=lake.bucket, Key=key)
        path = directory / "bucket" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(answer["Body"].read())
        metadata[key] = answer["Metadata"]
    (directory / "metadata.json").write_text(json.dumps(metadata, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1]) if sys.argv[2:] else make(sys.argv[1])
