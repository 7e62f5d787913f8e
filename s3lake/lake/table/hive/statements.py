"""The statements that make a table of directories known to an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from s3lake.errors import ConfigurationError
from s3lake.lake.table.hive import glue
from s3lake.lake.table.hive.directories import HiveTable
from s3lake.lake.table.hive.spelling import HIVE, ROWS
from s3lake.records.schema.columns.types import Primitive

_STORED = {
    "parquet": "STORED AS PARQUET",
    "avro": "STORED AS AVRO",
    "csv": (
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'\n"
        "WITH SERDEPROPERTIES ('escapeChar' = '\\001')\nSTORED AS TEXTFILE"
    ),
    "delimited": "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','\nSTORED AS TEXTFILE",
}
"""CSV has no escape (RFC 4180): a backslash is a character, and no engine's own."""
_CSV = """delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false"""
"""Options that DuckDB would guess; and an empty text is not null."""
_LINES = "ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\001'\nSTORED AS TEXTFILE"


def _write_athena(table: HiveTable, database: str) -> list[str]:
    projection = table.projection or {}
    name = f"{HIVE.name(database)}.{HIVE.name(table.name)}"
    properties = {**projection, **({"skip.header.line.count": "1"} if table.header else {})}
    lines = [
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {name} (\n{HIVE.columns(table.columns)}\n)",
        f"PARTITIONED BY ({HIVE.strings(table.partitions)})" if table.partitions else "",
        _STORED.get(table.form, _LINES),
        f"LOCATION {HIVE.text(table.location)}",
        f"TBLPROPERTIES (\n{_format_properties(properties)}\n)" if properties else "",
    ]
    creation = "\n".join(filter(None, lines))
    if projection or not table.partitions:
        return [creation]
    added = "\n".join(
        f"  PARTITION ({_format_equalities(table.partitions, values)}) LOCATION {HIVE.text(table.locate(values))}"
        for values in table.values
    )
    return [creation, f"ALTER TABLE {name} ADD IF NOT EXISTS\n{added}"]


def _write_spark(table: HiveTable, database: str) -> list[str]:
    name = f"{HIVE.name(database)}.{HIVE.name(table.name)}"
    strings = dict.fromkeys(table.partitions, Primitive.STRING)
    using = {"parquet": "parquet", "avro": "avro", "csv": "csv", "delimited": "csv"}
    quoting = {"csv": {"quote": '"', "escape": '"', "multiLine": "true"}, "delimited": {"quote": ""}}.get(table.form)
    options = {"header": str(table.header).lower(), **quoting} if quoting else {}
    options |= {"recursiveFileLookup": "true"} if table.deep else {}
    listed = ", ".join(f"{HIVE.text(option)} {HIVE.text(text)}" for option, text in options.items())
    lines = [
        f"CREATE TABLE IF NOT EXISTS {name} (\n{HIVE.columns({**table.columns, **strings})}\n)",
        f"USING {using.get(table.form, 'text')}",
        f"OPTIONS ({listed})" if listed else "",
        f"PARTITIONED BY ({', '.join(map(HIVE.name, table.partitions))})" if table.partitions else "",
        f"LOCATION {HIVE.text(table.location.replace('s3://', 's3a://'))}",
    ]
    creation = "\n".join(filter(None, lines))
    return [creation, f"MSCK REPAIR TABLE {name}"] if table.partitions else [creation]


def _write_trino(table: HiveTable, database: str) -> list[str]:
    forms = {"parquet": "PARQUET", "avro": "AVRO", "csv": "CSV"}
    options = [f"format = '{forms.get(table.form, 'TEXTFILE')}'", f"external_location = {ROWS.text(table.location)}"]
    if table.partitions:
        options.append(f"partitioned_by = ARRAY[{', '.join(map(ROWS.text, table.partitions))}]")
    if table.form == "csv":
        options.append("csv_escape = U&'\\0001'")
    if table.header:
        options.append("skip_header_line_count = 1")
    if table.form == "delimited":
        options.append("textfile_field_separator = ','")
    columns = {**table.columns, **dict.fromkeys(table.partitions, Primitive.STRING)}
    name = f"hive.{ROWS.name(database)}.{ROWS.name(table.name)}"
    creation = f"CREATE TABLE IF NOT EXISTS {name} (\n{ROWS.columns(columns)}\n)\nWITH ({', '.join(options)})"
    discovery = f"CALL hive.system.sync_partition_metadata({ROWS.text(database)}, {ROWS.text(table.name)}, 'ADD')"
    return [creation, discovery] if table.partitions else [creation]


def _write_duckdb(table: HiveTable, database: str) -> list[str]:
    if table.form == "avro":
        raise ConfigurationError(
            "DuckDB reads Avro with an extension that knows no directories: ask for another engine"
        )
    directories = "**/" if table.deep else "*/" * len(table.partitions)
    files = ROWS.text(f"{table.location}{directories}*{table.ending}")  # and no marker
    # Directories are texts here as in every other engine, whatever they look like.
    options = ", hive_partitioning = true, hive_types_autocast = false" if table.partitions else ""
    names = ", ".join(map(ROWS.text, table.columns))
    header = "header = true" if table.header else f"header = false, names = [{names}]"
    read = {
        "parquet": f"read_parquet({files}{options}, union_by_name = true)",
        "csv": f"read_csv({files}{options}, union_by_name = true, {_CSV}, {header})",
        "delimited": f"read_csv({files}{options}, {header}, delim = ',', quote = '', escape = '')",
        "json": f"read_json({files}{options}, format = 'newline_delimited', union_by_name = true)",
        "json_array": f"read_json({files}{options}, format = 'array', union_by_name = true)",
    }.get(table.form, f"read_csv({files}{options}, columns = {{'value': 'VARCHAR'}}, delim = '\\x01', quote = '')")
    schema = ROWS.name(database)
    view = f"CREATE OR REPLACE VIEW {schema}.{ROWS.name(table.name)} AS\nSELECT * FROM {read}"
    return [f"CREATE SCHEMA IF NOT EXISTS {schema}", view]


def _format_equalities(names: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{HIVE.name(name)} = {HIVE.text(value)}" for name, value in zip(names, values, strict=True))


def _format_properties(properties: Mapping[str, str]) -> str:
    return ",\n".join(f"  {HIVE.text(name)} = {HIVE.text(text)}" for name, text in properties.items())


ENGINES: dict[str, Callable[[HiveTable, str], list[str]]] = {
    "athena": _write_athena,
    "glue": glue.format_documents,
    "trino": _write_trino,
    "duckdb": _write_duckdb,
    "spark": _write_spark,
}
"""By engine the function that returns the statements that make a table, and its partitions, known to it."""
