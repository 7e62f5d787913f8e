"""A file, whichever dialect it is written in, to a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from s3lake.dialects import aiven, confluent, connect_json, detect, iggy, lenses, native, properties
from s3lake.dialects.detect import Dialect
from s3lake.dialects.draft import Loaded
from s3lake.dialects.places import Report, Setting
from s3lake.dialects.references import References, SecretsManager

_CONNECTORS = {Dialect.lenses: lenses.loads, Dialect.confluent: confluent.loads, Dialect.aiven: aiven.loads}


def load(path: Path, dialect: str | None = None, environment: Mapping[str, str] = os.environ) -> Loaded:
    """The configuration in the file `path`.

    Args:
        path: the file.
        dialect: what it is written in; without it that is seen from the content.
        environment: variables that the file may name, and S3LAKE_START and S3LAKE_BOOTSTRAP_SERVERS.

    Raises:
        ConfigurationError: the file cannot be read, or what stands in it cannot be right; one line per error.
    """
    return loads(native.read(path), str(path), dialect, environment, path.parent)


def loads(
    text: str,
    name: str,
    dialect: str | None = None,
    environment: Mapping[str, str] = os.environ,
    base: Path = Path(),
    secret: Callable[[str], str] | None = None,
) -> Loaded:
    """The configuration in `text`; `name` is what errors call the file, relative paths in it begin at `base`.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per error.
    """
    kind = detect.named(dialect, name) if dialect else detect.recognised(text, name)
    if kind is Dialect.native:
        return native.loaded(text, name, environment)
    references = References(environment, base, secret or SecretsManager())
    report = Report(name)
    if kind is Dialect.iggy:
        return iggy.loads(text, report, references)
    settings = references.resolve(_settings(text, report), report)
    return _CONNECTORS[kind](settings, report, environment)


def _settings(text: str, report: Report) -> list[Setting]:
    return connect_json.read(text, report) if text.lstrip().startswith("{") else properties.read(text, report)
