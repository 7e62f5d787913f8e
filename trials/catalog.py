"""An Iceberg catalog that goes away and comes back, and what its tables list: pyiceberg and SQLite, no code of ours."""

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from benchmarks.process_tree import Watch
from s3lake.demo.embedded_s3 import EmbeddedS3
from trials.checker import Bucket, data_files

_WAITS_S = 20.0
_FIND = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"


class Catalog:
    """A catalog in a file of SQLite. While it is away nobody but this object reads or writes it.

    Attributes:
        uri: for a configuration; a client waits a second for the file, and then fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uri = f"sqlite:///{path}?timeout=1"
        self._holding: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    @property
    def is_away(self) -> bool:
        return self._holding is not None

    def take_away(self) -> bool:
        """Lock the file against everybody. Return False if another process held it all the while."""
        with self._lock:
            if self._holding is not None:
                return True
            connection = self._connected()
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                connection.close()
                return False
            self._holding = connection
            return True

    def bring_back(self) -> None:
        with self._lock:
            if self._holding is not None:
                self._holding.close()
                self._holding = None

    def metadata(self) -> dict[str, str]:
        """Where the present metadata of each table is, by name; nothing before there is a first table."""
        with self._lock:
            if self._holding is not None:
                return _tables(self._holding)
        with closing(self._connected()) as connection:
            return _tables(connection)

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_WAITS_S, isolation_level=None, check_same_thread=False)


class Tables:
    """The tables of a catalog, and the bucket that their files are in."""

    def __init__(self, catalog: Catalog, bucket: Bucket, files: Mapping[str, str], root: str) -> None:
        """Files are read with the properties `files`; the bucket is at `root`, as tables name it."""
        self._catalog, self._bucket, self._files, self._root = catalog, bucket, files, root

    @classmethod
    def of(cls, catalog: Catalog, bucket: Bucket, s3: EmbeddedS3) -> "Tables":
        keys = {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
        return cls(
            catalog, bucket, {"s3.endpoint": s3.endpoint_url, "s3.region": s3.region, **keys}, f"s3://{bucket.name}"
        )

    def broken(self) -> list[str]:
        """Files that a scan of a whole table asks for and does not find, now, whether the catalog is away or not."""
        return [
            f"{name}: {key}"
            for name, location in self._catalog.metadata().items()
            for key in self._lacks(name, location)
        ]

    def differences(self, sink: str, topics: Sequence[str], table: str) -> Iterator[str]:
        """What the tables list otherwise than the index does; in `table`, a name, `{topic}` stands for the topic."""
        there = self._catalog.metadata()
        for topic in topics:
            name = table.replace("{topic}", topic)
            held = self._listed(there[name]) if name in there else Counter[str]()
            wanted = data_files(self._bucket, sink, topic)
            yield from (f"{name} lacks {key}" for key in (wanted - held).elements())
            yield from (f"{name} has {key}" for key in (held - wanted).elements())

    def _lacks(self, name: str, location: str) -> list[str]:
        """A scan reads one snapshot: what goes once a newer one has taken its place, a new scan does not lack."""
        while True:
            missing = sorted(self._listed(location).keys() - self._bucket.objects().keys())
            now = self._catalog.metadata().get(name)
            if not missing or now is None or now == location:
                return missing
            location = now

    def _listed(self, location: str) -> Counter[str]:
        scan: Any = StaticTable.from_metadata(location, dict(self._files)).scan()
        return Counter(task.file.file_path.removeprefix(f"{self._root}/") for task in scan.plan_files())


class Scans(Watch):
    """Scans whole tables again and again, while other things happen.

    Attributes:
        done: how many scans found all of their files, or not.
        broken: what those did not find.
        unread: why the last scan that came to no end had none.
    """

    def __init__(self, tables: Tables, pause_s: float = 3.0) -> None:
        super().__init__(pause_s)
        self.done, self.broken, self.unread = 0, list[str](), ""
        self._tables = tables

    def look(self) -> None:
        try:
            found = self._tables.broken()
        except Exception as error:  # the store is stopped, or the catalog is written: whoever scans comes again
            self.unread = f"{type(error).__name__}: {error}"
            return
        self.done += 1
        self.broken += [f"{time.strftime('%X')} {one}" for one in found]


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone()
    return dict(connection.execute(_FIND).fetchall()) if there else {}
