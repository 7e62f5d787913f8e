"""The decoder of each converter: the bytes of a key or a value in Kafka become a value."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from s3lake.errors import S3LakeError
from s3lake.lake.verify import decode_avro, decode_connect_json
from s3lake.lake.verify.decoded_values import Decode, Mismatch, SinglePrecision, parse_exact_json, return_unchanged
from s3lake.lake.verify.fill_json_defaults import Defaults
from s3lake.lake.verify.log import Records
from s3lake.records.schema.registry import SchemaId, get_client
from s3lake.records.schema.registry.registry_answers import UnknownSchema
from s3lake.records.schema.registry.registry_connection import Connection

_NUMBERS = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d", "boolean": ">?"}
TYPED = {"avro", "protobuf", "connect_json", *_NUMBERS}
"""Converters whose values bring the types of their columns, and are written as new JSON."""
REGISTERED = {"avro", "protobuf"}
IDENTIFIED = {"avro", "protobuf", "json_schema"}
"""Converters of values that name their schema: before the data, or in a header."""
_HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
_MOST_OF_BRANCH = 10  # of a null datum there is at most the number of its branch


def build_decoder(
    converter: str,
    registry: Connection | None,
    plain: Callable[[Any], Any] = return_unchanged,
    described: Callable[[Any], Any] = return_unchanged,
    *,
    has_floats: bool = True,
    null_to_default: bool = False,
    counted: frozenset[str] = frozenset(),
) -> Decode:
    """Return the decoder of keys or values.

    Args:
        registry: where their schemas are. JSON with a JSON Schema needs one only if it becomes columns.
        plain: makes a value of parsed JSON that has no schema.
        described: what is done to a value that a schema has decoded, or that is a number.
        has_floats, null_to_default: see `connect.decode_connect`.
        counted: see `decode_protobuf.build_protobuf_reader`.
    """
    match converter:
        case "string":
            return bytes.decode
        case "bytes":
            return bytes
        case "json":
            return lambda data: plain(parse_exact_json(data))
        case "connect_json":
            return partial(
                decode_connect_json.decode_connect,
                plain=lambda data: plain(parse_exact_json(data)),
                described=described,
                has_floats=has_floats,
                null_to_default=null_to_default,
            )
        case "json_schema":
            return partial(_decode_json_schema, registry, plain, null_to_default)
        case "avro" | "protobuf":
            return lambda data: described(_decode_registered(registry, counted, null_to_default, data))
        case "float":
            unpack = struct.Struct(_NUMBERS[converter]).unpack
            return lambda data: described(SinglePrecision(unpack(data)[0]))
        case _:
            unpack = struct.Struct(_NUMBERS[converter]).unpack
            return lambda data: described(unpack(data)[0])


def build_null_check(
    converter: str, registry: Connection | None, *, null_to_default: bool, in_columns: bool
) -> Callable[[bytes], bool] | None:
    """Return what tells whether a value that Kafka has is null by its schema. Return None if no value can be.

    Only values that are short enough, or show it otherwise, are decoded.
    """
    if converter == "connect_json":
        return partial(decode_connect_json.is_null_payload, null_to_default=null_to_default)
    decode = build_decoder(converter, registry, return_unchanged, null_to_default=null_to_default)
    if converter == "avro":
        has_ids = registry is None or not registry.avro
        return lambda data: len(data) <= has_ids * _find_data(data) + _MOST_OF_BRANCH and _is_null(decode, data)
    # Lines of JSON with a JSON Schema are the producer's text, which may be `null`.
    if converter == "json_schema" and registry is not None and in_columns:
        return lambda data: drop_schema_id(data).strip() == b"null" and _is_null(decode, data)
    return None


def _is_null(decode: Decode, data: bytes) -> bool:
    try:
        return decode(data) is None
    except (MemoryError, S3LakeError):
        raise
    except Exception:  # a schema or a value of a stranger: the value equals no row
        return False


def find_unknown_schema(registry: Connection | None, values: Iterable[bytes | None]) -> str:
    """Return the registry's message if it does not have the schema of one of these values, else an empty text."""
    if registry is None or registry.avro or registry.descriptors:
        return ""
    named = (value for value in values if value is not None and value[:1] in (b"\0", b"\1"))
    for head in {value[: _find_data(value)] for value in named}:
        try:
            get_client(registry).schema(_read_schema_id(head))
        except UnknownSchema as error:
            return str(error)
        except ValueError:
            pass  # it is not an id: the value equals no row
    return ""


def with_named_schemas(records: Records, parts: Collection[str]) -> Records:
    """Return records with keys or values (`parts`) as if what a header names their schema with were before them."""
    columns = {"key": list(records.keys), "value": list(records.values)}
    for part in parts:
        column = columns[part]
        for row, headers in enumerate(records.headers if column else ()):
            named = [value for name, value in headers if name == _HEADERS[part]]
            if named and column[row] is not None:
                column[row] = (named[-1] or b"") + (column[row] or b"")
    return records._replace(keys=columns["key"], values=columns["value"])


def drop_schema_id(data: bytes) -> bytes:
    """Return the data behind what names its schema."""
    return data[_find_data(data) :]


def _find_data(data: bytes) -> int:
    """Return where the data begins, behind an id or a GUID."""
    return 17 if data[:1] == b"\1" else 5


def _read_schema_id(data: bytes) -> SchemaId:
    begin = _find_data(data)
    if data[:1] not in (b"\0", b"\1") or len(data) < begin:
        raise Mismatch("no id of a schema is before it")
    return UUID(bytes=data[1:begin]) if data[:1] == b"\1" else int.from_bytes(data[1:begin], "big")


def _decode_registered(registry: Connection | None, counted: frozenset[str], null_to_default: bool, data: bytes) -> Any:
    """Decode data by the schema whose id is before it, or by the one that the sink is configured with."""
    if registry is None:
        raise Mismatch("no registry has its schema")
    if registry.avro:
        return decode_avro.build_avro_reader(registry.avro, (), null_to_default)(data)
    if not registry.descriptors:
        schema, data = get_client(registry).schema(_read_schema_id(data)), drop_schema_id(data)
        if schema.language == "AVRO":
            references = tuple(schema.references.values())
            return _build(decode_avro.build_avro_reader, schema.text, references, null_to_default)(data)
        if schema.language != "PROTOBUF":
            raise Mismatch(f"it is a schema of {schema.language}")
    from s3lake.lake.verify import decode_protobuf  # it imports Google's library, which an installation need not have

    if registry.descriptors:
        return decode_protobuf.build_set_reader(registry.descriptors, registry.message, counted, registry.exact)(data)
    references_by_name = tuple(schema.references.items())
    reader = _build(decode_protobuf.build_protobuf_reader, schema.text, references_by_name, counted, registry.exact)
    return reader(data)


def _build(build: Callable[..., Decode], *described: Any) -> Decode:
    """Build a reader of a schema that a stranger registered, which may make a compiler raise anything."""
    try:
        return build(*described)
    except (MemoryError, S3LakeError):
        raise
    except Exception as error:
        raise Mismatch(f"its schema cannot be used: {type(error).__name__}") from None


def _decode_json_schema(
    registry: Connection | None, plain: Callable[[Any], Any], null_to_default: bool, data: bytes
) -> Any:
    """Decode JSON behind the id of its schema, with the defaults that the schema gives if there is a registry."""
    payload = parse_exact_json(drop_schema_id(data))
    if registry is None:
        return plain(payload)
    schema = get_client(registry).schema(_read_schema_id(data))
    return plain(_read_defaults(schema.text, tuple(schema.references.items()), null_to_default).fill(payload))


@lru_cache(4096)
def _read_defaults(text: str, references: tuple[tuple[str, str], ...], null_to_default: bool) -> Defaults:
    return Defaults({name: parse_exact_json(document) for name, document in (*references, ("", text))}, null_to_default)
