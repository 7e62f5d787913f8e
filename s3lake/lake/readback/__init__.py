"""Landed hours read again, through the index: as a DataFrame of Spark, and for Arrow, polars, DuckDB and pandas."""
