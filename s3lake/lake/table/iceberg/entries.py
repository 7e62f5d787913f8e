"""Committed files as entries of a table: only their footers are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from s3lake import hours
from s3lake.errors import DataLossError, TableConflictError
from s3lake.index.commit.documents import File
from s3lake.records.schema.columns.limits import LANDED_HOUR
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_AT_ONCE = 32


@dataclass
class Footers:
    """The footers of files of one bucket, each read once, also if a commit is tried again."""

    bucket: str
    make_io: Callable[[], FileIO]
    _by_key: dict[str, Any] = field(default_factory=dict)

    def read(self, files: Sequence[File]) -> Mapping[str, Any]:
        """Return the footers by key.

        Raises:
            FileNotFoundError: a file was deleted.
            DataLossError: a file has another number of rows than its manifest.
        """
        import pyarrow.dataset as ds

        scheme = self.make_io().fs_by_scheme("s3", self.bucket)  # type: ignore[attr-defined]
        parquet = ds.ParquetFileFormat()

        def read_footer(file: File) -> Any:
            # With the known size, the footer is one request.
            metadata = parquet.make_fragment(f"{self.bucket}/{file.key}", scheme, file_size=file.bytes).metadata
            if metadata.num_rows != file.records:
                raise DataLossError(
                    f"s3://{self.bucket}/{file.key} has {format_count(metadata.num_rows, 'rows')}, its manifest "
                    f"states {file.records:,}: `s3lake verify` shows what is wrong with the hour"
                )
            return metadata

        missing = [file for file in files if file.key not in self._by_key]
        with ThreadPoolExecutor(_AT_ONCE, "s3lake-footers") as pool:
            for file, metadata in zip(missing, pool.map(read_footer, missing), strict=True):
                self._by_key[file.key] = metadata
        return {file.key: self._by_key[file.key] for file in files}


class Entries:
    """Makes entries of a table's manifest, with the statistics of footers."""

    def __init__(self, metadata: TableMetadata, bucket: str) -> None:
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping

        self._bucket = bucket
        self._schema, self._spec = metadata.schema(), metadata.spec()
        self._hour = find_hour(self._spec, self._schema)
        self._plan = compute_statistics_plan(self._schema, metadata.properties)
        self._paths = parquet_path_to_id_mapping(self._schema)

    def make_data_file(self, hour: str, file: File, footer: Any) -> DataFile:
        """Return the entry of a file that landed in `hour`."""
        from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer, stats_columns=self._plan, parquet_column_mapping=self._paths
        )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=make_object_uri(self._bucket, file.key),
            file_format=FileFormat.PARQUET,
            partition=Record(*self._find_partition(hour, file, statistics)),
            file_size_in_bytes=file.bytes,
            sort_order_id=None,
            spec_id=self._spec.spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _find_partition(self, hour: str, file: File, statistics: Any) -> list[Any]:
        """Return the partition of a file: the hour, and fields whose minimum and maximum are equal."""
        try:
            for part in self._spec.fields:
                nulls = statistics.null_value_counts.get(part.source_id, 0)
                values = statistics.value_counts.get(part.source_id, 0)
                if nulls < values and (nulls or part.source_id not in statistics.column_aggregates):
                    raise ValueError(f"{nulls} of its {values} rows have no {part.name}, of others nothing is known")
            values = list(statistics.partition(self._spec, self._schema))
        except ValueError as error:
            raise TableConflictError(
                f"s3://{self._bucket}/{file.key} belongs to no partition of the table: {error}. Let "
                "layout.partition_by name the field and rewrite the hour, or leave it out of the table's partitions"
            ) from None
        values[self._hour] = hours.start_ms(hour) * 1000
        return values


def find_hour(spec: PartitionSpec, schema: Schema) -> int:
    """Return the position of the hour of landing in a table's partitions.

    Raises:
        TableConflictError: the table is not partitioned by it, which alone gives rows their hour.
    """
    for position, part in enumerate(spec.fields):
        if schema.find_column_name(part.source_id) == LANDED_HOUR and str(part.transform) == "identity":
            return position
    raise TableConflictError(
        f"the table is not partitioned by {LANDED_HOUR}, so nothing shows of which hour its files are: partition it by "
        "the identity of that column, or drop it and run `s3lake table sync`, which writes no file of data"
    )


def make_object_uri(bucket: str, key: str) -> str:
    """Return the name of a file in tables."""
    return f"s3://{bucket}/{key}"
