"""The HTTP APIs of Elasticsearch and Quickwit as they are documented, in memory; what hours do not need is refused."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from s3lake_tests.kit.http import Request, Response, as_json, serve

A = TypeVar("A", bound="Answers")


class Answers:
    """Stands in for a server: one request at a time, and none without the header."""

    authorization: str | None

    def __init__(self) -> None:
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, query: dict[str, str], kind: str, body: bytes) -> tuple[int, Any]:
        """Return status and answer to a request."""
        raise NotImplementedError

    @contextmanager
    def served(self: A) -> Iterator[A]:
        """Serve while the block runs."""

        def respond(request: Request) -> Response:
            if request.headers.get("authorization") != self.authorization:
                return as_json({}, 401)
            path, kind = urlsplit(request.target).path, request.headers.get("content-type", "")
            with self._lock:
                status, document = self.answer(request.method, path, request.query, kind, request.body)
            return as_json(document, status)

        with serve(respond) as self.url:
            yield self


class Search(Answers):
    """Indices: their documents, the ones that a search sees, and the sequence numbers of changes."""

    authorization: str | None = "ApiKey hunter2-elastic"

    def __init__(self) -> None:
        super().__init__()
        self.indices: dict[str, dict[str, dict[str, Any]]] = {}
        self.mappings: dict[str, Any] = {}
        self.refreshed: dict[str, set[str]] = {}
        self.busy = 0
        self.refuses_indices = False
        self.failures: list[Any] = []
        self.number = 0

    def create(self, index: str, properties: dict[str, Any]) -> None:
        """Create an index as another program would."""
        self.indices[index], self.refreshed[index] = {}, set()
        self.mappings[index] = {"mappings": {"properties": properties}}

    def documents(self, index: str) -> dict[str, Any]:
        """By their ids, whether a search sees them or not."""
        return {name: document["_source"] for name, document in self.indices.get(index, {}).items()}

    def answer(self, method: str, path: str, query: dict[str, str], kind: str, body: bytes) -> tuple[int, Any]:
        """Status and answer to a request."""
        match (method, *path.strip("/").split("/")):
            case ("GET", index, "_mapping"):
                return (200, {index: self.mappings[index]}) if index in self.indices else (404, {})
            case ("PUT", index):
                if self.refuses_indices:
                    return 400, {"error": {"type": "validation_exception"}}
                if index in self.indices:
                    return 400, {"error": {"type": "resource_already_exists_exception"}}
                self.indices[index], self.refreshed[index], self.mappings[index] = {}, set(), json.loads(body)
                return 200, {"acknowledged": True}
            case ("GET", index, "_doc", name):
                entry = self.indices.get(index, {}).get(name)
                return (404, {"found": False}) if entry is None else (200, {"found": True, **entry})
            case ("PUT", index, "_doc", name):
                return self._put(index, name, query, json.loads(body))
            case ("POST", index, "_bulk"):
                assert kind == "application/x-ndjson"
                return 200, self._bulk(index, body)
            case ("POST", index, "_refresh"):
                self.refreshed[index] = set(self.indices[index])
                return 200, {}
            case ("POST", index, "_delete_by_query"):
                names = [
                    name for name in self.refreshed[index] if _matches(self.indices[index], name, json.loads(body))
                ]
                for name in names:
                    del self.indices[index][name]
                return 200, {"deleted": len(names), "failures": self.failures}
        raise AssertionError(f"{method} {path} is not in the documented API that is played here")

    def _put(self, index: str, name: str, query: dict[str, str], source: Any) -> tuple[int, Any]:
        entry = self.indices[index].get(name)
        if query.get("op_type") == "create":
            holds = entry is None
        elif not query:
            holds = True
        else:
            wanted = (int(query["if_seq_no"]), int(query["if_primary_term"]))
            holds = entry is not None and wanted == (entry["_seq_no"], entry["_primary_term"])
        if not holds:
            return 409, {"error": {"type": "version_conflict_engine_exception"}}
        return 200, self._keep(index, name, source)

    def _bulk(self, index: str, body: bytes) -> Any:
        *lines, last = body.split(b"\n")
        assert last == b"", "a bulk ends with a newline"
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            name, document = json.loads(action)["index"]["_id"], json.loads(source)
            if self.busy:
                self.busy -= 1
                items.append({"_id": name, "status": 429, "error": {"type": "es_rejected_execution_exception"}})
            elif isinstance(document["record"].get("id"), str):
                error = {"type": "document_parsing_exception", "reason": f"Preview: {document['record']['id']}"}
                items.append({"_id": name, "status": 400, "error": error})
            else:
                self._keep(index, name, document)
                items.append({"_id": name, "status": 201})
        return {"errors": any("error" in item for item in items), "items": [{"index": item} for item in items]}

    def _keep(self, index: str, name: str, source: Any) -> Any:
        self.number += 1
        place = {"_id": name, "_seq_no": self.number, "_primary_term": 1}
        self.indices[index][name] = {**place, "_source": source}
        return place


def _matches(documents: dict[str, Any], name: str, body: Any) -> bool:
    if name not in documents:
        return False
    source, clauses = documents[name]["_source"], body["query"]["bool"]

    def holds(clause: Any) -> bool:
        [(verb, condition)] = clause.items()
        [(field, value)] = condition.items()
        if verb == "range":
            return bool(value["gte"] <= source[field] <= value["lte"])
        assert verb == "term"
        return bool(source[field] == value)

    return all(map(holds, clauses["filter"])) and not any(map(holds, clauses["must_not"]))


class Quick(Answers):
    """Indexes: documents that were taken, and how many of them are published."""

    authorization: str | None = "Bearer hunter2-quickwit"

    def __init__(self) -> None:
        super().__init__()
        self.indexes: dict[str, list[Any]] = {}
        self.published: dict[str, int] = {}
        self.lost = 0

    def answer(self, method: str, path: str, query: dict[str, str], kind: str, body: bytes) -> tuple[int, Any]:
        match (method, *path.strip("/").split("/")):
            case ("GET", "api", "v1", "indexes"):
                return 200, [{"index_config": {"index_id": name}} for name in self.indexes]
            case ("POST", "api", "v1", "indexes"):
                name = json.loads(body)["index_id"]
                assert name not in self.indexes
                assert len(name) <= 255
                self.indexes[name], self.published[name] = [], 0
                return 200, {}
            case ("GET", "api", "v1", "indexes", name, "describe") if name in self.indexes:
                return 200, {"num_published_docs": self.published[name]}
            case ("DELETE", "api", "v1", "indexes", name) if name in self.indexes:
                del self.indexes[name]
                return 200, []
            case ("POST", "api", "v1", name, "ingest") if name in self.indexes:
                assert kind == "application/x-ndjson"
                return 200, self._ingest(name, query["commit"], [json.loads(line) for line in body.splitlines()])
            case (_, "api", "v1", "indexes", _, *_) | (_, "api", "v1", _, "ingest"):
                return 404, {"message": "index not found"}
        raise AssertionError(f"{method} {path} is not in the documented API that is played here")

    def _ingest(self, name: str, commit: str, documents: list[Any]) -> Any:
        rejected = [document for document in documents if document["record"].get("id") == "private"]
        kept = [document for document in documents if document not in rejected][self.lost :]
        self.indexes[name] += kept
        if commit == "force":
            self.published[name] = len(self.indexes[name])
        return {"num_docs_for_processing": len(documents), "num_rejected_docs": len(rejected)}
