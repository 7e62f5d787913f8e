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
    kind = detect.named(dialect, name) if dialect else detect.recognised(text, name)
    if kind is Dialect.native:
        return native.sketched(text, name, environment)
    references = References(environment, base, secret or SecretsManager())
    report = Report(name, strict=environment.get(STRICT, "").lower() in ("1", "true", "yes"))
    if kind is Dialect.iggy:
        return iggy.loads(text, report, references)
    settings = worker.completed(list(index(wrappers.read(text, report), report).values()), report, references)
    settings += _named(settings, report, environment.get(NAME, ""))
    resolved = cloud.translated(references.resolve(settings, report), report)
    return _CONNECTORS[kind](resolved, report, environment)


def _named(settings: Sequence[Setting], report: Report, given: str) -> list[Setting]:
    """The connector's name where the file has none: the one that was given, else the file's own."""
    known = next((one for one in settings if one.key == "name"), None)
    if known is not None:
        if given and known.value != given:
            report.error(known, f"{known.shown} stands in the file, so --name {given} has no use; take one of them out")
        return []
    if given:
        return [Setting("name", given, variable(NAME))]
    stem = PurePosixPath(report.file.replace(os.sep, "/")).name.split(".", 1)[0] or "connector"
    place = Place(report.file)
    told = f"name is missing; {stem!r} is taken, after the file: say another with --name (or {NAME})"
    report.notice(place, told)
    return [Setting("name", stem, place)]
