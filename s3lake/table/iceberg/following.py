"""One table and the index that it follows: what is missing is added, what was replaced is exchanged."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from s3lake import hours as hourly
from s3lake.commit.documents import File, files_of
from s3lake.commit.index import TopicIndex
from s3lake.errors import ReplacedError, S3LakeError, TableConflictError, TableUnavailableError
from s3lake.layout import partitioners
from s3lake.sink.table import HOUR
from s3lake.table.iceberg import catalog, ledger
from s3lake.table.iceberg.columns import LANDED_HOUR, grow, of_files, with_hour
from s3lake.table.iceberg.entries import Footers, find_hour
from s3lake.table.iceberg.ledger import Difference, find_differences
from s3lake.table.iceberg.snapshot import Followed, list_files, name_files, snapshot
from s3lake.text.masking import mask_secrets

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from s3lake.sink import Sink
    from s3lake.sink import table as sink_table
    from s3lake.store.connection import S3Connection

_TRIES = 10
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 3.0
_FILES = 2_000  # of one snapshot
_HOURS = 200
_PROPERTIES = {
    "gc.enabled": "false",  # the objects are the index's: neither an expiry of snapshots nor a purge may delete them
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.target-size-bytes": str(2 * 2**20),  # what is merged is written anew, in Python
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


@dataclass
class LakeTable:
    """The table of one sink and topic.

    Attributes:
        name: namespace and name.
        index: that it follows.
        bucket: of the files.
        catalog_properties: where the table is entered.
        connection: how S3 is reached.
        location: of its metadata; None leaves it to the catalog.
        columns: of the files, that it is partitioned by in addition to the hour of landing.
    """

    name: str
    index: TopicIndex
    bucket: str
    sink: str
    catalog_properties: dict[str, str] = field(repr=False)
    connection: S3Connection = field(repr=False)
    location: str | None = None
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, sink: Sink, settings: sink_table.Table, index: TopicIndex, connection: S3Connection) -> LakeTable:
        return cls(
            name=settings.identifier(sink.name, index.topic),
            index=index,
            bucket=sink.bucket,
            sink=sink.name,
            catalog_properties=settings.catalog,
            connection=connection,
            location=settings.location,
            columns=tuple(_column(sink, text) for text in settings.partition if text != HOUR),
        )

    def follow(self, hours: Iterable[str] | None = None, *, by_files: bool = False) -> list[Followed]:
        """Bring the table to what the index says of these hours, of all without them: the snapshots that it took.

        Args:
            hours: the hours.
            by_files: ask the table's files, and not its notes, which commits it holds: what somebody took out of it
                comes back.

        Raises:
            TableUnavailableError: the table, its catalog or the store was in the way.
            TableConflictError: the table cannot follow before somebody has changed something.
        """
        footers, done = self._footers(), []
        for todo in _chunks(self.hours(hours)):
            while todo:
                followed, todo = self._insist(todo, footers, by_files)
                done += [followed] if followed else []
        return done

    def differences(self, hours: Iterable[str] | None = None, *, by_files: bool = False) -> Iterator[Difference]:
        """The hours in which the table is not what the index says.

        Raises:
            TableUnavailableError: the table, its catalog or the store was in the way.
            TableConflictError: the table was taken back to an earlier snapshot.
        """
        for chunk in _chunks(self.hours(hours)):
            with self._in_words():
                table = self.loaded()
                yield from self._differences(table, chunk, by_files)

    def hours(self, hours: Iterable[str] | None = None) -> list[str]:
        """Those that are asked for, else all that index or table have."""
        if hours is not None:
            return sorted(set(hours))
        with self._in_words():
            table, head = self.loaded(), self.index.head()
        noted = ledger.read_ledger(table.properties) if table else {}
        return sorted({*noted, *(hourly.expand(head[0].hours) if head else ())})

    def _insist(self, hours: list[str], footers: Footers, by_files: bool) -> tuple[Followed | None, list[str]]:
        """One snapshot, tried again where another writer was faster, and the hours that are left."""
        from pyiceberg.exceptions import (
            CommitFailedException,
            CommitStateUnknownException,
            TableAlreadyExistsError,
            ValidationException,
        )

        # Whatever came of it, the next try begins with what table and index say then. A file may be gone because its
        # commit was replaced meanwhile (OSError, as all that a file system says), and its manifest because of an erase.
        # pyiceberg (0.12) looks at manifests in threads that share what it notes of one, now and then takes one for
        # another's, and misses files to delete that are there (ValidationException): nothing is committed then.
        again = (
            *(CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError, ValidationException),
            *(OSError, ReplacedError),
        )
        with self._in_words():
            for tries in range(_TRIES):
                try:
                    return self._once(hours, footers, by_files)
                except again:
                    if tries == _TRIES - 1:
                        raise
                    time.sleep(min(_PAUSE_S * 2**tries, _LONGEST_PAUSE_S) * random.uniform(0.5, 1))
        raise AssertionError("not reached")

    def _once(self, hours: list[str], footers: Footers, by_files: bool) -> tuple[Followed | None, list[str]]:
        # The table is read before the tiles, and changes only if it is still as it was read: so no older state of the
        # index ever takes the place of a newer one.
        table = self.loaded()
        taken, left = _part(self._differences(table, hours, by_files))
        if table is None and _data(taken):
            table = self._created(taken, footers)
        if table is None or not taken:
            return None, left
        notes = {ledger.INDEX: self._owner}
        return snapshot(table, taken, footers, self.index, notes=notes, by_files=by_files), left

    def _differences(self, table: Table | None, hours: Sequence[str], by_files: bool) -> list[Difference]:
        noted = ledger.read_ledger(table.properties) if table else {}
        if table is None or not by_files:
            if table is not None:
                _not_taken_back(table)
            return find_differences(self.index, noted, hours)
        existing = list_files(table, hours)

        def differs(one: Difference) -> bool:
            names = name_files(self.bucket, one.listed).keys()
            return bool(one.removed or one.added) or names != existing[one.hour].keys()

        return list(filter(differs, find_differences(self.index, noted, hours, also_equal=True)))

    def loaded(self) -> Table | None:
        """The table as it is now.

        Raises:
            TableConflictError: it belongs to another index, or to nobody that is known.
        """
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = self._catalog.load_table(self.name)
        except NoSuchTableError:
            return None
        owner = table.properties.get(ledger.INDEX)
        if owner != self._owner and (owner or table.current_snapshot()):
            raise TableConflictError(
                f"table {self.name} {f'follows the index at {owner}' if owner else 'holds rows of somebody else'}: let "
                f"table.name of sink {self.sink} be another"
            )
        find_hour(table.spec(), table.schema())
        return table

    def _created(self, taken: Sequence[Difference], footers: Footers) -> Table:
        from pyiceberg.catalog import Catalog

        files = _data(taken)
        first, *others = of_files(footers.of(files).values())
        self._catalog.create_namespace_if_not_exists(Catalog.namespace_from(self.name))
        creation = self._catalog.create_table_transaction(
            self.name,
            with_hour(first),
            location=self.location,
            properties={**_PROPERTIES, ledger.INDEX: self._owner},
        )
        grow(creation, others)
        with creation.update_spec() as spec:
            for column in (LANDED_HOUR, *self.columns):
                spec.add_identity(column)
        return creation.commit_transaction()

    def _footers(self) -> Footers:
        return Footers(self.bucket, catalog.files(self.catalog_properties, self.connection))

    @property
    def _owner(self) -> str:
        return f"s3://{self.bucket}/{self.index.root}"

    @functools.cached_property
    def _catalog(self) -> Catalog:
        return catalog.opened(self.catalog_properties, self.bucket, self.connection)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """What pyiceberg, a catalog's client or a file system raise, as one error without secrets."""
        try:
            yield
        except S3LakeError:
            raise
        except Exception as error:
            hidden = catalog.secrets(self.catalog_properties, self.connection)
            what = mask_secrets(f"{type(error).__name__}: {error}", hidden)
            raise TableUnavailableError(
                f"table {self.name} of sink {self.sink}: {what}. What is landed stays landed; the next run of the hour "
                "or `s3lake table sync` brings the table to it"
            ) from None


def _column(sink: Sink, text: str) -> str:
    """Where a field of the value stands in a file."""
    path = ".".join(partitioners.parse_element(text).path)
    return f"value.{path}" if sink.envelope is not None and sink.envelope.style == "record" else path


def _chunks(hours: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(hours)
    while chunk := list(islice(remaining, _HOURS)):
        yield chunk


def _data(taken: Iterable[Difference]) -> list[File]:
    return files_of(chain.from_iterable(hour.listed for hour in taken), "data")


def _part(behind: Sequence[Difference]) -> tuple[list[Difference], list[str]]:
    """As many hours as one snapshot takes, and the others."""
    taken: list[Difference] = []
    files = 0
    for position, hour in enumerate(behind):
        files += len(files_of(hour.added, "data"))
        if taken and files > _FILES:
            return taken, [other.hour for other in behind[position:]]
        taken.append(hour)
    return taken, []


def _not_taken_back(table: Table) -> None:
    """Refuse a table whose notes are newer than its files.

    Raises:
        TableConflictError: our last snapshot is there, and the table is not made of it.
    """
    from pyiceberg.table.snapshots import ancestors_of

    last = int(table.properties.get(ledger.SNAPSHOT, -1))
    if table.snapshot_by_id(last) is None:
        return  # none of ours yet, or expired, and then what came after stands on it
    if all(one.snapshot_id != last for one in ancestors_of(table.current_snapshot(), table.metadata)):
        raise TableConflictError(
            f"table {'.'.join(table.name())} was taken back to a snapshot before {last}, which holds commits that are "
            "missing now: `s3lake table sync --by-files` brings them back"
        )
