"""A fleet: the job that lands what is due of many topics of a sink in one run.

It is one op, whose events are those of the topics' assets. A step for each of a hundred topics and one for their checks
would cost more than landing their records.
"""

import queue
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent
from pydantic import Field

from s3lake import hours
from s3lake.errors import S3LakeError, TransientError
from s3lake.orchestration import fleet_runs, names
from s3lake.orchestration.alive import alive
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.checks import checked
from s3lake.orchestration.progress import Announced, Progress, materialisation
from s3lake.orchestration.resources import landing, resource
from s3lake.sink import Sink

if TYPE_CHECKING:
    from s3lake.land.fleet import TopicLanding
    from s3lake.land.landing import Landing

_CANCELED_S = 10.0
_NAMED = 5


class FleetConfig(dg.Config):
    """Run config of a fleet's op."""

    hours: dict[str, list[str]] = Field(
        description="Ranges of hours, 2026-11-20T05..2026-11-20T06, each with the topics to land them of."
    )


def fleet_job(catalogue: Catalogue, sink: Sink) -> dg.JobDefinition:
    """Lands hours of many topics of `sink` together, also of those that have no assets yet."""
    assets, keys = frozenset(catalogue.topics[sink.name]), catalogue.keys

    @dg.op(
        name=fleet_runs.op_name(catalogue, sink),
        tags={names.SINK: catalogue.tag(sink)},
        required_resource_keys={keys.kafka, keys.s3, keys.spark},
    )
    def land(context: dg.OpExecutionContext, config: FleetConfig) -> None:
        hours_by_topic = _hours_by_topic(config)
        kafka, s3, spark = (resource(context.resources, key) for key in (keys.kafka, keys.s3, keys.spark))
        announced = Announced(spark, context.log, sql=sink.sql is not None)
        fleet = _Fleet(context, catalogue, sink, lambda topic: landing(sink, topic, kafka, s3, announced))
        for topic in sorted(hours_by_topic.keys() - assets):
            context.log.info(
                f"{topic}: matches topics_regex since the code location was loaded; it is landed all the same, and has "
                "assets to look at and to backfill once the location is reloaded"
            )
        with alive(context):
            fleet.land(hours_by_topic)
        if fleet.failed:
            named = ", ".join(sorted(fleet.failed)[:_NAMED])
            more = f" and {len(fleet.failed) - _NAMED} more" if len(fleet.failed) > _NAMED else ""
            raise dg.Failure(
                f"{len(fleet.failed)} of {len(hours_by_topic)} topics failed, the others are landed: {named}{more}",
                allow_retries=False,
            )

    @dg.job(
        name=fleet_runs.job_name(catalogue, sink),
        executor_def=dg.in_process_executor,
        description=f"Lands what is due of many topics of sink {sink.name} in one run; its sensor asks for it.",
    )
    def job() -> None:
        land()

    return job


def _hours_by_topic(config: FleetConfig) -> dict[str, list[str]]:
    by_topic: dict[str, list[str]] = {}
    for span, topics in config.hours.items():
        first, _, last = span.partition("..")
        for topic in topics:
            by_topic.setdefault(topic, []).extend(hours.span(first, last or first))
    return by_topic


@dataclass
class _Reporter:
    """Into a fleet's run. Threads land, and the op's own stores events: what it stores has an order."""

    fleet: "_Fleet"
    topic: str
    before: frozenset[str]

    @property
    def attempt(self) -> int:
        """See `Reporter`."""
        return self.fleet.attempt

    def say(self, line: str) -> None:
        """In the step's output and not in the run's log, where each line of a hundred topics would be an event."""
        print(line, flush=True)

    def warn(self, line: str) -> None:
        self.fleet.events.put(partial(self.fleet.context.log.warning, f"{self.topic}, {line}"))

    def materialise(self, hour: str, metadata: dict[str, Any], commits: Sequence[str]) -> None:
        self.fleet.events.put(partial(self.fleet.materialise, self.topic, hour, metadata, commits))

    def dead_letters(self, hour: str, metadata: dict[str, Any]) -> None:
        """See `Reporter.dead_letters`."""
        key = self.fleet.catalogue.dead_letters_key(self.fleet.sink, self.topic)
        event = dg.AssetMaterialization(key, partition=hour, metadata=metadata)
        self.fleet.events.put(partial(self.fleet.context.log_event, event))


class _Fleet:
    """The topics of one run.

    Attributes:
        failed: by topic.
        materialised: hours by topic.
        reached: how far topics are landed.
        events: what is to be stored; None when a topic is done.
    """

    def __init__(
        self,
        context: dg.OpExecutionContext,
        catalogue: Catalogue,
        sink: Sink,
        landing: "Callable[[str], Landing]",
    ) -> None:
        self.context, self.catalogue, self.sink = context, catalogue, sink
        self.failed: dict[str, BaseException] = {}
        self.attempt = 0
        self.materialised: dict[str, set[str]] = defaultdict(set)
        self.reached: dict[str, Mapping[int, int]] = {}
        self.events: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._landing = landing

    def land(self, hours_by_topic: Mapping[str, Sequence[str]]) -> None:
        """Land all of it, what may pass again and again, as often as the sink says."""
        left = dict(hours_by_topic)
        for tries in range(1 + self.sink.errors.max_retries):
            self.attempt = tries
            if tries:
                self.context.log.warning(f"{len(left)} topics met something that may pass; they are tried again")
                time.sleep(self.sink.errors.retry_interval)
            failed = self._attempt(left)
            self.failed = {**{topic: error for topic, error in self.failed.items() if topic not in left}, **failed}
            left = {topic: left[topic] for topic, error in failed.items() if isinstance(error, TransientError)}
            if not left:
                break
        for topic, error in sorted(self.failed.items()):
            self._fail(topic, hours_by_topic[topic], error)

    def materialise(self, topic: str, hour: str, metadata: dict[str, Any], commits: Sequence[str]) -> None:
        """Store the event of an hour."""
        self.materialised[topic].add(hour)
        key = self.catalogue.key(self.sink, topic)
        self.context.log_event(materialisation(key, hour, metadata, commits))

    def _attempt(self, hours_by_topic: Mapping[str, Sequence[str]]) -> dict[str, BaseException]:
        from s3lake.land.fleet import together

        landings = {topic: self._landing(topic) for topic in hours_by_topic}
        group = next(iter(landings.values())).group
        for lander in landings.values():
            lander.group = None  # it is told once, of all
        progress = {
            topic: Progress(_Reporter(self, topic, frozenset(self.materialised[topic])), lander, hours_by_topic[topic])
            for topic, lander in landings.items()
        }
        topic_landings = [
            self._topic_landing(landings[topic], progress[topic], hours_by_topic[topic]) for topic in hours_by_topic
        ]
        began = time.monotonic()
        under_way = together(topic_landings, landings[next(iter(hours_by_topic))].spark)
        try:
            self._store(under_way.outcomes)
        except BaseException:
            under_way.cancel(_CANCELED_S)
            for topic, outcome in zip(hours_by_topic, under_way.outcomes, strict=True):
                if not outcome.done() or outcome.exception() is not None:
                    progress[topic].interrupted()
            self._drain()
            raise
        if group is not None:
            group.publish_all({topic: offsets for topic, offsets in self.reached.items() if topic in hours_by_topic})
        failed = {
            topic: error
            for topic, outcome in zip(hours_by_topic, under_way.outcomes, strict=True)
            if (error := outcome.exception()) is not None
        }
        self.context.log.info(
            f"{len(hours_by_topic) - len(failed)} of {len(hours_by_topic)} topics are landed after "
            f"{time.monotonic() - began:.1f} s; the step's output has a line for each hour"
        )
        return failed

    def _topic_landing(
        self, lander: "Landing", progress: Progress, hours_by_topic: Sequence[str]
    ) -> "TopicLanding[None]":
        from s3lake.land.fleet import TopicLanding

        def work() -> None:
            landed = lander.land(hours_by_topic)
            # The last tile is the only one that is open.
            self.reached[lander.topic] = lander.reached(hour.tile for hour in landed[-1:] if not hour.tile.closed)
            # The hour under way is checked when it is over: every few minutes nobody looks.
            complete = [hour.tile.hour for hour in landed if hour.tile.complete]
            if complete:
                looked = checked(self.context.instance, self.catalogue, lander, complete)
                self.events.put(lambda: self._log(looked.evaluations(self.context.instance), looked.sealed))

        lander.observer = progress
        return TopicLanding(lander, work)

    def _log(self, *events: Any) -> None:
        for group in events:
            for event in group:
                self.context.log_event(event)

    def _store(self, outcomes: Sequence["Future[None]"]) -> None:
        """Store events until all is done."""
        for outcome in outcomes:
            outcome.add_done_callback(lambda _: self.events.put(None))
        left = len(outcomes)
        while left:
            event = self.events.get()
            if event is None:
                left -= 1
            else:
                event()
        self._drain()

    def _drain(self) -> None:
        while not self.events.empty():
            event = self.events.get()
            if event is not None:
                event()

    def _fail(self, topic: str, hours_by_topic: Sequence[str], error: BaseException) -> None:
        """Show a topic's failure on its asset, and leave what the sensor has to know of it."""
        context, key = self.context, self.catalogue.key(self.sink, topic)
        if isinstance(error, S3LakeError):
            context.log.error(f"{topic}: {error}")
        else:
            context.log.error(f"{topic}: {''.join(traceback.format_exception(error))}")
        # Planned and not materialised, in a run that fails: that is what Dagster calls failed.
        for hour in sorted(set(hours_by_topic) - self.materialised[topic]):
            planned = AssetMaterializationPlannedData(key, hour)
            event = DagsterEvent.build_asset_materialization_planned_event(
                context.job_name, str(context.op_handle), planned
            )
            context.instance.report_dagster_event(event, context.run_id)
        context.log_event(fleet_runs.failure(key, error, self._state(topic, hours_by_topic)))

    def _state(self, topic: str, hours_by_topic: Sequence[str]) -> fleet_runs.State | None:
        index = self._landing(topic).index
        try:
            tiles = [document[0] for hour in hours_by_topic if (document := index.tile(hour))]
        except S3LakeError:
            return None
        return fleet_runs.State.of(self.sink, hours_by_topic[0], hours_by_topic[-1], tiles)
