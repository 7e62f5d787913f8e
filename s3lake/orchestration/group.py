"""The job that lands what is due of many topics of a sink in one run.

It is one op, whose events are those of the topics' assets. A step for each of a hundred topics and one for their checks
would cost more than landing their records.
"""

import dagster as dg
from pydantic import Field

from s3lake import hours
from s3lake.orchestration import names, runs
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.heartbeat import set_tags
from s3lake.orchestration.jobs import one_op_job
from s3lake.orchestration.landing_run import open_landing_run
from s3lake.sink import Sink

_NAMED = 5


class GroupConfig(dg.Config):
    """Run config of the op that lands topics together."""

    hours: dict[str, list[str]] = Field(
        description="Ranges of hours, 2026-11-20T05..2026-11-20T06, each with the topics to land them of."
    )


def group_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Return the job that lands hours of many topics of `sink` together, also of topics that have no assets yet."""
    assets = frozenset(catalogue.topics[sink.name])

    @dg.op(
        name=runs.group_op_name(catalogue, sink),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys=catalogue.own_resource_keys("s3", "spark"),
    )
    def land(context: dg.OpExecutionContext, config: GroupConfig) -> None:
        hours_by_topic = _hours_by_topic(config)
        run = open_landing_run(context, context.resources, catalogue, sink)
        for topic in sorted(hours_by_topic.keys() - assets):
            context.log.info(
                f"{topic}: matches topics_regex since the code location was loaded; it is landed all the same, and has "
                "assets to look at and to backfill once the location is reloaded"
            )
        failed = run.land_together(hours_by_topic)
        if failed:  # the sensor requests these topics alone next: such a run fails their hours
            set_tags(context.instance, context.run_id, {names.FAILED: " ".join(sorted(failed))})
            topics = ", ".join(sorted(failed)[:_NAMED])
            more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
            raise dg.Failure(
                f"{len(failed)} of {len(hours_by_topic)} topics failed, the others are landed: {topics}{more}",
                allow_retries=False,
            )

    return one_op_job(
        land,
        name=runs.group_job_name(catalogue, sink),
        description=f"Lands what is due of many topics of sink {sink.name} in one run; its sensor requests it.",
    )


def _hours_by_topic(config: GroupConfig) -> dict[str, list[str]]:
    by_topic: dict[str, list[str]] = {}
    for span, topics in config.hours.items():
        first, _, last = span.partition("..")
        for topic in topics:
            by_topic.setdefault(topic, []).extend(hours.span(first, last or first))
    return by_topic
