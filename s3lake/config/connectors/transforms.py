"""A chain of single message transforms, as Kafka Connect's `transforms` and `predicates` spell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.setting import Setting
from s3lake.options import meant

_APACHE = "org.apache.kafka.connect.transforms"
_TOMBSTONES = "io.confluent.connect.transforms.TombstoneHandler"
_BEHAVIORS = {"drop_silent": True, "drop_warn": True, "ignore": False, "fail": False}


@dataclass(frozen=True)
class _Listed:
    """An entry of `transforms` or `predicates`: its class, and its options with the settings that they stand in."""

    name: str
    type: Setting | None
    options: Mapping[str, Setting]

    @property
    def values(self) -> dict[str, Any]:
        return {name: one.value for name, one in self.options.items()}


def chain(keys: Keys, sink: Draft) -> None:
    """Put the transforms into the sink, in the order in which they are applied."""
    predicates = {one.name: one for one in _listed(keys, "predicates")}
    for one in _listed(keys, "transforms"):
        options = dict(one.options)
        wanted = options.pop("predicate", None)
        options.pop("negate", None)
        negate = keys.boolean(f"transforms.{one.name}.negate", False).value
        values = {name: setting.value for name, setting in options.items()}
        native: dict[str, Any] = {"name": one.name, "options": values, "negate": negate}
        origins: dict[tuple[str | int, ...], Setting] = {("options", name): held for name, held in options.items()}
        if one.type is not None:
            native["type"] = one.type.value
            origins[("type",)] = one.type
        if one.type is not None and one.type.value == _TOMBSTONES:
            _without_tombstones(keys, one, native)
        if wanted is not None and wanted.value in predicates:
            found = predicates[wanted.value]
            native["predicate"] = {"type": found.type.value if found.type else "", "options": found.values}
            origins[("predicate",)] = found.type or wanted
            origins |= {("predicate", "options", name): held for name, held in found.options.items()}
        elif wanted is not None:
            near = meant(wanted.value, list(predicates))
            keys.wrong(wanted, f"{wanted.shown} is not among predicates; {near}list it there, and give its type")
        add(sink, native, origins)


def _without_tombstones(keys: Keys, one: _Listed, native: dict[str, Any]) -> None:
    """Confluent's handler of tombstones, as what Apache Kafka has for it."""
    behavior = keys.choice(f"transforms.{one.name}.behavior", _BEHAVIORS, "drop_silent")
    native["type"], native["options"] = f"{_APACHE}.Filter", {}
    native["predicate"] = {"type": f"{_APACHE}.predicates.RecordIsTombstone", "options": {}}
    if not behavior.value and behavior.setting is not None:
        keys.wrong(behavior.setting, f"{behavior.setting.shown} leaves nothing out; take the transform out")
    keys.report.notice(one.type, "is Filter with RecordIsTombstone: records without a value are left out")


def add(sink: Draft, native: dict[str, Any], origins: Mapping[tuple[str | int, ...], Setting]) -> None:
    """Add one transform to a sink's chain; its origins are as its own paths."""
    held = sink.values.setdefault("transforms", [])
    sink.origins |= {("transforms", len(held), *path): setting for path, setting in origins.items()}
    held.append(native)


def _listed(keys: Keys, what: str) -> list[_Listed]:
    names = keys.several(what)
    given = {one.key.removeprefix(f"{what}."): one for one in keys.below(f"{what}.")}
    found: list[_Listed] = []
    for name in names.value:
        own = {key.removeprefix(f"{name}."): one for key, one in given.items() if key.startswith(f"{name}.")}
        kind = own.pop("type", None)
        if kind is None and names.setting is not None:
            keys.wrong(names.setting, f"{name!r} has no type; add {what}.{name}.type=CLASS")
        found.append(_Listed(name, kind, own))
    for key, one in given.items():
        if not any(key.startswith(f"{name}.") for name in names.value):
            near = meant(key.partition(".")[0], names.value)
            keys.wrong(one, f"is not among {what}; {near}add its name to {what}, or take it out")
    return found
