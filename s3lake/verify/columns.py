"""Records in columns (Avro, Parquet, CSV): a row is what the record holds over the file's own columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any

import msgspec

from s3lake.commit.index import File
from s3lake.errors import UnreadableError
from s3lake.objects.shape import BYTES, TEXT, Shape
from s3lake.schema import types as schema_types
from s3lake.schema.types import Primitive, Struct, Type
from s3lake.verify import connect, digest, parts, projection, tables
from s3lake.verify.left_out import LeftOut
from s3lake.verify.log import Records
from s3lake.verify.projection import misfit

_KAFKA = b"kafka"


def _number(text: str) -> int | float:
    """A number with a fraction, or an integer beyond 64 bits, which has to stay one to be compared by value."""
    return int(text) if text.lstrip("-").isdigit() else float(text)


_decode = msgspec.json.Decoder(float_hook=_number).decode
_pack = msgspec.msgpack.Encoder().encode
_Of = Callable[[bytes], Any]
_Expected = Callable[[Records], list[bytes]]


class Columns:
    """How rows of columns are digested. Until a file was read no record has a place: see `Judge`."""

    def __init__(self, shape: Shape, topic: str) -> None:
        self._shape, self._topic = shape, topic
        self._left_out = LeftOut(shape.uncompared)
        self._types: list[schema_types.Columns] = []
        self._expected: _Expected | None = None
        # The fields of a key or value alone are columns, anything else is one column under its own name.
        self._alone = shape.spread or "value"
        self._fields = shape.envelope.fields if shape.envelope and not shape.spread else ()
        self._converter = shape.converter(self._alone)
        self._spelled = shape.spelled and shape.key in (parts.JSON, parts.CONNECT)
        self._typed = shape.typed and shape.key == parts.CONNECT
        rows = {"key", "value"} & set(self._fields or (self._alone,))
        self._by_schema = parts.CONNECT in map(shape.converter, rows)

    def expected(self, records: Records) -> list[bytes]:
        if not self._types:
            return [digest.unfit(value or b"", _KAFKA) for value in records.values]
        if self._expected is None:
            self._expected = self._of_records()
        return self._expected(records)

    def rows(self, body: bytes, file: File) -> Iterator[list[bytes]]:
        table = tables.opened(self._shape.of_file(file), body, file.key)
        if wrong := self._wrong(table.types):
            raise UnreadableError(f"{file.key}: {wrong}")
        if table.types not in self._types:
            if self._types and not self._by_schema:
                raise UnreadableError(f"{file.key} has other columns than the files before it in its commit")
            self._types.append(table.types)
            self._expected = None
        columns = [(name, self._of_column(name, type)) for name, type in table.types.items()]
        names = sorted(table.types)
        for batch in table.batches:
            cells = [self._compared(name, values) for name, values in zip(table.types, batch, strict=True)]
            projected = [_projected(values, project) for values, (_, project) in zip(cells, columns, strict=True)]
            if self._by_schema or self._fields:
                by_name = dict(zip(table.types, projected, strict=True))
                yield _all_named(names, zip(*(by_name[name] for name in names), strict=True))
            else:
                yield [digest.of(_pack(row)) for row in zip(*projected, strict=True)]

    def _compared(self, name: str, values: Sequence[Any]) -> Sequence[Any]:
        """The cells of a column without the fields that are not compared."""
        if not self._shape.uncompared or (self._fields and name != "value"):
            return values
        return self._left_out.of_column(name, values, enveloped=bool(self._fields))

    def _wrong(self, types: schema_types.Columns) -> str | None:
        """What is wrong with a file's columns, if that can be told without its records."""
        if self._fields:
            strange = [name for name in types if name not in self._fields]
            return f"it has a column {strange[0]}, its rows are of {', '.join(self._fields)}" if strange else None
        if self._converter not in (TEXT, BYTES):
            return None
        type = Primitive.STRING if self._converter == TEXT else Primitive.BINARY
        if types == {self._alone: type}:
            return None
        return f"its columns are {_in_words(types)}, not one column {self._alone} of type {type}"

    def _of_column(self, name: str, type: Type) -> projection.Projection | None:
        if self._fields and name == "headers":
            return _headers
        if self._fields and name == "metadata":
            return _metadata
        if name == "key" and type is Primitive.STRING and self._spelled and not self._typed:
            return _guarded(parts.of_text(self._shape.key))
        converter = self._shape.converter(name) if self._fields else self._converter
        return projection.of_file(type, named=converter == parts.CONNECT)

    def _of_records(self) -> _Expected:
        if self._fields:
            return self._enveloped(self._fields)
        manifest: list[Type | None] = [self._shape.columns] if self._shape.columns else []
        part = _part(self._converter, [*self._plain(manifest), *map(Struct, self._types)], self._alone)
        nothing = digest.of_record([None] * len(self._types[0]))

        def by_schema(value: bytes | None) -> bytes:
            return _named_row({}) if value is None else self._row_by_name(part(value))

        def of_cell(value: bytes | None) -> bytes:
            return digest.of_record([None if value is None else part(value)])

        def of_object(value: bytes | None) -> bytes:
            if value is None:
                return nothing
            row = part(value)
            return digest.of_record(row) if type(row) is list else digest.unfit(value, _KAFKA)

        by_converter = of_object if self._converter == parts.JSON else of_cell
        return partial(self._each, by_schema if self._by_schema else by_converter)

    def _each(self, of_value: Callable[[bytes | None], bytes], records: Records) -> list[bytes]:
        return list(map(of_value, self._parts(records)))

    def _plain(self, manifest: list[Type | None]) -> list[Type | None]:
        """Where files have different columns, those of records without a schema of their own: the manifest's."""
        return manifest if self._by_schema else []

    def _parts(self, records: Records) -> Sequence[bytes | None]:
        return records.keys if self._alone == "key" else records.values

    def _row_by_name(self, row: Any) -> bytes:
        fits = row is None or (isinstance(row, dict) and not _is_misfit(row))
        return _named_row(row or {}) if fits else digest.unfit(repr(row).encode(), _KAFKA)

    def _enveloped(self, fields: Sequence[str]) -> _Expected:
        names = sorted(fields)
        columns = [self._column(name) for name in names]

        def expected(records: Records) -> list[bytes]:
            return _all_named(names, zip(*(column(records) for column in columns), strict=False))

        return expected

    def _headers(self, records: Records) -> Iterable[Any]:
        """What a column has of records' headers: Aiven's is a map, in which the last of a name counts."""
        envelope = self._shape.envelope
        is_map = envelope is not None and envelope.style == "flat" and not self._shape.spelled
        rows = [dict(headers).items() for headers in records.headers] if is_map else records.headers
        return [list(map(list, row)) or None for row in rows]

    def _metadata(self, records: Records) -> Iterable[Any]:
        return zip(records.timestamps, repeat(self._topic), repeat(records.partition), records.offsets)

    def _column(self, name: str) -> Callable[[Records], Iterable[Any]]:
        """What a column of an envelope holds of each record."""
        shape = self._shape
        if name in ("key", "value"):
            part = self._key_alone(shape.key) if self._spelled else self._enveloped_part(name)

            def parts_of(records: Records) -> Iterable[Any]:
                originals = records.keys if name == "key" else records.values
                return [None if one is None else part(one) for one in originals]

            return parts_of
        others: dict[str, Callable[[Records], Iterable[Any]]] = {
            "headers": self._headers,
            "offset": attrgetter("offsets"),
            "timestamp": attrgetter("timestamps"),
            "metadata": self._metadata,
        }
        return others[name]

    def _enveloped_part(self, name: str) -> _Of:
        of_manifest = self._plain([schema_types.fields_of(self._shape.columns).get(name)])
        return _part(self._shape.converter(name), [*of_manifest, *(types.get(name) for types in self._types)])

    def _key_alone(self, converter: str) -> _Of:
        """What a file of keys has of one: of the type that its schema gives, else its text."""
        if not self._typed:
            return parts.of_kafka(converter)
        by_schema = self._enveloped_part("key")

        def read(value: bytes) -> Any:
            text = connect.without_schema(value)
            return by_schema(value) if text is None else parts.in_one_line(text).decode()

        return _guarded(read)


def _part(converter: str, types: Sequence[Type | None], spread: str | None = None) -> _Of:
    """How bytes of Kafka become what a column holds; `types` are the column's in each of the files' schemas.

    With `spread`, the fields of an object become columns, and anything else one column of that name.
    """
    if converter == parts.CONNECT:
        return _by_own_schema([type for type in types if type is not None], spread)
    if converter == BYTES:
        return bytes
    if converter == TEXT:
        return _guarded(bytes.decode)
    type = types[0]
    if type is None:
        return _guarded(lambda value: misfit(value) if projection.holds(_decoded(value)) else None)
    decode = connect.exactly if projection.decimals_within(type) else _decoded
    project = projection.of_json(type)

    def read(value: bytes) -> Any:
        decoded = decode(value)
        return decoded if project is None or decoded is None else project(decoded)

    return _guarded(read)


def _by_own_schema(types: Sequence[Type], spread: str | None) -> _Of:
    """A record of Connect's JSON by the schema that it brings; without one, by the first columns that take it.

    A file has the fields of its own records alone, so structs are named: they are the same over any columns.
    """
    plain = [(type, projection.of_json(type, named=True)) for type in types]

    def read(value: bytes) -> Any:
        schema, payload = connect.unwrapped(value)
        if schema is not None:
            type, payload = connect.type_of(schema), connect.meaning_of(schema, tabular=True)(payload)
            return _by_name(type, _through(projection.of_json(type, named=True), payload), spread)
        if payload is None or not plain:
            return misfit(value) if projection.holds(payload) else None
        decoded = [_by_name(type, _through(project, payload), spread) for type, project in plain]
        return next((one for one in decoded if not _is_misfit(one)), misfit(value))

    return _guarded(read)


def _through(project: projection.Projection | None, value: Any) -> Any:
    return value if project is None or value is None else project(value)


def _by_name(type: Type, row: Any, spread: str | None) -> Any:
    if spread is None or row is None:
        return row
    if schema_types.fields_of(type):
        return dict(row) if isinstance(row, list) else misfit(row)
    return {spread: row}


def _is_misfit(value: Any) -> bool:
    if isinstance(value, dict):
        return "misfit" in value or any(map(_is_misfit, value.values()))
    return isinstance(value, list) and any(map(_is_misfit, value))


def _guarded(read: _Of) -> _Of:
    def part(value: bytes) -> Any:
        try:
            return read(value)
        except digest.BAD:  # no JSON, no text, or what no column holds
            return misfit(value)

    return part


def _decoded(value: bytes) -> Any:
    try:
        return _decode(value)
    except msgspec.DecodeError:
        return connect.lenient(value)


def _headers(value: Any) -> Any:
    pairs = value if isinstance(value, list) else list(value.items())
    named = [(one["key"], one["value"]) if isinstance(one, dict) else one for one in pairs]
    return [[name, one.encode() if isinstance(one, str) else one] for name, one in named] or None


def _metadata(value: Any) -> Any:
    return [value["timestamp"], value["topic"], value["partition"], value["offset"]]


def _projected(values: Sequence[Any], project: projection.Projection | None) -> Iterable[Any]:
    return values if project is None else [None if one is None else project(one) for one in values]


def _all_named(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[bytes]:
    return [_named_row(dict(zip(names, row, strict=True))) for row in rows]


def _named_row(row: dict[str, Any]) -> bytes:
    """The digest of a row whose file may have more columns, all of them null."""
    return digest.of_record([[name, row[name]] for name in sorted(row) if row[name] is not None])


def _in_words(types: schema_types.Columns) -> str:
    return ", ".join(f"{name} {type}" for name, type in types.items()) or "none"
