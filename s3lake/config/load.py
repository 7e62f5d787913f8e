"""The configuration of this process: from a file, a directory or an address, in any dialect, with its environment."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from s3lake import hours
from s3lake.config import dialects, source
from s3lake.config.connectors.cloud import REGISTRY
from s3lake.config.draft import LoadedConfig, join_drafts
from s3lake.config.keys import SERVERS, START
from s3lake.config.overrides import prefix_of
from s3lake.config.report import Notice, Report, variable
from s3lake.errors import ConfigurationError
from s3lake.sink import Config

_log = logging.getLogger(__name__)
LOCATION, DIALECT = "S3LAKE_CONFIG", "S3LAKE_DIALECT"
"""Environment variables that say where the configuration is, and its dialect where the content does not tell."""
IGGYS_LOCATION = "IGGY_CONNECTORS_CONFIG_PATH"
"""Iggy's own variable for the file of its runtime."""


def load(location: str | pathlib.Path | None = None, dialect: str | None = None) -> Config:
    """Return the configuration at `location`, and log its notices. See `load_configuration`."""
    configuration = load_configuration(None if location is None else str(location), dialect)
    for notice in configuration.notices:
        _log.warning("%s", notice)
    return configuration.config


def load_configuration(
    location: str | None = None,
    dialect: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    to_land: bool = True,
) -> LoadedConfig:
    """Return the configuration at `location`, with the place of every setting, and notices.

    Args:
        location: a file, a directory whose files are one configuration together, or an http(s) address; by default
            what `S3LAKE_CONFIG` names, or else `IGGY_CONNECTORS_CONFIG_PATH`.
        dialect: of every file there; None to find it in the content.
        environment: of the process; a `.env` file that it names is read too.
        to_land: require what a connector's file may lack: Kafka's address and the first hour. Otherwise placeholders
            are used, with a notice.

    Raises:
        ConfigurationError: it is missing, cannot be read, or is not valid.
    """
    variables = source.with_dotenv(os.environ if environment is None else environment)
    location = location or variables.get(LOCATION) or variables.get(IGGYS_LOCATION)
    if not location:
        raise ConfigurationError(
            f"no configuration: set {LOCATION} to a file, a directory or an address, or give CONFIG on the command line"
        )
    dialect = dialect or variables.get(DIALECT) or None
    if not to_land:
        return _load_with_placeholders(location, dialect, variables)
    return _load(location, dialect, variables)


def _load_with_placeholders(location: str, dialect: str | None, variables: Mapping[str, str]) -> LoadedConfig:
    present = hours.key_of_ms(hours.now_ms())
    placeholders = {SERVERS: "localhost:9092", START: present, REGISTRY: "http://localhost:8081"}
    missing = {name: text for name, text in placeholders.items() if not variables.get(name)}
    configuration = _load(location, dialect, {**variables, **missing}, ask_servers=False)
    used = [name for name in missing if variable(name) in configuration.origins.values()]
    notices = tuple(
        Notice(
            variable(name),
            f"is not set, and the file does not have it: {missing[name]} is used as a placeholder; set it to land",
        )
        for name in used
    )
    return replace(configuration, notices=(*configuration.notices, *notices))


def _load(
    location: str, dialect: str | None, variables: Mapping[str, str], *, ask_servers: bool = True
) -> LoadedConfig:
    base = pathlib.Path(location) if pathlib.Path(location).is_dir() else pathlib.Path(location).parent
    texts = source.read_texts(location, variables)
    drafts = [
        dialects.read_draft(text.text, text.name, dialect, variables, base, ask_servers=ask_servers) for text in texts
    ]
    if len(drafts) == 1:
        return drafts[0].validate(variables)
    own = [tuple(map(prefix_of, draft.sinks)) for draft in drafts]
    every = tuple(chain.from_iterable(own))
    parts = []
    for draft, mine in zip(drafts, own, strict=True):
        # Variables for sinks of other files are left out; one that no file knows is an error.
        seen = {name: text for name, text in variables.items() if name.startswith(mine) or not name.startswith(every)}
        parts.append(draft.validate(seen))
    sinks = list(chain.from_iterable(draft.split() for draft in drafts))
    joined = join_drafts(sinks, Report(location)).validate({})
    return replace(
        joined,
        notices=tuple(chain.from_iterable(part.notices for part in parts)),
        connectors={name: connector for part in parts for name, connector in part.connectors.items()},
        without_effect=tuple(chain.from_iterable(part.without_effect for part in parts)),
    )
