"""The .proto files that Protobuf's users import without bringing them: Google's and Confluent's.

Confluent's registry has them built in, and its serializers leave them out of a schema's references
(`skip.known.types`), so no registry gives them. Of Google's there are packages. Confluent's two are written here by
their names and numbers of fields, which its documentation of Protobuf's serializer and `ProtobufData` has.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

_GOOGLES = re.compile(r"google/(protobuf|type)/([a-z_]+)\.proto")
CONFLUENT: Mapping[str, str] = {
    "confluent/meta.proto": """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
}
"""Name -> text."""
FIELD_META = "confluent.field_meta"
"""The option of a field in which Confluent keeps Connect's schema of it."""


def list_type_files() -> dict[str, Path]:
    """Return the files `google/type/*.proto` by the names that they are imported by; the compiler has the others."""
    spec = importlib.util.find_spec("google.type")
    places = spec.submodule_search_locations if spec and spec.submodule_search_locations else ()
    return {f"google/type/{file.name}": file for place in places for file in sorted(Path(place).glob("*.proto"))}


def find_googles(name: str) -> Any:
    """Return the descriptor of a file of Google's. Return None if Google has no such file."""
    match = _GOOGLES.fullmatch(name)
    if match is None:
        return None
    try:
        module = importlib.import_module(f"google.{match[1]}.{match[2]}_pb2")
    except ImportError:
        return None
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file
