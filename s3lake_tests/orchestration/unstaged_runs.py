"""Runs of the assets of a sink each of whose topics has a world in which nothing is staged."""

import dagster as dg
import pytest

from s3lake.orchestration import checks, fleet, sinks
from s3lake.orchestration.translator import sink_key
from s3lake.sink import Config, Kafka, Sink
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, World

ALL = [FIRST, SECOND, THIRD]
STAND_INS = dict.fromkeys(("kafka", "s3", "spark"), object())


def materialisations(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
    """All there are of an asset, in order."""
    records = instance.fetch_materializations(key, limit=100, ascending=True).records
    return [record.asset_materialization for record in records if record.asset_materialization]


class Runs:
    """A sink and its topics in one instance; `landings` is what the next run lands each with."""

    def __init__(
        self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch, *topics: str, **settings: object
    ) -> None:
        self.instance = instance
        self.worlds = {topic: World(**settings) for topic in topics}
        self.landings = {topic: world.landing() for topic, world in self.worlds.items()}
        for module in (sinks, fleet):
            patch.setattr(module, "landing", lambda _, topic, *__: self.landings[topic])
        patch.setattr(checks, "looking", lambda _, __, ___, topic, **____: self.worlds[topic].landing())
        sink = World(**settings).sink.model_dump(mode="json", by_alias=True)
        self.sink = Sink.model_validate({**sink, "topics": topics})
        self.config = Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(self.sink,))

    def hours(self) -> dict[str, list[str | None]]:
        """Materialised hours by topic."""
        keys = {topic: sink_key(self.sink, topic) for topic in self.landings}
        return {topic: [each.partition for each in materialisations(self.instance, key)] for topic, key in keys.items()}
