"""A Schema Registry of a few lines: schemas by id, versions by subject, and answers that a test dictates."""

import io
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import fastavro

from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.kit.http import Request, Response, serve

_ids = itertools.count(100)  # of all registries: a port may be another one's later, and clients remember


class SchemaRegistry:
    """What the server knows, and what it was asked.

    Attributes:
        asked: path and Authorization of each request.
        answers: status and body of the next requests, before what is registered counts.
        withheld: ids of schemas that it denies to have.
        forbidden: ids of schemas that it refuses to give, with 403.
        guids: the GUIDs of schemas; empty for a registry that knows none.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str | None]] = []
        self.answers: list[tuple[int, bytes]] = []
        self.withheld: set[int] = set()
        self.forbidden: set[int] = set()
        self.guids: dict[UUID, int] = {}
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, int] = {}

    @property
    def connection(self) -> Connection:
        """How to reach it."""
        return Connection((self.url,))

    def add(self, schema: Any, kind: str = "", subject: str = "", refers: Sequence[tuple[str, str]] = ()) -> int:
        """Register a schema; `refers` are names and their subjects."""
        number = next(_ids)
        document: dict[str, Any] = {"schema": schema if isinstance(schema, str) else json.dumps(schema)}
        if kind:
            document["schemaType"] = kind
        if refers:
            document["references"] = [{"name": name, "subject": one, "version": 1} for name, one in refers]
        self._schemas[number] = document
        self._subjects[subject] = number
        return number

    def add_with_guid(self, schema: Any, kind: str = "") -> UUID:
        """Register a schema in a registry that knows GUIDs, as Confluent's does since 8.0."""
        guid = uuid4()
        self.guids[guid] = self.add(schema, kind)
        return guid

    def answer(self, request: Request) -> Response:
        """Answer as the test dictates, else of what is registered."""
        self.asked.append((request.target, request.headers.get("authorization")))
        return Response(*(self.answers.pop(0) if self.answers else self._find(request.steps)))

    def _find(self, steps: list[str]) -> tuple[int, bytes]:
        """Answer as Confluent's registry does: it has no path for a number that is not an `int` of Java."""
        match steps:
            case ["schemas", "ids", number] if not _is_int(number):
                return NO_SUCH_PATH
            case ["schemas", "ids", number] if int(number) in self.forbidden:
                return 403, b'{"error_code":40301,"message":"User is denied operation Read"}'
            case ["schemas", "ids", number, "subjects"]:
                return 200, json.dumps([name for name, one in self._subjects.items() if one == int(number)]).encode()
            case ["schemas", "ids", number] if int(number) in self._schemas.keys() - self.withheld:
                return 200, json.dumps(self._schemas[int(number)]).encode()
            case ["schemas", "ids", number]:
                return 404, b'{"error_code":40403,"message":"Schema %s not found"}' % number.encode()
            case ["schemas", "guids", guid] if UUID(guid) in self.guids:
                return self._find(["schemas", "ids", str(self.guids[UUID(guid)])])
            case ["schemas", "guids", guid] if self.guids:
                return 404, b'{"error_code":40403,"message":"Schema %s not found"}' % guid.encode()
            case ["subjects"]:
                return 200, json.dumps([*self._subjects]).encode()
            case ["subjects", _, "versions", version] if version != "latest" and not _is_int(version):
                return 422, b'{"error_code":42202,"message":"The specified version is not a valid version id."}'
            case ["subjects", subject, "versions", "1" | "latest"] if subject in self._subjects:
                found = self._subjects[subject]
                return 200, json.dumps({"id": found, "version": 1, **self._schemas[found]}).encode()
            case ["subjects", subject, "versions", version] if subject in self._subjects:
                return 404, b'{"error_code":40402,"message":"Version %s not found."}' % version.encode()
            case ["subjects", subject, "versions", _]:
                return 404, b'{"error_code":40401,"message":"Subject \'%s\' not found."}' % subject.encode()
        return NO_SUCH_PATH


NO_SUCH_PATH = (404, b'{"error_code":404,"message":"HTTP 404 Not Found"}')
"""What the framework below Confluent's registry answers, with the status as the code."""


def _is_int(number: str) -> bool:
    return number.isdecimal() and int(number) < 2**31


@contextmanager
def serving() -> Iterator[SchemaRegistry]:
    """A registry on a free port of 127.0.0.1."""
    registry = SchemaRegistry()
    with serve(registry.answer) as registry.url:
        yield registry


def framed(number: int, data: bytes) -> bytes:
    """Data with the id of its schema before it."""
    return b"\0" + number.to_bytes(4, "big") + data


def datum(schema: Any, value: Any) -> bytes:
    """A value as its schema without logical types has it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_plain(schema)), value)
    return out.getvalue()


def _plain(schema: Any) -> Any:
    """What fastavro writes without asking which type of Python a value has."""
    if isinstance(schema, list):
        return list(map(_plain, schema))
    if isinstance(schema, dict):
        logical = ("logicalType", "precision", "scale")
        return {name: _plain(part) for name, part in schema.items() if name not in logical}
    return schema
