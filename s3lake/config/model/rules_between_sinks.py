"""Rules of parts of sinks that need all sinks of a configuration."""

from collections.abc import Sequence

from s3lake.config.model.base import RuleError
from s3lake.config.model.sink import Sink
from s3lake.text.option_values import suggest


def check_forwards(sinks: Sequence[Sink]) -> None:
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
                    pattern = sink.topics_regex or ""
                    allowed = suggest(topic, sink.topics) if sink.topics else f"use topics that match {pattern!r}"
                    raise RuleError(f"{topic!r} is not a topic of sink {sink.name}; {allowed}", *path, "topics", place)
            for topic in forward.topics or sink.topics or (str(sink.topics_regex),):
                if (forward.key, topic) in taken:
                    raise RuleError(
                        f"another forward of topic {topic} is called {forward.key!r} too: give this one a name of its "
                        "own",
                        *path,
                        "name",
                    )
                taken.add((forward.key, topic))


_LOWER_CASE = ("glue", "hive")
"""Types of catalogs in which names that differ in case are one name."""


def check_table_names(sinks: Sequence[Sink]) -> None:
    """Check that no table has two topics.

    Two expressions may match one topic without a word; the first run is refused then, since a table has its owner.

    Raises:
        RuleError: two topics, of one sink or of two, would have one table in one catalog.
    """
    taken: dict[tuple[str, ...], tuple[str, str]] = {}
    tables = [(position, sink, sink.table) for position, sink in enumerate(sinks) if sink.table is not None]
    explicit = {topic for _, sink, _ in tables for topic in sink.topics}
    for position, sink, table in tables:
        where = tuple(table.catalog.get(name, "") for name in ("type", "uri", "warehouse"))
        for topic in sorted({*sink.topics, *filter(sink.reads, explicit)}):
            identifier = table.identifier(sink.name, topic)
            # Glue and Hive's metastore keep every name in lower case.
            name = identifier.lower() if where[0] in _LOWER_CASE else identifier
            other_sink, other_topic = taken.setdefault((*where, name), (sink.name, topic))
            if (other_sink, other_topic) != (sink.name, topic):
                raise RuleError(
                    f"{table.name!r}: topic {other_topic} of sink {other_sink} and topic {topic} of sink {sink.name} "
                    f"would both be the table {identifier}: give each a table of its own, with {{topic}} and {{sink}}, "
                    "or other names",
                    *("sinks", position, "table", "name"),
                )
