"""How long `s3lake.files` takes over many hours of an index: `python -m benchmarks.files --commits 12`."""

import argparse
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

import s3lake
from s3lake import hours
from s3lake.index.commit.documents import File, FileForm, Manifest, Read, TopicHead
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.kit.s3 import start_s3

HOURS = 1000
PARTITIONS = 6
START = "2026-01-01T00"
RECORDS = 10
"""Of one topic-partition in one commit."""


def main(commits: int) -> None:
    """Measures three times, and prints one JSON line each."""
    with start_s3("versitygw") as s3, tempfile.TemporaryDirectory() as scratch:
        s3.create_bucket("lake")
        os.environ |= {"AWS_ACCESS_KEY_ID": s3.access_key_id, "AWS_SECRET_ACCESS_KEY": s3.secret_access_key}
        connection = S3Connection(s3.endpoint_url, s3.region, True, 50, s3.access_key_id, s3.secret_access_key)
        fill(TopicIndex(S3Store(connection, "lake"), ".indexes/events", "orders"), commits)
        sink = {"name": "events", "topics": ["orders"], "start": START, "bucket": "lake", "format": {"type": "parquet"}}
        configuration = {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "s3": {"endpoint_url": s3.endpoint_url, "region": s3.region, "path_style": True},
            "sinks": [sink],
        }
        config = Path(scratch, "s3lake.json")
        config.write_text(json.dumps(configuration), encoding="utf-8")
        for _ in range(3):
            wall, cpu = time.perf_counter(), time.process_time()
            found = s3lake.files(str(config), "events", "orders")
            took = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            seconds = {name: round(value, 2) for name, value in took.items()}
            print(json.dumps({"hours": HOURS, "commits": commits, "files": len(found), **seconds}))


def fill(index: TopicIndex, commits: int) -> None:
    """An index of hours with so many commits each, of which each has one file for a topic-partition."""
    wanted = [hours.shift(START, number) for number in range(HOURS)]

    def land(number: int) -> None:
        hour, names = wanted[number], tuple(f"{number:06d}{commit:06d}" for commit in range(commits))
        begin = number * commits * RECORDS
        for at, name in enumerate(names):
            first = begin + at * RECORDS
            files = tuple(
                File(f"orders/{hour}/{part}-{name}.parquet", "u", ("e",), part, first, first + RECORDS - 1, RECORDS, 1)
                for part in range(PARTITIONS)
            )
            reads = {part: Read(first, first + RECORDS, read=RECORDS, landed=RECORDS) for part in range(PARTITIONS)}
            columns = {"id": "int64", "name": "string"}
            manifest = Manifest(name, "orders", hour, reads, files, form=FileForm("parquet"), columns=columns)
            index.store.put(index.manifest_key(hour, name), msgspec.json.encode(manifest))
        end = begin + commits * RECORDS
        tile = Tile(hour, {part: TileRange(begin, end, end) for part in range(PARTITIONS)}, commits=names)
        index.store.put(index.tile_key(hour), msgspec.json.encode(tile))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(land, range(HOURS)))
    index.store.put(index.head_key, msgspec.json.encode(TopicHead(hours=tuple(hours.ranges(wanted)))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=1, help="of each hour")
    main(parser.parse_args().commits)
