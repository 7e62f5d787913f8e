"""A configuration in a Dagster project: its assets, and the names of all that belongs to it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import dagster as dg

from s3lake import hours
from s3lake.config.model import Config, Sink
from s3lake.errors import ConfigurationError
from s3lake.orchestration import dagster_names
from s3lake.orchestration.sink_topics import find_topics_of_sinks
from s3lake.orchestration.translator import SinkTranslator, hourly

_OURS = "s3lake"
_RESOURCES = ("s3", "spark")


class Route(NamedTuple):
    """A topic of a sink."""

    sink: Sink
    topic: str


class Specs(NamedTuple):
    """The assets of a route: of landed hours, of sealed hours, of dead letters."""

    landed: dg.AssetSpec
    sealed: dg.AssetSpec
    dead_letters: dg.AssetSpec


class Catalog:
    """The assets and names of one configuration.

    Attributes:
        topics: the topics of each sink, by its name.
        routes: every topic of every sink.
        own_resources: the project's own for `s3` and `spark`: an object, or the key of one.
        resource_keys: the keys of the resources `s3` and `spark`.
    """

    def __init__(
        self,
        config: Config,
        translator: SinkTranslator | None = None,
        *,
        topics: Mapping[str, Sequence[str]] | None = None,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        """Ask the translator for the specs of every topic of every sink.

        Args:
            translator: the user's, if any.
            topics: the topics of each sink; without them the broker is asked for the topics of an expression.
            resources: see `own_resources`.

        Raises:
            ConfigurationError: two entries would have one name, or Dagster or s3lake could do nothing with one.
        """
        self.config = config
        self.topics = find_topics_of_sinks(config) if topics is None else topics
        self.routes = [Route(config.sink(name), topic) for name, of_sink in self.topics.items() for topic in of_sink]
        self._translator = translator or SinkTranslator()
        self._prefix_path = [self._translator.prefix] if self._translator.prefix else []
        self.own_resources = {name: own for name, own in (resources or {}).items() if own is not None}
        self._specs: dict[tuple[str, str], Specs] = {}
        self._topic_specs: dict[str, dg.AssetSpec] = {}
        self._routes: dict[dg.AssetKey, Route] = {}
        self.resource_keys = self._find_resource_keys()
        jobs = ("land", "land_together")
        _refuse_clashes(
            [
                *((topic, dagster_names.identifier("kafka", topic)) for _, topic in self.routes),
                *(
                    (f"{job} {sink.name}", dagster_names.identifier(job, sink.name))
                    for sink in config.sinks
                    for job in jobs
                ),
            ]
        )
        _refuse_clashes(
            (f"{sink.name} of {topic}", dagster_names.identifier(sink.name, topic)) for sink, topic in self.routes
        )
        for route in self.routes:
            self._add_keys(route)

    def route(self, key: dg.AssetKey) -> Route | None:
        """Return the sink and topic of an asset: of landed hours, sealed hours or dead letters."""
        return self._routes.get(key)

    def specs(self, sink: Sink, topic: str) -> Specs:
        """Return the assets of a topic of a sink, also of one that is not among `topics`."""
        specs = self._specs.get((sink.name, topic))
        if specs is None:
            landed = self._translator.get_asset_spec(sink, topic)
            _refuse_other_than_hours(landed, sink)
            sealed = self._translator.get_sealed_spec(sink, topic, landed)
            sealed = sealed.merge_attributes(tags={dagster_names.SEALED: "true"})
            dead_letters = self._translator.get_dead_letters_spec(sink, topic, landed)
            specs = Specs(landed, sealed.with_io_manager_key(self.io_manager_key(sink)), dead_letters)
            self._specs[sink.name, topic] = specs
        return specs

    def topic_spec(self, topic: str) -> dg.AssetSpec:
        """Return the external asset of a topic."""
        if topic not in self._topic_specs:
            self._topic_specs[topic] = self._translator.get_topic_spec(topic)
        return self._topic_specs[topic]

    def key(self, sink: Sink, topic: str) -> dg.AssetKey:
        """Return the key of the asset of what `sink` lands of `topic`."""
        return self.specs(sink, topic).landed.key

    def other_key(self, *path: str) -> dg.AssetKey:
        """Return the key of an asset that no translator names, under the prefix."""
        return dg.AssetKey([*self._prefix_path, *path])

    def within(self, sink: Sink, topic: str, requested: Iterable[str]) -> set[str]:
        """Return the hours that are not after the asset's last one: its partitions may have an end."""
        partitions = self.specs(sink, topic).landed.partitions_def
        if partitions is None or partitions == hourly(sink):
            return set(requested)
        last = partitions.get_last_partition_key() or ""
        return {hour for hour in requested if hour <= last}

    def name(self, *parts: str) -> str:
        """Return the name of a job, a schedule, a sensor or an op of a sink or topic."""
        return dagster_names.identifier(*self._prefix_path, *parts)

    def own_name(self, *parts: str) -> str:
        """Return a name that begins with the prefix or `s3lake`: of a job, schedule or pool of the configuration."""
        return dagster_names.identifier(self._translator.prefix or _OURS, *parts)

    def tag(self, sink: Sink) -> str:
        """Return the tag of the runs of `sink`; a sink of another configuration may have the same name."""
        return "/".join([*self._prefix_path, sink.name])

    def own_resource_keys(self, *names: str) -> set[str]:
        """Return the keys of the resources of `names` that the project has itself.

        Only these are requested to land. Ours would be made of the settings that are known anyway, and to import
        dagster-aws costs each run 0.45 s of CPU.
        """
        return {self.resource_keys[name] for name in names if name in self.own_resources}

    def io_manager_key(self, sink: Sink) -> str:
        """Return the key of the IO manager of a sink."""
        return self.own_name(sink.name, "io_manager")

    def _add_keys(self, route: Route) -> None:
        """Remember the route of its assets' keys. Raise ConfigurationError if another route has one of them."""
        landed, sealed, dead_letters = self.specs(*route)
        for spec in (landed, sealed, *([dead_letters] if route.sink.errors.tolerance == "all" else [])):
            other = self._routes.setdefault(spec.key, route)
            if (other.sink.name, other.topic) != (route.sink.name, route.topic):
                raise ConfigurationError(
                    f"{other.topic} of sink {other.sink.name} and {route.topic} of sink {route.sink.name} would both "
                    f"be the asset {spec.key.to_user_string()}: have the translator give each a key of its own"
                )

    def _find_resource_keys(self) -> Mapping[str, str]:
        if unknown := sorted(self.own_resources.keys() - set(_RESOURCES)):
            raise ConfigurationError(f"resources: {unknown[0]!r} is not one of {', '.join(_RESOURCES)}")
        own = {name: self.own_resources.get(name) for name in _RESOURCES}
        return {name: key if isinstance(key, str) else self.own_name(name) for name, key in own.items()}


def _refuse_other_than_hours(spec: dg.AssetSpec, sink: Sink) -> None:
    ours, theirs = hourly(sink), spec.partitions_def
    if isinstance(theirs, dg.TimeWindowPartitionsDefinition) and all(
        getattr(theirs, name) == getattr(ours, name) for name in ("start", "cron_schedule", "timezone", "fmt")
    ):
        return
    raise ConfigurationError(
        f"partitions of {spec.key.to_user_string()}: what is landed are hours of the index, so they are hourly, in "
        f"UTC, written as {hours.FORMAT} and from the sink's start: take s3lake.hourly(sink), or the same with an "
        "end_date or another end_offset"
    )


def _refuse_clashes(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigurationError if two things would get one name in Dagster; `pairs` are a name and Dagster's."""
    names_taken: dict[str, str] = {}
    for name, dagster_name in pairs:
        other = names_taken.setdefault(dagster_name, name)
        if other != name:
            raise ConfigurationError(
                f"{other!r} and {name!r} would both be called {dagster_name!r} in Dagster, which knows only letters, "
                "digits and underscores: land them in two code locations"
            )
