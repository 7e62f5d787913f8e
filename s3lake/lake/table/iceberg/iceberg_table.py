"""A table that follows an index: missing commits are added, replaced ones are exchanged."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.config.model.table import HOUR
from s3lake.errors import ReplacedError, S3LakeError, TableConflictError, TableUnavailableError
from s3lake.index.commit.documents import File, collect_files
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.lake.table.iceberg import iceberg_catalog, table_commits
from s3lake.lake.table.iceberg.entries import Footers, find_hour
from s3lake.lake.table.iceberg.iceberg_columns import add_hour_column, list_schemas, widen_schema
from s3lake.lake.table.iceberg.snapshot import SyncResult, commit_snapshot, list_table_files, name_files
from s3lake.lake.table.iceberg.table_commits import TableDifference, find_table_differences
from s3lake.plugins import require_extra
from s3lake.records.layout import partition_elements
from s3lake.records.schema.columns.limits import LANDED_HOUR
from s3lake.text.masking import mask_secrets

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from s3lake.config.model import Sink
    from s3lake.config.model import table as sink_table
    from s3lake.index.store.s3_connection import S3Connection

_SQLALCHEMY_LINK = re.compile(r"\s*\(Background on this error at: [^)]*\)")
_TRIES = 10
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 3.0
_FILES = 2_000  # of one snapshot
_HOURS = 200
_PROPERTIES = {
    "gc.enabled": "false",  # the objects are the index's: neither an expiry of snapshots nor a purge may delete them
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.target-size-bytes": str(2 * 2**20),  # what is merged is written again, in Python
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class LakeTable:
    """The table of one sink and topic.

    Attributes:
        name: namespace and name.
    """

    def __init__(self, sink: Sink, settings: sink_table.Table, index: TopicIndex, connection: S3Connection) -> None:
        self.name = settings.identifier(sink.name, index.topic)
        self._sink, self._settings, self._index, self._connection = sink, settings, index, connection
        self._keys: iceberg_catalog.Keys = {}
        self._opened: Catalog | None = None

    def sync(self, hours: Iterable[str] | None = None, *, by_files: bool = False) -> list[SyncResult]:
        """Bring the table to the state of the index for these hours, or for all. Return the snapshots.

        Args:
            hours: the hours; None for all.
            by_files: compare the table's files, and not its ledger: files that were removed come back.

        Raises:
            TableUnavailableError: the table, its catalog or the store does not answer.
            TableConflictError: the table cannot follow until a user has changed something.
        """
        done, footers = [], Footers(self._sink.bucket, self._make_file_io)
        for todo in _split_hours(self.select_hours(hours)):
            while todo:
                followed, todo = self._sync_and_retry(todo, footers, by_files)
                done += [followed] if followed else []
        return done

    def find_differences(
        self, hours: Iterable[str] | None = None, *, by_files: bool = False
    ) -> Iterator[TableDifference]:
        """Yield the hours in which the table differs from the index.

        Raises:
            TableUnavailableError: the table, its catalog or the store does not answer.
            TableConflictError: the table was rolled back to an earlier snapshot.
        """
        for chunk in _split_hours(self.select_hours(hours)):
            with self._translate_errors():
                table = self.load()
                yield from self._differences(table, chunk, by_files)

    def select_hours(self, hours: Iterable[str] | None = None) -> list[str]:
        """Return the given hours, sorted, or all hours of the index and the table."""
        if hours is not None:
            return sorted(set(hours))
        with self._translate_errors():
            table, head = self.load(), self._index.head()
        noted = table_commits.read_ledger(table.properties) if table else {}
        return sorted({*noted, *(hourly.expand(head[0].hours) if head else ())})

    def _sync_and_retry(
        self, hours: list[str], footers: Footers, by_files: bool
    ) -> tuple[SyncResult | None, list[str]]:
        """Commit one snapshot, again if another writer was faster. Return it and the remaining hours."""
        import tenacity

        with self._translate_errors():
            from pyiceberg.exceptions import (
                CommitFailedException,
                CommitStateUnknownException,
                TableAlreadyExistsError,
                ValidationException,
            )

        # Each try reads table and index again. A file may be deleted because its commit was replaced meanwhile (OSError
        # as all errors of a file system), and its manifest by an erase. Threads of pyiceberg (0.12) share state while
        # they read manifests, and sometimes miss files to delete (ValidationException): nothing is committed then.
        transient = (
            *(CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError, ValidationException),
            *(OSError, ReplacedError),
        )
        backoff = tenacity.wait_exponential(multiplier=_PAUSE_S, max=_LONGEST_PAUSE_S)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(transient),
            wait=lambda state: backoff(state) * random.uniform(0.5, 1),
            stop=tenacity.stop_after_attempt(_TRIES),
            reraise=True,
        )
        with self._translate_errors():
            return retrying(self._try_sync, hours, footers, by_files)

    def _try_sync(self, hours: list[str], footers: Footers, by_files: bool) -> tuple[SyncResult | None, list[str]]:
        # The table is read before the tiles, and the snapshot is committed only if the table did not change since. So
        # an older state of the index never replaces a newer one.
        table = self.load()
        taken, left = _take_hours(self._differences(table, hours, by_files))
        if table is None and _list_data_files(taken):
            table = self._create(taken, footers)
        if table is None or not taken:
            return None, left
        notes = {table_commits.INDEX: self._owner}
        return commit_snapshot(table, taken, footers, self._index, notes=notes, by_files=by_files), left

    def _differences(self, table: Table | None, hours: Sequence[str], by_files: bool) -> list[TableDifference]:
        noted = table_commits.read_ledger(table.properties) if table else {}
        if table is None or not by_files:
            if table is not None:
                _refuse_rolled_back(table)
            return find_table_differences(self._index, noted, hours)
        existing = list_table_files(table, hours)

        def differs(difference: TableDifference) -> bool:
            names = name_files(self._sink.bucket, difference.listed).keys()
            return bool(difference.removed or difference.added) or names != existing[difference.hour].keys()

        return list(filter(differs, find_table_differences(self._index, noted, hours, also_equal=True)))

    def check(self) -> list[str]:
        """Ask the catalog for the table, and write where its files go. Return notices; nothing is left behind.

        Raises:
            TableConflictError: the table belongs to another index, or has rows of another program.
            TableUnavailableError: the catalog, or the place of the table's files, refuses or does not answer.
        """
        with self._translate_errors():
            table = self.load()
            location = self._settings.location if table is None else table.location()
            if location:
                probe = f"{location.rstrip('/')}/.probe/{uuid.uuid4()}"
                with self._make_file_io().new_output(probe).create() as stream:
                    stream.write(b"x")
                self._make_file_io().delete(probe)
            if table is None:
                self.catalog.namespace_exists(self.name.rpartition(".")[0])
                return [f"table {self.name} of sink {self._sink.name} does not exist yet: the first landing creates it"]
        return []

    def load(self) -> Table | None:
        """Load the table as it is now. Return None if it does not exist.

        Raises:
            TableConflictError: it belongs to another index, or has rows of another program.
        """
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = self.catalog.load_table(self.name)
        except NoSuchTableError:
            return None
        owner = table.properties.get(table_commits.INDEX)
        if owner != self._owner and (owner or table.current_snapshot()):
            raise TableConflictError(
                f"table {self.name} {f'follows the index at {owner}' if owner else 'has rows of another program'}: let "
                f"table.name of sink {self._sink.name} be another"
            )
        find_hour(table.spec(), table.schema())
        return table

    def _create(self, taken: Sequence[TableDifference], footers: Footers) -> Table:
        from pyiceberg.catalog import Catalog

        files = _list_data_files(taken)
        columns = [_find_column(self._sink, text) for text in self._settings.partition if text != HOUR]
        first, *others = list_schemas(footers.read(files).values())
        self.catalog.create_namespace_if_not_exists(Catalog.namespace_from(self.name))
        creation = self.catalog.create_table_transaction(
            self.name,
            add_hour_column(first),
            location=self._settings.location,
            properties={**_PROPERTIES, table_commits.INDEX: self._owner},
        )
        widen_schema(creation, others)
        with creation.update_spec() as spec:
            for column in (LANDED_HOUR, *columns):
                spec.add_identity(column)
        return creation.commit_transaction()

    @property
    def _owner(self) -> str:
        return f"s3://{self._sink.bucket}/{self._index.root}"

    @property
    def catalog(self) -> Catalog:
        """The catalog; opened again with new keys, because keys of a role expire while a run continues."""
        keys = iceberg_catalog.find_catalog_keys(self._connection)
        if self._opened is None or keys != self._keys:
            self._keys = keys
            self._opened = iceberg_catalog.open_catalog(
                self._settings.catalog, self._sink.bucket, self._connection, keys
            )
        return self._opened

    def _make_file_io(self) -> FileIO:
        return iceberg_catalog.make_file_io(
            self._settings.catalog, self._connection, iceberg_catalog.find_catalog_keys(self._connection)
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of pyiceberg, of a catalog's client and of file systems as one error without secrets.

        Raise a ConfigurationError if pyiceberg is not installed.
        """
        try:
            with require_extra("iceberg", "an Iceberg table"):
                yield
        except S3LakeError:
            raise
        except Exception as error:
            hidden = iceberg_catalog.find_secrets(self._settings.catalog, self._connection, self._keys)
            text = _SQLALCHEMY_LINK.sub("", str(error))
            what = mask_secrets(f"{type(error).__name__}: {text}", hidden)
            raise TableUnavailableError(
                f"table {self.name} of sink {self._sink.name}: {what}. What is landed stays landed; the next run of "
                "the hour or `s3lake table sync` brings the table to it"
            ) from None


def _find_column(sink: Sink, text: str) -> str:
    """Return the column of a field of the value."""
    path = partition_elements.parse_element(text)[0]
    return f"value.{path}" if sink.envelope is not None and sink.envelope.style == "record" else path


def _split_hours(hours: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(hours)
    while chunk := list(islice(remaining, _HOURS)):
        yield chunk


def _list_data_files(taken: Iterable[TableDifference]) -> list[File]:
    return collect_files(chain.from_iterable(hour.listed for hour in taken), "data")


def _take_hours(behind: Sequence[TableDifference]) -> tuple[list[TableDifference], list[str]]:
    """Return the hours that one snapshot takes, and the remaining ones."""
    taken: list[TableDifference] = []
    files = 0
    for position, hour in enumerate(behind):
        files += len(collect_files(hour.added, "data"))
        if taken and files > _FILES:
            return taken, [other.hour for other in behind[position:]]
        taken.append(hour)
    return taken, []


def _refuse_rolled_back(table: Table) -> None:
    """Refuse a table whose ledger is newer than its files.

    Raises:
        TableConflictError: the last snapshot of s3lake exists, and is not an ancestor of the current one.
    """
    from pyiceberg.table.snapshots import ancestors_of

    last = int(table.properties.get(table_commits.SNAPSHOT, -1))
    if table.snapshot_by_id(last) is None:
        return  # there is none yet, or it expired, and then later ones are based on it
    if all(one.snapshot_id != last for one in ancestors_of(table.current_snapshot(), table.metadata)):
        raise TableConflictError(
            f"table {'.'.join(table.name())} was rolled back to a snapshot before {last}, whose commits are "
            "missing now: `s3lake table sync --by-files` brings them back"
        )
