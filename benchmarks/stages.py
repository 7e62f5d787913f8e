"""Where a record's microseconds go: `python -m benchmarks.stages --records 500000`.

Reads a topic with the reader of a task, then puts the same batches through the pipeline with a store that keeps nothing
but counts, all in this process, and prints CPU µs a record, the least of some rounds: reading (librdkafka's threads
included), and conversion to staged parts for each format. What a landing costs beyond these two is Spark, the driver,
S3's requests and, cold, imports and compilation.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from benchmarks import records
from benchmarks.sink import SCHEMA_ID, registry
from s3lake import hours
from s3lake.config.model import Sink
from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.index.store.memory import MemoryStore
from s3lake.land.request import stage_values
from s3lake.land.task.outcomes import Done, Grown, Outcome
from s3lake.land.task.pipeline import Work, run
from s3lake.records.schema.columns.types import from_document
from s3lake.records.schema.columns.union import merge_columns
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.record_batches import OffsetRange

INSERT = {"type": "InsertField$Value", "options": {"offset.field": "kafka_offset"}}
ROWS: Sequence[tuple[Any, ...]] = (
    ("json", {"type": "json"}),
    ("json", {"type": "json", "codec": "gzip"}),
    ("json", {"type": "parquet", "codec": "snappy"}),
    ("json", {"type": "avro", "codec": "snappy"}),
    ("json", {"type": "csv"}),
    ("json", {"type": "text"}),
    ("avro", {"type": "parquet", "codec": "snappy"}),
    ("avro", {"type": "avro", "codec": "snappy"}),
    ("avro", {"type": "json"}),
    ("avro", {"type": "parquet", "codec": "snappy"}, INSERT),
)


class Counting(MemoryStore):
    """Takes parts and forgets them."""

    def upload_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        return f"{key} {upload} {number} {len(body)}"


def main() -> None:
    """Measures, and prints a JSON line for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    hour = hours.shift(hours.key(datetime.now(timezone.utc)), -2)
    with EmbeddedKafka.start() as kafka, registry() as address:
        batches = {}
        for value, schema_id in (("json", 0), ("avro", SCHEMA_ID)):
            records.main(kafka.bootstrap_servers, value, hour, options.records, 1, 0, 0, schema_id)
            reading = least(options.rounds, lambda value=value: list(read(kafka.bootstrap_servers, value)))
            batches[value] = list(read(kafka.bootstrap_servers, value))
            told(options.records, {"read": value}, reading)
        for value, form, *transforms in ROWS:
            converter = (
                {"value": "avro", "registry": {"url": address}}
                if value == "avro"
                else {"value": "string" if form["type"] == "text" else "json"}
            )
            sink = Sink.model_validate(
                {
                    "name": "s",
                    "topics": (value,),
                    "bucket": "lake",
                    "start": hour,
                    "format": dict(form),
                    "converter": converter,
                    "transforms": transforms,
                }
            )
            work = settled(sink, value, batches[value][:1])
            staging = least(options.rounds, lambda work=work, value=value: outcomes(work, batches[value]))
            chain = {"transforms": [one["type"] for one in transforms]} if transforms else {}
            told(options.records, {"value": value, **form, **chain}, staging)


def read(servers: str, topic: str) -> Iterator[pa.RecordBatch]:
    (start, end) = KafkaOffsets(servers).log_ranges(topic)[0]
    columns = ("partition", "offset", "timestamp", "value")
    return KafkaReader(servers).batches(topic, [OffsetRange(0, start, end)], columns)


def settled(sink: Sink, topic: str, some: Sequence[pa.RecordBatch]) -> Work:
    """The work with the columns of its files, as a second micro-batch has them."""
    store = Counting("lake")
    work = stage_values.build_work(sink, topic, lambda _: store, sink.start, commit="c")
    for outcome in run(work, some):
        seen = outcome.columns if isinstance(outcome, Grown) else outcome.seen if isinstance(outcome, Done) else {}
        work = work.with_columns(merge_columns(work.columns, from_document(seen)))
    return work


def outcomes(work: Work, batches: Sequence[pa.RecordBatch]) -> list[Outcome]:
    found = list(run(work, batches))
    if not all(isinstance(outcome, Done) for outcome in found):
        raise SystemExit(f"not what was to be measured: {found}")
    return found


def least(rounds: int, measured: Any) -> float:
    """CPU seconds of this process, all its threads, in the fastest round."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        measured()
        found.append(time.process_time() - began)
    return min(found)


def told(count: int, what: Mapping[str, Any], seconds: float) -> None:
    print(json.dumps({**what, "cpu_us_per_record": round(seconds / count * 1e6, 2)}), flush=True)


if __name__ == "__main__":
    main()
