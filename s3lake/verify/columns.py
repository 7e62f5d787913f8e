"""Records in columns (Avro, Parquet, CSV): a row is what the record holds over the file's own columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec

from s3lake.verify import connect, digest, parts, projection, tables
from s3lake.verify.kafka_side import Records
from s3lake.verify.projection import Kind, misfit
from s3lake.verify.shape import Shape
from s3lake.verify.texts import Unreadable

_KAFKA = b"kafka"
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode
_BAD = (ValueError, OverflowError, RecursionError, KeyError, TypeError)
_Of = Callable[[bytes], Any]
_Expected = Callable[[Records], list[bytes]]


class Columns:
    """How rows of columns are digested. Until a file was read no record has a place: see `Judge`."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._kinds: list[dict[str, Kind]] = []
        self._expected: _Expected | None = None
        converters = {"key": shape.key, "value": shape.value}
        envelope = shape.envelope
        # The fields of a bare key or value are columns, anything else is one column under its own name.
        spread = envelope is None or (envelope.bare and envelope.fields[0] in converters)
        self._alone = envelope.fields[0] if envelope is not None and spread else "value"
        self._fields = None if envelope is None or spread else envelope.fields
        self._converter = converters[self._alone]
        self._spelled = shape.spelled and shape.key in ("json", "connect_json")
        self._by_schema = "connect_json" in (
            {converters[field] for field in self._fields if field in converters} if self._fields else {self._converter}
        )

    def expected(self, records: Records) -> list[bytes]:
        """See `Judge.expected`."""
        if not self._kinds:
            return [digest.unfit(value or b"", _KAFKA) for value in records.values]
        if self._expected is None:
            self._expected = self._of_records()
        return self._expected(records)

    def rows(self, body: bytes, key: str) -> Iterator[list[bytes]]:
        """See `Judge.rows`."""
        table = tables.opened(self._shape, body, key)
        if wrong := self._wrong(table.kinds):
            raise Unreadable(f"{key}: {wrong}")
        if table.kinds not in self._kinds:
            if self._kinds and not self._by_schema:
                raise Unreadable(f"{key} has other columns than the files before it in its commit")
            self._kinds.append(table.kinds)
            self._expected = None
        columns = [(name, self._of_column(name, kind)) for name, kind in table.kinds.items()]
        names = sorted(table.kinds)
        for batch in table.batches:
            found = [_projected(values, project) for values, (_, project) in zip(batch, columns, strict=True)]
            if self._by_schema or self._fields:
                by_name = dict(zip(table.kinds, found, strict=True))
                yield [_named(names, row) for row in zip(*(by_name[name] for name in names), strict=True)]
            else:
                yield [digest.of(_pack(row)) for row in zip(*found, strict=True)]

    def _wrong(self, kinds: dict[str, Kind]) -> str | None:
        """What is wrong with a file's columns, if that can be told without its records."""
        if self._fields:
            strange = [name for name in kinds if name not in self._fields]
            return f"it has a column {strange[0]}, its rows are of {', '.join(self._fields)}" if strange else None
        if self._converter not in ("string", "bytes"):
            return None
        kind = "string" if self._converter == "string" else "binary"
        if kinds == {self._alone: kind}:
            return None
        return f"its columns are {_in_words(kinds)}, not one column {self._alone} of type {kind}"

    def _of_column(self, name: str, kind: Kind) -> projection.Projection | None:
        if self._fields and name == "headers":
            return _headers
        if self._fields and name == "metadata":
            return _metadata
        if name == "key" and kind == "string" and self._spelled:
            return _guarded(parts.of_text(self._shape.key))
        return projection.of_file(kind)

    def _of_records(self) -> _Expected:
        if self._fields:
            return self._enveloped(self._fields)
        said: list[Kind | None] = [{"struct": dict(self._shape.columns)}] if self._shape.columns else []
        part = _part(self._converter, [*self._said(said), *({"struct": one} for one in self._kinds)], self._alone)
        if self._by_schema:
            return lambda records: [
                _named_row({}) if value is None else self._row_by_name(part(value)) for value in self._parts(records)
            ]
        if self._converter != "json":
            return lambda records: [_digest([None if one is None else part(one)]) for one in self._parts(records)]
        nothing = digest.of(_pack([None] * len(self._kinds[0])))

        def of_object(value: bytes | None) -> bytes:
            if value is None:
                return nothing
            row = part(value)
            return _digest(row) if type(row) is list else digest.unfit(value, _KAFKA)

        return lambda records: list(map(of_object, self._parts(records)))

    def _said(self, kinds: list[Kind | None]) -> list[Kind | None]:
        """Where files have different columns, those of records without a schema of their own: the manifest's."""
        return kinds if self._by_schema else []

    def _parts(self, records: Records) -> Sequence[bytes | None]:
        return records.keys if self._alone == "key" else records.values

    def _row_by_name(self, row: Any) -> bytes:
        fits = row is None or (isinstance(row, dict) and not _is_misfit(row))
        return _named_row(row or {}) if fits else digest.unfit(repr(row).encode(), _KAFKA)

    def _enveloped(self, fields: Sequence[str]) -> _Expected:
        names = sorted(fields)
        columns = [self._column(name) for name in names]

        def expected(records: Records) -> list[bytes]:
            return [_named(names, row) for row in zip(*(column(records) for column in columns), strict=False)]

        return expected

    def _column(self, name: str) -> Callable[[Records], Iterable[Any]]:
        """What a column of an envelope holds of each record."""
        shape = self._shape
        if name in ("key", "value"):
            converter = shape.key if name == "key" else shape.value
            part = (
                parts.of_kafka(converter)
                if self._spelled
                else _part(
                    converter,
                    [*self._said([(shape.columns or {}).get(name)]), *(kinds.get(name) for kinds in self._kinds)],
                )
            )

            def found_parts(records: Records) -> Iterable[Any]:
                found = records.keys if name == "key" else records.values
                return [None if one is None else part(one) for one in found]

            return found_parts
        others: dict[str, Callable[[Records], Iterable[Any]]] = {
            "headers": lambda records: [[list(header) for header in one] or None for one in records.headers],
            "offset": lambda records: records.offsets,
            "timestamp": lambda records: records.timestamps,
            "metadata": lambda records: zip(
                records.timestamps, repeat(shape.topic), repeat(records.partition), records.offsets
            ),
        }
        return others[name]


def _part(converter: str, kinds: Sequence[Kind | None], spread: str | None = None) -> _Of:
    """How bytes of Kafka become what a column holds; `kinds` are the column's in each of the files' schemas.

    With `spread`, the fields of an object become columns, and anything else one column of that name.
    """
    if converter == "connect_json":
        return _by_own_schema([kind for kind in kinds if kind is not None], spread)
    if converter == "bytes":
        return bytes
    if converter == "string":
        return _guarded(bytes.decode)
    kind = kinds[0]
    if kind is None:
        return _guarded(lambda value: misfit(value) if projection.holds(_decoded(value)) else None)
    decode = connect.exactly if projection.decimals_within(kind) else _decoded
    project = projection.of_json(kind)

    def read(value: bytes) -> Any:
        found = decode(value)
        return found if project is None or found is None else project(found)

    return _guarded(read)


def _by_own_schema(kinds: Sequence[Kind], spread: str | None) -> _Of:
    """A record of Connect's JSON by the schema that it brings; without one, by the first columns that take it."""
    plain = [(kind, projection.of_json(kind)) for kind in kinds]

    def read(value: bytes) -> Any:
        schema, payload = connect.unwrapped(value)
        if schema is not None:
            kind, payload = connect.kind_of(schema), connect.meaning_of(schema, tabular=True)(payload)
            return _by_name(kind, _through(projection.of_json(kind), payload), spread)
        if payload is None or not plain:
            return misfit(value) if projection.holds(payload) else None
        found = [_by_name(kind, _through(project, payload), spread) for kind, project in plain]
        return next((one for one in found if not _is_misfit(one)), misfit(value))

    return _guarded(read)


def _through(project: projection.Projection | None, value: Any) -> Any:
    return value if project is None or value is None else project(value)


def _by_name(kind: Kind, row: Any, spread: str | None) -> Any:
    if spread is None or row is None:
        return row
    if isinstance(kind, dict) and "struct" in kind:
        return dict(zip(kind["struct"], row, strict=True)) if type(row) is list else misfit(row)
    return {spread: row}


def _is_misfit(value: Any) -> bool:
    if isinstance(value, dict):
        return "misfit" in value or any(map(_is_misfit, value.values()))
    return isinstance(value, list) and any(map(_is_misfit, value))


def _guarded(read: _Of) -> _Of:
    def part(value: bytes) -> Any:
        try:
            return read(value)
        except _BAD:  # no JSON, no text, or what no column holds
            return misfit(value)

    return part


def _decoded(value: bytes) -> Any:
    try:
        return _decode(value)
    except msgspec.DecodeError:
        return connect.lenient(value)


def _headers(value: Any) -> Any:
    pairs = value if isinstance(value, list) else list(value.items())
    found = [(one["key"], one["value"]) if isinstance(one, dict) else one for one in pairs]
    return [[name, one.encode() if isinstance(one, str) else one] for name, one in found] or None


def _metadata(value: Any) -> Any:
    return [value["timestamp"], value["topic"], value["partition"], value["offset"]]


def _projected(values: Sequence[Any], project: projection.Projection | None) -> Iterable[Any]:
    return values if project is None else [None if one is None else project(one) for one in values]


def _named(names: Sequence[str], row: Sequence[Any]) -> bytes:
    return _named_row(dict(zip(names, row, strict=True)))


def _named_row(row: dict[str, Any]) -> bytes:
    """The digest of a row whose file may have more columns, all of them null."""
    return _digest([[name, row[name]] for name in sorted(row) if row[name] is not None])


def _digest(row: Any) -> bytes:
    try:
        return digest.of(_pack(row))
    except (ValueError, OverflowError, TypeError):  # a number that no column holds
        return digest.unfit(repr(row).encode(), _KAFKA)


def _in_words(kinds: dict[str, Kind]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in kinds.items()) or "none"
