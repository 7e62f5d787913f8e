"""Catalogues of one sink, and resources under the keys that they have."""

from collections.abc import Mapping
from types import SimpleNamespace

from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Config, Kafka, Sink
from s3lake.store.connection import S3Connection

NO_S3 = SimpleNamespace(connection=S3Connection())
"""A resource of an S3 that is never asked anything."""


def catalogue(sink: Sink, *topics: str) -> Catalogue:
    """Of a sink, with its own topics where no others are given."""
    config = Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,))
    return Catalogue(config, topics={sink.name: topics or sink.topics})


def parts(**resources: object) -> Mapping[str, object]:
    """Resources under our keys; those that are not given are never asked."""
    return {"s3lake_s3": resources.get("s3", NO_S3), "s3lake_spark": resources.get("spark", object())}


def s3_of(config: Config) -> SimpleNamespace:
    """Return the S3 of a configuration: a context for a test copies resources of Dagster, without what is private."""
    return SimpleNamespace(connection=S3Connection.of(config.s3))
