"""What the process of a run spends on itself, and need not."""

import atexit
import gc
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from sqlalchemy import Engine

_OBJECTS = 50_000


@contextmanager
def spared(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Work without what costs a small run more than its records do."""
    with _few_collections(), _logs_kept_open(instance, run_id), _engines_kept():
        yield


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for cycles seldom, and not at the end.

    Half a million objects are imported. To go through them all, as Python does every few hundred new ones' worth, costs
    0.1 CPU s each time, and 0.7 when the process ends.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    atexit.unregister(_leave)
    atexit.register(_leave)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _leave() -> None:
    if "duckdb" not in sys.modules:  # its binding tells at length of all that is there after the last collection
        gc.freeze()


@contextmanager
def _logs_kept_open(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Hold a connection to the event logs of the run and of all assets, where they are SQLite files.

    Dagster opens a connection for each event. Where it is the only one, closing it moves SQLite's whole write-ahead log
    into the database and deletes it: two thirds of the time that an event takes, and a third of its CPU.
    """
    storage = instance.event_log_storage
    with ExitStack() as stack:
        if isinstance(storage, SqliteEventLogStorage):
            for shard in (INDEX_SHARD_NAME, run_id):
                with suppress(sqlite3.Error):  # it is there to save time
                    uri = f"{Path(storage.path_for_shard(shard)).as_uri()}?mode=ro"
                    connection = stack.enter_context(closing(sqlite3.connect(uri, uri=True)))
                    connection.execute("PRAGMA schema_version").fetchone()  # it is opened by the first reading
        yield


@contextmanager
def _engines_kept() -> Iterator[None]:
    """Let Dagster's SQLite event logs have one engine each.

    Dagster makes an engine for each event, and all SQL is compiled anew in it: a third of an event's CPU. What it asks
    for at the end, to dispose of the engine, closes its connections and leaves its SQL.
    """
    dagsters: Any = sqlite_event_log  # it has no option for that
    make, engines = dagsters.create_engine, dict[str, Engine]()

    def kept(address: str, **options: Any) -> Engine:
        if address not in engines:
            engines[address] = make(address, **options)
        return engines[address]

    dagsters.create_engine = kept
    try:
        yield
    finally:
        dagsters.create_engine = make
