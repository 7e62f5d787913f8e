"""A configuration in a Dagster project: which assets it has there, and what all that belongs to it is called."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import dagster as dg

from s3lake import hours
from s3lake.errors import ConfigurationError
from s3lake.orchestration import names
from s3lake.orchestration.topics import topics_of
from s3lake.orchestration.translator import SinkTranslator, hourly
from s3lake.sink import Config, Sink

_OURS = "s3lake"
_RESOURCES = ("s3", "spark")


class ResourceKeys(NamedTuple):
    """The keys of the resources that a configuration needs in a project.

    Attributes:
        s3: of its S3.
        spark: of its Spark session.
    """

    s3: str
    spark: str


class Route(NamedTuple):
    """A topic of a sink."""

    sink: Sink
    topic: str


class Catalogue:
    """The entries of one configuration.

    Attributes:
        topics: by sink.
        keys: of resources.
    """

    def __init__(
        self,
        config: Config,
        translator: SinkTranslator | None = None,
        *,
        topics: Mapping[str, Sequence[str]] | None = None,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        """Ask the translator of every topic of every sink.

        Args:
            translator: the user's, if any.
            topics: by sink; without them the broker is asked for those of an expression.
            resources: the project's own for `s3` and `spark`: an object, or the key of one.

        Raises:
            ConfigurationError: two entries would have one name, or Dagster or s3lake could do nothing with one.
        """
        self.config = config
        self.topics = topics_of(config) if topics is None else topics
        self._topics_by_sink = {name: frozenset(topics) for name, topics in self.topics.items()}
        self._translator = translator or SinkTranslator()
        self._prefix = self._translator.prefix
        self._own_resources = {name for name, resource in (resources or {}).items() if resource is not None}
        self.keys = self._keys(resources or {})
        self._landed: dict[tuple[str, str], dg.AssetSpec] = {}
        self._sealed: dict[tuple[str, str], dg.AssetSpec] = {}
        self._dead_letters: dict[tuple[str, str], dg.AssetSpec] = {}
        self._topics: dict[str, dg.AssetSpec] = {}
        self._routes: dict[dg.AssetKey, Route] = {}
        names.refuse_clashes((topic, names.identifier("kafka", topic)) for _, topic in self.routes)
        jobs = ("land", "land_together")
        names.refuse_clashes(
            (f"{job} {sink.name}", names.identifier(job, sink.name)) for sink in config.sinks for job in jobs
        )
        names.refuse_clashes(
            (f"{sink.name} of {topic}", names.identifier(sink.name, topic)) for sink, topic in self.routes
        )
        self._refuse_names_of_resources()
        for route in self.routes:
            sink, topic = route
            letters = [self.dead_letters_key(sink, topic)] if sink.errors.tolerance == "all" else []
            for key in (self.key(sink, topic), self.sealed_key(sink, topic), *letters):
                other, other_topic = self._routes.setdefault(key, route)
                if (other.name, other_topic) != (sink.name, topic):
                    raise ConfigurationError(
                        f"{other_topic} of sink {other.name} and {topic} of sink {sink.name} would both be the asset "
                        f"{key.to_user_string()}: have the translator give each a key of its own"
                    )

    @property
    def routes(self) -> Sequence[Route]:
        """Every topic of every sink."""
        return [Route(self.config.sink(name), topic) for name, topics in self.topics.items() for topic in topics]

    def route(self, key: dg.AssetKey) -> Route | None:
        """Which sink and topic an asset is of, be it of what is landed, of the sealed hours or of dead letters."""
        return self._routes.get(key)

    def has_asset(self, route: Route) -> bool:
        """Return whether the code location has an asset of it: a topic may match an expression since it was loaded."""
        return route.topic in self._topics_by_sink[route.sink.name]

    def landed(self, sink: Sink, topic: str) -> dg.AssetSpec:
        spec = self._landed.get((sink.name, topic))
        if spec is None:
            spec = self._landed[sink.name, topic] = self._translator.get_asset_spec(sink, topic)
            _refuse_other_than_hours(spec, sink)
        return spec

    def sealed(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """The asset of its sealed hours."""
        spec = self._sealed.get((sink.name, topic))
        if spec is None:
            spec = self._translator.get_sealed_spec(sink, topic, self.landed(sink, topic))
            spec = spec.merge_attributes(tags={names.SEALED: "true"}).with_io_manager_key(self.io_manager_key(sink))
            self._sealed[sink.name, topic] = spec
        return spec

    def dead_letters(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """The asset of its dead letters."""
        spec = self._dead_letters.get((sink.name, topic))
        if spec is None:
            spec = self._translator.get_dead_letters_spec(sink, topic, self.landed(sink, topic))
            self._dead_letters[sink.name, topic] = spec
        return spec

    def topic(self, topic: str) -> dg.AssetSpec:
        spec = self._topics.get(topic)
        if spec is None:
            spec = self._topics[topic] = self._translator.get_topic_spec(topic)
        return spec

    def key(self, sink: Sink, topic: str) -> dg.AssetKey:
        """Of what `sink` lands of `topic`."""
        return self.landed(sink, topic).key

    def sealed_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        """Of its sealed hours."""
        return self.sealed(sink, topic).key

    def dead_letters_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        """Of its dead letters."""
        return self.dead_letters(sink, topic).key

    def example_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        """Of the example on what `sink` lands of `topic`."""
        return dg.AssetKey([*self._begun(), "example", sink.name, f"{topic}_by_type"])

    def forward_key(self, name: str, topic: str) -> dg.AssetKey:
        """Of the hours of a topic in the destination that is called `name`."""
        return dg.AssetKey([*self._begun(), "forward", name, topic])

    def within(self, sink: Sink, topic: str, wanted: Iterable[str]) -> set[str]:
        """Those of the hours `wanted` that do not lie after the asset's last: its partitions may have an end."""
        partitions = self.landed(sink, topic).partitions_def
        if partitions is None or partitions == hourly(sink):
            return set(wanted)
        last = partitions.get_last_partition_key() or ""
        return {hour for hour in wanted if hour <= last}

    def name(self, *parts: str) -> str:
        """Of a job, a schedule, a sensor or an op."""
        return names.identifier(*self._begun(), *parts)

    def own_name(self, *parts: str) -> str:
        """Return a name that begins with the prefix or `s3lake`: of a job, schedule or pool of the configuration."""
        return names.identifier(self._prefix or _OURS, *parts)

    def pool(self, *parts: str) -> str:
        """Of runs that would only fence one another."""
        return self.own_name(*parts)

    def tag(self, sink: Sink) -> str:
        """What runs of `sink` are tagged with; a sink of another configuration may have the same name."""
        return "/".join([*self._begun(), sink.name])

    def _begun(self) -> list[str]:
        return [self._prefix] if self._prefix else []

    def own_resource_keys(self, *names: str) -> set[str]:
        """Return the keys of those of the resources `names` that the project has itself.

        Only these are asked for to land. Ours would be made of the settings that are known anyway, and to import
        dagster-aws costs each run 0.45 s of CPU.
        """
        return {key for name, key in zip(_RESOURCES, self.keys, strict=True) if name in {*names} & self._own_resources}

    def io_manager_key(self, sink: Sink) -> str:
        """Return the key of the IO manager of a sink."""
        return names.identifier(self._prefix or _OURS, sink.name)

    def _refuse_names_of_resources(self) -> None:
        for sink in self.config.sinks:
            if self.io_manager_key(sink) in self.keys:
                raise ConfigurationError(
                    f"sink {sink.name}: its IO manager and another resource would both be called "
                    f"{self.io_manager_key(sink)} in Dagster: call the sink something else"
                )

    def _keys(self, resources: Mapping[str, object]) -> ResourceKeys:
        if unknown := sorted(resources.keys() - set(_RESOURCES)):
            raise ConfigurationError(f"resources: {unknown[0]!r} is not one of {', '.join(_RESOURCES)}")
        ours = self._prefix or _OURS
        own = [(name, resources.get(name)) for name in _RESOURCES]
        return ResourceKeys(*(key if isinstance(key, str) else f"{ours}_{name}" for name, key in own))


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
