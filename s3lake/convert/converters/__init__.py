"""Converters: how bytes become keys and values. One file each, or one for all of Kafka's numbers, which says all that
others have to know of it.

To add one, write its file and name it in `CONVERTERS`. This module is imported with every configuration, so a file here
imports what reads in the function that reads.
"""

from __future__ import annotations

from collections.abc import Callable

from s3lake.convert.converters import avro, bytes, connect_json, json, json_schema, primitives, protobuf, string
from s3lake.convert.converters.converter import Converter, Wanted

__all__ = ["CONVERTERS", "Converter", "Wanted", "in_words"]

CONVERTERS: dict[str, Converter] = {
    converter.name: converter
    for converter in (
        json.CONVERTER,
        connect_json.CONVERTER,
        string.CONVERTER,
        bytes.CONVERTER,
        avro.CONVERTER,
        json_schema.CONVERTER,
        protobuf.CONVERTER,
        *primitives.CONVERTERS,
    )
}


def in_words(fits: Callable[[Converter], bool]) -> str:
    """The converters that fit, for messages: `json, connect_json or json_schema`."""
    *names, last = [name for name, converter in CONVERTERS.items() if fits(converter)]
    return f"{', '.join(names)} or {last}" if names else last
