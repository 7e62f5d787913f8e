"""Runs of the assets of a sink each of whose topics has a world in which nothing is staged."""

import functools
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from s3lake.config.model import Config, Sink
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.translator import sink_key
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.sinks import make_config
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, Landed, UnstagedTopic
from s3lake_tests.orchestration.world import STAND_INS

ALL = [FIRST, SECOND, THIRD]
KEY = dg.AssetKey(["s3", "events", TOPIC])


def materialisations(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
    """All there are of an asset, in order."""
    records = instance.fetch_materializations(key, limit=100, ascending=True).records
    return [record.asset_materialization for record in records if record.asset_materialization]


class Runs:
    """A sink and its topics in one instance; `targets` is what the next run lands each with."""

    def __init__(
        self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch, *topics: str, **settings: object
    ) -> None:
        self.instance = instance
        self.worlds = {topic: UnstagedTopic(**settings) for topic in topics}
        for topic, world in self.worlds.items():
            world.kafka.name = topic
        self.targets = {topic: replace(world.target(), topic=topic) for topic, world in self.worlds.items()}
        patch.setattr(open_topic_sink, "open_topic_sink", lambda _, __, topic, *___, **____: self.targets[topic])
        sink = UnstagedTopic(**settings).sink.model_dump(mode="json", by_alias=True)
        self.sink = Sink.model_validate({**sink, "topics": topics})
        self.config = make_config(self.sink)

    def hours(self) -> dict[str, list[str | None]]:
        """Materialised hours by topic."""
        keys = {topic: sink_key(self.sink, topic) for topic in self.targets}
        return {topic: [each.partition for each in materialisations(self.instance, key)] for topic, key in keys.items()}


@functools.cache
def job_of(config: str) -> dg.JobDefinition:
    """Nobody changes it, and most runs have the same."""
    definitions = build_definitions(Config.model_validate_json(config), resources=STAND_INS)
    return definitions.resolve_job_def("land_events")


class OneTopic(Runs):
    """Runs of a sink of one topic."""

    def __init__(self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch, **settings: Any) -> None:
        super().__init__(instance, patch, TOPIC, **settings)
        self.world = self.worlds[TOPIC]
        self.job = job_of(self.config.model_dump_json(by_alias=True))

    def land(self, first: str = FIRST, last: str = THIRD) -> dg.ExecuteInProcessResult:
        return self.job.execute_in_process(
            tags=dagster_names.range_tags(first, last), instance=self.instance, raise_on_error=False
        )

    def again(self) -> Landed:
        """A new target, as every run has one."""
        self.targets[TOPIC] = replace(self.targets[TOPIC])
        return self.targets[TOPIC]

    def materialisations(self) -> list[dg.AssetMaterialization]:
        return materialisations(self.instance, KEY)

    def lines(self) -> list[str]:
        """The last run's lines about the topic, and its events of outputs and hours."""
        (run,) = self.instance.get_runs(limit=1)
        entries = [record.event_log_entry for record in self.instance.get_records_for_run(run.run_id).records]
        events = {"ASSET_MATERIALIZATION", "STEP_OUTPUT", "HANDLED_OUTPUT"}
        lines = [
            (one.dagster_event.event_type_value if one.dagster_event else one.user_message)
            for one in entries
            if one.step_key == "__".join(KEY.path)
        ]
        return [line for line in lines if line in events or line.startswith(f"events {TOPIC}, ")]
