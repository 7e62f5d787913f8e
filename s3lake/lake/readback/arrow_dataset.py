"""Committed objects without a JVM: as a dataset of Arrow, and as what polars, DuckDB and pandas make of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3lake.errors import ConfigurationError
from s3lake.index.store import Stores
from s3lake.lake.objects import ObjectShape
from s3lake.lake.readback.committed import open_input, read_object
from s3lake.plugins import require_extra
from s3lake.records.schema.columns.types import List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

    from s3lake.config.model import Sink
    from s3lake.index.commit.documents import File
    from s3lake.index.store.s3_connection import S3Connection

_AT_ONCE = 8


def open_dataset(
    sink: Sink,
    topic: str,
    stores: Stores,
    connection: S3Connection,
    asked_hours: Sequence[str] | None,
    *,
    selected: Sequence[str] | None = None,
    allow_incomplete: bool = False,
) -> Dataset:
    """Return the records that `sink` committed of `topic` in the hours `asked_hours` (None: all that the index has).

    Of Parquet only footers are read before a scan, and then only the columns that are asked for. Other formats are read
    here, all of them, and so are objects that Arrow's own file system cannot reach by `connection`. `selected` are
    columns (None: all).

    Raises:
        ConfigurationError: a column is not there.
        IncompleteError, ConfigurationError, MissingDocumentError: see `open_input`.
    """
    import pyarrow.dataset as ds

    store = stores(sink.bucket)
    committed = open_input(sink, topic, store, asked_hours, allow_incomplete=allow_incomplete)
    schema = _select(committed.schema, selected, sink)
    if committed.form.format == "parquet" and _can_use_file_system(connection):
        stored = [one.with_type(_to_stored_type(one.type, committed.recorded.get(one.name))) for one in schema]
        schema = pa.schema(stored)
        form, bucket = ds.ParquetFileFormat(), _make_file_system(connection)
        fragments = [
            form.make_fragment(f"{sink.bucket}/{file.key}", bucket, file_size=file.bytes) for file, _ in committed.files
        ]
        return ds.FileSystemDataset(fragments, schema, form, bucket)

    def read(file: tuple[File, ObjectShape]) -> pa.Table:
        return pa.Table.from_batches(read_object(store, sink.bucket, file[0].key, file[1], schema), schema)

    with ThreadPoolExecutor(_AT_ONCE, "s3lake-read") as pool:
        return ds.dataset(pa.concat_tables([schema.empty_table(), *pool.map(read, committed.files)]))


def find_reader(annotation: Any) -> Callable[[Dataset], Any] | None:
    """Return what converts a dataset to an input's annotation; None for Spark's DataFrame, and for no annotation.

    Only the package of the annotation itself is imported.
    """
    module, name = getattr(annotation, "__module__", ""), getattr(annotation, "__name__", "")
    return _FORMS.get((module.lstrip("_").partition(".")[0], name))


def _select(schema: pa.Schema, selected: Sequence[str] | None, sink: Sink) -> pa.Schema:
    if selected is None:
        return schema
    unknown = [name for name in selected if name not in schema.names]
    if unknown:
        raise ConfigurationError(
            f"metadata columns of an input: sink {sink.name} has no column {unknown[0]!r}; it has "
            f"{', '.join(schema.names)}"
        )
    return pa.schema([schema.field(name) for name in selected])


def _to_stored_type(read: pa.DataType, type: Type | None) -> pa.DataType:
    """Return what Parquet has of a column that is read as `read`: a UUID is a text to Spark alone."""
    match type:
        case Primitive.UUID:
            return pa.uuid()
        case List(item):
            return pa.list_(_to_stored_type(read.value_type, item))
        case Map(value):
            return pa.map_(read.key_type, _to_stored_type(read.item_type, value))
        case Struct(fields):
            return pa.struct([one.with_type(_to_stored_type(one.type, fields.get(one.name))) for one in read])
    return read


def _import_reader(library: str) -> Any:
    with require_extra(library, f"an input of {library}"):
        return import_module(library)


_FORMS: dict[tuple[str, str], Callable[[Dataset], Any]] = {
    ("pyarrow", "Dataset"): lambda dataset: dataset,
    ("pyarrow", "Table"): lambda dataset: dataset.to_table(),
    ("polars", "LazyFrame"): lambda dataset: _import_reader("polars").scan_pyarrow_dataset(dataset),
    ("polars", "DataFrame"): lambda dataset: _import_reader("polars").from_arrow(dataset.to_table()),
    ("duckdb", "DuckDBPyRelation"): lambda dataset: _import_reader("duckdb").from_arrow(dataset),
    ("pandas", "DataFrame"): lambda dataset: dataset.to_table().to_pandas(),
}


def _can_use_file_system(connection: S3Connection) -> bool:
    """Return whether Arrow's file system has every setting that these objects need."""
    role_with_keys = connection.role_arn and connection.access_key_id
    missing = connection.profile, connection.role_token_file, connection.role_endpoint_url, connection.customer_key
    return not role_with_keys and not any(missing)


def _make_file_system(connection: S3Connection) -> Any:
    """Return the file system of Arrow with the settings of our connection to S3."""
    from pyarrow.fs import S3FileSystem

    scheme, _, host = (connection.endpoint_url or "").rpartition("://")
    settings = {
        "endpoint_override": host or None,
        "scheme": scheme or None,
        "region": connection.region,
        "access_key": connection.access_key_id,
        "secret_key": connection.secret_access_key,
        "session_token": connection.session_token,
        "role_arn": connection.role_arn,
        "external_id": connection.role_external_id,
        "session_name": connection.role_session_name if connection.role_arn else None,
        "proxy_options": connection.proxy,
        "tls_ca_file_path": connection.ca_file,
        "anonymous": connection.unsigned or None,
        "force_virtual_addressing": None if connection.path_style else True,
        "connect_timeout": connection.connect_timeout_s,
        "request_timeout": connection.read_timeout_s,
    }
    return S3FileSystem(**{name: value for name, value in settings.items() if value is not None})
