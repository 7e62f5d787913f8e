"""From a configuration to Dagster definitions: the factory that joins everything."""

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration.assets import AssetBody, SinkAssets, define_assets, land
from s3lake.orchestration.automation import follower
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.change_jobs import change_jobs
from s3lake.orchestration.example import counts_by_type
from s3lake.orchestration.forwards import forward_assets
from s3lake.orchestration.group import group_job
from s3lake.orchestration.jobs import hourly_schedule, land_job, nightly_schedule, prune_job
from s3lake.orchestration.resources import define_resources
from s3lake.orchestration.sealed_in_time import in_time_checks, in_time_sensor
from s3lake.orchestration.sensor import group_sensor, topic_sensor
from s3lake.orchestration.topics import topics_of
from s3lake.orchestration.translator import SinkTranslator
from s3lake.sink import Config, Sink, sinks_for_topic

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
) -> dg.Definitions:
    """Assets, sensors, checks, jobs, schedules and resources of a configuration. Asks neither Kafka nor S3 to load.

    They can be merged with any project: its executor is that of its own jobs alone, and its resources have keys of
    their own.

    Args:
        config: the configuration.
        translator: what assets are called, what is said of them, and the prefix that a second configuration needs.
        assets: made by `sink_assets`, in place of ours; their topics are not landed together.
        topic_assets: false where the project has the external assets of topics itself.
        resources: the project's own for `s3` and `spark`: an object, or the key of one.
        sensors_running: start the sensors, and the nightly clean, when the code location is first loaded.
        matching: topics of every `topics_regex`; without it the broker is asked, or what it said last is taken.

    Raises:
        ConfigurationError: two topics or sinks would get one name in Dagster, or something given belongs to no sink.
    """
    catalogue = Catalogue(config, translator, topics=topics_of(config, matching), resources=resources)
    return definitions_of(
        catalogue, resources or {}, assets=assets, topic_assets=topic_assets, sensors_running=sensors_running
    )


def definitions_of(
    catalogue: Catalogue,
    resources: Mapping[str, Any],
    *,
    assets: Sequence[SinkAssets] = (),
    topic_assets: bool = True,
    sensors_running: bool = False,
    body: AssetBody = land,
) -> dg.Definitions:
    """The same of a catalogue; `body` is that of every asset."""
    config, by_sink, routes = catalogue.config, catalogue.topics, catalogue.routes
    own = _owned(catalogue, assets)
    topics = sorted(set(chain.from_iterable(by_sink.values())))
    jobs = {sink.name: land_job(catalogue, sink) for sink in config.sinks if by_sink[sink.name]}
    groups = {
        sink.name: group_job(catalogue, sink)
        for sink in config.sinks
        if body is land and sink.name not in own and _lands_together(sink, by_sink[sink.name])
    }
    changes = change_jobs(catalogue)
    own_jobs = [*jobs.values(), *groups.values(), *changes.values()]
    prunes = [] if config.run_history is None else [prune_job(catalogue, own_jobs, config.run_history)]
    single = {name: topics_of_sink for name, topics_of_sink in by_sink.items() if name not in groups}
    landed = {topic: _landing(topic, single, config.sinks) for topic in topics}
    alone = {topic: sinks for topic, sinks in landed.items() if sinks}
    status = dg.DefaultSensorStatus.RUNNING if sensors_running else dg.DefaultSensorStatus.STOPPED
    nightly = dg.DefaultScheduleStatus.RUNNING if sensors_running else dg.DefaultScheduleStatus.STOPPED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill policies
        examples = [counts_by_type(catalogue, *route) for route in routes if _has_types(config, route[0])]
    forwards = forward_assets(catalogue)
    return dg.Definitions(
        assets=[
            *(catalogue.topic(topic) for topic in topics if topic_assets),
            *chain.from_iterable(define_assets(catalogue, sink, body) for sink in config.sinks if sink.name not in own),
            *chain.from_iterable(assets),
            *(catalogue.sealed(*route) for route in routes),
            *(catalogue.dead_letters(*route) for route in routes if route[0].errors.tolerance == "all"),
            *examples,
            *forwards,
        ],
        asset_checks=[
            *(in_time_checks(catalogue, config.sink(name)) for name in jobs),
        ],
        sensors=[
            *(topic_sensor(catalogue, topic, sinks, jobs, status) for topic, sinks in alone.items()),
            *(
                group_sensor(
                    catalogue,
                    config.sink(name),
                    [job for job in (group, jobs.get(name)) if job],
                    {*alone, *_earlier(name, groups, by_sink)},
                    status,
                )
                for name, group in groups.items()
            ),
            *(in_time_sensor(catalogue, config.sink(name), status) for name in jobs),
            *follower(catalogue.name("follow_sealed_hours"), [*examples, *forwards], status),
        ],
        jobs=[*own_jobs, *prunes],
        schedules=[
            *(
                hourly_schedule(
                    catalogue,
                    config.sink(name),
                    groups.get(name, job),
                    together=by_sink[name] if name in groups else (),
                )
                for name, job in jobs.items()
            ),
            *(
                nightly_schedule(catalogue, name, changes[name], minute, nightly, {"confirmed": True})
                for name, minute in _NIGHTLY.items()
                if name in changes
            ),
            *(nightly_schedule(catalogue, "prune_runs", job, 30, nightly) for job in prunes),
        ],
        resources=define_resources(catalogue, **resources),
    )


def _owned(catalogue: Catalogue, assets: Sequence[SinkAssets]) -> set[str]:
    """Return the sinks whose assets the project defines itself, also if no topic matches yet."""
    for key in sorted(chain.from_iterable(asset.keys for asset in chain.from_iterable(assets))):
        if catalogue.route(key) is None:
            raise ConfigurationError(
                f"assets: {key.to_user_string()} is not an asset of a sink of this configuration: define it by "
                "sink_assets, of the same configuration and with the same translator"
            )
    tags = {of_sink.sink for of_sink in assets}
    return {sink.name for sink in catalogue.config.sinks if catalogue.tag(sink) in tags}


def _landing(topic: str, by_sink: Mapping[str, Sequence[str]], sinks: Sequence[Sink]) -> list[Sink]:
    return [sink for sink in sinks_for_topic(topic, sinks) if topic in by_sink.get(sink.name, ())]


def _lands_together(sink: Sink, topics: Sequence[str]) -> bool:
    return sink.lands_together(len(topics)) and bool(topics or sink.topics_regex)


def _earlier(name: str, groups: Iterable[str], by_sink: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the topics that the sensor of an earlier group observes."""
    before = itertools.takewhile(lambda one: one != name, groups)
    return set(chain.from_iterable(by_sink[one] for one in before))


def _has_types(config: Config, sink: Sink) -> bool:
    return config.examples and sink.format.type == "parquet" and sink.converter.value == "json"
