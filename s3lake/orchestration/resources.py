"""The parts that assets and sensors ask Dagster for: the cluster, the S3 API and the Spark session.

Plain objects, so that no value of theirs, secret or not, shows in the UI or in run config. Anything with the same
attributes can stand in: a `dagster_pyspark.LazyPySparkResource` for `spark`, a `dagster_aws.s3.S3Resource` for `s3`.
"""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from s3lake import sink
from s3lake.orchestration.catalogue import ResourceKeys
from s3lake.source.kafka.client import KafkaOffsets
from s3lake.source.kafka.dead_letter_topic import DeadLetterTopic
from s3lake.source.kafka.group import PublishedGroup
from s3lake.source.opening import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from s3lake.land.landing import Landing
    from s3lake.land.task.pipeline import Stores
    from s3lake.source.kafka.reader import Brokers
    from s3lake.source.opening import Source
    from s3lake.store.connection import S3Connection


class KafkaResource:
    """The cluster: its offsets, and how Spark's tasks reach it."""

    def __init__(self, kafka: sink.Kafka, timeout_s: float = 5.0) -> None:
        """Every question to Kafka is answered, or fails, within `timeout_s` seconds."""
        self.offsets = KafkaOffsets(kafka.bootstrap_servers, kafka.properties, timeout_s)
        self._kafka = kafka

    @property
    def reader(self) -> "Brokers":
        """The cluster, as Spark's tasks reach it."""
        from s3lake.source.kafka.reader import Brokers

        return Brokers(self._kafka.bootstrap_servers, self._kafka.properties)

    def group(self, route: sink.Sink) -> PublishedGroup:
        """The consumer group that is told how far `route` is."""
        return PublishedGroup(f"s3lake-{route.name}", self._kafka.bootstrap_servers, self._kafka.properties)

    def dead_letter_topic(self, route: sink.Sink, topic: str) -> DeadLetterTopic | None:
        """Where refused records of `topic` go; None where the sink names no such topic."""
        return DeadLetterTopic.of(route, topic, self._kafka.bootstrap_servers, self._kafka.properties)


class SourceResource:
    """A source that is not Kafka: nobody there is told how far it is landed, and no letters go there."""

    def __init__(self, source: "Source") -> None:
        self.offsets, self.reader = source.offsets, source.reader

    def group(self, route: sink.Sink) -> None:
        """There is none."""

    def dead_letter_topic(self, route: sink.Sink, topic: str) -> None:
        """There is none: the configuration refuses it."""


def source_of(config: sink.Config, timeout_s: float = 5.0) -> KafkaResource | SourceResource:
    """Where the topics of a configuration are; a question to it is answered, or fails, within `timeout_s` seconds."""
    if config.kafka is not None:
        return KafkaResource(config.kafka, timeout_s)
    return SourceResource(opened(config, timeout_s))


class SparkResource:
    """One lazily made session a process: a local or cluster master, or `sc://host:port` for Spark Connect."""

    def __init__(self, spark: sink.Spark | None = None) -> None:
        self._spark = spark or sink.Spark()

    @property
    def spark_session(self) -> "SparkSession":
        from s3lake.land.spark import session

        return session(self._spark)


class S3Resource:
    """The S3 API of a configuration; boto3 is imported when it is first used."""

    def __init__(self, s3: sink.S3) -> None:
        self._s3 = s3

    @property
    def connection(self) -> "S3Connection":
        """Plain values, as the workers get them."""
        from s3lake.store.connection import S3Connection

        return S3Connection.of(self._s3)

    def get_client(self) -> Any:
        """A boto3 client, as `dagster_aws.s3.S3Resource` gives one."""
        from s3lake.store.client import client

        return client(self.connection, self.connection.max_attempts)


def session_of(spark: Any, *, sql: bool = False) -> "SparkSession":
    """The session of `SparkResource`, or of anything with a `spark_session`, once it is seen that it can do the work.

    Args:
        spark: the resource.
        sql: whether a sink's `sql` is part of the work.
    """
    from s3lake.land.spark.installation import fit

    return fit(getattr(spark, "spark_session", spark), sql=sql)


def stores(route: sink.Sink, s3: Any, *, hasty: bool = False) -> "Stores":
    """Opens buckets, here and in Spark's workers, through `s3lake`'s own or a `dagster_aws.s3.S3Resource`.

    Args:
        route: the sink whose buckets they are; what it says itself of S3 counts.
        s3: the resource for sinks that say nothing.
        hasty: give up within seconds, as a sensor must: it is asked again soon.
    """
    from s3lake.store.s3 import S3Store

    reached = connection(route, s3)
    if hasty:
        reached = replace(reached, max_attempts=2, connect_timeout_s=3.0, read_timeout_s=10.0, patience_s=0)
    return functools.partial(S3Store, reached)


def connection(route: sink.Sink, s3: Any) -> "S3Connection":
    """How a sink's bucket is reached: as it says itself, else by the resource."""
    from s3lake.store.connection import S3Connection

    if route.s3 is not None:
        return S3Connection.of(route.s3)
    return s3.connection if isinstance(s3, S3Resource) else S3Connection.from_resource(s3)


def landing(
    route: sink.Sink, topic: str, kafka: KafkaResource | SourceResource, s3: Any, spark: Any, *, hasty: bool = False
) -> "Landing":
    """What lands `topic` into `route`; the Spark session is made when there is something to read."""
    from s3lake.land.landing import Landing
    from s3lake.objects.readback.committed import index_of
    from s3lake.table.iceberg import LakeTable

    opened, table = stores(route, s3, hasty=hasty), None
    if route.table is not None:
        index = index_of(route, topic, opened(route.bucket))
        table = LakeTable.of(route, route.table, index, connection(route, s3))
    return Landing(
        sink=route,
        topic=topic,
        spark=lambda: spark.spark_session,
        stores=opened,
        table=table,
        offsets=kafka.offsets,
        reader=kafka.reader,
        # Stand-ins for `kafka` need not know of dead letters where no sink does.
        dead_letter_topic=kafka.dead_letter_topic(route, topic) if route.errors.dead_letter_topic else None,
        # Nor of a group where nothing can be landed.
        group=kafka.group(route) if route.publish_offsets and spark is not None else None,
    )


def looking(resources: Any, keys: ResourceKeys, route: sink.Sink, topic: str, *, hasty: bool = False) -> "Landing":
    """The same of the resources that a context has, for those who look and land nothing."""
    kafka, s3 = resource(resources, keys.kafka), resource(resources, keys.s3)
    return landing(route, topic, kafka, s3, spark=None, hasty=hasty)


def resource(resources: Any, key: str) -> Any:
    """A resource of a context as it was given: as an attribute, some of Dagster's are their clients."""
    return resources.original_resource_dict[key]
