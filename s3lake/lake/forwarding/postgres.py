"""A table of PostgreSQL: the rows of an hour and its line in the ledger are one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.lake.forwarding.ledger import make_bucket_error
from s3lake.plugins import require_extra
from s3lake.text import masking

if TYPE_CHECKING:
    from psycopg import Connection, Error

    from s3lake.lake.forwarding.complete_hour import CompleteHour

_TYPES = ("jsonb", "json", "text")
_CONNECT_S = 10
_UNHOLDABLE = ("22P02", "22P05")  # not JSON for PostgreSQL, and characters that it cannot store

_MAKE = """
CREATE TABLE IF NOT EXISTS {ledger} (
    sink text, topic text, hour timestamptz, bucket text NOT NULL, content text NOT NULL, commits text[] NOT NULL,
    offsets jsonb NOT NULL, rows bigint NOT NULL, forwarded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sink, topic, hour));
CREATE TABLE IF NOT EXISTS {table} (
    sink text, topic text, hour timestamptz, partition integer NOT NULL, "offset" bigint, file text, row bigint,
    record {type}, PRIMARY KEY (sink, topic, hour, file, row))
"""
# A second writer waits here until the first has committed or has ended.
_ENTER = """
INSERT INTO {ledger} AS was (sink, topic, hour, bucket, content, commits, offsets, rows)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (sink, topic, hour) DO UPDATE SET content = excluded.content, commits = excluded.commits,
    offsets = excluded.offsets, rows = excluded.rows, forwarded_at = excluded.forwarded_at
WHERE was.bucket = excluded.bucket
"""
_CONTENT = "SELECT content FROM {ledger} WHERE (sink, topic, hour, bucket) = (%s, %s, %s, %s)"
_CLEAR = "DELETE FROM {table} WHERE (sink, topic, hour) = (%s, %s, %s)"
_COPY = 'COPY {table} (sink, topic, hour, partition, "offset", file, row, record) FROM STDIN'


class Postgres:
    """A destination of `forward`: a table of PostgreSQL, and its ledger `<table>_hours`.

    Nothing is asked of the server before an hour is forwarded.

    Args:
        conninfo: the connection string of libpq: `host=db dbname=lake user=forward`, or an address; libpq reads the
            rest, such as the password, from `PGPASSWORD`, its password file or its service file. Never printed.
        table: its name, with or without a schema. It is created if it does not exist.
        record: the type of its column `record`: jsonb, json, or text.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    def __init__(self, conninfo: str = "", *, table: str = "events", record: str = "jsonb") -> None:
        # PostgreSQL cuts names after 63 characters: the ledger's would be the table's own.
        if not re.fullmatch(r"([A-Za-z_]\w{0,62}\.)?[A-Za-z_]\w{0,56}", table, re.ASCII):
            raise ConfigurationError(
                f"table {table!r}: write NAME or SCHEMA.NAME, of letters, digits and underscores, 57 of them at most"
            )
        if record not in _TYPES:
            raise ConfigurationError(f"record {record!r}: the column can be {', '.join(_TYPES)}")
        self._conninfo, self._table, self._record = conninfo, table, record

    @property
    def place(self) -> str:
        """Server, database and table."""
        parameters = self._parse_conninfo()
        host, port, name = (parameters.get(part, "") for part in ("host", "port", "dbname"))
        return f"postgres {host or 'of the environment'}{port and ':'}{port}{name and '/'}{name} table {self._table}"

    def read_content(self, hour: CompleteHour) -> str | None:
        with self._connect() as connection:
            if not self._has_tables(connection):
                return None
            keys = (*_make_keys(hour), hour.bucket)
            entry = connection.execute(self._fill_in(_CONTENT), keys).fetchone()
            return None if entry is None else str(entry[0])

    def write(self, hour: CompleteHour) -> None:
        from psycopg.types.json import Jsonb

        keys = _make_keys(hour)
        entry = (hour.bucket, hour.content, list(hour.commits), Jsonb(hour.offsets), hour.rows)
        with self._connect() as connection:
            self._create_tables(connection)
            if connection.execute(self._fill_in(_ENTER), (*keys, *entry)).rowcount == 0:
                raise make_bucket_error(self.place, hour)
            connection.execute(self._fill_in(_CLEAR), keys)
            with connection.cursor().copy(self._fill_in(_COPY)) as copy:
                for batch in hour.batches():
                    for row in batch:
                        copy.write_row((*keys, row.partition, row.offset, row.file, row.number, row.document.decode()))

    def _create_tables(self, connection: Connection[Any]) -> None:
        """Create the tables if they do not exist. A user without the right to create can use existing ones."""
        if not self._has_tables(connection):
            # Two that make the same table at once would fail on the catalogue's own keys.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"s3lake {self._table}",))
            connection.execute(self._fill_in(_MAKE))

    def _has_tables(self, connection: Connection[Any]) -> bool:
        asked = "SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL"
        there = connection.execute(asked, (self._table, f"{self._table}_hours")).fetchone()
        return bool(there and there[0])

    def _fill_in(self, statement: str) -> Any:
        from psycopg.sql import SQL, Identifier

        def quote(name: str) -> Identifier:
            # Folded as PostgreSQL folds what is not quoted, which to_regclass does too.
            return Identifier(*name.lower().split("."))

        return SQL(statement).format(
            table=quote(self._table),
            ledger=quote(f"{self._table}_hours"),
            type=SQL(self._record),
        )

    @contextmanager
    def _connect(self) -> Iterator[Connection[Any]]:
        """Open a connection. Its transaction is committed at the end, and rolled back by an error."""
        with require_extra("postgres", "a forward to postgres"):
            import psycopg
        settings = {"connect_timeout": _CONNECT_S, "application_name": "s3lake", **self._parse_conninfo()}
        try:
            with psycopg.connect(**settings) as connection:
                yield connection
        # Also a deadlock, and a server that is shut down.
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise DestinationUnavailableError(f"{self.place}: {self._mask(error)}") from None
        except psycopg.Error as error:
            raise DestinationRefusedError(f"{self.place}: {self._describe_refusal(error)}") from None

    def _parse_conninfo(self) -> dict[str, Any]:
        with require_extra("postgres", "a forward to postgres"):
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict
        try:
            return dict(conninfo_to_dict(self._conninfo))
        except ProgrammingError:  # its text would quote a part
            raise ConfigurationError(
                "conninfo of postgres cannot be read: write host=... dbname=... user=..., or postgresql://HOST/DATABASE"
            ) from None

    def _describe_refusal(self, error: Error) -> str:
        """Return the server's message and line, without what it quotes of the record."""
        where = re.search(r"^COPY \w+, line \d+", error.diag.context or "", re.MULTILINE)
        text = error.diag.message_primary or self._mask(error)
        if error.sqlstate in _UNHOLDABLE:
            text += (
                f". A record has what {self._record} cannot hold, as U+0000 or half a character in an escape: make the "
                "column json, and set record='json'"
            )
        return f"{text} ({where[0]})" if where else text

    def _mask(self, error: Exception) -> str:
        secrets = [str(self._parse_conninfo().get("password") or ""), self._conninfo]
        return masking.mask_secrets(str(error).strip(), secrets)


def _make_keys(hour: CompleteHour) -> tuple[str, str, str]:
    return hour.sink, hour.topic, hour.start
