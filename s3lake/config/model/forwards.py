"""Other systems that get a copy of each sealed hour of a sink."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from s3lake.config.model.base import ConfigModel, Name, Options, RuleError

if TYPE_CHECKING:
    from s3lake.config.model.sink import Sink


class Forward(ConfigModel):
    """A destination of the sealed hours of a sink (docs/forward.md).

    Attributes:
        to: `postgres`, `mongodb`, `elasticsearch`, `quickwit`, `stdout`, or what another package brings.
        options: the options of the destination, by the names of its Python class: server, table, login. Secrets are
            never printed.
        name: the name in its assets, `forward/<name>/<topic>`; without it they are called after `to`.
        topics: the topics to forward; all topics of the sink if it is empty.
    """

    to: str = Field(examples=["postgres"])
    options: Options = Field(default_factory=dict, repr=False, examples=[{"conninfo": "${PG}", "table": "lake.orders"}])
    name: Name | None = None
    topics: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name in the keys of its assets."""
        return self.name or self.to


def check_forwards(sinks: Sequence["Sink"]) -> None:
    """Check the topics of all forwards, and that no two of them make the same asset.

    Raises:
        RuleError: a topic is not one of the sink, the sink has none, or two forwards have one name and topic.
    """
    taken: set[tuple[str, str]] = set()
    for position, sink in enumerate(sinks):
        for number, forward in enumerate(sink.forwards):
            path = ("sinks", position, "forwards", number)
            if not sink.topics and sink.topics_regex is None:
                raise RuleError("hours of topics are forwarded, and this sink has none: add topics", *path)
            for place, topic in enumerate(forward.topics):
                if not sink.reads(topic):
                    raise RuleError(f"{topic!r} is not a topic of sink {sink.name}", *path, "topics", place)
            for topic in forward.topics or sink.topics or (str(sink.topics_regex),):
                if (forward.key, topic) in taken:
                    raise RuleError(
                        f"another forward of topic {topic} is called {forward.key!r} too: give this one a name of its "
                        "own",
                        *path,
                        "name",
                    )
                taken.add((forward.key, topic))
