"""Names in Dagster: tags of runs, and what ops and sensors may be called."""

import re
from collections.abc import Iterable

from s3lake.errors import ConfigurationError

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"
SINK = "s3lake/sink"
TOPIC = "s3lake/topic"
STATE = ".dagster/s3lake_state"  # what Dagster calls so, it shows to nobody
HEARTBEAT = ".dagster/s3lake_heartbeat"
REFUSED = "s3lake/refused"
FAILED = ".dagster/s3lake_failed"  # topics of a run of several
SEALED = "s3lake/sealed"
REASON = "s3lake/reason"
RUN_KEY = "dagster/run_key"
SCHEDULE = "dagster/schedule_name"
DATA_VERSION = "dagster/data_version"
GROUP = "s3lake/topics"

MATERIALISED_BY_US = {"__source_asset_observation__": True}
"""Metadata of an output whose asset Dagster is not to materialise, as it does itself with sources that it observes.

After an output is handled, Dagster materialises every partition of the run, with one set of tags. The hours of Kafka
are materialised one by one before, each with its own metadata and version. Dagster has no public way to say so.
"""


def identifier(*parts: str) -> str:
    """A name that ops and sensors may have: letters, digits and underscores."""
    return re.sub(r"\W", "_", "_".join(parts))


def refuse_clashes(names: Iterable[tuple[str, str]]) -> None:
    """Refuse two things that would get one name in Dagster.

    Args:
        names: (what it is called, what it is called in Dagster).

    Raises:
        ConfigurationError: two have the same.
    """
    names_taken: dict[str, str] = {}
    for name, dagster_name in names:
        other = names_taken.setdefault(dagster_name, name)
        if other != name:
            raise ConfigurationError(
                f"{other!r} and {name!r} would both be called {dagster_name!r} in Dagster, which knows only letters, "
                "digits and underscores: land them in two code locations"
            )
