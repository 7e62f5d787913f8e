"""A configuration in a Dagster project: its assets, and the names of all that belongs to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """The keys of a configuration's S3 and of its Spark session in a project."""

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
        routes: every topic of every sink.
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
        """Ask the translator for the specs of every topic of every sink.

        Args:
            translator: the user's, if any.
            topics: by sink; without them the broker is asked for those of an expression.
            resources: the project's own for `s3` and `spark`: an object, or the key of one.

        Raises:
            ConfigurationError: two entries would have one name, or Dagster or s3lake could do nothing with one.
        """
        self.config = config
        self.topics = topics_of(config) if topics is None else topics
        self.routes = [Route(config.sink(name), topic) for name, of_sink in self.topics.items() for topic in of_sink]
        self._topics_by_sink = {name: frozenset(of_sink) for name, of_sink in self.topics.items()}
        self._translator = translator or SinkTranslator()
        self._own_resources = {name for name, resource in (resources or {}).items() if resource is not None}
        self._specs: dict[tuple[str, str, str], dg.AssetSpec] = {}
        self._routes: dict[dg.AssetKey, Route] = {}
        self.keys = self._resource_keys(resources or {})
        jobs = ("land", "land_together")
        names.refuse_clashes(
            [
                *((topic, names.identifier("kafka", topic)) for _, topic in self.routes),
                *((f"{job} {sink.name}", names.identifier(job, sink.name)) for sink in config.sinks for job in jobs),
            ]
        )
        names.refuse_clashes(
            (f"{sink.name} of {topic}", names.identifier(sink.name, topic)) for sink, topic in self.routes
        )
        for route in self.routes:
            self._add_keys(route)

    def route(self, key: dg.AssetKey) -> Route | None:
        """Return the sink and topic of an asset: of landed hours, sealed hours or dead letters."""
        return self._routes.get(key)

    def has_asset(self, route: Route) -> bool:
        """Return whether the code location has an asset of it: a topic may match an expression since it was loaded."""
        return route.topic in self._topics_by_sink[route.sink.name]

    def landed(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """Return the asset of what `sink` lands of `topic`."""

        def build() -> dg.AssetSpec:
            spec = self._translator.get_asset_spec(sink, topic)
            _refuse_other_than_hours(spec, sink)
            return spec

        return self._spec("landed", sink.name, topic, build)

    def sealed(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """Return the asset of its sealed hours."""

        def build() -> dg.AssetSpec:
            spec = self._translator.get_sealed_spec(sink, topic, self.landed(sink, topic))
            return spec.merge_attributes(tags={names.SEALED: "true"}).with_io_manager_key(self.io_manager_key(sink))

        return self._spec("sealed", sink.name, topic, build)

    def dead_letters(self, sink: Sink, topic: str) -> dg.AssetSpec:
        """Return the asset of its dead letters."""

        def build() -> dg.AssetSpec:
            return self._translator.get_dead_letters_spec(sink, topic, self.landed(sink, topic))

        return self._spec("dead_letters", sink.name, topic, build)

    def topic(self, topic: str) -> dg.AssetSpec:
        """Return the external asset of a topic."""
        return self._spec("topic", "", topic, lambda: self._translator.get_topic_spec(topic))

    def key(self, sink: Sink, topic: str) -> dg.AssetKey:
        return self.landed(sink, topic).key

    def sealed_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        return self.sealed(sink, topic).key

    def dead_letters_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        return self.dead_letters(sink, topic).key

    def example_key(self, sink: Sink, topic: str) -> dg.AssetKey:
        return dg.AssetKey([*self._prefix_path, "example", sink.name, f"{topic}_by_type"])

    def forward_key(self, name: str, topic: str) -> dg.AssetKey:
        """Return the key of the hours of a topic in the destination called `name`."""
        return dg.AssetKey([*self._prefix_path, "forward", name, topic])

    def within(self, sink: Sink, topic: str, wanted: Iterable[str]) -> set[str]:
        """Return the hours that are not after the asset's last one: its partitions may have an end."""
        partitions = self.landed(sink, topic).partitions_def
        if partitions is None or partitions == hourly(sink):
            return set(wanted)
        last = partitions.get_last_partition_key() or ""
        return {hour for hour in wanted if hour <= last}

    def name(self, *parts: str) -> str:
        """Return the name of a job, a schedule, a sensor or an op of a sink or topic."""
        return names.identifier(*self._prefix_path, *parts)

    def own_name(self, *parts: str) -> str:
        """Return a name that begins with the prefix or `s3lake`: of a job, schedule or pool of the configuration."""
        return names.identifier(self._translator.prefix or _OURS, *parts)

    def tag(self, sink: Sink) -> str:
        """Return the tag of the runs of `sink`; a sink of another configuration may have the same name."""
        return "/".join([*self._prefix_path, sink.name])

    def own_resource_keys(self, *names: str) -> set[str]:
        """Return the keys of those of the resources `names` that the project has itself.

        Only these are asked for to land. Ours would be made of the settings that are known anyway, and to import
        dagster-aws costs each run 0.45 s of CPU.
        """
        return {key for name, key in zip(_RESOURCES, self.keys, strict=True) if name in {*names} & self._own_resources}

    def io_manager_key(self, sink: Sink) -> str:
        """Return the key of the IO manager of a sink."""
        return self.own_name(sink.name)

    @property
    def _prefix_path(self) -> list[str]:
        return [self._translator.prefix] if self._translator.prefix else []

    def _spec(self, name: str, sink: str, topic: str, build: Callable[[], dg.AssetSpec]) -> dg.AssetSpec:
        key = name, sink, topic
        if key not in self._specs:
            self._specs[key] = build()
        return self._specs[key]

    def _add_keys(self, route: Route) -> None:
        """Remember the route of its assets' keys. Raise ConfigurationError if another route has one of them."""
        dead_letters = [self.dead_letters_key(*route)] if route.sink.errors.tolerance == "all" else []
        for key in (self.key(*route), self.sealed_key(*route), *dead_letters):
            other = self._routes.setdefault(key, route)
            if (other.sink.name, other.topic) != (route.sink.name, route.topic):
                raise ConfigurationError(
                    f"{other.topic} of sink {other.sink.name} and {route.topic} of sink {route.sink.name} would both "
                    f"be the asset {key.to_user_string()}: have the translator give each a key of its own"
                )

    def _resource_keys(self, resources: Mapping[str, object]) -> ResourceKeys:
        if unknown := sorted(resources.keys() - set(_RESOURCES)):
            raise ConfigurationError(f"resources: {unknown[0]!r} is not one of {', '.join(_RESOURCES)}")
        own = [(name, resources.get(name)) for name in _RESOURCES]
        keys = ResourceKeys(*(key if isinstance(key, str) else self.own_name(name) for name, key in own))
        for sink in self.config.sinks:
            if self.io_manager_key(sink) in keys:
                raise ConfigurationError(
                    f"sink {sink.name}: its IO manager and another resource would both be called "
                    f"{self.io_manager_key(sink)} in Dagster: call the sink something else"
                )
        return keys


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
