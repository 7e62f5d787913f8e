"""The source of a configuration: Kafka, Iggy, or what another package brings by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from s3lake.errors import ConfigurationError
from s3lake.plugins import load_plugin

if TYPE_CHECKING:
    from s3lake.config.model import Config
    from s3lake.source.offsets import Offsets
    from s3lake.source.record_batches import Reader

GROUP = "s3lake.sources"
_OURS = {"iggy": "s3lake.source.iggy.offsets:IggySource"}


class RecordSource(Protocol):
    """A source of topics. To open it sends no request."""

    @property
    def place(self) -> str:
        """Product and address for messages and metadata, without secrets: `kafka localhost:9092`."""
        ...

    @property
    def offsets(self) -> Offsets:
        """The questions of planning, sensors and checks."""
        ...

    @property
    def reader(self) -> Reader:
        """The reader that travels to the tasks."""
        ...


SourceFactory = Callable[[Mapping[str, Any], float], RecordSource]
"""The object of an entry point: called with settings (`source.options` of a plugin) and the seconds within which to
answer."""


def open_source(config: Config, timeout_s: float = 5.0) -> RecordSource:
    """Open the source of a configuration. Every question to it is answered, or fails, within `timeout_s` seconds.

    Raises:
        ConfigurationError: no package brings it, or it refuses the settings.
    """
    if config.source is not None:
        return find_opener(config.source.type)(config.source.settings, timeout_s)
    if config.kafka is None:
        return _NoSource()
    from s3lake.source.kafka.offsets import KafkaSource

    settings = {"bootstrap_servers": config.kafka.bootstrap_servers, "properties": config.kafka.properties}
    return KafkaSource(settings, timeout_s)


class _NoSource:
    """The source of a configuration whose sinks have no topics, but tables that assets return."""

    place = "no source"

    @property
    def offsets(self) -> Any:
        """Itself: all that is asked of it is refused."""
        return self

    reader = offsets

    def __getattr__(self, name: str) -> Any:
        """Refuse what is asked.

        Raises:
            ConfigurationError: the configuration has no source: each use raises it.
        """
        raise ConfigurationError("no sink of the configuration has topics: add kafka, or source, and topics to read")


def find_opener(source_type: str) -> SourceFactory:
    """Return the function that opens sources of a type.

    Raises:
        ConfigurationError: no installed package brings it.
    """
    factory: SourceFactory = load_plugin(source_type, GROUP, _OURS, "source.type", "source")
    return factory
