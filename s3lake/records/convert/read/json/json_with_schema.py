"""JSON with a schema of Connect: in each value, or registered as a JSON Schema whose id is before the value."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from s3lake.records.convert.read import keys_and_values, value_checks
from s3lake.records.convert.read.converters import ConverterRequest
from s3lake.records.convert.read.json import object_columns
from s3lake.records.convert.read.keys_and_values import Column, Gathering, Schemas
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.convert.read.wire_format import (
    FramedRows,
    References,
    compile_foreign,
    compile_registered,
    group_by_schema,
)
from s3lake.records.schema import connect_schema, json_schema
from s3lake.records.schema.connect_schema import Schema, SchemaError
from s3lake.records.schema.registry import name_schema

_decode = msgspec.json.Decoder(float_hook=connect_schema.to_exact).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def read(raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Read `{"schema": …, "payload": …}`; any other value is JSON without a schema."""
    lines, refused = keys_and_values.check_json_lines(raw)
    payloads = _Payloads("connect_json", lines, request)
    repeated = value_checks.find_repeated_names(lines)
    rows_of: dict[bytes, list[int]] = {}
    for row, text in enumerate(payloads.texts):
        envelope = connect_schema.split_envelope(text) if text is not None else None
        if envelope is not None and row in repeated:
            refused[row] = repeated[row]
        elif envelope is not None:
            schema, payload = envelope
            payloads.texts[row] = None if schema == payload == b"null" else payload
            if schema != b"null":
                rows_of.setdefault(schema, []).append(row)

    def compile_text(text: str, _: References) -> tuple[Schema, connect_schema.ReadPayload] | str:
        return connect_schema.compile_schema(
            text.encode(), tabular=request.tabular, null_to_default=request.null_to_default, exact=request.exact
        )

    for text, rows in rows_of.items():
        compiled = compile_foreign(compile_text, text.decode())
        if isinstance(compiled, str):
            refused |= dict.fromkeys(rows, compiled)
        else:
            refused |= payloads.read(*compiled, rows, "the payload does not fit its schema")
    return payloads.to_column(), refused


def read_framed(raw: pa.BinaryArray, request: ConverterRequest) -> tuple[Column, Refusals]:
    """Read values with the id of their JSON Schema before them; without a registry, or as lines, they have no schema.

    Raises:
        TransientError: the registry did not answer.
        ConfigurationError: it refused.
    """
    groups, refused = group_by_schema(raw)
    values: list[Any] = raw.to_pylist()
    data: list[bytes | None] = [None] * len(raw)
    for group in groups:
        for row in group.rows.tolist():
            data[row] = values[row][group.begin :]
    lines, unreadable = keys_and_values.check_json_lines(pa.array(data, pa.binary()))
    refused |= unreadable
    if request.registry is None:
        return Column("json_schema", lines), refused
    if not request.tabular:
        lines, wrong = _fill_lines(lines, groups, refused, request)
        refused |= wrong
        return Column("json_schema", lines, units=_find_units(len(raw), groups, refused, request)), refused
    refused = value_checks.find_repeated_names(lines) | refused
    compile_text = functools.partial(_compile_json_schema, request.null_to_default, request.exact)
    payloads = _Payloads("json_schema", lines, request)
    left_out: Counter[str] = Counter()
    for group in groups:
        kept = [row for row in group.rows.tolist() if row not in refused]
        reader = compile_registered(request.registry, group.schema_id, "JSON", compile_text) if kept else None
        if isinstance(reader, str):
            refused |= dict.fromkeys(kept, reader)
        elif reader is not None:
            schema, read_one = reader
            read_payload = functools.partial(read_one, left_out)
            refused |= payloads.read(
                schema, read_payload, kept, f"the data does not fit {name_schema(group.schema_id)}"
            )
    return payloads.to_column(left_out), refused


def _fill_lines(
    lines: pa.BinaryArray, groups: Sequence[FramedRows], refused: Refusals, request: ConverterRequest
) -> tuple[pa.BinaryArray, Refusals]:
    """Return lines with the defaults of what they lack; a line that lacks nothing stays what the producer wrote."""
    compile_text = functools.partial(_compile_defaults, request.null_to_default)
    texts: list[bytes | None] | None = None
    more: Refusals = {}
    assert request.registry is not None, "without one there are no defaults"
    repeated: Refusals | None = None
    for group in groups:
        kept = [row for row in group.rows.tolist() if row not in refused]
        fill = compile_registered(request.registry, group.schema_id, "JSON", compile_text) if kept else None
        if isinstance(fill, str):
            more |= dict.fromkeys(kept, fill)
        elif fill is not None:
            texts = lines.to_pylist() if texts is None else texts
            repeated = value_checks.find_repeated_names(lines) if repeated is None else repeated
            for row in kept:
                if row in repeated:
                    more[row] = repeated[row]
                    continue
                text = texts[row]
                try:
                    texts[row] = None if text is None else fill(text)
                except msgspec.DecodeError as error:  # numbers that JSON may have, and Python's integers may not
                    more[row] = f"the defaults of {name_schema(group.schema_id)} cannot be added: {error}"
    return lines if texts is None else pa.array(texts, pa.binary()), more


def _find_units(
    total: int, groups: Sequence[FramedRows], refused: Refusals, request: ConverterRequest
) -> Schemas | None:
    """Return the schemas that define the unit of times of lines. A schema without columns defines none."""
    compile_text = functools.partial(_compile_json_schema, request.null_to_default, request.exact)
    gathering = Gathering(total)
    assert request.registry is not None, "without one no schema is known"
    for group in groups:
        kept = [row for row in group.rows.tolist() if row not in refused]
        reader = compile_registered(request.registry, group.schema_id, "JSON", compile_text) if kept else None
        if reader is not None and not isinstance(reader, str):
            gathering.add(reader[0], np.array(kept, np.int64), None)
    return gathering.finish()


class _Payloads:
    """The texts of a batch, of which those with a schema are read, and for a table made columns."""

    def __init__(self, converter: str, lines: pa.BinaryArray, request: ConverterRequest) -> None:
        self.texts: list[bytes | None] = lines.to_pylist()
        self._converter, self._tabular = converter, request.tabular
        self._gathering = Gathering(len(lines))

    def read(self, schema: Schema, read_one: connect_schema.ReadPayload, rows: Sequence[int], misfit: str) -> Refusals:
        """Read the payloads of one schema. Replaces their texts. Return the refused ones."""
        refused: Refusals = {}
        texts: list[Any] = self.texts  # rows with a schema have one
        for row in rows:
            try:
                payload = read_one(texts[row])
            except msgspec.DecodeError as error:
                refused[row] = f"{misfit}: {error}"
            else:
                texts[row] = None if payload.strip() == b"null" else payload
        kept = [row for row in rows if row not in refused] if refused else rows
        array = None
        if self._tabular:
            array, misfits = object_columns.read_values([texts[row] for row in kept], schema.type)
            refused |= {kept[at]: reason for at, reason in misfits.items()}
            kept = [row for row in kept if row not in refused] if misfits else kept
        self._gathering.add(schema, np.array(kept, np.int64), array, keep_nulls=True)
        return refused

    def to_column(self, left_out: Counter[str] | None = None) -> Column:
        texts = pa.array(self.texts, pa.binary())
        return Column(self._converter, texts, self._gathering.finish(), left_out or Counter())


@functools.lru_cache(maxsize=4096)
def _compile_defaults(
    null_to_default: bool, text: str, references: References
) -> Callable[[bytes], bytes] | str | None:
    """Return what adds the defaults to the text of a value, the reason if the schema is not valid, None if it has none.

    A text needs no columns, so nothing else is asked of the schema, or of the value.
    """
    try:
        document = json_schema.to_connect(text, dict(references))
    except SchemaError as error:
        return str(error)
    if document is None or not json_schema.has_default(document):
        return None

    def fill(text: bytes) -> bytes:
        value = _decode(text)
        filled = json_schema.fill_json_defaults(value, document, null_to_default=null_to_default)
        return text if filled is value else _encode(filled)

    return fill


@functools.lru_cache(maxsize=4096)
def _compile_json_schema(
    null_to_default: bool, exact: bool, text: str, references: References
) -> tuple[Schema, Callable[..., bytes]] | str | None:
    """Return a schema and what reads its values, the reason if it is not valid, and None if it allows anything.

    What reads a value adds the paths that it leaves out to its first argument.
    """
    try:
        document = json_schema.to_connect(text, dict(references))
    except SchemaError as error:
        return str(error)
    if document is None:
        return None
    compiled = connect_schema.compile_schema(
        _encode(json_schema.adapt_defaults(document)), tabular=True, null_to_default=null_to_default, exact=exact
    )
    if isinstance(compiled, str):
        return compiled
    schema, read_payload = compiled
    is_payload = not json_schema.has_anything(document)

    def read_value(left_out: Counter[str], value: bytes) -> bytes:
        if is_payload:
            with suppress(msgspec.ValidationError):  # it may have properties that are left out
                return read_payload(value)
        paths = set[str]()
        text = read_payload(_encode(json_schema.adapt(_decode(value), document, paths)))
        left_out.update(paths)
        return text

    return schema, read_value
