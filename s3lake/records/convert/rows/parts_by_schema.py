"""Rows of a batch as the encoders take them, and several of them as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Streams = dict[str, Any]
"""Stream ("data", "keys", "headers") -> payload: a pa.BinaryArray of texts, or a pa.RecordBatch of columns."""


@dataclass(frozen=True)
class Part:
    """Rows of a batch that have one schema.

    Attributes:
        rows: the numbers of the batch's rows, in order; None for all of them.
        streams: what the encoders write, each as long as `rows`. `data` is missing where it could only be rows without
            any column, which happens to records without a value whose keys land apart.
        values: their values as JSON texts where these are not what Kafka has; else None.
        names: the name of each value's schema; None if no value of the batch has one. Rows of columns have one name.
        keys: their keys as JSON texts where the layout asks for them and Kafka has something else; else None.
        times: what the field with the layout's time is by each value's schema: `timestamp_us`; None if no schema
            defines it.
        words: descriptions of columns, from the records' own schemas.
    """

    rows: pa.Int64Array | None
    streams: Streams
    values: pa.BinaryArray | None = None
    names: pa.StringArray | None = None
    keys: pa.BinaryArray | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    times: pa.StringArray | None = None


def merge_parts(parts: list[Part]) -> tuple[Part, ...]:
    """Merge the parts whose rows go into the same files, so that a file's records stay in order."""
    alike: list[list[Part]] = []
    for part in parts:
        same = next((ones for ones in alike if _share_files(ones[0], part)), None)
        if same is None:
            alike.append([part])
        else:
            same.append(part)
    return tuple(ones[0] if len(ones) == 1 else _merge(ones) for ones in alike)


def _share_files(part: Part, other: Part) -> bool:
    if part.streams.keys() != other.streams.keys():
        return False
    name, other_name = (one.names and one.names[0].as_py() for one in (part, other))
    if isinstance(part.streams.get("data"), pa.RecordBatch) and name != other_name:
        return False
    pairs = ((stream, other.streams[name]) for name, stream in part.streams.items())
    return all(
        not isinstance(stream, pa.RecordBatch) or stream.schema.equals(more.schema, check_metadata=True)
        for stream, more in pairs
    )


def _merge(parts: list[Part]) -> Part:
    first = parts[0]
    rows = pa.concat_arrays([part.rows for part in parts if part.rows is not None])  # of one of several it never is
    order = pc.sort_indices(rows)
    streams = {name: _concatenate([part.streams[name] for part in parts]).take(order) for name in first.streams}
    values, names, keys = (
        None if getattr(first, name) is None else pa.concat_arrays([getattr(part, name) for part in parts]).take(order)
        for name in ("values", "names", "keys")
    )
    times = None
    if any(part.times is not None for part in parts):
        each = [pa.nulls(len(part.rows or ()), pa.string()) if part.times is None else part.times for part in parts]
        times = pa.concat_arrays(each).take(order)
    words = {name: text for part in parts for name, text in part.words.items()}
    return Part(rows.take(order), streams, values, names, keys, words, times)


def _concatenate(payloads: list[Any]) -> Any:
    if isinstance(payloads[0], pa.RecordBatch):
        return pa.Table.from_batches(payloads).combine_chunks().to_batches()[0]
    return pa.concat_arrays(payloads)
