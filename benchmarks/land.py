"""What `sink.py` measures: one process that lands one hour of a topic, sink after sink, in one Spark session.

After each step it says on stdout what it did, and goes on when it gets a line on stdin.
"""

import functools
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from s3lake.config import model
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.land import spark
from s3lake.land.hour.landing import land
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.kafka.reader import KafkaReader


def main(plan: Mapping[str, Any]) -> None:
    """Starts Spark, then lands `plan["hour"]` through every sink of `plan["config"]`."""
    config = model.Config.model_validate(plan["config"])
    stores = functools.partial(S3Store, S3Connection.from_settings(config.s3))
    assert config.kafka is not None
    servers = config.kafka.bootstrap_servers
    spark.open_spark(config.spark)
    told(did="start")
    for one in config.sinks:
        target = TopicSink(
            one,
            plan["topic"],
            lambda: spark.open_spark(config.spark),
            stores,
            KafkaOffsets(servers),
            lambda: KafkaReader(servers),
        )
        began = time.perf_counter()
        (landed,) = land(target, [plan["hour"]])
        told(did=one.name, seconds=time.perf_counter() - began, **report(target, landed))


def report(target: TopicSink, landed: LandedHour) -> dict[str, Any]:
    """What came of it, by the index."""
    files = [file for manifest in landed.manifests for file in manifest.files]
    requests = dict(sorted(target.requests.items()))
    return {
        "rows": sum(file.records for file in files),
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
        "s3_requests": requests,
        "requests_per_file": round(sum(requests.values()) / len(files), 2),
    }


def told(**what: Any) -> None:
    """Says something, and waits to be told to go on; ends where nobody listens any more."""
    print(json.dumps(what), flush=True)
    if not sys.stdin.readline():
        raise SystemExit("the measuring process has stopped")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
