"""A case that is tried: what its records become, and where that is not what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from s3lake import hours
from s3lake.errors import ConfigurationError
from s3lake.land.preview import preview
from s3lake.land.preview.contents import rows

if TYPE_CHECKING:
    from s3lake.land.preview.cases import Case, DeadLetter, Expectation
    from s3lake.sink import Sink, Spark

_OF_THE_FILES = 2  # lines that name the two files which a diff is of


@dataclass(frozen=True)
class Outcome:
    """What the records of a case became.

    Attributes:
        keys: of the objects, dead letters' left out, in order.
        rows: key -> what the object holds.
        refusals: the refused records, each with topic, partition, offset, stage and message.
        failed: whether they fail the sink.
    """

    keys: tuple[str, ...]
    rows: Mapping[str, list[Any]]
    refusals: tuple[Mapping[str, Any], ...]
    failed: bool


@dataclass(frozen=True)
class Difference:
    """What was expected of one part of an outcome, and what there is, a line each."""

    what: str
    expected: Sequence[str]
    present: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Lines that begin with `-` where they were expected, with `+` where they are there instead."""
        changes = unified_diff(self.expected, self.present, lineterm="", n=2)
        return (line for line in islice(changes, _OF_THE_FILES, None) if not line.startswith("@@"))


def tried(case: Case, sinks: Sequence[Sink], spark: Spark | None = None) -> Outcome:
    """What the records of a case become.

    Raises:
        ConfigurationError: it is not said for which sink they are.
        S3LakeError: a stage failed, not a record.
    """
    sink = _sink(case, sinks)
    newest = max((record.timestamp for record in case.records), default=-1)
    now_ms = case.now_ms
    if now_ms is None:
        now_ms = newest if newest >= 0 else hours.start_ms(sink.start)
    keys: list[str] = []
    contents: dict[str, list[Any]] = {}
    refusals: list[dict[str, Any]] = []
    failed = False
    for topic in sorted({record.topic for record in case.records}):
        records = [record for record in case.records if record.topic == topic]
        result = preview(sink, topic, records, now_ms, spark)
        failed = failed or result.failed
        refusals += [asdict(refusal) for refusal in result.refusals]
        for object in result.objects:
            if object.file.kind != "dead_letters":
                keys.append(object.file.key)
                contents[object.file.key] = rows(sink, object.file.key, object.body)
    refusals.sort(key=itemgetter("topic", "partition", "offset"))
    return Outcome(tuple(sorted(keys)), contents, tuple(refusals), failed)


def _sink(case: Case, sinks: Sequence[Sink]) -> Sink:
    topics = sorted({record.topic for record in case.records})
    if case.sink is not None and case.sink not in [sink.name for sink in sinks]:
        names = ", ".join(sink.name for sink in sinks)
        raise ConfigurationError(f"{case.place}: sink {case.sink!r}: there is no such sink; there are {names}")
    able = [sink for sink in sinks if case.sink in (None, sink.name)]
    for topic in topics:
        able = [sink for sink in able if sink.reads(topic)]
        if not able:
            raise ConfigurationError(f"{case.place}: no sink reads topic {topic!r}" + _among(case, topics))
    if len(able) > 1:
        names = ", ".join(sink.name for sink in able)
        raise ConfigurationError(f"{case.place}: sinks {names} read {', '.join(topics)}: say which, with sink: NAME")
    return able[0]


def _among(case: Case, topics: Sequence[str]) -> str:
    others = f" together with {', '.join(topics)}" if len(topics) > 1 else ""
    return f"{others} as {case.sink}" if case.sink and others else others


def differences(expect: Expectation | None, outcome: Outcome) -> list[Difference]:
    """Where an outcome is not what was expected; of a case that expects nothing that is all of it."""
    if expect is None:
        return [Difference("nothing is expected", [], [*outcome.keys, *map(_line, map(dict, outcome.refusals))])]
    compared = []
    if expect.keys is not None:
        compared.append(Difference("keys", sorted(expect.keys), outcome.keys))
    if expect.files is not None:
        compared.append(Difference("files", [str(expect.files)], [str(len(outcome.keys))]))
    for key, expected in (expect.rows or {}).items():
        there = list(map(_line, outcome.rows[key])) if key in outcome.rows else ["there is no such object"]
        compared.append(Difference(f"rows of {key}", list(map(_line, expected)), there))
    if expect.dead_letters is not None:
        compared.append(_dead_letters(expect.dead_letters, outcome.refusals))
    compared.append(Difference("failed", [_line(expect.failed)], [_line(outcome.failed)]))
    return [difference for difference in compared if list(difference.expected) != list(difference.present)]


def of_notices(expected: Sequence[str], notices: Sequence[str]) -> Difference | None:
    """Where a configuration's notices are not those that were expected: each holds one of the texts."""
    present = [next((text for text in expected if text in notice), notice) for notice in notices]
    difference = Difference("notices", sorted(expected), sorted(present))
    return difference if difference.expected != difference.present else None


def _dead_letters(expected: Sequence[DeadLetter], refusals: Sequence[Mapping[str, Any]]) -> Difference:
    """Letter by letter what is named of it; a letter that nobody expects is shown with its place and reason."""
    named = [letter.model_dump(exclude_none=True) for letter in expected]
    present = []
    for position, refusal in enumerate(refusals):
        letter = named[position] if position < len(named) else dict.fromkeys(("offset", "stage", "message"), "")
        shown = {name: refusal[name] for name in letter}
        if letter.get("message") and letter["message"] in refusal["message"]:
            shown["message"] = letter["message"]
        present.append(shown)
    return Difference("dead_letters", list(map(_line, named)), list(map(_line, present)))


def _line(value: Any) -> str:
    """A value so that equal ones, and only those, have equal lines."""
    return json.dumps(_ordered(value), ensure_ascii=False)


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return {name: _ordered(value[name]) for name in sorted(value)}
        case list():
            return [_ordered(inner) for inner in value]
    return value
