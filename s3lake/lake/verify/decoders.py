"""The decoder of each converter: the bytes of a key or a value in Kafka become a value."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from s3lake.errors import S3LakeError
from s3lake.lake.verify import decode_avro, decode_connect_json
from s3lake.lake.verify.decoded_values import Decode, Mismatch, SinglePrecision, parse_exact_json, return_unchanged
from s3lake.lake.verify.fill_json_defaults import Defaults
from s3lake.records.schema.registry import RegisteredSchema, UnknownSchema, get_client
from s3lake.records.schema.registry.registry_connection import Connection

_NUMBERS = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d", "boolean": ">?"}
TYPED = {"avro", "protobuf", "connect_json", *_NUMBERS}
"""Converters whose values bring the types of their columns, and are written as new JSON."""
REGISTERED = {"avro", "protobuf"}
_ID_BYTES = 5
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
    head = 0 if registry is not None and registry.avro else _ID_BYTES
    if converter == "avro":
        return lambda data: len(data) <= head + _MOST_OF_BRANCH and _is_null(decode, data)
    # Lines of JSON with a JSON Schema are the producer's text, which may be `null`.
    if converter == "json_schema" and registry is not None and in_columns:
        return lambda data: data[head:].strip() == b"null" and _is_null(decode, data)
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
    for head in {value[:_ID_BYTES] for value in values if value is not None and value[:1] == b"\0"}:
        try:
            _fetch_schema(registry, head)
        except UnknownSchema as error:
            return str(error)
        except ValueError:
            pass  # it is not an id: the value equals no row
    return ""


def _fetch_schema(registry: Connection, data: bytes) -> RegisteredSchema:
    if data[:1] != b"\0" or len(data) < _ID_BYTES:
        raise Mismatch("no id of a schema is before it")
    return get_client(registry).schema(int.from_bytes(data[1:_ID_BYTES], "big"))


def _decode_registered(registry: Connection | None, counted: frozenset[str], null_to_default: bool, data: bytes) -> Any:
    """Decode data by the schema whose id is before it, or by the one that the sink is configured with."""
    if registry is None:
        raise Mismatch("no registry has its schema")
    if registry.avro:
        return decode_avro.build_avro_reader(registry.avro, (), null_to_default)(data)
    if not registry.descriptors:
        schema = _fetch_schema(registry, data)
        if schema.language == "AVRO":
            references = tuple(schema.references.values())
            return _build(decode_avro.build_avro_reader, schema.text, references, null_to_default)(data[_ID_BYTES:])
        if schema.language != "PROTOBUF":
            raise Mismatch(f"it is a schema of {schema.language}")
    from s3lake.lake.verify import decode_protobuf  # it imports Google's library, which an installation need not have

    if registry.descriptors:
        return decode_protobuf.build_set_reader(registry.descriptors, registry.message, counted, registry.exact)(data)
    references_by_name = tuple(schema.references.items())
    reader = _build(decode_protobuf.build_protobuf_reader, schema.text, references_by_name, counted, registry.exact)
    return reader(data[_ID_BYTES:])


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
    payload = parse_exact_json(data[_ID_BYTES:])
    if registry is None:
        return plain(payload)
    schema = _fetch_schema(registry, data)
    return plain(_read_defaults(schema.text, tuple(schema.references.items()), null_to_default).fill(payload))


@lru_cache(4096)
def _read_defaults(text: str, references: tuple[tuple[str, str], ...], null_to_default: bool) -> Defaults:
    return Defaults({name: parse_exact_json(document) for name, document in (*references, ("", text))}, null_to_default)
