"""Rows of a commit's files, and the rows that Kafka's records should be: both as digests of one comparable form.

A row of an envelope is the tuple of its fields. A row of columns is the tuple of its commit's columns, so a file may
lack some of them. Text that is written as Kafka has it is compared as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow as pa

from s3lake.index.commit.documents import File
from s3lake.lake.objects import avro_objects, content, open_columns
from s3lake.lake.objects.shape import BYTES, STRING, ObjectShape
from s3lake.lake.objects.text_records import build_row_reader
from s3lake.lake.verify.column_values import cast_cell, cast_json, choose_cast, unquote_texts
from s3lake.lake.verify.decode_connect_json import decode_connect
from s3lake.lake.verify.decoded_values import (
    UNDECODABLE,
    Decode,
    Decoded,
    PlainJson,
    digest_bytes,
    digest_row,
    parse_exact_json,
    return_unchanged,
    sort_json_texts,
    to_column_form,
    to_float_form,
    to_json_form,
)
from s3lake.lake.verify.decoders import TYPED, build_decoder, drop_schema_id
from s3lake.lake.verify.left_out import exclude_fields, list_counted, split_paths
from s3lake.lake.verify.log import Records
from s3lake.records.schema.columns.types import UNKNOWN, Primitive, Type, fields_of
from s3lake.records.schema.registry.registry_connection import Connection

_METADATA = ("topic", "partition", "offset", "timestamp")
_IGGY_METADATA = ("topic", "partition_id", "offset", "timestamp", "stream")
_ROWS = 500
"""So few rows are Python's objects at a time that its garbage collector has nothing to do."""
_Texts = Callable[[Records], list[bytes]]


class StreamDigester:
    """How one stream of a commit's files (data, keys or headers) is digested.

    Attributes:
        texts: makes the texts of records, if files have them as Kafka does; None if rows are compared by their parts.
    """

    def __init__(self, shape: ObjectShape, topic: str, registry: Connection | None) -> None:
        self._shape, self._topic, self._envelope = shape, topic, shape.envelope
        # Whose JSON need not be the producer's text: a default may be added, which only a registry has.
        self._typed = TYPED if registry is None else TYPED | {"json_schema"}
        self._spread = shape.spread_part if shape.in_columns else None  # the part whose own fields are the columns
        spread = self._spread or "value"
        self._fields = shape.envelope.fields if shape.envelope and self._spread is None else (spread,)
        # The names of a row's cells, in one order for all files.
        self._names = self._fields if self._spread is None else tuple(fields_of(shape.columns)) or (spread,)
        self._column_names = frozenset(self._names)
        self.texts = None if shape.in_columns else _find_texts(shape)
        build = self._build_column_part if shape.in_columns else self._build_text_part
        self._parts = {name: _guard(build(name, registry)) for name in self._fields if name in ("key", "value")}

    def digest_records(self, records: Records) -> list[bytes]:
        """Return the digests of the rows that records should be."""
        if self.texts is not None:
            return list(map(digest_bytes, self.texts(records)))
        cells = [self._expect_cells(name, records) for name in self._fields]
        if self._spread is None:
            return list(map(digest_row, zip(*cells, strict=True)))
        return [digest_row(self._spread_cell(cell)) for cell in cells[0]]

    def digest_file(self, body: bytes, file: File) -> Iterator[list[bytes]]:
        """Yield the digests of a file's rows, some at a time.

        Raises:
            UnreadableError: it is not a file of its format; what came before was given.
        """
        if not self._shape.in_columns:
            read = build_row_reader(self._shape)
            for texts in content.split_records(self._shape, body, file.key):
                yield self._digest_texts(read, texts) if self.texts is None else list(map(digest_bytes, texts))
            return
        for count, columns in self._read_columns(body, file):
            strange = sorted(name for name in columns if name not in self._column_names)
            if any(cell is not None for name in strange for cell in columns[name][1]):
                yield [digest_row(("not a row", strange, row)) for row in range(count)]
                continue
            cells = [
                self._to_cells(name, *columns[name]) if name in columns else [None] * count for name in self._names
            ]
            yield list(map(digest_row, zip(*cells, strict=True)))

    def _read_columns(self, body: bytes, file: File) -> Iterator[tuple[int, dict[str, tuple[pa.DataType, list[Any]]]]]:
        """Yield how many rows there are, and the type and the cells of each column; times are integers."""
        shape = self._shape.for_file(file)
        if shape.format == "avro":
            schema, rows = avro_objects.open_rows(body, file.key, shape.bare_column)
            types = [(field.name, _to_integer_type(field.type)) for field in schema]
            for some in content.batch_rows(rows, _ROWS):
                yield len(some), {name: (type, [row[name] for row in some]) for name, type in types}
            return
        whole = open_columns(shape, body, file.key).batches
        for batch in (all.slice(start, _ROWS) for all in whole for start in range(0, all.num_rows, _ROWS)):
            # Times as integers: Python has none after the year 9999.
            columns = {
                name: batch.column(name).cast(_to_integer_type(batch.column(name).type)) for name in batch.schema.names
            }
            yield batch.num_rows, {name: (column.type, _to_list(column)) for name, column in columns.items()}

    def _spread_cell(self, cell: Any) -> Any:
        """Return the cells of the columns that the fields of a key or a value become; what is not a struct is one."""
        if type(cell) is not dict:
            cell = {} if cell is None else {self._spread: cell}
        if not cell.keys() <= self._column_names:
            return ("not a value of these columns", cell)
        return list(map(cell.get, self._names))

    def _expect_cells(self, name: str, records: Records) -> Iterable[Any]:
        """Return what a field of a row should be for each record."""
        match name:
            case "key" | "value":
                part = self._parts[name]
                values = records.keys if name == "key" else records.values
                return (None if value is None else part(value) for value in values)
            case "headers":
                return map(self._expect_headers, records.headers)
            case "offset":
                return records.offsets
            case "timestamp":
                return records.timestamps
        topic, partition = repeat(self._topic), repeat(records.partition)
        if self._envelope is not None and self._envelope.style == "iggy":
            seconds = [stamp // 1000 * 1000 for stamp in records.timestamps]
            topic, stream = repeat(self._envelope.topic or self._topic), repeat(self._envelope.stream)
            return zip(topic, partition, records.offsets, seconds, stream, strict=False)
        return zip(topic, partition, records.offsets, records.timestamps, strict=False)

    def _expect_headers(self, headers: Iterable[tuple[str, bytes | None]]) -> Any:
        shape = self._shape
        if self._envelope and self._envelope.style == "flat" and shape.in_columns and not shape.json_as_text:
            headers = sorted(dict(headers).items())  # a map, in which the last of a name counts
        if shape.format == "csv":
            headers = [(name, value or None) for name, value in headers]
        return list(headers) or None

    # Columns

    def _build_column_part(self, name: str, registry: Connection | None) -> Decode:
        """Return what makes a key or a value what its columns hold."""
        shape, converter = self._shape, self._shape.converter(name)
        paths = split_paths(shape, name)
        if shape.json_as_text and converter == "json":
            return _decode_line
        if shape.json_as_text and converter == "connect_json":
            nulls = name in shape.null_to_default
            return partial(decode_connect, plain=_decode_line, described=to_column_form, null_to_default=nulls)
        columns = shape.columns if self._spread else fields_of(shape.columns).get(name)
        by_schema = converter == "json_schema"
        has_empty = shape.has_empty and not (by_schema and registry)  # by a schema such a value may be a text
        cast = cast_json(columns or UNKNOWN, by_schema=by_schema, has_empty=has_empty)
        cast = unquote_texts if shape.json_as_text else cast
        if by_schema and self._spread and not shape.json_as_text:
            cast = choose_cast(fields_of(shape.columns), self._spread, cast)

        def plain(value: Any) -> Any:
            value = exclude_fields(value, paths)
            return value if value is None or cast is None else cast(value)

        sort = sort_json_texts if converter == "protobuf" else return_unchanged

        def describe(value: Any) -> Any:
            return sort(exclude_fields(to_column_form(value), paths))

        # What `plain` returns is in the form of columns already: a decimal has that form once only.
        decode = build_decoder(
            converter,
            registry,
            plain,
            describe,
            null_to_default=name in shape.null_to_default,
            counted=list_counted(shape, name),
        )

        def read(data: Any) -> Any:
            if type(data) is Decoded:
                return describe(data.value)
            return plain(parse_exact_json(data)) if type(data) is PlainJson else decode(data)

        return read

    def _to_cells(self, name: str, type: pa.DataType, cells: list[Any]) -> list[Any]:
        """Return the cells of a file's column as rows of records have them."""
        part = self._spread or name
        if self._shape.format == "csv":
            cells = self._parse_cells(name, cells)
        elif self._spread is None and name == "headers":
            return list(map(_read_headers, cells))
        elif self._spread is None and name == "metadata":
            return [tuple(cell[field] for field in _METADATA) for cell in cells]
        elif form := _build_form(type):
            cells = [None if cell is None else form(cell) for cell in cells]
        if self._shape.uncompared and part == "value":
            paths = split_paths(self._shape, part)
            if self._spread:
                cells = [exclude_fields({name: cell}, paths).get(name) for cell in cells]
            else:
                cells = [exclude_fields(cell, paths) for cell in cells]
        convert = {"json_schema": unquote_texts, "protobuf": sort_json_texts}.get(self._shape.converter(part))
        return cells if convert is None else list(map(convert, cells))

    def _parse_cells(self, name: str, texts: list[Any]) -> list[Any]:
        """Return the cells of a column of CSV; a text that is not of the column's type is a pair, which no value is."""
        converter = self._shape.value
        if converter in (STRING, BYTES):
            type: Type = Primitive.STRING if converter == STRING else Primitive.BINARY
        else:
            type = fields_of(self._shape.columns).get(name, Primitive.STRING)
        cast, nothing = cast_cell(type), (None,) if type in (Primitive.STRING, Primitive.BINARY) else (None, "")

        def read(text: str) -> Any:
            try:
                return cast(text)
            except UNDECODABLE:
                return ("not a value", text)

        # A row of one null may be quoted, because readers skip an empty line.
        return [None if text in nothing else read(text) for text in texts]

    # Texts

    def _build_text_part(self, name: str, registry: Connection | None) -> Decode:
        """Return what makes a key or a value what the text of its row holds."""
        decode = self._build_text_decoder(name, registry)
        converter = self._shape.converter(name)
        as_it_is = self._shape.format.startswith("json") and converter == "json_schema" and converter not in self._typed
        sort = sort_json_texts if converter == "protobuf" else return_unchanged

        def read(data: Any) -> Any:
            if type(data) is Decoded:
                return sort(to_json_form(data.value))
            if type(data) is PlainJson:
                return _to_json_text(data) if as_it_is else to_json_form(parse_exact_json(data))
            return sort(decode(data))

        return read

    def _build_text_decoder(self, name: str, registry: Connection | None) -> Decode:
        shape, converter = self._shape, self._shape.converter(name)
        in_json = shape.format.startswith("json")
        if in_json and converter == "json":
            return _to_json_text
        if in_json and converter == "json_schema" and registry is None:
            return lambda data: _to_json_text(drop_schema_id(data))
        if in_json and converter in (STRING, BYTES):
            return build_decoder(converter, None)
        if converter in TYPED or converter == "json_schema":
            decode = build_decoder(
                converter,
                registry,
                has_floats=False,
                null_to_default=name in shape.null_to_default,
                counted=list_counted(shape, name),
            )
            return lambda data: to_json_form(decode(data))
        in_line = name == "value" and shape.envelope is not None and shape.envelope.value_encoding == "none"
        return lambda data: (_to_one_line(data) if in_line else data) or None

    def _digest_texts(self, read: Callable[[bytes], dict[str, Any]], texts: Sequence[bytes]) -> list[bytes]:
        digests = []
        for text in texts:
            try:
                row = read(text)
                digests.append(digest_row([self._read_part(name, row[name]) for name in self._fields]))
            except UNDECODABLE:
                digests.append(digest_row(("not a row", text)))
        return digests

    def _read_part(self, name: str, cell: Any) -> Any:
        if name in ("key", "value"):
            converter, in_json = self._shape.converter(name), self._shape.format.startswith("json")
            if cell and (converter in self._typed or (converter == "json_schema" and not in_json)):
                form = to_json_form(parse_exact_json(cell))
                return sort_json_texts(form) if converter == "protobuf" else form
            return cell if in_json else cell or None
        if name == "metadata":
            fields = _IGGY_METADATA if self._envelope and self._envelope.style == "iggy" else _METADATA
            if len(cell) != len(fields):
                raise ValueError("it has other metadata")
            return [cell[field] for field in fields]
        return cell or None if name == "headers" else cell


def _find_texts(shape: ObjectShape) -> _Texts | None:
    """Return what makes the texts of records, if files of a shape have them as Kafka does; else None."""
    if shape.envelope is not None:
        return (lambda records: [key or b"" for key in records.keys]) if shape.format == "bytes" else None
    if shape.format == "bytes":
        return lambda records: [value or b"" for value in records.values]
    if shape.format == "text" and shape.value not in TYPED and shape.value != "json_schema":
        return lambda records: [_to_one_line(value or b"") for value in records.values]
    if shape.format.startswith("json") and shape.value == "json":
        blanks = b"" if shape.frame is not None and b"\n" in shape.frame.between else b" \t"
        return lambda records: [
            _to_one_line(b"null" if value is None else value).strip(blanks) for value in records.values
        ]
    return None


def _guard(decode: Decode) -> Decode:
    """Return a decoder that makes a pair, which equals nothing of a file, of what cannot be decoded."""

    def decode_or_mark(data: bytes) -> Any:
        try:
            return decode(data)
        except UNDECODABLE:
            return ("not a value of Kafka", data)

    return decode_or_mark


def _to_one_line(value: bytes) -> bytes:
    """Return a value as a line holds it: newlines become spaces."""
    return value.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in value or b"\r" in value else value


def _decode_line(data: bytes) -> str:
    return _to_one_line(data).decode()


def _to_json_text(data: bytes) -> bytes | None:
    text = _to_one_line(data).strip(b" \t")
    return None if text == b"null" else text


def _read_headers(headers: Any) -> Any:
    if not headers:
        return None
    is_map = type(headers[0]) is tuple
    pairs = headers if is_map else [(header["key"], header["value"]) for header in headers]
    pairs = [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
    return sorted(pairs) if is_map else pairs


def _build_form(type: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what converts cells of this type as `to_column_form` does; None if they stay as they are."""
    of = pa.types
    if of.is_string(type) or of.is_integer(type) or of.is_boolean(type) or of.is_binary(type):
        return None
    if of.is_floating(type):
        return to_float_form
    if of.is_list(type):
        item = _build_form(type.value_type)
        return item and (lambda cells: [None if cell is None else item(cell) for cell in cells])
    if of.is_struct(type):
        return partial(_form_struct, [(field.name, form) for field in type if (form := _build_form(field.type))])
    return to_column_form


def _form_struct(forms: Sequence[tuple[str, Callable[[Any], Any]]], row: dict[str, Any]) -> dict[str, Any]:
    if None in row.values():
        row = {name: cell for name, cell in row.items() if cell is not None}
    for name, form in forms:
        if name in row:
            row[name] = form(row[name])
    return row


def _to_list(column: pa.Array) -> list[Any]:
    """Return the cells of a column; through numpy, which is faster, if it has the same values."""
    of, type = pa.types, column.type
    if of.is_string(type) or (not column.null_count and (of.is_integer(type) or of.is_floating(type))):
        cells: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return cells
    return column.to_pylist()  # type: ignore[no-any-return]


def _to_integer_type(type: pa.DataType) -> pa.DataType:
    of = pa.types
    if of.is_struct(type):
        return pa.struct([field.with_type(_to_integer_type(field.type)) for field in type])
    if of.is_map(type):
        return pa.map_(type.key_type, _to_integer_type(type.item_type))
    if of.is_list(type):
        return pa.list_(type.value_field.with_type(_to_integer_type(type.value_type)))
    if of.is_timestamp(type) or of.is_time64(type):
        return pa.int64()
    return pa.int32() if of.is_date32(type) or of.is_time32(type) else type
