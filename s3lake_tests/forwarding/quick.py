"""What Quickwit documents of its HTTP API, as far as hours need it, in memory; anything else is refused."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from s3lake_tests.forwarding.search import Answers

AUTHORIZATION = "Bearer hunter2-quickwit"


class Quick(Answers):
    """Indexes: documents that were taken, and how many of them are published."""

    authorization = AUTHORIZATION

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


@contextmanager
def serving() -> Iterator[Quick]:
    """A server of these on a free port."""
    quick = Quick()
    with quick.served():
        yield quick
