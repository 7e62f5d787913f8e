"""Any table into an hour of a sink: through its format, layout and index-tracked commit, in place of what was there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake import hours
from s3lake.errors import ConfigurationError, TooManyFilesError
from s3lake.index.commit.commit_files import abort_uploads
from s3lake.index.commit.documents import MOST_FILES, File, Manifest, Read, Recorded, collect_files
from s3lake.index.commit.open_and_close import create_table_hour
from s3lake.index.commit.protocol import PUT, Attempt, Staged
from s3lake.index.store.trial import ensure_tried
from s3lake.lake.form import form_of
from s3lake.lake.objects.spark_columns import cast_column
from s3lake.land.change.hour_change import replace_commits
from s3lake.land.request import stage_values
from s3lake.land.spark.failures import translate_spark_error
from s3lake.land.spark.spark_jobs import SparkJobs
from s3lake.land.task import outcomes
from s3lake.land.task.outcomes import OUTCOME, Done, Failed, Grown, outcome_of
from s3lake.land.task.table_rows import Form, RowStage, plain_type
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.encode.formats import FORMATS
from s3lake.records.schema.columns.arrow_types import from_arrow, to_arrow
from s3lake.records.schema.columns.changes import find_column_type, find_differences
from s3lake.records.schema.columns.limits import explain_unsupported
from s3lake.records.schema.columns.types import Columns, Primitive, from_document, to_document
from s3lake.records.schema.columns.union import check_column_limit, keep_integers, merge_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def open_record_batches(value: object) -> pa.RecordBatchReader:
    """Open a table as record batches: of pyarrow, pandas, polars, a DuckDB relation, or all else with an Arrow stream.

    Raises:
        ConfigurationError: the value is not a table.
    """
    if isinstance(value, pa.RecordBatchReader):
        return value
    if not hasattr(value, "__arrow_c_stream__"):
        value_type = type(value)
        lazy = " (call .collect() first)" if hasattr(value, "collect") else ""
        raise ConfigurationError(
            f"a {value_type.__module__}.{value_type.__qualname__} is not a table{lazy}: return a Table or "
            "RecordBatchReader of pyarrow, a DataFrame of pandas, polars or Spark, or a relation of DuckDB"
        )
    return pa.RecordBatchReader.from_stream(value)


def land_table(target: TopicSink, hour: str, value: object, owner: Sequence[str] = ()) -> Manifest:
    """Land a table as an hour, in place of what the hour had: readers of the index see the old rows or the new ones.

    Args:
        target: the sink, and the index of the table's name.
        hour: the hour in UTC, such as `2026-11-20T05`.
        value: see `record_batches`; a DataFrame of Spark is staged by its tasks.
        owner: the key of the asset whose table it is; no other asset's tables get the name.

    Raises:
        ConfigurationError: the sink cannot take tables, the name is another asset's, the value is not a table, or its
            columns do not fit those the sink has for it. Nothing is written.
        FencedError: another writer was faster; nothing of this table is visible.
        S3LakeError: the store or the table's catalog was in the way; readers have the old rows, or all of the new.
    """
    sink, index, name = target.sink, target.index, f"{target.topic} {hour}"
    form = _check_sink(target)
    frame: Any = value if hasattr(value, "mapInArrow") else None
    reader = None if frame is not None else open_record_batches(value)
    plain = _plain_schema(reader.schema if reader is not None else _arrow_schema(frame), name)
    columns = _check_columns(target, name, plain, form)
    ensure_tried(target.store, sink.index_root, sink.root)
    create_table_hour(index, hour, owner)

    def write(attempt: Attempt, files: list[File]) -> Staged:
        recorded: Columns = {}
        if form == "columns":
            seen = [Grown(0, 0, to_document(columns))]
            recorded = from_document(outcomes.record(index, sink.max_columns, hour, attempt.commit, seen).columns)
        stage = RowStage(
            name=name,
            stores=target.stores,
            bucket=sink.bucket,
            commit=attempt.commit,
            keys=stage_values.build_key_layout(
                sink, target.topic, attempt.suffix, wallclock_ms=attempt.begun_ms, hour_ms=hours.start_ms(hour)
            ),
            files=stage_values.build_file_rule(sink),
            form=form,
            plain=plain,
            columns=to_arrow(recorded),
            stamp_ms=hours.start_ms(hour),
        )
        files += stage.stage(reader) if reader is not None else _stage_in_spark(target, stage, frame)
        rows = sum(file.records for file in files)
        return Staged(
            files=(),
            reads={0: Read(0, 1, read=rows, landed=rows)},
            form=form_of(sink),
            nulls=sink.nulls,
            columns=to_document(recorded) if form == "columns" else None,
        )

    done = replace_commits(target, hour, None, PUT, write)
    assert done is not None
    return done.manifest


def _check_sink(target: TopicSink) -> Form:
    """Return what a row becomes in the sink's files.

    Raises:
        ConfigurationError: the sink cannot take a table.
    """
    sink, name, keys = target.sink, target.topic, stage_values.build_key_layout(target.sink, target.topic)
    spec, converter = FORMATS[sink.format.type], CONVERTERS[sink.converter.value]
    named = [part for part in ("key", "header", "schema") if keys.needs(part)]
    form: Form = "columns" if spec.tabular else "json" if sink.format.type.startswith("json") else "value"
    refusals = {
        f"{name!r} is a topic of the sink: give the table another name": sink.reads(name),
        "exactly_once is off, and a table replaces the rows of its hour exactly once": not sink.exactly_once,
        "its transforms are for records of Kafka: take them out": bool(sink.transforms),
        "its sql is for records of Kafka: take it out": sink.sql is not None,
        "its envelope is for records of Kafka, and a row has no key, headers or offset: take it out": (
            sink.envelope is not None
        ),
        "its sidecars are for keys and headers of Kafka, which rows do not have: take them out": bool(
            sink.sidecars.types
        ),
        f"its layout names the {' and the '.join(named)} of records, which rows do not have": bool(named),
        f"converter.value {sink.converter.value} makes one text of a row: set it to json": (
            form != "value" and converter.gives != "json"
        ),
    }
    for refusal, is_refused in refusals.items():
        if is_refused:
            raise ConfigurationError(f"sink {sink.name} cannot land the table {name}: {refusal}")
    return form


def _plain_schema(schema: pa.Schema, name: str) -> pa.Schema:
    twice = next((column for column in schema.names if schema.names.count(column) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"{name}: two columns are called {twice!r}: rename one")
    try:
        return pa.schema([(field.name, plain_type(field.type, field.name)) for field in schema])
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from None


def _check_columns(target: TopicSink, name: str, plain: pa.Schema, form: Form) -> Columns:
    """Return the columns of this table's files together with the recorded ones.

    Raises:
        ConfigurationError: they do not fit the format or the recorded columns.
    """
    sink, index = target.sink, target.index
    if form == "value":
        if len(plain) != 1 or not (pa.types.is_string(plain.types[0]) or pa.types.is_binary(plain.types[0])):
            raise ConfigurationError(
                f"{name}: format {sink.format.type} has one text a row, and the table has the columns "
                f"{', '.join(plain.names)}: hand in one column of texts or bytes, or take another format"
            )
        return {}
    if form == "json":
        return {}
    own = from_arrow(plain)
    if not own:
        raise ConfigurationError(f"{name}: the table has no column with a type: null is not a type of files")
    stored = index.columns()
    before = stored[0] if stored else Recorded({})
    columns = keep_integers(merge_columns(from_document(before.columns), own), before.exact)
    for path, old, new in find_differences(from_document(before.columns), columns):
        if old is Primitive.INT64 and new is Primitive.DOUBLE:
            raise ConfigurationError(
                f"{name}: column {path!r} is {find_column_type(own, path)}, and int64 in the hours that are landed: "
                "cast it, or give the table another name"
            )
    rule = stage_values.build_conversion(sink, target.topic).table or FORMATS[sink.format.type].rule
    reason = explain_unsupported(columns, rule) or check_column_limit(
        columns, from_document(before.columns), sink.max_columns
    )
    if reason is not None:
        raise ConfigurationError(f"{name}: {reason}")
    types = {field.name: field.type for field in to_arrow(columns)}
    for field in to_arrow(own):
        try:
            cast_column(pa.nulls(0, field.type), types[field.name])
        except ValueError:
            raise ConfigurationError(
                f"{name}: column {field.name!r} is {field.type}, and {types[field.name]} in the hours that are landed: "
                "cast it, or give the table another name"
            ) from None
    return own


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


def _stage_in_spark(target: TopicSink, stage: RowStage, frame: DataFrame) -> list[File]:
    try:
        staged = frame.mapInArrow(lambda batches: stage.run_in_spark(batches), OUTCOME)
        rows = SparkJobs(lambda: frame.sparkSession).run(lambda _: staged.collect())
    except Exception as error:
        raise translate_spark_error(error, f"landing the table {stage.name} into sink {target.sink.name}") from None
    results = [outcome_of(bytes(row.outcome)) for row in rows]
    files = collect_files(result for result in results if isinstance(result, Done))
    failed = next((result for result in results if isinstance(result, Failed)), None)
    if failed is not None or len(files) > MOST_FILES:
        abort_uploads(target.store, files)
        raise (
            failed.exception
            if failed is not None
            else TooManyFilesError(
                f"{stage.name} has {len(files):,} files, one commit may have {MOST_FILES:,}: coalesce the DataFrame"
            )
        )
    return files
