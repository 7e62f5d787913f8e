"""Schemas that a registry may have and no compiler takes, with a good one for each converter."""

from typing import Any

GOOD = {
    "avro": ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}, "AVRO", b"\x0e"),
    "json_schema": ({"type": "object", "properties": {"a": {"type": "integer"}}}, "JSON", b'{"a":7}'),
    "protobuf": ('syntax = "proto3"; message R { int64 a = 1; }', "PROTOBUF", b"\0\x08\x07"),
}
"""A schema with a column `a`, its kind, and data in which that is 7."""
HALF = r'"\ud800"'
STRANGE: dict[str, dict[str, Any]] = {
    "avro": {
        "doc": f'{{"type":"record","name":"R","doc":{HALF},"fields":[{{"name":"a","type":"long"}}]}}',
        "name": f'{{"type":"record","name":{HALF},"fields":[{{"name":"a","type":"long"}}]}}',
        "field": f'{{"type":"record","name":"R","fields":[{{"name":{HALF},"type":"long"}}]}}',
        "symbol": f'{{"type":"record","name":"R","fields":[{{"name":"a","type":'
        f'{{"type":"enum","name":"E","symbols":[{HALF}]}}}}]}}',
        "default": f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"string","default":{HALF}}}]}}',
        "property": f'{{"type":"record","name":"R","x":{HALF},"fields":[{{"name":"a","type":"long"}}]}}',
        "deep": '{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000,
        "number": '{"type":"fixed","name":"F","size":' + "9" * 5_000 + "}",
        "not a schema": "5",
    },
    "json_schema": {
        "description": f'{{"description":{HALF},"properties":{{"a":{{"type":"integer"}}}}}}',
        "title": f'{{"title":{HALF},"properties":{{"a":{{"type":"integer"}}}}}}',
        "default": f'{{"properties":{{"a":{{"type":"string","default":{HALF}}}}}}}',
        "name": f'{{"properties":{{{HALF}:{{"type":"integer"}}}}}}',
        "const": f'{{"properties":{{"a":{{"const":{HALF}}}}}}}',
        "deep": '{"items":' * 5_000 + "{}" + "}" * 5_000,
        "number": '{"properties":{"a":{"type":"integer","connect.index":' + "9" * 5_000 + "}}}",
        "not a schema": "5",
    },
    "protobuf": {
        "half a character": 'syntax = "proto3"; message R { int64 a = 1; } // \ud800',
        "zero": 'syntax = "proto3"; message R { int64 \0 a = 1; }',
        "deep": 'syntax = "proto3"; ' + "message M {" * 500 + " int64 a = 1;" + "}" * 500,
        "number": 'syntax = "proto3"; message R { int64 a = ' + "9" * 5_000 + "; }",
        "not a schema": "AAAA",
    },
}
