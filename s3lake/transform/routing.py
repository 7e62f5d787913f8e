"""Kafka Connect's routers, header and filter transforms, and its predicates.

A router changes what the object key calls the topic, and what later transforms see; never the bookkeeping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from s3lake.text.dates.java import DatePattern
from s3lake.text.expressions import PatternTimeoutError
from s3lake.transform import java_regex
from s3lake.transform.options import Options
from s3lake.transform.record import Header, HeaderStep, Record, Refusal, Step

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TOPIC_BYTES = 249


def checked(topic: str) -> str:
    """A topic's new name; its slashes make directories of the object key.

    Raises:
        Refusal: no object key could hold it.
    """
    if not topic.isprintable() or len(topic.encode()) > _TOPIC_BYTES or {"", ".", ".."} & set(topic.split("/")):
        raise Refusal(
            f"the topic would be called {topic[:80]!r}: it needs 1 to {_TOPIC_BYTES} bytes without control characters, "
            "and no empty step, '.' or '..' between slashes"
        )
    return topic


@dataclass(frozen=True)
class _Router(Step):
    writes = frozenset({"topic"})


@dataclass(frozen=True)
class RegexRouter(_Router):
    """A topic that matches as a whole gets another name."""

    regex: str
    replacement: str

    @classmethod
    def of(cls, options: Options) -> RegexRouter:
        regex = options.needed_text("regex", "(.*)-raw")
        options.read("regex", regex, java_regex.compiled)
        options.given("replacement")
        replacement = options.text("replacement") if options.raw("replacement") == "" else None
        replacement = options.needed_text("replacement", "$1") if replacement is None else replacement
        options.read("replacement", replacement, lambda text: java_regex.replaced(regex, text))
        return cls(regex, replacement)

    def __call__(self, record: Record) -> None:
        try:
            record.topic = checked(_replaced(self.regex, self.replacement)(record.topic))
        except PatternTimeoutError as error:
            raise Refusal(str(error)) from None


@lru_cache(maxsize=256)
def _replaced(regex: str, replacement: str) -> Callable[[str], str]:
    return lru_cache(maxsize=1024)(java_regex.replaced(regex, replacement))


@dataclass(frozen=True)
class TimestampRouter(_Router):
    """The record's time in the topic's name."""

    topic_format: str
    timestamp_format: DatePattern

    @classmethod
    def of(cls, options: Options) -> TimestampRouter:
        topic = options.text("topic.format", "${topic}-${timestamp}")
        pattern = DatePattern(options.text("timestamp.format", "yyyyMMdd"), "simple")
        options.read("timestamp.format", pattern.pattern, lambda _: pattern.formatter())
        return cls(topic, pattern)

    def __call__(self, record: Record) -> None:
        if record.timestamp is None:
            raise Refusal("the record has no timestamp")
        time = self.timestamp_format.formatter()(record.timestamp)
        record.topic = checked(self.topic_format.replace("${topic}", record.topic).replace("${timestamp}", time))


@dataclass(frozen=True)
class InsertHeader(HeaderStep):
    """A constant header."""

    header: str
    value: bytes | None

    @classmethod
    def of(cls, options: Options) -> InsertHeader:
        return cls(options.needed_text("header", "source"), literal(options.needed_text("value.literal", "kafka")))

    def __call__(self, record: Record) -> None:
        record.add(self.header, self.value)

    def constants(self, wallclock_ms: int) -> list[Header]:  # noqa: ARG002 - it needs no time
        return [(self.header, self.value)]


def literal(text: str) -> bytes | None:
    """What Connect reads in a literal, as text: `null` is null, and a time has the colons that are escaped there."""
    text = text.strip()
    time = text.replace("\\:", ":")
    return None if text == "null" else (time if _TIME.fullmatch(time) else text).encode()


@dataclass(frozen=True)
class DropHeaders(HeaderStep):
    """Headers of these names left out."""

    headers: frozenset[str]

    @classmethod
    def of(cls, options: Options) -> DropHeaders:
        return cls(frozenset(options.needed_names("headers", "trace_id")))

    reads = frozenset({"headers"})

    def __call__(self, record: Record) -> None:
        record.headers = [one for one in record.headers if one[0] not in self.headers]


@dataclass(frozen=True)
class Filter(Step):
    """Records left out: those its predicate picks."""

    def __call__(self, record: Record) -> bool:  # noqa: ARG002 - its predicate has looked at the record
        return True


@dataclass(frozen=True)
class TopicNameMatches(Step):
    """Predicate: the topic's name, as routers left it, matches as a whole."""

    pattern: str

    @classmethod
    def of(cls, options: Options) -> TopicNameMatches:
        pattern = options.needed_text("pattern", "orders-.*")
        options.read("pattern", pattern, java_regex.compiled)
        return cls(pattern)

    def __call__(self, record: Record) -> bool:
        try:
            return _matches(self.pattern, record.topic)
        except PatternTimeoutError as error:
            raise Refusal(str(error)) from None


@lru_cache(maxsize=1024)
def _matches(pattern: str, topic: str) -> bool:
    return java_regex.compiled(pattern).matches(topic)


@dataclass(frozen=True)
class HasHeaderKey(Step):
    """Predicate: there is a header of this name."""

    name: str

    @classmethod
    def of(cls, options: Options) -> HasHeaderKey:
        return cls(options.needed_text("name", "trace_id"))

    reads = frozenset({"headers"})

    def __call__(self, record: Record) -> bool:
        return any(name == self.name for name, _ in record.headers)


@dataclass(frozen=True)
class RecordIsTombstone(Step):
    """Predicate: there is no value."""

    reads = frozenset({"tombstone"})

    def __call__(self, record: Record) -> bool:
        return record.value is None


@dataclass(frozen=True)
class Conditional(Step):
    """A transform for the records that its predicate picks, or with `negate` for all others."""

    step: Step
    predicate: Step
    negate: bool

    @property
    def reads(self) -> frozenset[str]:
        return self.step.reads | self.predicate.reads

    @property
    def writes(self) -> frozenset[str]:
        return self.step.writes

    @property
    def json_only(self) -> bool:
        return self.step.json_only

    def __call__(self, record: Record) -> bool | None:
        if self.predicate(record) is not self.negate:
            return self.step(record)
        return None
