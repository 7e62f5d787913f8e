"""Two derivations of one format: whatever the pipeline stages of any values, verifying finds nothing that differs.

And the other way round: with any one record taken out of Kafka or put twice into it, it does.
"""

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3lake import hours
from s3lake.commit.index import Read
from s3lake.pipeline import Done, Grown, Work, run
from s3lake.store import Store
from s3lake_tests.verify.world import HOUR, IN_TIME, TOPIC, World

numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.none() | st.booleans() | numbers | text
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)
objects = st.dictionaries(st.sampled_from(["a", "b", "c", "é"]), documents, max_size=4)


def spelled(value: Any, indent: int | None, ascii: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=ascii).encode()


values = st.builds(spelled, objects, st.none() | st.just(1), st.booleans())
anything = st.none() | st.binary(max_size=12) | values | st.builds(spelled, documents, st.none(), st.booleans())
SINKS = [
    {"format": {"type": format, "codec": codec}, "converter": {"value": converter}, "nulls": nulls}
    for format, codec in (("json", "none"), ("json", "gzip"), ("text", "zstd"), ("parquet", None))
    for converter in ("json", "string", "bytes")
    for nulls in ("skip", "fail", "write")
]


def staged(world: World, given: list[bytes | None]) -> None:
    """Land values with the writer's own code, in one commit."""
    world.log.add(given)

    def stores(_: str) -> Store:
        return world.store

    batch = pa.record_batch(
        {
            "partition": pa.array([0] * len(given), pa.int32()),
            "offset": pa.array(range(len(given)), pa.int64()),
            "timestamp": pa.array([IN_TIME * 1000] * len(given), pa.timestamp("us", "UTC")),
            "value": pa.array(given, pa.binary()),
            "key": pa.array([None] * len(given), pa.binary()),
            "headers": pa.array(
                [None] * len(given), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
        }
    )
    start = hours.start_ms(HOUR)
    work = Work.of(world.sink, TOPIC, stores, commit="c1", renamed="", hour_start_ms=start, columns={})
    (outcome,) = run(work, [batch])
    while isinstance(outcome, Grown):
        work = work.with_columns(outcome.columns)
        (outcome,) = run(work, [batch])
    assert isinstance(outcome, Done)
    for file in outcome.files:
        world.store.complete_upload(file.key, file.upload, file.parts)
    read = outcome.reads[0]
    done = Read(0, len(given), read.read, read.landed, read.skipped, read.dead, read.late)
    world.commit("c1", outcome.files, {0: done})


def name_of(sink: dict[str, Any]) -> str:
    return "-".join([sink["format"]["type"], sink["converter"]["value"], sink["nulls"]])


@pytest.mark.parametrize("sink", SINKS, ids=name_of)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(given=st.lists(anything, min_size=1, max_size=12), touched=st.integers(0, 11))
def test_writer_and_verifier_agree(sink: dict[str, Any], given: list[bytes | None], touched: int) -> None:
    world = World(**sink, errors={"tolerance": "all"}, flush={"count": 5})
    staged(world, given)
    report = world.verify()
    assert report.clean, report.differences
    assert report.produced == report.landed + report.dead_letters + report.skipped == len(given)

    log = world.log.records[0]
    offset = touched % len(given)
    saved = log.pop(offset)
    assert not world.verify().clean
    log[offset] = log[len(given)] = saved
    world.log.end[0] = len(given) + 1
    world.change("c1", partitions={0: msgspec.structs.replace(world.manifests["c1"].partitions[0], end=len(given) + 1)})
    world.span(0, len(given) + 1, None)
    assert not world.verify().clean
