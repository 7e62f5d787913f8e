"""What comes with s3lake by a name, or what another package brings by an entry point of that name."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from s3lake.errors import ConfigurationError


def brought(name: str, group: str, ours: Mapping[str, str], setting: str, what: str) -> Any:
    """What the entry point names.

    Args:
        group: of entry points.
        ours: what comes with s3lake, as entry points say it: `module:name`.
        setting: where the name stands.
        what: an entry point of this group brings.

    Raises:
        ConfigurationError: no installed package brings it.
    """
    if name in ours:
        return EntryPoint(name, ours[name], group).load()
    theirs = entry_points(group=group)
    if name in theirs.names:
        return theirs[name].load()
    raise ConfigurationError(
        f"{setting}: no installed package brings {name!r}; there are {', '.join(sorted({*ours, *theirs.names}))}. A "
        f"package brings a {what} by an entry point in the group {group}"
    )
