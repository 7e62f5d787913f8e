"""What thousands of topics without a record cost, simulated: `python -m benchmarks.quiet_simulation --topics 5000`.

The bucket is in memory and Kafka is a stand-in, so the CPU seconds are s3lake's own: what the client of S3 and what
Dagster's events cost is in `quiet_topics.py`. Prints a JSON line for each hour: requests and questions to Kafka too.
"""

import argparse
import json
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.histories import Counting
from s3lake import hours
from s3lake.config.model import Sink
from s3lake.index.commit.open_and_close import open_hour
from s3lake.land.many_topics.quiet_topics import close_quiet_hours
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.offsets import LogRange, TopicOffsets

FIRST = "2026-01-01T00"


class Bucket(Counting):
    """A bucket in memory with a name, so that a process tries it once."""

    endpoint = "simulated"


@dataclass
class QuietKafka:
    """A broker whose topics get no record; `questions` counts the questions about many topics."""

    partitions: int
    questions: int = 0

    def snapshot(self, _: str, __: str, **___: object) -> TopicOffsets:
        return TopicOffsets("id", dict.fromkeys(range(self.partitions), LogRange(0, 100, 100, 100, 0)))

    def snapshots(self, topics: Collection[str], hour: str) -> Mapping[str, TopicOffsets]:
        self.questions += 1
        return {topic: self.snapshot(topic, hour) for topic in topics}


def main() -> None:
    """Let hours pass."""
    options = parse_arguments()
    store, kafka = Bucket(), QuietKafka(options.partitions)
    source: Any = kafka
    names = [f"many-{number:05}" for number in range(options.topics)]
    sink = Sink.model_validate({"name": "many", "topics": names, "bucket": "lake", "start": FIRST})
    for number in range(options.hours + 1):
        hour = hours.shift(FIRST, number)
        clock = partial(int, hours.end_ms(hour))
        targets = [TopicSink(sink, name, refuse, lambda _: store, source, refuse, clock=clock) for name in names]
        if not number:
            for target in targets:
                open_hour(target.index, source, hour)
            continue
        store.asked, kafka.questions, began = 0, 0, time.process_time()
        requested = {target: [hours.shift(hour, -1), hour] for target in targets}
        closed = sum(len(topics) for topics in close_quiet_hours(requested))
        found = {"cpu_s": round(time.process_time() - began, 2), "questions": kafka.questions}
        found["requests_per_topic"] = round(store.asked / options.topics, 2)
        print(json.dumps({"hour": hour, "closed": closed, **found, "load": round(os.getloadavg()[0], 1)}), flush=True)


def refuse() -> Any:
    """Raise an error: nothing is read."""
    raise AssertionError("a quiet hour needs neither a session nor a reader")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=5_000, help="topics of the sink (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of each topic (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=3, help="quiet hours (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
