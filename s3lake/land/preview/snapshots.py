"""Snapshots: everything that a configuration's sinks make of records, as one JSON document."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime, time
from decimal import Decimal
from difflib import unified_diff
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from s3lake import hours
from s3lake.errors import ConfigurationError
from s3lake.index.commit.documents import DEAD_LETTERS
from s3lake.lake.form import shape_of
from s3lake.lake.objects import content, open_columns
from s3lake.lake.objects.shape import ObjectShape
from s3lake.land.preview import preview

if TYPE_CHECKING:
    from s3lake.config.model import Sink, Spark
    from s3lake.land.request.in_process_tasks import KafkaRecord


def build_snapshot(sinks: Sequence[Sink], records: Sequence[KafkaRecord], spark: Spark | None = None) -> dict[str, Any]:
    """Return what each sink that reads a topic of the records makes of them.

    The wallclock of the run is the time of the newest record that is in an hour, so the result is the same every day.

    Returns:
        By the sink's name: `objects`, the rows by key; `dead_letters`, the refused records; `failed`, true if they
        fail the sink.

    Raises:
        ConfigurationError: no sink reads a topic.
        S3LakeError: a stage failed, not a record.
    """
    newest = max((record.timestamp for record in records if record.timestamp <= hours.LAST_MS), default=-1)
    snapshot: dict[str, Any] = {}
    for topic in sorted({record.topic for record in records}):
        readers = [sink for sink in sinks if sink.reads(topic)]
        if not readers:
            raise ConfigurationError(f"no sink reads topic {topic!r}")
        for sink in readers:
            of_topic = [record for record in records if record.topic == topic]
            result = preview(sink, topic, of_topic, newest if newest >= 0 else hours.start_ms(sink.start), spark)
            entry = snapshot.setdefault(sink.name, {"objects": {}, "dead_letters": [], "failed": False})
            data = [each for each in result.objects if each.file.stream != DEAD_LETTERS]
            entry["objects"] |= {each.file.key: read_shown_rows(sink, each.file.key, each.body) for each in data}
            refused = sorted(map(asdict, result.refusals), key=itemgetter("partition", "offset"))
            entry["dead_letters"] += refused
            entry["failed"] |= result.failed
    return snapshot


def format_snapshot(snapshot: Any) -> str:
    """Return a snapshot as JSON with sorted names, so that equal snapshots are equal texts."""
    return json.dumps(snapshot, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def compare_snapshots(expected: str, actual: str) -> list[str]:
    """Return the lines of a diff: `-` before what was expected, `+` before what is there instead.

    Raises:
        ValueError: what was expected is not JSON.
    """
    before = format_snapshot(json.loads(expected)) if expected else ""
    changes = list(unified_diff(before.splitlines(), actual.splitlines(), lineterm="", n=2))
    return [line for line in changes[2:] if not line.startswith("@@")]


def read_shown_rows(sink: Sink, key: str, body: bytes) -> list[Any]:
    """Return the rows of an object: of a table by column, of JSON as it is, of other texts the lines.

    Bytes are text if they are UTF-8, else `{"base64": …}`, as in files of records. Of a table with a date that Python
    does not have, all dates and times that it does not have are numbers.
    """
    shape = _find_shape(sink, key)
    if shape.in_columns and shape.format != "csv":
        try:
            return _read_table(shape, body)
        except (OverflowError, ValueError):  # a year before 1 or after 9999
            rows = chain.from_iterable(batch.to_struct_array() for batch in open_columns(shape, body, key).batches)
            return list(map(_show, rows))
    read = json.loads if shape.format in ("json", "json_array") else _to_json
    return list(map(read, chain.from_iterable(content.split_records(shape, body, key))))


def _read_table(shape: ObjectShape, body: bytes) -> list[Any]:
    if shape.format == "parquet":
        import pyarrow.parquet as pq

        # `s3lake test` ends soon after this: threads of Arrow that still start then would abort it.
        file = pq.ParquetFile(io.BytesIO(body), pre_buffer=False)
        return [_to_json(row) for batch in file.iter_batches(use_threads=False) for row in batch.to_pylist()]
    import fastavro

    rows = map(_to_json, fastavro.reader(io.BytesIO(body)))
    return [{shape.bare_column: row} for row in rows] if shape.bare_column else list(rows)


def _show(scalar: Any) -> Any:
    """Return a value of an Arrow column as it is shown."""
    import pyarrow as pa

    match scalar:
        case pa.MapScalar() if scalar.is_valid:
            return [[_show(entry["key"]), _show(entry["value"])] for entry in scalar.values]
        case pa.StructScalar() if scalar.is_valid:
            return {name: _show(inner) for name, inner in scalar.items()}
        case pa.ListScalar() if scalar.is_valid:
            return list(map(_show, scalar))
    try:
        return _to_json(scalar.as_py())
    except (OverflowError, ValueError):
        return scalar.value


def _find_shape(sink: Sink, key: str) -> ObjectShape:
    for stream, type in sink.sidecars.types.items():
        if key.endswith(sink.sidecars.by_stream[stream]):
            bare = shape_of(sink).sidecar(stream).bare_column
            return ObjectShape(type, codec=sink.sidecars.codecs.get(type, "none"), bare_column=bare)
    return shape_of(sink.after_transforms)


def _to_json(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _to_json(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_to_json(inner) for inner in value]
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
    return value
