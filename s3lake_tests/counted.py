"""A bucket in memory that counts requests as S3 does: a listing is one for every 1,000 keys."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from s3lake.store.memory import MemoryStore

PAGE = 1000


class CountedStore(MemoryStore):
    """Every method of the contract under its own name; `requests` and `calls`, with their keys, may be cleared."""

    endpoint = "counted"  # named, so that it is probed once

    def __init__(self, bucket: str = "lake") -> None:
        super().__init__(bucket)
        self.requests: Counter[str] = Counter()
        self.calls: list[tuple[str, str]] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _COUNTED:
            return found

        def call(key: str, *arguments: Any, **options: Any) -> Any:
            self.requests[name] += 1
            self.calls.append((name, key))
            return found(key, *arguments, **options)

        return call

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        keys = list(super().list(prefix))
        self.requests["list"] += len(keys) // PAGE
        return iter(keys)


_COUNTED = {
    "get",
    "head",
    "put",
    "delete",
    "list",
    "list_steps",
    "create_upload",
    "upload_part",
    "complete_upload",
    "abort_upload",
}
