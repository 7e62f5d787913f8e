"""A file, whichever dialect it is written in, to a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from s3lake.config import detect, native
from s3lake.config.connectors import aiven, cloud, confluent, iggy, lenses, worker, wrappers
from s3lake.config.detect import Dialect
from s3lake.config.draft import Sketch
from s3lake.config.references import References, SecretsManager
from s3lake.config.setting import Place, Report, Setting, index, variable

NAME, STRICT = "S3LAKE_NAME", "S3LAKE_STRICT"
"""Environment variables: the name of a connector whose file has none; `true` to refuse what nothing reads."""
_CONNECTORS = {Dialect.lenses: lenses.loads, Dialect.confluent: confluent.loads, Dialect.aiven: aiven.loads}


def sketched(
    text: str,
    name: str,
    dialect: str | None,
    environment: Mapping[str, str],
    base: Path,
    secret: Callable[[str], str] | None = None,
) -> Sketch:
    """What `text` says; `name` is what errors call the file, relative paths in it begin at `base`.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per error.
    """
    report = Report(name, strict=environment.get(STRICT, "").lower() in ("1", "true", "yes"))
    if dialect:
        language = detect.named(dialect, name)
        settings = wrappers.read(text, report) if language in _CONNECTORS else []
    else:
        language, settings = detect.recognised(text, report)
    if language is Dialect.native:
        return native.sketched(text, name, environment)
    references = References(environment, base, secret or SecretsManager())
    if language is Dialect.iggy:
        return iggy.loads(text, report, references)
    settings = worker.completed(list(index(settings, report).values()), report, references)
    settings += _named(settings, report, environment.get(NAME, ""))
    resolved = cloud.translated(references.resolve(settings, report), report)
    return _CONNECTORS[language](resolved, report, environment)


def _named(settings: Sequence[Setting], report: Report, name: str) -> list[Setting]:
    """The connector's name where the file has none: `name`, of the command line, else the file's own."""
    own = next((setting for setting in settings if setting.key == "name"), None)
    if own is not None:
        if name and own.value != name:
            report.error(own, f"{own.shown} stands in the file, so --name {name} has no use; take one of them out")
        return []
    if name:
        return [Setting("name", name, variable(NAME))]
    stem = PurePosixPath(report.file.replace(os.sep, "/")).name.split(".", 1)[0] or "connector"
    place = Place(report.file)
    report.notice(place, f"name is missing; {stem!r} is taken, after the file: say another with --name (or {NAME})")
    return [Setting("name", stem, place)]
