"""Committed objects as a table of Hive's kind: directories are partitions, and no list of files is kept.

For engines that read no Iceberg, and for formats that it has not. Whoever reads such a table lists the bucket, and sees
what a listing shows (docs/query.md).
"""

from s3lake.lake.table.hive.directories import HiveTable, build_table, cover_bucket, find_alike
from s3lake.lake.table.hive.statements import ENGINES

__all__ = ["ENGINES", "HiveTable", "build_table", "cover_bucket", "find_alike"]
