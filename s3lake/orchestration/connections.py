"""What a sink lands with, opened with the resources that a run or a tick has."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Sink
from s3lake.store.connection import S3Connection

if TYPE_CHECKING:
    from dagster_aws.s3 import S3Resource
    from dagster_pyspark import LazyPySparkResource
    from pyspark.sql import SparkSession

    from s3lake.land.landing import Landing


def open_topic(
    resources: Any,
    catalogue: Catalogue,
    sink: Sink,
    topic: str,
    *,
    spark: "Callable[[], SparkSession] | None" = None,
    fail_fast: bool = False,
) -> "Landing":
    """Open a topic of a sink with the S3 of a context's resources.

    Args:
        resources: the context's.
        catalogue: of the sink.
        sink: the sink.
        topic: the topic.
        spark: returns the session to land with; None to read the index only.
        fail_fast: give up within seconds if S3 does not answer, as a sensor must.
    """
    from s3lake.land import opening

    s3 = s3_connection(resource_object(resources, catalogue.keys.s3))
    return opening.open_topic_sink(catalogue.config, sink, topic, s3, spark, fail_fast=fail_fast)


def s3_connection(s3: "S3Resource") -> S3Connection:
    """Return how a resource reaches S3: s3lake's own knows it, any other is known by the fields of dagster-aws."""
    connection = getattr(s3, "connection", None)
    return connection if isinstance(connection, S3Connection) else S3Connection.from_resource(s3)


def spark_session(spark: "LazyPySparkResource", *, sql: bool = False) -> "SparkSession":
    """Return the session of a resource, after checking that it can do the work.

    Args:
        spark: the resource.
        sql: True if a sink's `sql` is part of the work.

    Raises:
        ConfigurationError: it is not a session, or has a setting with which columns would be different.
        SparkUnavailableError: it is of another Spark, or its workers have another s3lake or Python.
    """
    from s3lake.land.spark.installation import fit

    return fit(spark.spark_session, sql=sql)


def resource_object(resources: Any, key: str) -> Any:
    """Return a resource as the project gave it. As an attribute, one of dagster-aws is the client that it makes."""
    return resources.original_resource_dict[key]
