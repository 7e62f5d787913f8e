"""An index of Elasticsearch, by its HTTP API: documents whose ids a repeat has again, and a ledger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.lake.forwarding.http import Api, cut_bodies
from s3lake.lake.forwarding.ledger import Entry, LedgerDestination, build_fields, make_entry_id, make_row_id
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.lake.forwarding.complete_hour import CompleteHour, Row

BULK_BYTES = 4 << 20
"""How many bytes one bulk request has, about."""
_KEYWORD, _LONG = {"type": "keyword"}, {"type": "long"}
_COLUMNS = {
    **dict.fromkeys(("sink", "topic", "content", "file"), _KEYWORD),
    **dict.fromkeys(("partition", "offset", "row"), _LONG),
    "hour": {"type": "date"},
}


class Elasticsearch(LedgerDestination):
    """A destination of `forward`: an index of Elasticsearch, and its ledger `<index>-hours`.

    Nothing is asked of the server before an hour is forwarded.

    Args:
        url: the server's address, without a user.
        index: its name. It is created if it does not exist.
        record: how the records are mapped: `object`, by their fields, or `flattened`, as one field.
        api_key: encoded, as Elasticsearch gives it; never printed.
        username: the user who logs in with the password, instead of a key; never printed.
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

    def read_entry(self, hour: CompleteHour) -> Entry | None:
        answer = self._ask("GET", self._make_entry_path(hour), allowed=(404,))
        return None if answer is None else _to_entry(answer["_source"], answer)

    def write_entry(self, hour: CompleteHour, *, complete: bool, after: Entry | None) -> Entry | None:
        return self._put_entry(hour, "op_type=create" if after is None else after.version, complete=complete)

    def mark_incomplete(self, hour: CompleteHour) -> None:
        self._put_entry(hour, "", complete=False)

    def write_rows(self, hour: CompleteHour) -> None:
        of_hour = {"sink": hour.sink, "topic": hour.topic, "hour": hour.start, "content": hour.content}

        def encode_row(row: Row) -> bytes:
            numbers = {"partition": row.partition, "offset": row.offset, "file": row.file, "row": row.number}
            source = {**of_hour, **numbers, "record": row.line}
            action = {"index": {"_id": make_row_id(hour, row)}}
            return msgspec.json.encode(action) + b"\n" + msgspec.json.encode(source) + b"\n"

        for body, rows, _ in cut_bodies(hour, encode_row, BULK_BYTES):
            self._send_bulk(body, rows)
        # A search sees nothing that came after the last refresh.
        self._ask("POST", f"{self._index}/_refresh")

    def delete_other_rows(self, hour: CompleteHour) -> None:
        deleted = (
            self._ask("POST", f"{self._index}/_delete_by_query?refresh=true", {"query": _query_others(hour)}) or {}
        )
        if deleted.get("failures") or deleted.get("timed_out"):
            raise DestinationUnavailableError(f"{self.place}: not all rows of a former content could be deleted")

    def create(self) -> None:
        record = {"type": self._record, **({"dynamic": True} if self._record == "object" else {})}
        mappings = {"dynamic": False, "properties": {**_COLUMNS, "record": record}}
        for index, mapping in ((self._index, mappings), (f"{self._index}-hours", {"dynamic": False})):
            if self._read_mapping(index) is None:
                created = self._ask("PUT", index, {"mappings": mapping}, allowed=(400,))
                if created is None and self._read_mapping(index) is None:  # else another process has created it
                    raise DestinationRefusedError(
                        f"{self.place}: the server refuses to create index {index}: check its name, its mapping and "
                        "the server's limits"
                    )
        properties = self._read_mapping(self._index) or {}
        # An index that Elasticsearch has created by itself splits them into words: old contents would not be found.
        wrong = [name for name, column in _COLUMNS.items() if properties.get(name, {}).get("type") != column["type"]]
        if wrong:
            raise DestinationRefusedError(
                f"{self.place}: its mapping has another type: {wrong[0]} has to be {_COLUMNS[wrong[0]]['type']}. Name "
                "an index that does not exist yet"
            )

    def _read_mapping(self, index: str) -> dict[str, Any] | None:
        answer = self._ask("GET", f"{index}/_mapping", allowed=(404,))
        return next(iter(answer.values()))["mappings"].get("properties", {}) if answer else None

    def _put_entry(self, hour: CompleteHour, condition: str, *, complete: bool) -> Entry | None:
        entry = build_fields(hour, complete=complete)
        answer = self._ask("PUT", f"{self._make_entry_path(hour)}?{condition}", entry, allowed=(409,))
        return None if answer is None else _to_entry(entry, answer)

    def _make_entry_path(self, hour: CompleteHour) -> str:
        return f"{self._index}-hours/_doc/{make_entry_id(hour)}"

    def _send_bulk(self, body: bytes, chunk: list[Row]) -> None:
        answer = self._ask("POST", f"{self._index}/_bulk", body) or {}
        outcomes = [item["index"] for item in answer.get("items", ())]
        if len(outcomes) != len(chunk):
            answers, rows = format_count(len(outcomes), "answers"), format_count(len(chunk), "rows")
            raise DestinationRefusedError(f"{self.place}: {answers} to a bulk of {rows}")
        failed = [(row, item) for row, item in zip(chunk, outcomes, strict=True) if item["status"] >= 300]
        if not failed:
            return
        row, item = failed[0]
        flaw = item.get("error", {}).get("type")  # its reason would quote the record
        message = (
            f"{self.place}: refused {len(failed):,} of {format_count(len(chunk), 'rows')}, the first, "
            f"row {row.number} of {row.file}, because of {flaw} ({item['status']})"
        )
        if any(item["status"] == 429 or item["status"] >= 500 for _, item in failed):
            raise DestinationUnavailableError(message)
        raise DestinationRefusedError(message)


def _to_entry(source: dict[str, Any], place: dict[str, Any]) -> Entry:
    version = f"if_seq_no={place['_seq_no']}&if_primary_term={place['_primary_term']}"
    return Entry(source["bucket"], source["content"], source["complete"], version)


def _query_others(hour: CompleteHour) -> dict[str, Any]:
    """Return the query for rows of other contents of an hour."""
    slot = [{"term": {"sink": hour.sink}}, {"term": {"topic": hour.topic}}]
    moment = {"range": {"hour": {"gte": hour.start, "lte": hour.start}}}
    return {"bool": {"filter": [*slot, moment], "must_not": [{"term": {"content": hour.content}}]}}
