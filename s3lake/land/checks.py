"""What a landing refuses: a topic that does not exist, a micro-batch that is not as the sink wants it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError, GateError
from s3lake.index.commit.log_checks import ask_kafka

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.commit.index import TopicIndex
    from s3lake.land.task.outcomes import Done
    from s3lake.source.offsets import Offsets


def refuse_missing(sink: Sink, index: TopicIndex, offsets: Offsets) -> None:
    """Refuse a topic that never existed, unless the sink waits for it. The hours of a deleted topic report its state.

    Raises:
        ConfigurationError: there is no such topic, and never was one.
    """
    head = index.head()
    if sink.missing_topic == "wait" or (head and head[0].topic_id):
        return
    raise ConfigurationError(
        f"{describe_missing(sink, index.topic, offsets.topics())} Correct topics, create the topic, or set "
        "missing_topic: wait, and its hours stay empty until it exists"
    )


def describe_missing(sink: Sink, topic: str, topics: Sequence[str]) -> str:
    """Return a sentence that the topic does not exist, with the nearest known name."""
    near = get_close_matches(topic, topics, 1)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return f"sink {sink.name}: topic {topic!r} does not exist, so there is nothing to land{hint}"


def refuse_absent(sink: Sink, index: TopicIndex, offsets: Offsets) -> None:
    """Refuse a topic of which Kafka knows no offsets, unless its sink waits for it.

    Raises:
        DataLossError: it was deleted after hours of it were landed.
        ConfigurationError: there is no such topic, and never was one.
    """
    head = index.head()
    if head and head[0].topic_id and head[0].hours:
        ask_kafka(index, offsets, head[0], head[0].hours[-1][1])
    refuse_missing(sink, index, offsets)


def check_gate(sink: Sink, topic: str, hour: str, done: Sequence[Done]) -> None:
    """Refuse a micro-batch that read records and is not what the sink's gate asks for.

    Raises:
        GateError: it may not be committed.
    """
    gate = sink.schema_policy.gate
    reads = list(chain.from_iterable(each.reads.values() for each in done))
    read, landed, dead = (
        sum(one.read for one in reads),
        sum(one.landed for one in reads),
        sum(one.dead for one in reads),
    )
    if not read:
        return
    where = f"sink {sink.name}: topic {topic!r}, hour {hour}: nothing of this micro-batch is visible"
    if landed < gate.min_rows:
        raise GateError(
            f"{where}: {landed:,} rows of {read:,} records are fewer than schema.gate.min_rows, {gate.min_rows:,}. "
            "Look what refuses, skips or filters the others, or ask for fewer"
        )
    broken = sum(one.broken for one in done)
    for name, most, count, what in (
        ("max_dead_letters", gate.max_dead_letters, dead, "would be dead letters"),
        ("max_broken", gate.max_broken, broken, "lack a required field or break a rule"),
    ):
        if most is not None and count > most * read:
            raise GateError(
                f"{where}: {count:,} of {read:,} records ({count / read:.2%}) {what}, more than schema.gate.{name}, "
                f"{most:.2%}. Mend what writes or what reads them (`s3lake preview` shows why each is refused), or "
                "allow more"
            )
