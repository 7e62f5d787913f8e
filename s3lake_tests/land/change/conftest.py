"""Indexes with a table that follows them, in a real S3 API."""

from s3lake_tests.lake.table.iceberg.conftest import make, shelf

__all__ = ["make", "shelf"]
