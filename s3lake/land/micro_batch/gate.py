"""The gate of a sink: a micro-batch that does not pass it is not committed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from s3lake.errors import GateError
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.land.task.outcomes import Done


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
            f"{where}: {format_count(landed, 'rows')} of {format_count(read, 'records')}, fewer than "
            f"schema.gate.min_rows, {gate.min_rows:,}. Look what refuses, skips or filters the others, or ask for fewer"
        )
    broken = sum(one.broken for one in done)
    for name, most, count, what in (
        ("max_dead_letters", gate.max_dead_letters, dead, "would be dead letters"),
        ("max_broken", gate.max_broken, broken, "lack a required field or break a rule"),
    ):
        if most is not None and count > most * read:
            raise GateError(
                f"{where}: {count:,} of {format_count(read, 'records')} ({count / read:.2%}) {what}, more than "
                f"schema.gate.{name}, {most:.2%}. Mend what writes or what reads them (`s3lake preview` "
                "shows why each is refused), or allow more"
            )
