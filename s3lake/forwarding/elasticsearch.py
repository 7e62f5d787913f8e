"""An index of Elasticsearch, by its HTTP API: documents whose ids a repeat has again, and a ledger beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.forwarding import claims
from s3lake.forwarding.api import Api
from s3lake.forwarding.claims import Entry

if TYPE_CHECKING:
    from s3lake.forwarding.documents import Row
    from s3lake.forwarding.hour import Hour

_BULK_BYTES = 4 << 20
_KEYWORD, _LONG = {"type": "keyword"}, {"type": "long"}
_COLUMNS = {
    **dict.fromkeys(("sink", "topic", "content", "file"), _KEYWORD),
    **dict.fromkeys(("partition", "offset", "row"), _LONG),
    "hour": {"type": "date"},
}


class Elasticsearch:
    """A destination of `forward`: an index of Elasticsearch, and its ledger `<index>-hours`.

    Nothing is asked of the server before an hour is forwarded.

    Args:
        url: of the server, without a user.
        index: its name. It is made where it is not there.
        record: how the records are mapped: `object`, by their fields, or `flattened`, as one field.
        api_key: as Elasticsearch gives it out, encoded; or
        username: with the password. Neither is ever printed.
        password: of the user.
        ca_file: who the server's certificate is signed by, where the machine does not know.

    Raises:
        ConfigurationError: one of these cannot be.
    """

    def __init__(
        self,
        url: str,
        *,
        index: str = "events",
        record: str = "object",
        api_key: str | None = None,
        username: str | None = None,
        password: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", index):
            raise ConfigurationError(f"index {index!r}: lower case letters, digits, and . _ - after the first")
        if record not in ("object", "flattened"):
            raise ConfigurationError(f"record {record!r}: records can be mapped as object, flattened")
        api = Api(
            "elasticsearch",
            url,
            f"index {index}",
            key=("api_key", "ApiKey", api_key),
            username=username,
            password=password,
            ca_file=ca_file,
        )
        self.place, self._ask = api.place, api.ask
        self._index, self._record = index, record

    def content(self, hour: Hour) -> str | None:
        """See `Destination.content`."""
        return claims.content(self, hour)

    def write(self, hour: Hour) -> None:
        """See `Destination.write`; there are no transactions, so an hour that is under way shows some of its rows."""
        claims.write(self, hour)

    def entry(self, hour: Hour) -> Entry | None:
        """See `Claimable.entry`."""
        answer = self._ask("GET", self._ledger(hour), allowed=(404,))
        return None if answer is None else _entry(answer["_source"], answer)

    def enter(self, hour: Hour, *, whole: bool, after: Entry | None) -> Entry | None:
        """See `Claimable.enter`."""
        return self._enter(hour, "op_type=create" if after is None else after.version, whole=whole)

    def disown(self, hour: Hour) -> None:
        """See `Claimable.disown`."""
        self._enter(hour, "", whole=False)

    def put(self, hour: Hour) -> None:
        """See `Claimable.put`."""
        for body, chunk in self._chunks(hour):
            self._bulk(body, chunk)
        # A search sees nothing that came after the last refresh.
        self._ask("POST", f"{self._index}/_refresh")

    def clear(self, hour: Hour) -> None:
        """See `Claimable.clear`."""
        deleted = self._ask("POST", f"{self._index}/_delete_by_query?refresh=true", {"query": _others(hour)}) or {}
        if deleted.get("failures") or deleted.get("timed_out"):
            raise DestinationUnavailableError(f"{self.place}: not all rows of a former content could be deleted")

    def make(self) -> None:
        """See `Claimable.make`."""
        record = {"type": self._record, **({"dynamic": True} if self._record == "object" else {})}
        mappings = {"dynamic": False, "properties": {**_COLUMNS, "record": record}}
        for index, mapping in ((self._index, mappings), (f"{self._index}-hours", {"dynamic": False})):
            if self._mapping(index) is None:
                made = self._ask("PUT", index, {"mappings": mapping}, allowed=(400,))
                if made is None and self._mapping(index) is None:  # else another process has made it meanwhile
                    raise DestinationRefusedError(
                        f"{self.place}: the server refuses to create index {index}: check its name, its mapping and "
                        "the server's limits"
                    )
        properties = self._mapping(self._index) or {}
        # Of an index that came into being by itself they are texts, cut into words: those of other contents stayed.
        wrong = [name for name, column in _COLUMNS.items() if properties.get(name, {}).get("type") != column["type"]]
        if wrong:
            raise DestinationRefusedError(
                f"{self.place}: it is not mapped as ours is, {wrong[0]} is to be {_COLUMNS[wrong[0]]['type']}: name an "
                "index that is not there yet"
            )

    def _mapping(self, index: str) -> dict[str, Any] | None:
        answer = self._ask("GET", f"{index}/_mapping", allowed=(404,))
        return next(iter(answer.values()))["mappings"].get("properties", {}) if answer else None

    def _enter(self, hour: Hour, condition: str, *, whole: bool) -> Entry | None:
        entry = claims.fields(hour, whole=whole)
        answer = self._ask("PUT", f"{self._ledger(hour)}?{condition}", entry, allowed=(409,))
        return None if answer is None else _entry(entry, answer)

    def _ledger(self, hour: Hour) -> str:
        return f"{self._index}-hours/_doc/{claims.entry_name(hour)}"

    def _chunks(self, hour: Hour) -> Iterator[tuple[bytes, list[Row]]]:
        body = bytearray()
        chunk: list[Row] = []
        of_hour = {"sink": hour.sink, "topic": hour.topic, "hour": _moment(hour), "content": hour.content}
        for batch in hour.batches():
            for row in batch:
                source = {
                    **of_hour,
                    "partition": row.partition,
                    "offset": row.offset,
                    "file": row.file,
                    "row": row.number,
                    "record": row.line,
                }
                action = {"index": {"_id": claims.row_name(hour, row)}}
                body += msgspec.json.encode(action) + b"\n" + msgspec.json.encode(source) + b"\n"
                chunk.append(row)
                if len(body) >= _BULK_BYTES:
                    yield bytes(body), chunk
                    body, chunk = bytearray(), []
        if chunk:
            yield bytes(body), chunk

    def _bulk(self, body: bytes, chunk: list[Row]) -> None:
        answer = self._ask("POST", f"{self._index}/_bulk", body) or {}
        outcomes = [item["index"] for item in answer.get("items", ())]
        if len(outcomes) != len(chunk):
            raise DestinationRefusedError(f"{self.place}: {len(outcomes)} answers to a bulk of {len(chunk)} rows")
        failed = [(row, item) for row, item in zip(chunk, outcomes, strict=True) if item["status"] >= 300]
        if not failed:
            return
        row, item = failed[0]
        flaw = item.get("error", {}).get("type")  # its reason would quote the record
        message = (
            f"{self.place}: {len(failed)} of {len(chunk)} rows were not taken, the first, row {row.number} of "
            f"{row.file}, because of {flaw} ({item['status']})"
        )
        if any(item["status"] == 429 or item["status"] >= 500 for _, item in failed):
            raise DestinationUnavailableError(message)
        raise DestinationRefusedError(message)


def _entry(source: dict[str, Any], place: dict[str, Any]) -> Entry:
    version = f"if_seq_no={place['_seq_no']}&if_primary_term={place['_primary_term']}"
    return Entry(source["bucket"], source["content"], source["whole"], version)


def _others(hour: Hour) -> dict[str, Any]:
    """The rows of an hour that are of another content."""
    slot = [{"term": {"sink": hour.sink}}, {"term": {"topic": hour.topic}}]
    moment = {"range": {"hour": {"gte": _moment(hour), "lte": _moment(hour)}}}
    return {"bool": {"filter": [*slot, moment], "must_not": [{"term": {"content": hour.content}}]}}


def _moment(hour: Hour) -> str:
    return f"{hour.hour}:00:00Z"
