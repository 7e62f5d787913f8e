"""Indexes of Quickwit, by its HTTP API: one for each hour, which is whole if it has as many documents as the hour.

Quickwit has neither ids of documents nor transactions, but an index is created and deleted as a whole. So each attempt
writes into a new index, each request once. A failed attempt leaves an index that is never used: the next attempt
deletes it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from s3lake.errors import (
    ConfigurationError,
    DestinationRefusedError,
    DestinationUnavailableError,
    FencedError,
    S3LakeError,
)
from s3lake.lake.forwarding.http import Api, cut_bodies
from s3lake.lake.forwarding.ledger import make_bucket_error, make_digest
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.lake.forwarding.complete_hour import CompleteHour, Row

INGEST_BYTES = 4 << 20
"""How many bytes one request has, about; Quickwit takes ten MiB."""
SEEN_S = 60.0
"""For how many seconds a search may not see committed documents yet."""
_POLL_S = 0.5
_COLUMNS = [
    *({"name": name, "type": "text", "tokenizer": "raw"} for name in ("sink", "topic", "bucket", "content", "file")),
    *({"name": name, "type": "i64"} for name in ("partition", "offset", "row")),
    {"name": "hour", "type": "datetime", "input_formats": ["rfc3339"], "fast": True},
]


class _Attempt(NamedTuple):
    """The parts of the name of an index."""

    name: str
    bucket: str
    content: str


class Quickwit:
    """A destination of `forward`: an index of Quickwit for each hour, `<index>-<hour>-…`; search in `<index>-*`.

    Nothing is asked of the server before an hour is forwarded.

    Args:
        url: the server's address, without a user.
        index: the beginning of the names of all indexes.
        token: the token of a gateway before the server, which has no users itself; never printed.
        username: the user who logs in with the password, instead of a token; never printed.
        password: the user's password; never printed.
        ca_file: certificates to trust, if the machine does not trust the server's.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    def __init__(
        self,
        url: str,
        *,
        index: str = "events",
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z][\w-]{0,149}", index, re.ASCII):
            raise ConfigurationError(f"index {index!r}: letters, digits, _ and - after the first letter, 150 at most")
        api = Api(
            "quickwit",
            url,
            f"indexes {index}-*",
            key=("token", "Bearer", token),
            username=username,
            password=password,
            ca_file=ca_file,
        )
        self.place, self._ask, self._index = api.place, api.ask, index

    def read_content(self, hour: CompleteHour) -> str | None:
        attempts = self._list_attempts(hour)
        if not attempts:
            return None
        if len(attempts) > 1 or attempts[0].bucket != _hash_bucket(hour):
            return "of several attempts"
        [attempt] = attempts
        whole = attempt.content != hour.content or self._count(attempt.name) == hour.rows
        return attempt.content if whole else None

    def write(self, hour: CompleteHour) -> None:
        """Write an index of the hour; until the former content is deleted, a search finds rows of both."""
        for attempt in self._list_attempts(hour):
            if attempt.bucket != _hash_bucket(hour):
                raise make_bucket_error(self.place, hour)
            if attempt.content == hour.content:  # it is not whole, else it would not be written again
                self._drop(attempt.name)
        own = f"{self._make_prefix(hour)}-{_hash_bucket(hour)}-{hour.content}-{secrets.token_hex(4)}"
        self._ask("POST", "api/v1/indexes", _build_configuration(own))
        try:
            self._fill(own, hour)
        except S3LakeError:
            with contextlib.suppress(DestinationUnavailableError):  # the next attempt finds it
                self._drop(own)
            raise
        for attempt in self._list_attempts(hour):
            if attempt.name != own:
                self._drop(attempt.name)
        if all(attempt.name != own for attempt in self._list_attempts(hour)):
            raise FencedError(f"{self.place}: another run forwards {hour.topic} {hour.hour} at the same time")

    def _fill(self, name: str, hour: CompleteHour) -> None:
        for body, rows, last in cut_bodies(hour, lambda row: _encode_row(hour, row), INGEST_BYTES):
            answer = self._ask("POST", f"api/v1/{name}/ingest?commit={'force' if last else 'auto'}", body)
            if rejected := answer.get("num_rejected_docs"):
                raise DestinationRefusedError(
                    f"{self.place}: refused {rejected:,} of {format_count(len(rows), 'rows')} of "
                    f"{hour.topic} {hour.hour}"
                )
        deadline = time.monotonic() + SEEN_S  # a poll and not a retry: each answer is the progress of the server
        while (count := self._count(name)) != hour.rows:
            if time.monotonic() > deadline or (count or 0) > hour.rows:
                raise DestinationUnavailableError(
                    f"{self.place}: {count or 0:,} documents are there of {hour.rows:,} rows of {hour.topic} "
                    f"{hour.hour}: the server's log names those it could not index"
                )
            time.sleep(_POLL_S)

    def _count(self, name: str) -> int | None:
        answer = self._ask("GET", f"api/v1/indexes/{name}/describe", allowed=(404,))
        return None if answer is None else int(answer["num_published_docs"])

    def _drop(self, name: str) -> None:
        self._ask("DELETE", f"api/v1/indexes/{name}", allowed=(404,))

    def _list_attempts(self, hour: CompleteHour) -> list[_Attempt]:
        """Return all indexes of an hour: whole ones, failed ones, and ones that another run is writing."""
        slot = self._make_prefix(hour)
        names = [
            index["index_config"]["index_id"]
            for index in self._ask("GET", f"api/v1/indexes?index_id_patterns={slot}-*", allowed=(404,)) or ()
        ]
        # An older server gives all indexes.
        of_hour = [name.rsplit("-", 3) for name in names if name.startswith(f"{slot}-")]
        return [_Attempt("-".join(parts), parts[1], parts[2]) for parts in of_hour]

    def _make_prefix(self, hour: CompleteHour) -> str:
        return f"{self._index}-{hour.hour}-{make_digest(hour.sink, hour.topic)[:16]}"


def _build_configuration(name: str) -> dict[str, Any]:
    mapping = {"mode": "dynamic", "field_mappings": _COLUMNS, "timestamp_field": "hour"}
    return {"version": "0.7", "index_id": name, "doc_mapping": mapping}


def _encode_row(hour: CompleteHour, row: Row) -> bytes:
    names = ("sink", "topic", "bucket", "content")
    document = {name: getattr(hour, name) for name in names}
    document |= {"hour": hour.start, "partition": row.partition, "file": row.file, "row": row.number}
    if row.offset is not None:
        document["offset"] = row.offset
    return msgspec.json.encode({**document, "record": row.line}) + b"\n"


def _hash_bucket(hour: CompleteHour) -> str:
    return make_digest(hour.bucket)[:16]
