"""What the crash matrix kills: commands of ours, with the sink, the records and the hours that each begins with.

An hour comes in two commits, which landing merges. Some records are no JSON, and in the second hour some have no time,
which the layout that replay begins with cannot place.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from s3lake import hours
from trials import connector

TOPIC, SINK = "orders", "events"
PARTITIONS, RECORDS = 2, 24
"""Of the topic, and of a topic-partition in an hour."""
FIRST = hours.key_of_ms(int(time.time() * 1000) - 3 * hours.HOUR_MS)
LAST = hours.shift(FIRST, 1)
ERASED = f"{LAST}-0-3"
INTO = "{into}"
"""In a command: a topic that nobody else has."""
AGE = "{age}"
"""In a command: an age that the first hour has, and the last one has not."""
CATALOG = "{catalog}"
"""In a sink: where a catalog is."""
ADOPTED = 10
"""Records of each topic-partition that a connector has landed, the good ones at its beginning."""

_SETTINGS = {
    "prefix": SINK,
    "start": FIRST,
    "format": {"type": "json", "codec": "none"},
    "errors": {"tolerance": "all"},
    "flush": {"count": 100},
    "batch_records": 24,
}
_BY_FIELD = {"layout": {"template": "{topic}/{time:yyyy}/{partition}-{offset:012}"}}
_SMALL = {"flush": {"count": 6, "merge": False}}
_TABLE = {"name": "lake.{topic}", "catalog": {"type": "sql", "uri": CATALOG}}
_COLUMNS = {"format": {"type": "parquet", "codec": "snappy"}, "columns": {"id": "string", "at": "int64"}}
_FOLLOWED = {**_COLUMNS, "format": {"type": "parquet", "codec": "none"}, "table": _TABLE}
_WHOLE = {"envelope": {"style": "record", "fields": ["key", "value", "headers", "metadata"]}}


class Record(NamedTuple):
    partition: int
    key: bytes
    value: bytes
    stamp_ms: int


@dataclass(frozen=True)
class Operation:
    """A command, and what it begins with.

    Attributes:
        words: the command.
        landed: the last hour that is landed before; none where it is empty.
        before: what the sink says while that is landed, and afterwards where `sink` does not say otherwise.
        sink: what it says when the command is run.
        then: what is run when the command has come to its end.
        codes: of the command when it is run once more after a kill.
        gone: how names begin of records that no object holds any more when it has come to its end, `clean` or not.
    """

    name: str
    words: Sequence[str]
    landed: str = LAST
    before: Mapping[str, Any] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)
    then: Sequence[str] = ()
    codes: frozenset[int] = frozenset({0})
    gone: tuple[str, ...] = ()

    @property
    def has_table(self) -> bool:
        """Whether a table follows from the beginning on, whose catalog goes away."""
        return "table" in self.before

    def settings(self, *, landing: bool) -> dict[str, Any]:
        """Of the sink, while the beginning is `landing` or when the command is run."""
        return {**_SETTINGS, **self.before, **({} if landing else self.sink)}


OPERATIONS = (
    Operation("landing", ("land", "--from", LAST, "--to", LAST), landed=FIRST),
    Operation("rewrite", ("rewrite", "--from", LAST, "--to", LAST, "--yes")),
    Operation("compact", ("compact", "--from", LAST, "--yes"), before=_SMALL),
    Operation(
        "erase",
        ("erase", "--where", f"value LIKE '%\"{ERASED}\"%'", "--from", LAST, "--dead-letters", "false", "--yes"),
        gone=(ERASED,),
    ),
    Operation("reformat", ("reformat", "--from", LAST, "--yes"), sink={"format": {"type": "json", "codec": "gzip"}}),
    Operation(
        "replay",
        ("dead-letters", "replay", "--from", LAST, "--to", LAST, "--yes"),
        before={"layout": {**_BY_FIELD["layout"], "time": {"source": "field", "field": "at"}}},
        sink=_BY_FIELD,
    ),
    Operation(
        "restore",
        ("restore", "--into", INTO, "--sink", SINK, "--topic", TOPIC, "--from", FIRST, "--to", LAST, "--yes"),
        before=_WHOLE,
    ),
    Operation("table sync", ("table", "sync", "--yes"), before=_COLUMNS, sink={"table": _TABLE}),
    Operation("landing with table", ("land", "--from", LAST, "--to", LAST), landed=FIRST, before=_FOLLOWED),
    Operation("compact with table", ("compact", "--from", LAST, "--yes"), before={**_SMALL, **_FOLLOWED}),
    Operation(
        "erase with table",
        ("erase", "--where", f"id = '{ERASED}'", "--from", LAST, "--dead-letters", "false", "--yes"),
        before=_FOLLOWED,
        gone=(ERASED,),
    ),
    Operation(
        "adopt",
        ("adopt", "--name", SINK, "--yes"),
        landed="",
        before={"layout": connector.LAYOUT},
        then=("land",),
        codes=frozenset({0, 2}),  # adopted already
    ),
    Operation(
        "retention",
        ("retention", "--older-than", AGE, "--yes"),
        then=("land", "--from", FIRST, "--to", LAST),
        gone=(f"{FIRST}-",),
    ),
)


def records() -> Iterator[Record]:
    """In the order in which they are written."""
    for hour in (FIRST, LAST):
        for partition in range(PARTITIONS):
            for number in range(RECORDS):
                stamp = hours.start_ms(hour) + number * 1000
                name = f"{hour}-{partition}-{number}"
                value = {"id": name} if hour == LAST and number % 11 == 10 else {"id": name, "at": stamp}
                body = b"no json: %d" % number if number % 12 == 11 else json.dumps(value).encode()
                yield Record(partition, b"k%d" % number, body, stamp)


def adopted() -> dict[str, bytes]:
    """Objects that a connector has left, and what they hold."""
    lines = {
        partition: [one.value for one in records() if one.partition == partition][:ADOPTED]
        for partition in range(PARTITIONS)
    }
    return connector.objects(SINK, TOPIC, lines, ADOPTED)
