"""The command that describes committed objects to engines that read directories."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.options import ConfigArgument, JsonOption, SinkOption, TopicOption, load, routes
from s3lake.cli.terminal import err, tell
from s3lake.commit.files import files_of
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.commit.index import File, TopicIndex
    from s3lake.schema.types import Columns
    from s3lake.sink import S3, Sink
    from s3lake.table.hive import HiveTable

_LINES = ("json", "text", "bytes")


def ddl(
    engine: Annotated[str, typer.Option("--for", metavar="ENGINE", help="athena, glue, trino, duckdb or spark.")],
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    database: Annotated[str, typer.Option(help="Database or schema of the table.")] = "s3lake",
    apply: Annotated[bool, typer.Option("--apply", help="Run it: for glue, through boto3.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what makes the objects of a topic a table for an engine that reads directories, with its partitions.

    Partitions are computed where the directories are days and hours, and else those that there are: run it again when
    there are more. Columns are those that were recorded so far.
    """
    from s3lake.table.hive import ENGINES, statements
    from s3lake.table.hive.glue import apply as applied

    if engine not in ENGINES:
        raise ConfigurationError(f"--for {engine}: there is no such engine; s3lake knows {', '.join(sorted(ENGINES))}")
    if apply and engine != "glue":
        raise ConfigurationError(f"--apply is for glue alone: run in {engine} what is printed without it")
    loaded = load(config)
    for lander in routes(loaded, sink, topic):
        table = described(lander.sink, lander.index, engine)
        for text in notices(table, engine, lander.sink, lander.topic):
            err.print(f"notice: {lander.topic}: {text}", markup=False)
        name = {"sink": lander.sink.name, "topic": lander.topic, "table": f"{database}.{table.name}"}
        if apply:
            new = applied(_glue(lander.sink.s3 or loaded.s3), table, database)
            tell(as_json, {**name, "new": new}, "{table}: {new} new partitions".format_map)
            continue
        for text in statements(engine, table, database):
            tell(as_json, {**name, "statement": text}, _with_end if engine != "glue" else _alone)


def notices(table: "HiveTable", engine: str, sink: "Sink", topic: str) -> Iterator[str]:
    """What an engine shows otherwise than one may think."""
    from s3lake.convert.converters import CONVERTERS

    for field in table.hidden:
        yield f"a directory has the name of field {field}, so {engine} shows what it says"
    if table.deep and engine == "trino":
        yield f"trino finds what is further down in {table.location} where its catalog has hive.recursive-directories"
    if table.header and engine != "duckdb" and CONVERTERS[sink.converter.value].versioned:
        yield f"{engine} goes by the position of columns, and records of another schema are in files of other columns"
    if sink.topics != (topic,) and topic not in table.location:
        yield f"{engine} reads every object below {table.location}: also those of other topics, where it has some"


def described(sink: "Sink", index: "TopicIndex", engine: str) -> "HiveTable":
    """The table that the objects of a topic make for an engine.

    Raises:
        ConfigurationError: they make none.
    """
    from s3lake.table.hive import of_keys

    form, columns = _rows(sink, index, engine)
    keys = [file.key for file in _files(index, tuple(columns))]
    name = index.topic.replace(".", "_").replace("-", "_")
    return of_keys(name, sink.bucket, keys, columns, form, header=sink.format.header)


def _rows(sink: "Sink", index: "TopicIndex", engine: str) -> tuple[str, "Columns"]:
    """The form of rows, as tables call it, and their columns."""
    from s3lake.commit.evolution import present
    from s3lake.land import binding
    from s3lake.schema.types import Primitive

    shape, form = binding.shape_of(sink.landed), sink.format.type
    if form == "json_array" and engine != "duckdb":
        raise ConfigurationError(
            f"{index.topic}: {engine} reads lines, and of format json_array not each is a record: ask for duckdb, or "
            "give the sink format json and rewrite the hours"
        )
    if form in _LINES:
        if shape.frame is None or shape.frame.between not in (b"\n", b"\r\n"):
            raise ConfigurationError(f"{index.topic}: engines read lines, and format {form} as it is here has none")
        return form, {"value": Primitive.STRING}
    if form == "csv" and shape.envelope:
        return "delimited", dict.fromkeys(shape.envelope.fields, Primitive.STRING)
    return form, present(index)


def _files(index: "TopicIndex", columns: tuple[str, ...]) -> "list[File]":
    from s3lake.objects.readback import completeness
    from s3lake.objects.readback.committed import manifests

    committed = manifests(index, completeness.tiles(index, None))
    if beside := files_of(committed, "keys", "headers"):
        raise ConfigurationError(
            f"{beside[0].key} is among the data, and engines read every object of a directory: a topic with sidecars "
            "is no table. An envelope keeps keys and headers in the same file (docs/envelope.md)"
        )
    files = files_of(committed, "data")
    for file in files:
        if file.columns is not None and file.columns != columns[: len(file.columns)]:
            raise ConfigurationError(
                f"{file.key} has the columns {', '.join(file.columns)}, of {', '.join(columns)} in all: without a "
                "header line engines go by their position, so the files of this topic are no table. Give the sink "
                "another format, or a header line (format.header: true) for DuckDB, and rewrite the hours"
            )
    return files


def _glue(s3: "S3") -> Any:
    import boto3

    from s3lake.store.connection import S3Connection

    connection = S3Connection.of(s3)
    return boto3.session.Session(
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
        aws_session_token=connection.session_token,
    ).client("glue", region_name=connection.region)


def _with_end(row: dict[str, str]) -> str:
    return f"{row['statement']};"


def _alone(row: dict[str, str]) -> str:
    return row["statement"]
