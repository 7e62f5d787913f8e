"""The topics of each sink. Topics of an expression are asked for when the code location is loaded.

A code location must load with Kafka down, so the last answer is kept in a file next to Dagster's own state.
"""

import json
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from s3lake.config.model import Config, Sink
from s3lake.errors import SourceUnavailableError
from s3lake.source.offsets import Offsets, match_topics
from s3lake.source.sources import open_source

_log = logging.getLogger(__name__)
TIMEOUT_S = 3.0
"""For how many seconds a code location waits for the brokers' topics."""


def find_topics_of_sinks(config: Config, matching: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[str]]:
    """Return the topics by the name of the sink. A sink whose expression matches nothing yet has none until a reload.

    Without `matching`, the topics of each expression, the source is asked: see `find_matching_topics`.
    """
    by_expression = find_matching_topics(config) if matching is None else matching
    return {
        sink.name: sorted(sink.topics if sink.topics_regex is None else by_expression.get(sink.topics_regex, ()))
        for sink in config.sinks
    }


def find_matching_topics(config: Config) -> Mapping[str, Sequence[str]]:
    """Return the topics of each expression: of the source, or of its last answer if it does not answer now."""
    if all(sink.topics_regex is None for sink in config.sinks):
        return {}
    source, remembered = open_source(config, TIMEOUT_S), _read_remembered()
    remembered_topics = remembered.get(source.place, {})
    try:
        matches = ask_matching_topics(config.sinks, source.offsets)
    except SourceUnavailableError as error:
        _log.warning("%s The topics of its last answer are used.", error)
        return remembered_topics
    if remembered_topics | matches != remembered_topics:
        _remember({**remembered, source.place: remembered_topics | matches})
    return matches


def ask_matching_topics(sinks: Sequence[Sink], offsets: Offsets) -> dict[str, list[str]]:
    """Return the topics of each expression that the source has. Raise SourceUnavailableError if it does not answer."""
    expressions = {sink.topics_regex for sink in sinks if sink.topics_regex is not None}
    return {one: match_topics(offsets, one) for one in sorted(expressions)}


def _path() -> Path:
    return Path(os.environ.get("DAGSTER_HOME") or ".dagster") / "s3lake_topics.json"


def _read_remembered() -> dict[str, dict[str, list[str]]]:
    """Return topics by source and expression; none if the file is missing or contains anything else."""
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, dict[str, list[str]]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _remember(topics: Mapping[str, Mapping[str, list[str]]]) -> None:
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several processes load the code location at once: none may read half a file.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
            json.dump(topics, file, indent=1)
        Path(file.name).replace(path)
    except OSError as error:
        _log.warning("topics are not remembered: %s", error)
