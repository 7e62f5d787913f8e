"""Instances of Dagster that cost a test little: what their databases do for other versions is left out."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import dagster as dg
import pytest
import sqlalchemy as db
from dagster._core.storage.event_log import in_memory as event_log
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs import in_memory as runs
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.test_utils import instance_for_test

_FILES = (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage)
_MEMORY = (event_log, runs)
_locks = WeakKeyDictionary[db.Engine, Any]()


def in_memory(patch: pytest.MonkeyPatch) -> None:
    """A database in memory is used through the connection that it holds anyway.

    Dagster makes a connection for each request, and tells it two settings: half of the time that a run takes. Stamping
    the database with its revision is three quarters of the time of making an instance.
    """
    patch.setattr(event_log, "SqlEventLogStorageMetadata", _Tables(SqlEventLogStorageMetadata))
    patch.setattr(runs, "RunStorageSqlMetadata", _Tables(RunStorageSqlMetadata))
    for module in _MEMORY:
        patch.setattr(module, "create_engine", _engine)
        patch.setattr(module, "stamp_alembic_rev", lambda *_: None)
    patch.setattr(event_log.InMemoryEventLogStorage, "_connect", _connected)
    patch.setattr(runs.InMemoryRunStorage, "connect", _connected)


@contextmanager
def in_files(**overrides: Any) -> Iterator[dg.DagsterInstance]:
    """Yield an instance with files, for what memory lacks. No other process opens them: no revision is read."""
    with pytest.MonkeyPatch.context() as patch:
        for module in _FILES:
            patch.setattr(module, "check_alembic_revision", lambda *_: (None, None))
            patch.setattr(module, "stamp_alembic_rev", lambda *_, **__: None)
        with instance_for_test(overrides=overrides) as instance:
            yield instance


class _Tables:
    """A database's empty tables, made once and copied."""

    def __init__(self, metadata: db.MetaData) -> None:
        engine = db.create_engine("sqlite://")
        self._empty = engine.connect()
        with self._empty.begin():
            metadata.create_all(self._empty)

    def create_all(self, connection: db.Connection) -> None:
        self._empty.connection.dbapi_connection.backup(connection.connection.dbapi_connection)


@functools.cache
def _first() -> db.Engine:
    """An instance from which all others take their statements compiled to SQL: each would compile them again."""
    engine = db.create_engine("sqlite://")
    with engine.connect():  # it asks SQLite for its version
        return engine


def _engine(url: str, **settings: Any) -> db.Engine:
    engine = db.create_engine(url, connect_args={"check_same_thread": False}, **settings)
    engine.dialect, engine._compiled_cache = _first().dialect, _first()._compiled_cache
    _locks[engine] = threading.RLock()
    db.event.listen(engine, "connect", lambda made, _: made.execute("PRAGMA foreign_keys=ON"))
    return engine


@contextmanager
def _connected(storage: Any) -> Iterator[db.Connection]:
    with _locks[storage._engine]:
        if storage._held_conn.in_transaction():  # of this thread: a question within a question
            with storage._engine.begin() as connection:
                yield connection
        else:
            with storage._held_conn.begin():
                yield storage._held_conn
