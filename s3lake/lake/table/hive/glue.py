"""The same table in Glue's catalogue, where Athena, Redshift and EMR find it, made by boto3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from s3lake.errors import StoreDeniedError, TableConflictError
from s3lake.lake.table.hive.directories import HiveTable
from s3lake.lake.table.hive.spelling import GLUE
from s3lake.records.schema.columns.types import Primitive
from s3lake.text.quantities import format_count

_OWNER = {"managed_by": "s3lake"}
"""Parameter of the tables that `apply` may change."""
_AT_ONCE = 100
"""Partitions of one request."""
_INPUT, _OUTPUT = (
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
)
_QL = "org.apache.hadoop.hive.ql.io"
_LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_STORAGE: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "parquet": (
        f"{_QL}.parquet.MapredParquetInputFormat",
        f"{_QL}.parquet.MapredParquetOutputFormat",
        f"{_QL}.parquet.serde.ParquetHiveSerDe",
        {},
    ),
    "avro": (
        f"{_QL}.avro.AvroContainerInputFormat",
        f"{_QL}.avro.AvroContainerOutputFormat",
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
        {},
    ),
    # Its own escape is a backslash, which is a character like others in files of RFC 4180.
    "csv": (_INPUT, _OUTPUT, "org.apache.hadoop.hive.serde2.OpenCSVSerde", {"escapeChar": "\x01"}),
    "delimited": (_INPUT, _OUTPUT, _LAZY, {"field.delim": ","}),
}
_LINES = (_INPUT, _OUTPUT, _LAZY, {"field.delim": "\x01"})


def format_documents(table: HiveTable, database: str) -> list[str]:
    """Return as JSON what `apply` sends: the table, and its partitions if they cannot be computed."""
    sent: dict[str, Any] = {"DatabaseName": database, "TableInput": _describe_table(table)}
    if table.projection is None and table.partitions:
        sent["PartitionInputList"] = list(_list_partitions(table))
    return [json.dumps(sent, indent=2)]


def apply(glue: Any, table: HiveTable, database: str) -> int:
    """Create or update database and table by a boto3 client of Glue. Return the number of partitions that it added.

    Raises:
        TableConflictError: the table is another program's, or has other objects.
        StoreDeniedError: Glue refused partitions.
    """
    unknown, exists = glue.exceptions.EntityNotFoundException, glue.exceptions.AlreadyExistsException
    with suppress(exists):
        glue.create_database(DatabaseInput={"Name": database})
    try:
        existing = glue.get_table(DatabaseName=database, Name=table.name)["Table"]
    except unknown:
        glue.create_table(DatabaseName=database, TableInput=_describe_table(table))
    else:
        _require_own(existing, table, database)
        glue.update_table(DatabaseName=database, TableInput=_describe_table(table))
    if table.projection is not None or not table.partitions:
        return 0
    pages = glue.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=table.name)
    there = {tuple(partition["Values"]) for page in pages for partition in page["Partitions"]}
    missing = [partition for partition in _list_partitions(table) if tuple(partition["Values"]) not in there]
    for first in range(0, len(missing), _AT_ONCE):
        chunk = missing[first : first + _AT_ONCE]
        answer = glue.batch_create_partition(DatabaseName=database, TableName=table.name, PartitionInputList=chunk)
        refused = [one for one in answer.get("Errors", ()) if one["ErrorDetail"]["ErrorCode"] != exists.__name__]
        if refused:
            details = refused[0]["ErrorDetail"]
            raise StoreDeniedError(
                f"Glue refused {format_count(len(refused), 'partitions')} of {database}.{table.name}, for example "
                f"{refused[0]['PartitionValues']}: {details['ErrorCode']}: {details['ErrorMessage']}"
            )
    return len(missing)


def _require_own(existing: dict[str, Any], table: HiveTable, database: str) -> None:
    location = str(existing.get("StorageDescriptor", {}).get("Location", ""))
    # The common directory of a table without partitions becomes shorter when objects in other directories come.
    is_same = location and (location.startswith(table.location) or table.location.startswith(location))
    if not is_same or not _OWNER.items() <= existing.get("Parameters", {}).items():
        raise TableConflictError(
            f"table {database}.{table.name} exists, at {location or 'no location'}, and s3lake did not make it for "
            f"{table.location}: give another --database, or delete the table in Glue, which keeps its objects, if it "
            "is not needed, or if s3lake made it before it set the parameter managed_by = s3lake; then run this again"
        )


def _describe_table(table: HiveTable) -> dict[str, Any]:
    parameters = {**_OWNER, "EXTERNAL": "TRUE", "classification": table.form, **(table.projection or {})}
    if table.header:
        parameters["skip.header.line.count"] = "1"
    return {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "PartitionKeys": [{"Name": name, "Type": GLUE.primitives[Primitive.STRING]} for name in table.partitions],
        "StorageDescriptor": _describe_storage(table, table.location),
    }


def _list_partitions(table: HiveTable) -> Iterator[dict[str, Any]]:
    for values in table.values:
        yield {"Values": list(values), "StorageDescriptor": _describe_storage(table, table.locate(values))}


def _describe_storage(table: HiveTable, location: str) -> dict[str, Any]:
    read, write, serde, parameters = _STORAGE.get(table.form, _LINES)
    return {
        "Columns": [{"Name": name, "Type": GLUE.type(type)} for name, type in table.columns.items()],
        "Location": location,
        "InputFormat": read,
        "OutputFormat": write,
        "SerdeInfo": {"SerializationLibrary": serde, "Parameters": parameters},
    }
