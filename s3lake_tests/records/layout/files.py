"""Files of given records under a layout, as staging would name them: what the tables of vectors are run through."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from s3lake.config.model import Sink
from s3lake.land.request import stage_values
from s3lake.records.layout.elements import RecordColumns
from s3lake.records.layout.object_keys import FileNumbers, KeyLayout
from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake_tests.kit.tables import read_yaml


def ms(*moment: int) -> int:
    """A moment of UTC as epoch milliseconds."""
    return int(datetime(*moment, tzinfo=timezone.utc).timestamp()) * 1000  # type: ignore[arg-type, misc]


@dataclass(frozen=True)
class LaidOutRecord:
    offset: int = 0
    timestamp: int = 0
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    schema: str | None = None
    partition: int = 0


def read_records(text: str) -> list[LaidOutRecord]:
    """Return the records of a row: the fields of each in YAML, with a list of offsets for several; `;` separates."""
    found = []
    for part in text.split(";"):
        fields = {"offset": 0, **read_yaml(part)}
        fields |= {name: str(fields[name]).encode() for name in ("key", "value") if name in fields}
        fields["headers"] = tuple((name, str(value).encode()) for name, value in fields.get("headers", {}).items())
        offsets = fields.pop("offset")
        found += [LaidOutRecord(offset, **fields) for offset in (offsets if isinstance(offsets, list) else [offsets])]
    return found


def sink(**changes: Any) -> Sink:
    """A sink of layouts, of Lenses' elements where it has no template; names that no vector speaks of are filled in."""
    fixed = {"name": "events", "bucket": "lake", "start": "2026-11-20T00", "topics": ("t",)}
    layout = {"template": None, **changes.pop("layout", {})}
    return Sink(**{**fixed, **changes, "layout": layout})


def rule(renamed: str = "", wallclock_ms: int = 0, **changes: Any) -> KeyLayout:
    """The rule of a sink for its first topic."""
    made = sink(**changes)
    return stage_values.build_key_layout(made, made.topics[0], renamed, wallclock_ms=wallclock_ms)


def fields(*records: LaidOutRecord) -> RecordColumns:
    return RecordColumns(
        values=[one.value for one in records],
        keys=[one.key for one in records],
        headers=[[{"key": name, "value": value} for name, value in one.headers] for one in records],
        timestamps=[one.timestamp for one in records],
        schemas=[one.schema for one in records],
    )


def group(keys: KeyLayout, record: LaidOutRecord) -> str | NoObjectKeyError:
    fixed = keys.fixed_group(record.partition)
    if fixed is not None:
        return fixed
    (found,) = keys.groups(record.partition, fields(record), 1)
    return found


def files(keys: KeyLayout, *records: LaidOutRecord, count: int = 1_000_000) -> list[str]:
    """The keys of the files of `records`, each closed at `count` records of its group."""
    open_files: dict[tuple[int, str], list[LaidOutRecord]] = {}
    closed = []
    for record in records:
        found = group(keys, record)
        assert isinstance(found, str), found
        where = (record.partition, found)
        open_files.setdefault(where, []).append(record)
        if len(open_files[where]) == count:
            closed.append((where, open_files.pop(where)))
    closed += open_files.items()
    return sorted({keys.key(found, span(held)) for (_, found), held in closed})


def span(records: list[LaidOutRecord]) -> FileNumbers:
    stamps = [one.timestamp for one in records]
    return FileNumbers(records[0].offset, records[-1].offset, min(stamps), max(stamps), len(records))


def refusal(keys: KeyLayout, record: LaidOutRecord) -> str:
    found = group(keys, record)
    assert isinstance(found, NoObjectKeyError), found
    return str(found)
