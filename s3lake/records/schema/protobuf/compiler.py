"""Protobuf schemas compiled by Google's compiler, to messages that Google's own library reads, and their comments.

Landing and `verify` share this; what becomes of a message each works out by itself.
"""

from __future__ import annotations

import base64
import binascii
import functools
import importlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from s3lake.errors import TransientError
from s3lake.plugins import require_extra
from s3lake.records.schema.connect_schema import SchemaError
from s3lake.records.schema.protobuf import known_files
from s3lake.scratch import scratch

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_COMPILED_S = 60
_MAIN = "s3lake-schema.proto"
_MISSING_IMPORT = re.compile("File not found|it has not been loaded")
_REGISTER_IMPORT = ". Register each file that it imports as a reference of the schema, by the path in the import"
_UNMAPPABLE = re.compile(r"[=:;\x00-\x1f\x7f]")
_MESSAGES, _FIELDS, _NESTED, _ONEOFS = 4, 2, 3, 8
"""Numbers of members in descriptor.proto, of which the path to a comment is made."""


def compile_message(text: str, references: Mapping[str, str], path: tuple[int, ...]) -> Descriptor:
    """A message of a registered schema.

    Args:
        text: the schema: a .proto file, or its descriptor in base64.
        references: files that it imports, by the names that it imports them by.
        path: the message: the number of the outermost, and of each that is nested in it.

    Raises:
        SchemaError: it does not exist, or the schema is not valid.
    """
    pool, file = _compile(text, tuple(references.items()))
    messages = dict(_list_messages(file.message_type))
    if path not in messages:
        have = ", ".join(f"{_join(each)} ({name})" for each, name in messages.items())
        raise SchemaError(
            f"the indexes before the data are {_join(path)}, and it has no message there; it has {have[:300]}. "
            f"{_explain_indexes(messages.get(path[::-1]))}"
        )
    return pool.FindMessageTypeByName(f"{file.package}.{messages[path]}".lstrip("."))


def _list_messages(
    described: Iterable[descriptor_pb2.DescriptorProto], path: tuple[int, ...] = (), outer: str = ""
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the indexes and the name, without the package, of each message of a file, outermost first."""
    for number, message in enumerate(described):
        yield (*path, number), outer + message.name
        yield from _list_messages(message.nested_type, (*path, number), f"{outer}{message.name}.")


def _join(path: tuple[int, ...]) -> str:
    return ".".join(map(str, path))


def _explain_indexes(reverse: str | None) -> str:
    if reverse is None:
        return "Let the producer register the schema that it writes with"
    return f"In reverse they are {reverse}: use a version of the producer's serializer that writes the outermost first"


def read_message_of_set(descriptors: bytes, name: str) -> Descriptor:
    """A message of a descriptor set, as `protoc --include_imports --descriptor_set_out` writes it.

    Raises:
        SchemaError: it does not exist, or the schema is not valid.
    """
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptors)
        return _pool(files).FindMessageTypeByName(name)
    except DecodeError:
        raise SchemaError("it is not a descriptor set: write one with protoc --descriptor_set_out") from None
    except KeyError:
        have = sorted(f"{file.package}.{each.name}".lstrip(".") for file in files.file for each in file.message_type)
        raise SchemaError(f"it has no message {name!r}; it has {', '.join(have)[:300]}") from None


def read_comments(text: str, references: Mapping[str, str]) -> dict[str, str]:
    """Return the comments on the columns of a registered schema's first message.

    Raises:
        SchemaError: it is not valid.
    """
    _, file = _compile(text, tuple(references.items()))
    return _comments(file, (_MESSAGES, 0), file.message_type[0]) if file.message_type else {}


def read_comments_of_set(descriptors: bytes, name: str) -> dict[str, str]:
    """Return the comments on a message of a descriptor set, which `protoc --include_source_info` adds to it."""
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptors)
    except DecodeError:
        return {}
    waiting: list[tuple[Any, tuple[int, ...], str, Any]] = [
        (file, (_MESSAGES, at), f"{file.package}.{each.name}".lstrip("."), each)
        for file in files.file
        for at, each in enumerate(file.message_type)
    ]
    for file, path, full, described in waiting:
        if full == name:
            return _comments(file, path, described)
        nested = enumerate(described.nested_type)
        waiting += [(file, (*path, _NESTED, at), f"{full}.{each.name}", each) for at, each in nested]
    return {}


def _comments(file: Any, path: tuple[int, ...], described: Any) -> dict[str, str]:
    """Return comments by column: a field, or the struct of a oneof."""
    comments = {
        tuple(location.path): location.leading_comments or location.trailing_comments
        for location in file.source_code_info.location
    }
    columns = {
        field.name: (*path, _FIELDS, at)
        for at, field in enumerate(described.field)
        if field.proto3_optional or not field.HasField("oneof_index")
    }
    columns |= {f"{oneof.name}_{at}": (*path, _ONEOFS, at) for at, oneof in enumerate(described.oneof_decl)}
    prose_of_columns = {name: " ".join(comments.get(place, "").split()) for name, place in columns.items()}
    return {name: text for name, text in prose_of_columns.items() if text}


@functools.lru_cache(maxsize=1024)
def _compile(text: str, references: tuple[tuple[str, str], ...]) -> tuple[Any, Any]:
    """Return a pool with the schema and all that it imports, and the schema's own file."""
    main = _descriptor(text)
    imported = {name: _descriptor(reference) for name, reference in references}
    if main is None and not any(imported.values()):
        files = _protoc(text, dict(references))
        return _pool(files), next(file for file in files.file if file.name == _MAIN)
    if main is None or None in imported.values():
        raise SchemaError("of the schema and what it imports some are text and some are not: register all alike")
    files = descriptor_pb2.FileDescriptorSet()
    for name, file in imported.items():
        file.name = name
        files.file.append(file)
    main.name = main.name or _MAIN
    files.file.append(main)
    return _pool(files), main


def _descriptor(text: str) -> Any:
    """A descriptor in base64; None for the text of a .proto file."""
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return file


def _protoc(text: str, references: Mapping[str, str]) -> Any:
    """Compile a .proto file with Google's compiler, in a process of its own, and return its descriptor set.

    Names and texts come from whoever may register a schema. So no file bears such a name: each text is in a file with a
    number, and the compiler maps the names of imports to those. It runs by the path of its script and in no directory
    of ours, so that Python imports nothing of what is written here.

    Raises:
        SchemaError: it is not valid, or a reference has a name that cannot be mapped.
        TransientError: the compiler did not answer in time.
        ConfigurationError: the compiler is not installed.
    """
    with require_extra("protobuf", "converter protobuf"):
        # Not the module itself: its import lets this process import .proto files from everywhere.
        tools = Path(str(importlib.import_module("grpc_tools").__file__)).parent
    for name in references:
        _require_mappable(name)
    files = {**known_files.CONFLUENT, **references, _MAIN: text}
    brought = {name: path for name, path in known_files.list_type_files().items() if name not in files}
    with ExitStack() as stack:
        with scratch(sum(map(len, files.values()))):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3lake-proto-")))
            mapped = [f"-I{name}={path}" for name, path in brought.items()]
            for number, (name, content) in enumerate(files.items()):
                (directory / f"{number}.proto").write_text(content, encoding="utf-8")
                mapped.append(f"-I{name}={directory}/{number}.proto")
            # In a file: a command line holds few names, and short ones.
            options = directory / "options"
            options.write_text("\n".join([*mapped, f"-I{tools / '_proto'}", ""]), encoding="utf-8")
        command = [sys.executable, str(tools / "protoc.py"), f"@{options}", "--include_imports"]
        command += ["--include_source_info"]  # which has the comments
        try:
            # Into a pipe: a disk that is full would be taken for a mistake of the schema, and its records refused.
            ran = subprocess.run(
                [*command, "--descriptor_set_out=/dev/stdout", _MAIN],
                capture_output=True,
                timeout=_COMPILED_S,
                check=False,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            raise TransientError(f"Google's compiler took more than {_COMPILED_S} s for a schema of Protobuf") from None
    if ran.returncode:
        errors = ran.stderr.decode(errors="replace")
        for number, name in enumerate(files):
            errors = errors.replace(f"{directory}/{number}.proto", name)
        words = [line for line in errors.splitlines() if "error" in line or ".proto:" in line]
        raise SchemaError(_explain_invalid(" ".join(words or [errors])))
    descriptors = descriptor_pb2.FileDescriptorSet()
    descriptors.ParseFromString(ran.stdout)
    return descriptors


def _require_mappable(name: str) -> None:
    """Raise SchemaError unless protoc can map an import of this name to a file of ours.

    protoc splits a mapping at `=` and `:` (on Windows at `;`): such a name could map, and read, any file.
    """
    if not name or _UNMAPPABLE.search(name):
        raise SchemaError(f"the reference {name[:100]!r} is not a path of an import; expected one without = : ;")


def _pool(files: Any) -> Any:
    """Return a pool with the files, each after its imports, and the well-known files that are not among them."""
    pool = descriptor_pool.DescriptorPool()
    added = {file.name for file in files.file}

    def add(file: Any) -> None:
        for name in set(file.dependency) - added:
            if well_known := known_files.find_googles(name) or _find_confluents(name):
                added.add(name)
                add(well_known)
        pool.Add(file)

    try:
        for file in files.file:
            add(file)
    except TypeError as error:
        raise SchemaError(_explain_invalid(str(error))) from None
    return pool


def _explain_invalid(errors: str) -> str:
    remedy = _REGISTER_IMPORT if _MISSING_IMPORT.search(errors) else ""
    return f"it is not valid Protobuf: {errors[:300].rstrip('.') if remedy else errors[:300]}{remedy}"


@functools.cache
def _find_confluents(name: str) -> Any:
    """Return the descriptor of a file of Confluent's. Return None if it has no such file."""
    if name not in known_files.CONFLUENT:
        return None
    (file,) = (file for file in _protoc(known_files.CONFLUENT[name], {}).file if file.name == _MAIN)
    file.name = name
    return file
