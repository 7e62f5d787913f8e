"""Catalogs of one sink, and a resource for them."""

from collections.abc import Mapping
from types import SimpleNamespace

from s3lake.orchestration.catalog import Catalog
from s3lake.sink import Config, Kafka, Sink
from s3lake.store.connection import S3Connection

NO_S3 = SimpleNamespace(connection=S3Connection())
"""A resource of an S3 that is never asked anything."""


def catalog(sink: Sink, *topics: str, resources: Mapping[str, object] | None = None) -> Catalog:
    """Return the catalog of a sink, by default with the sink's own topics."""
    config = Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,))
    return Catalog(config, topics={sink.name: topics or sink.topics}, resources=resources)
