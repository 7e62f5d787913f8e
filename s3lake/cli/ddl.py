"""The command that describes committed objects as a table for engines that read directories."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from s3lake.cli.output import emit, err
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError, StoreDeniedError
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.commit.documents import File
    from s3lake.index.commit.topic_index import TopicIndex
    from s3lake.lake.table.hive import HiveTable
    from s3lake.land.topic.topic_sink import TopicSink
    from s3lake.records.schema.columns.types import Columns

_LINES = ("json", "text", "bytes")


def run_ddl(
    request: Request,
    engine: Annotated[str, typer.Option("--for", metavar="ENGINE", help="athena, glue, trino, duckdb or spark.")],
    database: Annotated[str, typer.Option(help="Database or schema of the table.")] = "s3lake",
) -> None:
    """Print CREATE TABLE statements for Athena, Glue, Trino, DuckDB or Spark.

    For Glue it prints what boto3 would send, and with --yes sends it. Partitions are all directories of the bucket,
    also an adopted connector's. They are computed if directories are days and hours; otherwise repeat the command when
    there are more. The columns are the ones recorded so far.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from s3lake.index.store.client import make_client
    from s3lake.index.store.s3_connection import S3Connection
    from s3lake.lake.table.hive import ENGINES
    from s3lake.lake.table.hive.glue import apply
    from s3lake.text.masking import mask_secrets

    if engine not in ENGINES:
        raise ConfigurationError(f"--for {engine}: unknown engine; s3lake knows {', '.join(sorted(ENGINES))}")
    if not database:
        raise ConfigurationError("--database is empty: write the name of a database, for example s3lake")
    if request.yes and engine != "glue":
        raise ConfigurationError(f"--yes is for glue alone: run in {engine} what is printed without it")
    config = request.load()

    def work(target: "TopicSink") -> None:
        table = build_hive_table(target.sink, target.index, engine)
        for text in find_engine_differences(table, engine, target.sink, target.topic):
            err.print(f"notice: {target.topic}: {text}")
        name = {"sink": target.sink.name, "topic": target.topic, "table": f"{database}.{table.name}"}
        if request.yes:
            connection = S3Connection.from_settings(config.s3_of(target.sink))
            try:
                new = apply(make_client(connection, service="glue"), table, database)
            except (BotoCoreError, ClientError, OSError, ValueError) as error:
                raise StoreDeniedError(
                    f"Glue, table {database}.{table.name}: {mask_secrets(str(error), connection.secrets)}. To go on: "
                    "allow it, or correct --database, s3.region, s3.credentials, a variable AWS_… or a file of AWS, "
                    "whichever this names"
                ) from None
            row = {**name, "new": new, "done": True}
            text = f"{database}.{table.name}: {format_count(new, 'new partitions')}"
            emit(request.as_json, row, lambda _: text)
            return
        line = "{statement}" if engine == "glue" else "{statement};"
        for text in ENGINES[engine](table, database):
            emit(request.as_json, {**name, "statement": text}, line.format_map)

    targets = list(request.targets(config, tables=True))
    _refuse_clashes(targets)
    request.each(work, targets)


def _refuse_clashes(targets: "Sequence[TopicSink]") -> None:
    """Raise ConfigurationError if two targets would be one table: the second would get the first one's partitions."""
    by_name: dict[str, TopicSink] = {}
    for target in targets:
        name = _build_name(target.topic)
        other = by_name.setdefault(name.lower(), target)  # engines do not distinguish cases
        if other is not target:
            raise ConfigurationError(
                f"{other.topic} of sink {other.sink.name} and {target.topic} of sink {target.sink.name} would both be "
                f"table {name}: select one with --sink and --topic, and give each a --database of its own"
            )


def _build_name(topic: str) -> str:
    return topic.replace(".", "_").replace("-", "_")


def find_engine_differences(table: "HiveTable", engine: str, sink: "Sink", topic: str) -> Iterator[str]:
    """Yield what an engine shows otherwise than the user may expect."""
    from s3lake.records.convert.read.converters import CONVERTERS

    for field in table.hidden:
        yield f"a directory has the name of field {field}, so {engine} shows the directory's value"
    if table.deep and engine == "trino":
        yield f"trino finds what is further down in {table.location} if its catalog has hive.recursive-directories"
    if table.header and engine != "duckdb" and CONVERTERS[sink.converter.value].versioned:
        yield f"{engine} goes by the position of columns, and records of another schema are in files of other columns"
    if sink.topics != (topic,) and topic not in table.location:
        yield f"{engine} reads every object below {table.location}, and other topics may have objects there"


def build_hive_table(sink: "Sink", index: "TopicIndex", engine: str) -> "HiveTable":
    """Build the table definition for an engine from the topic's committed objects.

    Raises:
        ConfigurationError: the engine cannot read the objects as a table.
    """
    from s3lake.lake.table.hive import build_table, cover_bucket

    form, columns = _rows(sink, index, engine)
    keys = [file.key for file in _files(index, tuple(columns))]
    table = build_table(_build_name(index.topic), sink.bucket, keys, columns, form, header=sink.format.header)
    return cover_bucket(table, index.store.list_steps)


def _rows(sink: "Sink", index: "TopicIndex", engine: str) -> tuple[str, "Columns"]:
    """Return the form of rows, as tables call it, and their columns."""
    from s3lake.index.commit.column_history import read_present_columns
    from s3lake.lake.form import shape_of
    from s3lake.lake.table.hive import find_alike
    from s3lake.records.schema.columns.types import Primitive

    shape, form = shape_of(sink.after_transforms), sink.format.type
    if form == "json_array" and engine != "duckdb":
        raise ConfigurationError(
            f"{index.topic}: {engine} reads lines, and in format json_array a line is not always a record: use --for "
            "duckdb, or give the sink format json and rewrite the hours"
        )
    if form in _LINES:
        if shape.frame is None or shape.frame.between not in (b"\n", b"\r\n"):
            raise ConfigurationError(f"{index.topic}: engines read lines, and format {form} of this sink has none")
        return form, {"value": Primitive.STRING}
    if form == "csv" and shape.envelope:
        return "delimited", dict.fromkeys(shape.envelope.fields, Primitive.STRING)
    columns = read_present_columns(index)
    # DuckDB gives the second one a name of its own, and columns of CSV get other names here.
    if engine != "duckdb" and form != "csv" and (alike := find_alike(columns)):
        raise ConfigurationError(
            f"{index.topic}: {engine} does not distinguish cases, so fields {alike[0]} and {alike[1]} would be one: "
            "use --for duckdb, or give one of them another name with a transform and rewrite the hours"
        )
    return form, columns


def _files(index: "TopicIndex", columns: tuple[str, ...]) -> "list[File]":
    from s3lake.index.commit.documents import collect_files
    from s3lake.lake.readback.committed import read_manifests, read_tiles

    committed = read_manifests(index, read_tiles(index, None))
    if sidecars := collect_files(committed, "keys", "headers"):
        raise ConfigurationError(
            f"{sidecars[0].key} is among the data, and engines read every object of a directory, so a topic "
            "with sidecars cannot be a table. An envelope keeps keys and headers in the same file (docs/envelope.md)"
        )
    files = collect_files(committed, "data")
    for file in files:
        if file.columns is not None and file.columns != columns[: len(file.columns)]:
            raise ConfigurationError(
                f"{file.key} has the columns {', '.join(file.columns)}, of {', '.join(columns)} in all: without a "
                "header line engines go by their position, so the files of this topic cannot be a table. Give the sink "
                "another format, or a header line (format.header: true) for DuckDB, and rewrite the hours"
            )
    return files
