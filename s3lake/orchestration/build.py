"""The Dagster definitions of a configuration, and its resources: an IO manager for each sink, S3 and Spark."""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.config.model import S3, Config, Sink
from s3lake.errors import ConfigurationError
from s3lake.orchestration.assets import SinkAssets, define_assets, land_asset_hours
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.change_jobs import change_jobs
from s3lake.orchestration.downstream import automation_sensor, counts_by_type, forward_assets
from s3lake.orchestration.io_manager import SinkIOManager
from s3lake.orchestration.jobs import group_job, hourly_schedule, land_job, nightly_schedule, prune_job
from s3lake.orchestration.other_zones import other_zones_sensor
from s3lake.orchestration.sealed_in_time import in_time_checks, in_time_sensor
from s3lake.orchestration.sensor import group_sensor, topic_sensor
from s3lake.orchestration.sink_topics import find_topics_of_sinks
from s3lake.orchestration.table_names import refuse_shared_names
from s3lake.orchestration.translator import SinkTranslator

if TYPE_CHECKING:
    from s3lake.orchestration.s3_resource import S3Resource
    from s3lake.orchestration.spark_resource import SparkResource

_NIGHTLY = {"clean": 40, "retention": 50}
"""Changes that are done every night, and the minute past three."""


def build_definitions(
    config: Config,
    *,
    translator: SinkTranslator | None = None,
    assets: Sequence[SinkAssets] = (),
    topic_assets: bool = True,
    resources: Mapping[str, Any] | None = None,
    sensors_running: bool = False,
    matching: Mapping[str, Sequence[str]] | None = None,
    project: dg.Definitions | None = None,
) -> dg.Definitions:
    """Build assets, sensors, checks, jobs, schedules and resources of a configuration. Asks neither Kafka nor S3.

    They can be merged with any project: its executor is that of its own jobs alone, and its resources have keys of
    their own.

    Args:
        config: the configuration.
        translator: the names, descriptions and metadata of assets, and the prefix that a second configuration needs.
        assets: made by `sink_assets`, in place of ours; their topics are not landed together.
        topic_assets: false if the project has the external assets of topics itself.
        resources: the project's own for `s3` and `spark`: an object, or the key of one.
        sensors_running: start the sensors, and the nightly clean, when the code location is first loaded.
        matching: topics of every `topics_regex`; without it the broker is asked, or its last answer is taken.
        project: the project's own definitions, with which ours are merged: names of its tables that clash in a sink
            are refused at once, and not in the first run.

    Raises:
        ConfigurationError: two topics or sinks would get one name in Dagster, two assets of the project one name in a
            sink, or something given belongs to no sink.
    """
    catalog = Catalog(config, translator, topics=find_topics_of_sinks(config, matching), resources=resources)
    topics, routes, own = catalog.topics, catalog.routes, _find_own_sinks(catalog, assets)
    jobs = {sink.name: land_job(catalog, sink) for sink in config.sinks if topics[sink.name]}
    groups = {
        sink.name: group_job(catalog, sink)
        for sink in config.sinks
        if sink.name not in own and sink.lands_together(len(topics[sink.name]))
        if topics[sink.name] or sink.topics_regex
    }
    changes = change_jobs(catalog)
    own_jobs = [*jobs.values(), *groups.values(), *changes.values()]
    prunes = [] if config.run_history is None else [prune_job(catalog, own_jobs, config.run_history)]
    running = dg.DefaultSensorStatus.RUNNING if sensors_running else dg.DefaultSensorStatus.STOPPED
    nightly = dg.DefaultScheduleStatus.RUNNING if sensors_running else dg.DefaultScheduleStatus.STOPPED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill policies
        examples = [counts_by_type(catalog, *route) for route in routes if _has_types(config, route.sink)]
    downstream = [*examples, *forward_assets(catalog)]
    ours = dg.Definitions(
        assets=[
            *(catalog.topic_spec(topic) for topic in sorted({route.topic for route in routes}) if topic_assets),
            *chain.from_iterable(
                define_assets(catalog, sink, land_asset_hours) for sink in config.sinks if sink.name not in own
            ),
            *chain.from_iterable(assets),
            *(catalog.specs(*route).sealed for route in routes),
            *(catalog.specs(*route).dead_letters for route in routes if route.sink.errors.tolerance == "all"),
            *downstream,
        ],
        asset_checks=[in_time_checks(catalog, config.sink(name)) for name in jobs],
        sensors=[
            *_landing_sensors(catalog, jobs, groups, running),
            *(in_time_sensor(catalog, config.sink(name), running) for name in jobs),
            *([automation_sensor(catalog, downstream, running)] if downstream else []),
            other_zones_sensor(catalog, running),
        ],
        jobs=[*own_jobs, *prunes],
        schedules=[
            *(
                hourly_schedule(
                    catalog, config.sink(name), groups.get(name, job), topics[name] if name in groups else ()
                )
                for name, job in jobs.items()
            ),
            *(
                nightly_schedule(catalog, name, changes[name], minute, nightly, {"confirmed": True})
                for name, minute in _NIGHTLY.items()
                if name in changes
            ),
            *(nightly_schedule(catalog, "prune_runs", job, 30, nightly) for job in prunes),
        ],
        resources=define_resources(catalog),
    )
    if project is None:
        return ours
    merged = dg.Definitions.merge(project, ours)
    refuse_shared_names(catalog, (one for one in merged.assets or () if isinstance(one, dg.AssetsDefinition)))
    return merged


def resources(
    config: Config, translator: SinkTranslator | None = None, *, s3: object = None, spark: object = None
) -> dict[str, object]:
    """Return the resources that `sink_assets`, and assets downstream of them, need in `dg.Definitions`.

    Args:
        config: the configuration.
        translator: the translator of the assets; the keys begin with its prefix, else with `s3lake`.
        s3: a `dagster_aws.s3.S3Resource` of the project, or the key of one, in place of the configuration's S3.
        spark: a resource with a `spark_session`, as `LazyPySparkResource`, or the key of one, in place of its Spark.

    Returns:
        `s3lake_<sink>_io_manager`, the IO manager of each sink; `s3lake_s3`, an `S3Resource`; `s3lake_spark`, a
        `SparkResource`. The last two are left out if the project has them under keys of its own.
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
        from s3lake.orchestration.spark_resource import make_spark_resource

        return make_spark_resource(config.spark)

    managers = {catalog.io_manager_key(sink): _define_io_manager(catalog, sink) for sink in config.sinks}
    shared = {keys["s3"]: own.get("s3", our_s3), keys["spark"]: own.get("spark", our_spark)}
    return {**managers, **{key: resource for key, resource in shared.items() if not isinstance(resource, str)}}


def _landing_sensors(
    catalog: Catalog, jobs: Mapping[str, Any], groups: Mapping[str, Any], status: dg.DefaultSensorStatus
) -> list[dg.SensorDefinition]:
    """Return a sensor for each topic that is landed alone, and one for each sink that lands its topics together."""
    alone = defaultdict[str, list[Sink]](list)
    for sink, topic in catalog.routes:
        if sink.name not in groups:
            alone[topic].append(sink)
    sensors = [topic_sensor(catalog, topic, alone[topic], jobs, status) for topic in sorted(alone)]
    observed = set(alone)  # each topic by one sensor
    for name, group in groups.items():
        jobs_of_sink = [job for job in (group, jobs.get(name)) if job]
        sensors.append(group_sensor(catalog, catalog.config.sink(name), jobs_of_sink, frozenset(observed), status))
        observed.update(catalog.topics[name])
    return sensors


def _find_own_sinks(catalog: Catalog, assets: Sequence[SinkAssets]) -> set[str]:
    """Return the sinks whose assets the project defines itself, also if no topic matches yet."""
    for key in sorted(chain.from_iterable(asset.keys for asset in chain.from_iterable(assets))):
        if catalog.route(key) is None:
            raise ConfigurationError(
                f"assets: {key.to_user_string()} is not an asset of a sink of this configuration: define it by "
                "sink_assets, of the same configuration and with the same translator"
            )
    tags = {of_sink.sink for of_sink in assets}
    return {sink.name for sink in catalog.config.sinks if catalog.tag(sink) in tags}


def _has_types(config: Config, sink: Sink) -> bool:
    return config.examples and sink.format.type == "parquet" and sink.converter.value == "json"


def _define_io_manager(catalog: Catalog, sink: Sink) -> dg.IOManagerDefinition:
    def create_io_manager(context: dg.InitResourceContext) -> SinkIOManager:
        return SinkIOManager(catalog, sink, context.resources)

    return dg.IOManagerDefinition(
        create_io_manager,
        required_resource_keys=catalog.own_resource_keys("s3", "spark"),
        description=f"Lands what assets return in sink {sink.name}, and reads it back.",
    )
