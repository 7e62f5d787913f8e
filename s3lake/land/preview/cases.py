"""Cases: records, and what a configuration is expected to make of them, as a YAML file says it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from s3lake.config.document import read_values
from s3lake.config.report import Path as Steps
from s3lake.config.report import Place, Report, Setting, dotted
from s3lake.errors import ConfigurationError
from s3lake.land.given import Record
from s3lake.land.preview import records as written
from s3lake.land.preview.records import Records, moment
from s3lake.text.options import did_you_mean


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DeadLetter(_Part):
    """What is expected of a refused record; only what is named is compared, of a message whether it holds the text."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    stage: str | None = None
    message: str | None = None


class Expectation(_Part):
    """What is expected of a case's records; only what is named is compared, and whether the sink fails.

    Attributes:
        keys: of the objects, dead letters' left out, in any order.
        files: how many there are.
        rows: key -> what the object holds.
        dead_letters: the records that are refused, in the order of topic, partition and offset.
        failed: whether they fail the sink, which tolerates none.
    """

    keys: list[str] | None = None
    files: int | None = None
    rows: dict[str, list[Any]] | None = None
    dead_letters: list[DeadLetter] | None = None
    failed: bool = False


class _Case(_Part):
    name: str
    sink: str | None = None
    now: int | str | None = None
    records: list[Any] | str
    expect: Expectation | None = None


class _File(_Part):
    cases: list[_Case]
    notices: list[str] | None = None


@dataclass(frozen=True)
class Case:
    """Records, and what is expected of them.

    Attributes:
        place: where it stands.
        sink: that takes the records; None where only one does.
        now_ms: the wallclock; None for the newest record's time.
        expect: None where nothing is expected yet.
    """

    name: str
    place: Place
    sink: str | None
    now_ms: int | None
    records: tuple[Record, ...]
    expect: Expectation | None


@dataclass(frozen=True)
class Cases:
    """A file of cases; `notices` are expected of the configuration, None where nobody says so."""

    cases: tuple[Case, ...]
    notices: tuple[str, ...] | None


def read(path: Path, environment: Mapping[str, str] = os.environ) -> Cases:
    """The cases of a file; `${NAME}` in it comes from the environment.

    Raises:
        ConfigurationError: it cannot be read, or what stands there cannot be right; one line per mistake.
    """
    return loads(text_of(path), path, environment)


def loads(text: str, path: Path, environment: Mapping[str, str] = os.environ) -> Cases:
    """The cases in a text of the file at `path`.

    Raises:
        ConfigurationError: what stands there cannot be right; one line per mistake.
    """
    report = Report(str(path))
    data, settings = read_values(text, report, lambda _: False, environment)
    report.check()
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path}:1:1: a mapping is needed with {', '.join(_File.model_fields)}")
    try:
        file = _File.model_validate(data)
    except ValidationError as refused:
        for error in refused.errors(include_url=False, include_input=False):
            _note(error, settings, report)
        report.check()
        raise
    read = [_case(case, position, path, settings, report) for position, case in enumerate(file.cases)]
    if not read:
        report.error(Place(str(path)), "there is no case: a list of cases is needed, each with name and records")
    for position, case in enumerate(file.cases):
        if case.name in [other.name for other in file.cases[:position]]:
            report.error(settings["cases", position, "name"], f"two cases are called {case.name!r}")
    report.check()
    return Cases(tuple(read), None if file.notices is None else tuple(file.notices))


def text_of(path: Path) -> str:
    """What a file of cases says.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None


def _case(case: _Case, position: int, path: Path, settings: Mapping[Steps, Setting], report: Report) -> Case:
    steps: Steps = ("cases", position)
    records: Sequence[Record] = ()
    now_ms = None
    if isinstance(case.records, str):
        records = written.read(path.parent / case.records)
    else:
        inline = Records()
        for number, row in enumerate(case.records):
            try:
                inline.add(row)
            except ValueError as error:
                report.error(settings[(*steps, "records", number)], str(error))
        records = list(inline)
    if case.now is not None:
        try:
            now_ms = moment(case.now)
        except ValueError as error:
            report.error(settings[(*steps, "now")], str(error))
    return Case(case.name, settings[steps].place, case.sink, now_ms, tuple(records), case.expect)


def _note(error: Any, settings: Mapping[Steps, Setting], report: Report) -> None:
    steps = tuple(step for step in error["loc"] if not str(step).startswith(("list[", "str", "int")))
    name, allowed = str(steps[-1]), list(_model_at(steps[:-1]).model_fields)
    match error["type"]:
        case "extra_forbidden":
            message = f"unknown name; {did_you_mean(name, allowed)}allowed here: {', '.join(allowed)}"
        case "missing":
            message = "is missing; add it"
        case _ if name == "records":
            message = "write a list of records, or the name of a file of them"
        case _:
            message = f"{error['msg'][0].lower()}{error['msg'][1:]}"
    place = next(settings[steps[:size]].place for size in range(len(steps), -1, -1) if steps[:size] in settings)
    report.error(replace(place, key=dotted(steps)), message)


def _model_at(steps: Steps) -> type[BaseModel]:
    names = tuple(step for step in steps if isinstance(step, str))
    models: Mapping[Steps, type[BaseModel]] = {(): _File, ("cases",): _Case, ("cases", "expect"): Expectation}
    return models.get(names, DeadLetter)
