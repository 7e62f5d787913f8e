"""The configuration of this process: from a file, a directory or an address, in any dialect, with its environment."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from pydantic import ValidationError

from s3lake import hours
from s3lake.config import dialects, source
from s3lake.config.connectors.cloud import REGISTRY
from s3lake.config.connectors.native_keys import SERVERS, START
from s3lake.config.draft import LoadedConfig
from s3lake.config.overrides import prefix_of
from s3lake.config.report import Notice, Path, Place, Reference, variable
from s3lake.errors import ConfigurationError
from s3lake.sink import Config

A = TypeVar("A")
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
    """The configuration at `location`, with the place of every setting and what has to be said of them.

    Args:
        location: a file, a directory whose files are one configuration together, or an http(s) address; without it
            what `S3LAKE_CONFIG` names, or else `IGGY_CONNECTORS_CONFIG_PATH`.
        dialect: of every file there; without it that is seen from the content.
        environment: of the process; a `.env` file that it names is read too.
        to_land: whether it has to say where Kafka is and which hour is the first, which a connector's file does not;
            else something stands in, with a notice.

    Raises:
        ConfigurationError: there is none, it cannot be read, or it cannot be right.
    """
    variables = source.with_dotenv(os.environ if environment is None else environment)
    location = location or variables.get(LOCATION) or variables.get(IGGYS_LOCATION)
    if not location:
        raise ConfigurationError(
            f"no configuration: set {LOCATION} to a file, a directory or an address, or give CONFIG on the command line"
        )
    dialect = dialect or variables.get(DIALECT) or None
    if not to_land:
        return _with_stand_ins(location, dialect, variables)
    return _loaded(location, dialect, variables)


def _with_stand_ins(location: str, dialect: str | None, variables: Mapping[str, str]) -> LoadedConfig:
    present = hours.key_of_ms(hours.now_ms())
    stand_ins = {SERVERS: "localhost:9092", START: present, REGISTRY: "http://localhost:8081"}
    missing = {name: text for name, text in stand_ins.items() if not variables.get(name)}
    configuration = _loaded(location, dialect, {**variables, **missing}, ask_servers=False)
    used = [name for name in missing if variable(name) in configuration.origins.values()]
    notices = tuple(
        Notice(
            variable(name),
            f"is not set, and the file does not have it: {missing[name]} is used as a placeholder; set it to land",
        )
        for name in used
    )
    return replace(configuration, notices=(*configuration.notices, *notices))


def _loaded(
    location: str, dialect: str | None, variables: Mapping[str, str], *, ask_servers: bool = True
) -> LoadedConfig:
    base = pathlib.Path(location) if pathlib.Path(location).is_dir() else pathlib.Path(location).parent
    texts = source.read_texts(location, variables)
    sketches = [
        dialects.read_draft(text.text, text.name, dialect, variables, base, ask_servers=ask_servers) for text in texts
    ]
    if len(sketches) == 1:
        return sketches[0].validate(variables)
    own = [tuple(map(prefix_of, sketch.sinks)) for sketch in sketches]
    every = tuple(chain.from_iterable(own))
    loaded = []
    for sketch, mine in zip(sketches, own, strict=True):
        # A variable for a sink of another file is none of this one's; one that no file knows is everybody's error.
        seen = {name: text for name, text in variables.items() if name.startswith(mine) or not name.startswith(every)}
        loaded.append(sketch.validate(seen))
    return _together(loaded, location)


def _together(parts: Sequence[LoadedConfig], location: str) -> LoadedConfig:
    """Join several files: all their sinks, and what they agree on of the source and Spark.

    S3 settings that differ are put to their sinks.
    """
    parts = [parts[0], *(_with_its_own_s3(part, parts[0].config) for part in parts[1:])]
    first, *others = [part.config for part in parts]
    for name in ("kafka", "source", "spark"):
        for other in others:
            if getattr(other, name) != getattr(first, name):
                raise ConfigurationError(
                    f"{location}: its files do not agree on {name}: one configuration has one of it; write the same "
                    "settings into each file, or give the files one by one"
                )
    values = {
        **{name: getattr(first, name) for name in ("kafka", "source", "s3", "spark")},
        "sinks": list(chain.from_iterable(part.config.sinks for part in parts)),
        "examples": any(part.config.examples for part in parts),
    }
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(str(part["ctx"].get("error", part["msg"])) for part in error.errors() if "ctx" in part)
        raise ConfigurationError(f"{location}: its files do not fit together: {problems or error}") from None
    origins: dict[Path, Place] = {}
    references: dict[Path, Reference] = {}
    before = 0
    for part in parts:
        for path, place in part.origins.items():
            origins.setdefault(_shifted(path, before), place)
        for path, reference in part.references.items():
            references.setdefault(_shifted(path, before), reference)
        before += len(part.config.sinks)
    notices = tuple(chain.from_iterable(part.notices for part in parts))
    connectors = {name: connector for part in parts for name, connector in part.connectors.items()}
    without_effect = tuple(chain.from_iterable(part.without_effect for part in parts))
    return LoadedConfig(config, notices, origins, connectors, references, without_effect)


def _with_its_own_s3(part: LoadedConfig, first: Config) -> LoadedConfig:
    """Copy the file's S3 settings to each of its sinks if they differ from the first file's."""
    config = part.config
    if config.s3 == first.s3:
        return part
    moved = [position for position, sink in enumerate(config.sinks) if sink.s3 is None]
    sinks = tuple(sink.model_copy(update={"s3": config.s3_of(sink)}) for sink in config.sinks)

    def at_sinks(paths: Mapping[Path, A]) -> dict[Path, A]:
        beside = {path: value for path, value in paths.items() if path[:1] != ("s3",)}
        for path, value in paths.items():
            if path[:1] == ("s3",):
                beside |= {("sinks", position, *path): value for position in moved}
        return beside

    return replace(
        part,
        config=config.model_copy(update={"s3": first.s3, "sinks": sinks}),
        origins=at_sinks(part.origins),
        references=at_sinks(part.references),
    )


def _shifted(path: Path, sinks: int) -> Path:
    """Return a path of a file whose sinks come after `sinks` others."""
    return ("sinks", int(path[1]) + sinks, *path[2:]) if path[:1] == ("sinks",) and path[1:] else path
