"""From a configuration to Dagster definitions: the factory that joins everything."""

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, starmap
from typing import Any

import dagster as dg

from s3lake.orchestration import names
from s3lake.orchestration.assets import sink_asset, topic_asset
from s3lake.orchestration.automation import follower
from s3lake.orchestration.checks import sink_checks
from s3lake.orchestration.example import counts_by_type
from s3lake.orchestration.fleet import fleet_job
from s3lake.orchestration.fleet_sensor import fleet_sensor
from s3lake.orchestration.in_time import in_time_checks, in_time_sensor
from s3lake.orchestration.io_manager import SinkIOManager
from s3lake.orchestration.resources import S3, KafkaResource, SparkResource
from s3lake.orchestration.schedules import clean_job, daily_clean, hourly_schedule, sink_job
from s3lake.orchestration.sealed import sealed_asset
from s3lake.orchestration.sensors import topic_sensor
from s3lake.orchestration.topics import topics_of
from s3lake.sink import Config, Sink, sinks_of


def build_definitions(
    config: Config,
    *,
    resources: Mapping[str, Any] | None = None,
    sensors_running: bool = False,
    matching: Mapping[str, Sequence[str]] | None = None,
) -> dg.Definitions:
    """Assets, sensors, checks, jobs, schedules and resources of a configuration. Asks neither Kafka nor S3 to load.

    Args:
        config: the configuration.
        resources: stand-ins for `kafka`, `s3` and `spark`.
        sensors_running: start the sensors, and the nightly clean, when the code location is first loaded.
        matching: topics of every `topics_regex`; without it the broker is asked, or what it said last is taken.

    Raises:
        ConfigurationError: two topics or sinks would get one name in Dagster.
    """
    by_sink = topics_of(config, matching)
    topics = sorted(set(chain.from_iterable(by_sink.values())))
    routes = [(config.sink(name), topic) for name, found in by_sink.items() for topic in found]
    names.refuse_clashes((topic, names.identifier("kafka", topic)) for topic in topics)
    names.refuse_clashes((f"{sink.name} of {topic}", names.identifier(sink.name, topic)) for sink, topic in routes)
    jobs = {sink.name: sink_job(sink, by_sink[sink.name]) for sink in config.sinks if by_sink[sink.name]}
    fleets = {name: fleet_job(config.sink(name), by_sink[name]) for name in by_sink if _is_fleet(config, by_sink, name)}
    cleans = {name: clean_job(config.sink(name), by_sink[name]) for name in jobs}
    single = {name: found for name, found in by_sink.items() if name not in fleets}
    landed = {topic: _landing(topic, single, config.sinks) for topic in topics}
    alone = {topic: sinks for topic, sinks in landed.items() if sinks}
    status = dg.DefaultSensorStatus.RUNNING if sensors_running else dg.DefaultSensorStatus.STOPPED
    nightly = dg.DefaultScheduleStatus.RUNNING if sensors_running else dg.DefaultScheduleStatus.STOPPED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill policies are beta, and what hours_per_run is made of
        assets = [sink_asset(*route) for route in routes]
        examples = [counts_by_type(*route) for route in routes if _has_types(config, route[0])]
    return dg.Definitions(
        assets=[*map(topic_asset, topics), *assets, *starmap(sealed_asset, routes), *examples],
        asset_checks=[
            *starmap(sink_checks, routes),
            *(in_time_checks(config.sink(name), by_sink[name]) for name in jobs),
        ],
        sensors=[
            *(topic_sensor(topic, sinks, jobs, status) for topic, sinks in alone.items()),
            *(
                fleet_sensor(config.sink(name), by_sink[name], {*alone, *_earlier(name, fleets, by_sink)}, status)
                for name in fleets
            ),
            *(in_time_sensor(config.sink(name), by_sink[name], status) for name in jobs),
            *follower(examples, status),
        ],
        jobs=[*jobs.values(), *fleets.values(), *cleans.values()],
        schedules=[
            *(hourly_schedule(config.sink(name), job) for name, job in jobs.items() if name not in fleets),
            *(hourly_schedule(config.sink(name), job, by_sink[name]) for name, job in fleets.items() if by_sink[name]),
            *(daily_clean(config.sink(name), job, nightly) for name, job in cleans.items()),
        ],
        resources=_resources(config, resources or {}),
        # A JVM per step costs more than the steps: one process, one session a run.
        executor=dg.in_process_executor,
    )


def _resources(config: Config, stand_ins: Mapping[str, Any]) -> dict[str, Any]:
    s3, spark = stand_ins.get("s3") or S3(config.s3), stand_ins.get("spark") or SparkResource(config.spark)
    dumps = [sink.model_dump_json(by_alias=True) for sink in config.sinks]
    return {
        "kafka": stand_ins.get("kafka") or KafkaResource(config.kafka),
        "s3": s3,
        "spark": spark,
        "sink": SinkIOManager(sinks=dumps, s3=s3, spark=spark),
    }


def _landing(topic: str, by_sink: Mapping[str, Sequence[str]], sinks: Sequence[Sink]) -> list[Sink]:
    return [sink for sink in sinks_of(topic, sinks) if topic in by_sink.get(sink.name, ())]


def _is_fleet(config: Config, by_sink: Mapping[str, Sequence[str]], name: str) -> bool:
    sink = config.sink(name)
    return sink.is_fleet(len(by_sink[name])) and bool(by_sink[name] or sink.topics_regex)


def _earlier(name: str, fleets: Iterable[str], by_sink: Mapping[str, Sequence[str]]) -> set[str]:
    """Topics that the sensor of an earlier fleet observes."""
    before = itertools.takewhile(lambda one: one != name, fleets)
    return {topic for one in before for topic in by_sink[one]}


def _has_types(config: Config, sink: Sink) -> bool:
    return config.examples and sink.format.type == "parquet" and sink.converter.value == "json"
