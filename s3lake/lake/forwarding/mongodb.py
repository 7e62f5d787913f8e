"""A collection of MongoDB: documents whose ids a repeat has again, and a ledger.

Transactions are not used: a single server has none, and in a replica set they end after a minute.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from decimal import Decimal, Inexact, InvalidOperation, Overflow
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from s3lake import hours
from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.lake.forwarding.ledger import Entry, LedgerDestination, build_fields, make_entry_id, make_row_id
from s3lake.plugins import require_extra
from s3lake.text import masking
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from pymongo.collection import Collection

    from s3lake.lake.forwarding.complete_hour import CompleteHour, Row

    _Documents = Collection[dict[str, Any]]

ROWS_AT_ONCE = 1000
"""How many documents one request has."""
CONNECT_MS = 10_000
"""Within how many milliseconds a server is found."""
_ANSWER_MS = 120_000
_SERVER = r"([\w.-]+|\[[\da-fA-F:]+\])(:\d{1,5})?"
_SLOT = ("sink", "topic", "hour")
_PASSING = {6, 7, 50, 89, 91, 112, 189, 262, 9001, 10107, 11000, 11600, 11602, 13435, 13436}
"""Error codes that are transient: a server starts, stops or steps down, or two writers wrote the same row."""


class MongoDB(LedgerDestination):
    """A destination of `forward`: a collection of MongoDB, and its ledger `<collection>_hours`.

    Nothing is asked of the server before an hour is forwarded.

    Args:
        uri: the servers' address: `mongodb://db:27017/?replicaSet=rs0`. Its user is never printed.
        database: the database of the collection.
        collection: its name. It is created if it does not exist.
        record: what a record becomes: a `document`, or a `text` of its JSON.
        username: the user who logs in, if `uri` has none.
        password: the user's password; never printed.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    def __init__(
        self,
        uri: str,
        *,
        database: str = "lake",
        collection: str = "events",
        record: str = "document",
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        parts = urlsplit(uri)
        user, _, servers = parts.netloc.rpartition("@")
        if parts.scheme not in ("mongodb", "mongodb+srv") or not re.fullmatch(f"{_SERVER}(,{_SERVER})*", servers):
            raise ConfigurationError("uri of mongodb: write mongodb://HOST:PORT or mongodb+srv://HOST")
        if not re.fullmatch(r"[\w-]{1,63}", database, re.ASCII):
            raise ConfigurationError(f"database {database!r}: write letters, digits, _ and -, 63 of them at most")
        if not re.fullmatch(r"(?!system\.)[A-Za-z_][\w.-]{0,113}", collection, re.ASCII):
            raise ConfigurationError(
                f"collection {collection!r}: write letters, digits and _ . - after the first, 114 of them at most"
            )
        if record not in ("document", "text"):
            raise ConfigurationError(f"record {record!r}: it can be document, text")
        if (username is None) != (password is None):
            raise ConfigurationError("mongodb: give username and password, or neither")
        self.place = f"mongodb {servers}/{database} collection {collection}"
        self._uri, self._database, self._record = uri, database, record
        self._collection, self._ledger = collection, f"{collection}_hours"
        self._login: dict[str, Any] = {"username": username, "password": password} if username else {}
        self._secrets = [password or "", user.partition(":")[2], unquote(user.partition(":")[2])]

    def create(self) -> None:
        """Create the index of rows: MongoDB creates collections by itself."""
        with self._open_collection(self._collection) as rows:
            rows.create_index([(name, 1) for name in _SLOT])

    def read_entry(self, hour: CompleteHour) -> Entry | None:
        with self._open_collection(self._ledger) as ledger:
            return _to_entry(ledger.find_one({"_id": make_entry_id(hour)}))

    def write_entry(self, hour: CompleteHour, *, complete: bool, after: Entry | None) -> Entry | None:
        from pymongo.errors import DuplicateKeyError

        document = _build_entry(hour, complete=complete)
        with self._open_collection(self._ledger) as ledger:
            if after is None:
                try:
                    ledger.insert_one(document)
                except DuplicateKeyError:
                    return None
                return _to_entry(document)
            replaced = ledger.replace_one({"_id": document["_id"], "claim": after.version}, document)
            return _to_entry(document) if replaced.matched_count else None

    def mark_incomplete(self, hour: CompleteHour) -> None:
        document = _build_entry(hour, complete=False)
        with self._open_collection(self._ledger) as ledger:
            ledger.replace_one({"_id": document["_id"]}, document, upsert=True)

    def write_rows(self, hour: CompleteHour) -> None:
        from pymongo import ReplaceOne
        from pymongo.errors import BulkWriteError

        slot = _make_slot(hour)
        rows = chain.from_iterable(hour.batches())
        with self._open_collection(self._collection) as collection:
            while chunk := list(islice(rows, ROWS_AT_ONCE)):
                documents = [self._build_document(hour, row, slot) for row in chunk]
                writes = [ReplaceOne({"_id": document["_id"]}, document, upsert=True) for document in documents]
                try:
                    collection.bulk_write(writes, ordered=False)
                except BulkWriteError as error:
                    raise self._describe_unwritten(chunk, error.details.get("writeErrors", ())) from None

    def delete_other_rows(self, hour: CompleteHour) -> None:
        with self._open_collection(self._collection) as rows:
            rows.delete_many({**_make_slot(hour), "content": {"$ne": hour.content}})

    def _build_document(self, hour: CompleteHour, row: Row, slot: dict[str, Any]) -> dict[str, Any]:
        return {
            "_id": make_row_id(hour, row),
            **slot,
            "content": hour.content,
            "partition": row.partition,
            "offset": row.offset,
            "file": row.file,
            "row": row.number,
            "record": row.document.decode() if self._record == "text" else self._decode_record(row),
        }

    def _decode_record(self, row: Row) -> Any:
        from bson.errors import BSONError

        try:
            return decode_document(row.document)
        # Its text, which quotes the value, would be in a message.
        except (ValueError, ArithmeticError, RecursionError, BSONError) as error:
            raise DestinationRefusedError(
                f"{self.place}: row {row.number} of {row.file} has what a document cannot hold "
                f"({type(error).__name__}), as U+0000 in the name of a field: set record='text'"
            ) from None

    @contextmanager
    def _open_collection(self, name: str) -> Iterator[_Documents]:
        """Open a collection on the primary with majority reads and writes: nothing of it can be rolled back."""
        with require_extra("mongodb", "a forward to mongodb"):
            import pymongo
            from pymongo.read_concern import ReadConcern
        from pymongo import errors

        waits: dict[str, Any] = {"serverSelectionTimeoutMS": CONNECT_MS, "connectTimeoutMS": CONNECT_MS}
        try:
            with pymongo.MongoClient[dict[str, Any]](
                self._uri, **self._login, **waits, socketTimeoutMS=_ANSWER_MS, tz_aware=True, appname="s3lake"
            ) as client:
                yield client[self._database].get_collection(
                    name,
                    read_preference=pymongo.ReadPreference.PRIMARY,
                    write_concern=pymongo.WriteConcern("majority"),
                    read_concern=ReadConcern("majority"),
                )
        except (errors.ConnectionFailure, errors.WriteConcernError, errors.ExecutionTimeout) as error:
            reason = str(error) if isinstance(error, errors.ConnectionFailure) else type(error).__name__
            raise DestinationUnavailableError(f"{self.place}: {masking.mask_secrets(reason, self._secrets)}") from None
        except errors.OperationFailure as error:
            # Its text may quote a document.
            flaw = f"{self.place}: {(error.details or {}).get('codeName', type(error).__name__)} ({error.code})"
            wrong = DestinationUnavailableError if error.code in _PASSING else DestinationRefusedError
            raise wrong(flaw) from None
        except errors.DocumentTooLarge:
            raise DestinationRefusedError(f"{self.place}: a record is larger than a document can be, 16 MB") from None
        except (errors.ConfigurationError, errors.InvalidURI, errors.InvalidName) as error:
            raise ConfigurationError(f"{self.place}: {masking.mask_secrets(str(error), self._secrets)}") from None

    def _describe_unwritten(self, chunk: list[Row], flaws: Sequence[dict[str, Any]]) -> Exception:
        if not flaws or any(flaw["code"] in _PASSING for flaw in flaws):
            return DestinationUnavailableError(f"{self.place}: not all rows were written for certain")
        row = chunk[flaws[0]["index"]]
        return DestinationRefusedError(
            f"{self.place}: refused {len(flaws):,} of {format_count(len(chunk), 'rows')}, the first, "
            f"row {row.number} of {row.file}, because of code {flaws[0]['code']}: set record='text' where the server "
            "has no such documents"
        )


def decode_document(document: bytes) -> Any:
    """Decode JSON to values of MongoDB without losing a digit.

    Raises:
        ValueError, ArithmeticError, RecursionError, BSONError: MongoDB has no such value.
    """
    import bson

    value = _decode(document)
    bson.encode({"record": value})  # raises OverflowError for an integer of more than 64 bits
    return value


def _parse_number(text: str) -> Any:
    """Return a double if it has all digits of the number, else MongoDB's decimal of 34 digits."""
    number = float(text)
    return number if Decimal(repr(number)) == Decimal(text) else _parse_decimal(text)


def _parse_decimal(text: str) -> Any:
    from bson.decimal128 import Decimal128, create_decimal128_context

    exact = create_decimal128_context()
    for signal in (Inexact, InvalidOperation, Overflow):
        exact.traps[signal] = True
    return Decimal128(exact.create_decimal(text))


_decode = msgspec.json.Decoder(float_hook=_parse_number).decode


def _make_slot(hour: CompleteHour) -> dict[str, Any]:
    return {"sink": hour.sink, "topic": hour.topic, "hour": hours.parse_hour(hour.hour)}


def _build_entry(hour: CompleteHour, *, complete: bool) -> dict[str, Any]:
    return {
        "_id": make_entry_id(hour),
        **build_fields(hour, complete=complete),
        **_make_slot(hour),
        "claim": secrets.token_hex(16),
        "forwarded_at": datetime.now(timezone.utc),
    }


def _to_entry(document: dict[str, Any] | None) -> Entry | None:
    if document is None:
        return None
    return Entry(document["bucket"], document["content"], document["complete"], document["claim"])
