"""Kafka topics landed in S3 as hourly-partitioned Dagster assets, exactly once."""
