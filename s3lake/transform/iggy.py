"""Iggy's transforms of JSON objects; anything else passes them as it is.

A dotted key is a path where the value has the object that the field is in; a field of that very name comes first.
Integers are compared as numbers, which Iggy's own filter misses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from s3lake.transform import paths
from s3lake.transform.computed import KINDS, computed
from s3lake.transform.filtering import Pattern
from s3lake.transform.options import OptionError, Options
from s3lake.transform.paths import ABSENT
from s3lake.transform.record import NULL, Record, Step, decoded, encoded

_CONDITIONS = ("always", "key_exists", "key_not_exists")


@dataclass(frozen=True)
class _Fields(Step):
    """A transform of JSON objects; `position` is its place in the chain."""

    enabled: bool
    position: int = field(default=0, kw_only=True)

    reads = frozenset({"value"})
    writes = frozenset({"value"})
    json_only = True

    def at(self, position: int) -> Step:
        return replace(self, position=position)

    def object_of(self, record: Record) -> dict[str, Any] | None:
        """The value where it is an object, and the transform is not switched off."""
        return record.value if self.enabled and isinstance(record.value, dict) else None


@dataclass(frozen=True)
class Assignment:
    """A field and what it gets: a constant, or a computed value."""

    key: str
    static: Any
    computed: str
    condition: str

    def value(self, record: Record, position: int, number: int) -> Any:
        """What the field gets, the `number`-th of the transform at `position`."""
        return computed(self.computed, record, position, number) if self.computed else self.static


@dataclass(frozen=True)
class AddFields(_Fields):
    """Fields set, in the order given: those that are there, too."""

    fields: tuple[Assignment, ...]

    @classmethod
    def of(cls, options: Options) -> AddFields:
        return cls(options.flag("enabled", True), _assignments(options, conditions=False))

    def __call__(self, record: Record) -> None:
        if (present := self.object_of(record)) is None:
            return
        value = dict(present)
        for number, assignment in enumerate(self.fields):
            new = assignment.value(record, self.position, number)
            if "." in assignment.key:
                value = paths.put(value, paths.dotted(value, assignment.key), new)
            else:
                value[assignment.key] = new
        record.value = value


@dataclass(frozen=True)
class UpdateFields(_Fields):
    """Fields set where their condition holds; without one always."""

    fields: tuple[Assignment, ...]

    @classmethod
    def of(cls, options: Options) -> UpdateFields:
        return cls(options.flag("enabled", True), _assignments(options, conditions=True))

    def __call__(self, record: Record) -> None:
        if (value := self.object_of(record)) is None:
            return
        for number, assignment in enumerate(self.fields):
            path = paths.dotted(value, assignment.key)
            exists = paths.found(value, path) is not ABSENT
            if assignment.condition == "always" or (assignment.condition == "key_exists") == exists:
                value = paths.put(value, path, assignment.value(record, self.position, number))
        record.value = value


@dataclass(frozen=True)
class DeleteFields(_Fields):
    """Fields left out; those that are not there are none."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, options: Options) -> DeleteFields:
        return cls(options.flag("enabled", True), options.names("fields"))

    def __call__(self, record: Record) -> None:
        if (value := self.object_of(record)) is None:
            return
        left, deleted = dict(value), False
        for key in self.fields:
            if "." not in key:
                deleted |= left.pop(key, ABSENT) is not ABSENT
            elif paths.found(left, path := paths.dotted(left, key)) is not ABSENT:
                left, deleted = paths.without(left, path), True
        if deleted:
            record.value = left


@dataclass(frozen=True)
class FilterFields(_Fields):
    """Fields kept: those named, and those that a pattern picks (or with `include` false, that none picks)."""

    keep: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    include: bool

    @classmethod
    def of(cls, options: Options) -> FilterFields:
        setting = options.raw("patterns") or ()
        if not isinstance(setting, (list, tuple)):
            message = f"patterns: {setting!r} is no list of tables with key_pattern and value_pattern"
            raise OptionError(message, "patterns")
        patterns = tuple(
            Pattern.of(field_value, f"patterns[{position}]") for position, field_value in enumerate(setting)
        )
        include = options.flag("include_matching", True)
        return cls(options.flag("enabled", True), options.names("keep_fields"), patterns, include)

    def __call__(self, record: Record) -> None:
        value = self.object_of(record)
        if value is None or not (self.keep or self.patterns):
            return
        within = [path for key in self.keep if len(path := paths.dotted(value, key)) > 1]
        kept: dict[str, Any] = {}
        for name, field_value in value.items():
            if (
                name in self.keep
                or any(pattern.matches(name, field_value) for pattern in self.patterns) is self.include
            ):
                kept[name] = field_value
            elif below := [path[1:] for path in within if path[0] == name]:
                kept[name] = _only(field_value, below)
        if kept != value:
            record.value = kept


def _only(value: dict[str, Any], below: list[tuple[str, ...]]) -> dict[str, Any]:
    """An object with nothing but the fields at those paths."""
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        if (name,) in below:
            kept[name] = inner
        elif deeper := [path[1:] for path in below if path[0] == name]:
            kept[name] = _only(inner, deeper)
    return kept


@dataclass(frozen=True)
class UnwrapEnvelope(_Fields):
    """One field's value instead of the whole: also a null, which is JSON's; without that field the whole."""

    envelope: str

    @classmethod
    def of(cls, options: Options) -> UnwrapEnvelope:
        return cls(options.flag("enabled", True), options.needed_text("field", "data"))

    def __call__(self, record: Record) -> None:
        if (value := self.object_of(record)) is None:
            return
        inner = paths.found(value, paths.dotted(value, self.envelope))
        if inner is not ABSENT:
            record.value = NULL if inner is None else inner


def _assignments(options: Options, *, conditions: bool) -> tuple[Assignment, ...]:
    setting = options.raw("fields") or ()
    example = "{key: service, value: {static: api}}"
    if not isinstance(setting, (list, tuple)):
        raise OptionError(f"fields: {setting!r} is no list; write [{example}]", "fields")
    assignments = []
    for position, entry in enumerate(setting):
        place = f"fields[{position}]"
        if not isinstance(entry, Mapping):
            raise OptionError(f"{place}: {entry!r} is not allowed; write {example}", "fields")
        allowed = ("key", "value", "condition") if conditions else ("key", "value")
        if unknown := [name for name in entry if name not in allowed]:
            raise OptionError(f"{place}: {unknown[0]!r} is no name; allowed here: {', '.join(allowed)}", "fields")
        key, value, condition = entry.get("key"), entry.get("value"), entry.get("condition") or "always"
        if not isinstance(key, str) or not key:
            raise OptionError(f"{place}: key is missing; write {example}", "fields")
        if condition not in _CONDITIONS:
            message = f"{place}: condition {condition!r} is not allowed; use one of: {', '.join(_CONDITIONS)}"
            raise OptionError(message, "fields")
        if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= {"static", "computed"}:
            raise OptionError(f"{place}: value {value!r} is not allowed; give static or computed: {example}", "fields")
        computed = value.get("computed", "")
        if "computed" in value and computed not in KINDS:
            raise OptionError(
                f"{place}: computed {computed!r} is not allowed; use one of: {', '.join(KINDS)}", "fields"
            )
        assignments.append(Assignment(key, _as_read(value.get("static"), place), computed, condition))
    return tuple(assignments)


def _as_read(static: Any, place: str) -> Any:
    """A constant as it would be if it came in a value."""
    try:
        return decoded(encoded(static), "json")
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{place}: static {static!r} is no JSON value", "fields") from None
