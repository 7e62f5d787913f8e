"""The Dagster resources of a configuration: an IO manager for each sink, S3 and Spark."""

from typing import TYPE_CHECKING

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.io_manager import SinkIOManager
from s3lake.orchestration.translator import SinkTranslator
from s3lake.sink import S3, Config, Sink

if TYPE_CHECKING:
    from s3lake.orchestration.s3_resource import S3Resource
    from s3lake.orchestration.spark_resource import SparkResource


def resources(
    config: Config, translator: SinkTranslator | None = None, *, s3: object = None, spark: object = None
) -> dict[str, object]:
    """Return the resources that `sink_assets`, and assets downstream of them, need in `dg.Definitions`.

    Args:
        config: the configuration.
        translator: that of the assets; the keys begin with its prefix, else with `s3lake`.
        s3: a `dagster_aws.s3.S3Resource` of the project, or the key of one, in place of the configuration's S3.
        spark: a resource with a `spark_session`, as `LazyPySparkResource`, or the key of one, in place of its Spark.

    Returns:
        `s3lake_<sink>`, the IO manager of each sink; `s3lake_s3`, an `S3Resource`; `s3lake_spark`, a `SparkResource`.
        The last two are left out if the project has them under keys of its own.
    """
    return define_resources(Catalog(config, translator, resources={"s3": s3, "spark": spark}))


def define_resources(catalog: Catalog) -> dict[str, object]:
    """Return the resources of a catalog, as `resources` does.

    Ours are made by functions whose closure holds the settings. What a field of a resource holds, Dagster shows in the
    UI and stores in snapshots.
    """
    config, own, keys = catalog.config, catalog.own_resources, catalog.resource_keys
    if "s3" in own and config.s3.objects != S3().objects:  # which it would silently leave out
        raise ConfigurationError(
            "the project's own resource for s3 does not know s3.objects: take that out, set it at the sinks "
            "(sinks[].s3), or do without the resource"
        )

    @dg.resource(description="The configuration's S3, as an s3lake.S3Resource.")
    def our_s3(_: dg.InitResourceContext) -> "S3Resource":
        from s3lake.orchestration.s3_resource import open_s3

        return open_s3(config.s3)

    @dg.resource(description="The configuration's Spark, as an s3lake.SparkResource.")
    def our_spark(_: dg.InitResourceContext) -> "SparkResource":
        from s3lake.orchestration.spark_resource import open_spark

        return open_spark(config.spark)

    managers = {catalog.io_manager_key(sink): _define_io_manager(catalog, sink) for sink in config.sinks}
    shared = {keys["s3"]: own.get("s3", our_s3), keys["spark"]: own.get("spark", our_spark)}
    return {**managers, **{key: resource for key, resource in shared.items() if not isinstance(resource, str)}}


def _define_io_manager(catalog: Catalog, sink: Sink) -> dg.IOManagerDefinition:
    def create_io_manager(context: dg.InitResourceContext) -> SinkIOManager:
        return SinkIOManager(catalog, sink, context.resources)

    return dg.IOManagerDefinition(
        create_io_manager,
        required_resource_keys=catalog.own_resource_keys("s3", "spark"),
        description=f"Lands what assets return in sink {sink.name}, and reads it back.",
    )
