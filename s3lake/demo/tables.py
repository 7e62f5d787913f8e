"""The demo's Iceberg tables: in a catalog of SQLite beside the rest, and asked by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError
from s3lake.sink import Config, Table

if TYPE_CHECKING:
    from s3lake.table.iceberg import LakeTable

QUERY = "SELECT count(*) FROM records"


def with_tables(config: Config, home: Path) -> Config:
    """The configuration with a table for each sink that can have one.

    Raises:
        ConfigurationError: none can.
    """
    table = Table(name="{sink}.{topic}", catalog={"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}"})
    sinks = tuple(
        sink.model_copy(update={"table": table}) if sink.format.type == "parquet" and sink.table is None else sink
        for sink in config.sinks
    )
    if not any(sink.table for sink in sinks):
        raise ConfigurationError("--table: no sink of this configuration writes parquet, so none can have a table")
    return config.model_copy(update={"sinks": sinks})


def counted(lake_table: LakeTable) -> int:
    """How many records DuckDB finds in a table; none where nothing was landed."""
    import duckdb

    table = lake_table.loaded()
    if table is None:
        return 0
    with duckdb.connect() as connection:
        connection.register("records", table.scan().to_arrow_batch_reader())
        answer = connection.execute(QUERY).fetchone()
    return int(answer[0]) if answer else 0
