"""Names in Dagster: tags of runs, and what ops and sensors may be called."""

import re
from collections.abc import Mapping

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"
SINK = "s3lake/sink"
TOPIC = "s3lake/topic"
HEARTBEAT = ".dagster/s3lake_heartbeat"  # Dagster does not show tags that begin with ".dagster"
FAILED = ".dagster/s3lake_failed"  # topics of a run that lands topics together
RUN_PROCESS = ".dagster/s3lake_process"  # where a run works that was started from a preloaded process
STOP = ".dagster/s3lake_stop"
SEALED = "s3lake/sealed"
REASON = "s3lake/reason"
RUN_KEY = "dagster/run_key"
SCHEDULE = "dagster/schedule_name"
DATA_VERSION = "dagster/data_version"
GROUP = "s3lake/topics"

MATERIALISED_BY_US = {"__source_asset_observation__": True}
"""Metadata of an output that Dagster does not materialise: it marks outputs of observed sources so.

After an output is handled, Dagster materialises every partition of the run, with one set of tags. Hours of Kafka are
materialised one by one before, each with its own metadata and version. Dagster has no public call for it.
"""


def identifier(*parts: str) -> str:
    """Return a name that ops and sensors may have: letters, digits and underscores."""
    return re.sub(r"\W", "_", "_".join(parts))


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags of a run of all hours from `first` to `last`."""
    return {RANGE_START: first, RANGE_END: last}


def find_range(tags: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first and the last hour that the tags of a run name; None if they name no hour."""
    first = tags.get(RANGE_START) or tags.get(PARTITION)
    return (first, tags.get(RANGE_END) or first) if first else None
