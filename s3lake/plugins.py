"""Plugins: what comes with s3lake, what other packages bring by entry points, and what extras install."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from s3lake.errors import ConfigurationError


def load_plugin(name: str, group: str, ours: Mapping[str, str], setting: str, what: str) -> Any:
    """Load the object that the entry point `name` of `group` refers to.

    Args:
        name: the name that the configuration has.
        group: the group of entry points.
        ours: the ones that come with s3lake, as entry points write them: `module:name`.
        setting: the place of the name in the configuration.
        what: the noun for an entry point of this group.

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


@contextmanager
def require_extra(extra: str, feature: str) -> Iterator[None]:
    """Import in here libraries that an extra of s3lake installs.

    Args:
        extra: its name in pyproject.toml.
        feature: what needs it, as users call it.

    Raises:
        ConfigurationError: a library is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{feature} needs {error.name}, which is not installed: pip install 's3lake[{extra}]'"
        ) from None
