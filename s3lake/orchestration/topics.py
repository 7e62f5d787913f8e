"""The topics of each sink. Named ones need no broker; those of an expression are asked for once, and remembered.

A code location must load with Kafka down, so what the broker said last is kept beside Dagster's own state.
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from s3lake.errors import KafkaUnavailableError
from s3lake.kafka.client import KafkaOffsets
from s3lake.sink import Config

_log = logging.getLogger(__name__)
_TIMEOUT_S = 3.0


def topics_of(config: Config) -> dict[str, list[str]]:
    """Topics per sink, by name. A sink whose expression matches nothing yet has none until the location is reloaded."""
    remembered = _remembered()
    found: dict[str, list[str]] = {}
    for sink in config.sinks:
        if sink.topics_regex is None:
            found[sink.name] = sorted(sink.topics)
            continue
        place = f"{config.kafka.bootstrap_servers} {sink.topics_regex}"
        try:
            offsets = KafkaOffsets(config.kafka.bootstrap_servers, config.kafka.properties, _TIMEOUT_S)
            remembered[place] = sorted(offsets.matching(sink.topics_regex))
            _remember(remembered)
        except KafkaUnavailableError as error:
            _log.warning("sink %s: %s; going by the topics known before", sink.name, error)
        found[sink.name] = remembered.get(place, [])
    return found


def _path() -> Path:
    return Path(os.environ.get("DAGSTER_HOME") or ".dagster") / "s3lake_topics.json"


def _remembered() -> dict[str, list[str]]:
    try:
        found = json.loads(_path().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(topics: Mapping[str, list[str]]) -> None:
    try:
        _path().parent.mkdir(parents=True, exist_ok=True)
        _path().write_text(json.dumps(topics, indent=1))
    except OSError as error:
        _log.warning("topics are not remembered: %s", error)
