"""The job that replays dead letters of a sink, from the UI: `s3lake dead-letters replay`.

One op for all topics of a sink: an op of each topic's asset would be loaded by every run of every topic.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from s3lake.orchestration import letters, metadata, names, prose
from s3lake.orchestration.alive import alive
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.checks import checked
from s3lake.orchestration.each_topic import each_topic, topics_asked
from s3lake.orchestration.jobs import job_of
from s3lake.orchestration.progress import Announced, materialisation
from s3lake.orchestration.resources import landing, resource
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.land.landing import Landing


class ReplayConfig(dg.Config):
    """Run config of the op that replays dead letters."""

    topics: list[str] = Field([], description="Only these topics of the sink; all without any.")
    first: str = Field("", description="First hour, as 2026-11-20T05 (UTC); all before `last` without it.")
    last: str = Field("", description="Last hour, included; all since `first` without it.")
    reason: str | None = Field(None, description="Only those whose stage and reason have this in them.")
    dry_run: bool = Field(True, description="Only say what would become of them. False to land them.")


def job_name(catalogue: Catalogue, sink: Sink) -> str:
    """Of the job."""
    return catalogue.name("replay", sink.name)


def replay_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Replays dead letters of every topic of `sink`, or of some."""
    keys = catalogue.keys

    @dg.op(
        name=catalogue.name("dead_letters", sink.name),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys={keys.kafka, keys.s3, keys.spark},
    )
    def replay(context: dg.OpExecutionContext, config: ReplayConfig) -> None:
        kafka, s3, spark = (resource(context.resources, key) for key in (keys.kafka, keys.s3, keys.spark))
        announced = Announced(spark, context.log, sql=sink.sql is not None)
        topics = topics_asked(catalogue, sink, config.topics)

        def replay_topic(topic: str) -> None:
            _replay(context, catalogue, landing(sink, topic, kafka, s3, announced), config)

        with alive(context):
            each_topic(context, topics, replay_topic, allow_retries=False)

    return job_of(
        replay,
        name=job_name(catalogue, sink),
        description=f"Lands dead letters of sink {sink.name} after all, into the hours that they belong to, exactly "
        "once: `s3lake dead-letters replay`. What is refused again stays one, with its new reason.",
    )


def _replay(context: dg.OpExecutionContext, catalogue: Catalogue, lander: "Landing", config: ReplayConfig) -> None:
    from s3lake.land.replay import replay
    from s3lake.land.replay.letters import Chosen, hours_of

    chosen = Chosen(config.reason)
    for tile, _ in hours_of(lander.index, config.first, config.last or "9"):
        new = 0
        for done in replay(lander, tile.hour, chosen, dry_run=config.dry_run):
            new += done.commit is not None
            context.log.info(f"{lander.topic}, hour {tile.hour}: {done}")
        if new:
            for event in changed_hour(context, catalogue, lander, tile.hour, new):
                context.log_event(event)


def changed_hour(
    context: dg.OpExecutionContext, catalogue: Catalogue, lander: "Landing", hour: str, new: int
) -> Iterator[Any]:
    """What has changed: the hour and its dead letters, its checks, and the sealed hour with its new content."""
    sink, topic = lander.sink, lander.topic
    landed = lander.report(hour, new)
    told = metadata.of_hour(landed, lander.index, None, prose.of_columns(sink, topic, lander.index))
    yield materialisation(catalogue.key(sink, topic), hour, told, landed.tile.commits)
    found = letters.of_hour(landed, lander)
    if found is not None:
        yield dg.AssetMaterialization(catalogue.dead_letters_key(sink, topic), partition=hour, metadata=found)
    looked = checked(context.instance, catalogue, lander, [hour])
    yield from looked.evaluations(context.instance)
    yield from looked.sealed
