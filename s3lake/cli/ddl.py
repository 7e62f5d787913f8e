"""The command that describes committed objects to engines that read directories."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.options import ConfigArgument, JsonOption, SinkOption, TopicOption, load, routes
from s3lake.cli.terminal import err, tell
from s3lake.commit.files import files_of
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.commit.index import TopicIndex
    from s3lake.sink import S3, Sink
    from s3lake.table.hive import HiveTable

_TEXTS = ("json", "json_array", "text", "bytes")


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
        table = described(lander.sink, lander.index)
        for field in table.hidden:
            text = f"notice: {lander.topic}: a directory has the name of field {field}, so {engine} shows what it says"
            err.print(text, markup=False)
        name = {"sink": lander.sink.name, "topic": lander.topic, "table": f"{database}.{table.name}"}
        if apply:
            new = applied(_glue(lander.sink.s3 or loaded.s3), table, database)
            tell(as_json, {**name, "new": new}, "{table}: {new} new partitions".format_map)
            continue
        for text in statements(engine, table, database):
            tell(as_json, {**name, "statement": text}, _with_end if engine != "glue" else _alone)


def described(sink: "Sink", index: "TopicIndex") -> "HiveTable":
    """The table that the objects of a topic make.

    Raises:
        ConfigurationError: they make none.
    """
    from s3lake.commit.evolution import present
    from s3lake.objects.readback import completeness
    from s3lake.objects.readback.committed import manifests
    from s3lake.schema.types import Primitive
    from s3lake.table.hive import of_keys

    form, columns = sink.format.type, present(index)
    committed = manifests(index, completeness.tiles(index, None))
    if beside := files_of(committed, "keys", "headers"):
        raise ConfigurationError(
            f"{beside[0].key} is among the data, and engines read every object of a directory: a topic with sidecars "
            "is no table. An envelope keeps keys and headers in the same file (docs/envelope.md)"
        )
    files = files_of(committed, "data")
    for file in files:
        if file.columns is not None and file.columns != tuple(columns)[: len(file.columns)]:
            raise ConfigurationError(
                f"{file.key} has the columns {', '.join(file.columns)}, of {', '.join(columns)} in all: without a "
                "header line engines go by their position, so the files of this topic are no table. Give the sink "
                "another format, or a header line (format.header: true) for DuckDB, and rewrite the hours"
            )
    return of_keys(
        index.topic.replace(".", "_").replace("-", "_"),
        sink.bucket,
        [file.key for file in files],
        {"value": Primitive.STRING} if form in _TEXTS else columns,
        form,
        header=sink.format.header,
    )


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
