"""Topics, connections and sessions, opened with the resources that a run or a tick has."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from s3lake.config.model import Sink
from s3lake.index.store.s3_connection import S3Connection
from s3lake.orchestration.catalog import Catalog

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark
    from s3lake.land.topic.topic_sink import TopicSink


def open_topic(
    resources: Any,
    catalog: Catalog,
    sink: Sink,
    topic: str,
    *,
    spark: "Callable[[], OpenedSpark] | None" = None,
    fail_fast: bool = False,
) -> "TopicSink":
    """Open a topic of a sink with the S3 of a context's resources. See `land.topic.open_topic_sink.open_topic_sink`."""
    from s3lake.land.topic import open_topic_sink

    s3 = find_s3_connection(resources, catalog)
    return open_topic_sink.open_topic_sink(catalog.config, sink, topic, s3, spark, fail_fast=fail_fast)


def find_sink_connection(resources: Any, catalog: Catalog, sink: Sink) -> S3Connection:
    """Return how the bucket of a sink is reached with the S3 of a context's resources."""
    from s3lake.land.topic import open_topic_sink

    return open_topic_sink.s3_connection(catalog.config, sink, find_s3_connection(resources, catalog))


def find_s3_connection(resources: Any, catalog: Catalog) -> S3Connection | None:
    """Return how the project's own resource reaches S3. Return None if it has none: it is in the configuration."""
    for key in catalog.own_resource_keys("s3"):
        s3 = resource_object(resources, key)
        # An s3lake.S3Resource knows more than the fields of dagster-aws.
        return s3.connection if hasattr(s3, "connection") else S3Connection.from_resource(s3)
    return None


def open_spark_of_run(resources: Any, catalog: Catalog) -> "OpenedSpark":
    """Return what jobs run in, of the project's own resource, else of the configuration."""
    for key in catalog.own_resource_keys("spark"):
        spark = resource_object(resources, key)
        # A resource of dagster-pyspark has a session only.
        return spark.open_spark() if hasattr(spark, "open_spark") else spark.spark_session  # type: ignore[no-any-return]
    from s3lake.land import spark as configured

    return configured.open_spark(catalog.config.spark)


def resource_object(resources: Any, key: str) -> Any:
    """Return a resource as the project gave it. As an attribute, one of dagster-aws is the client that it makes."""
    return resources.original_resource_dict[key]
