"""A chain of single message transforms, as Kafka Connect's `transforms` and `predicates` spell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Setting
from s3lake.text.options import did_you_mean

_APACHE = "org.apache.kafka.connect.transforms"
_TOMBSTONES = "io.confluent.connect.transforms.TombstoneHandler"
_BEHAVIORS = {"drop_silent": True, "drop_warn": True, "ignore": False}


@dataclass(frozen=True)
class _Listed:
    """An entry of `transforms` or `predicates`: its class, and its options with the settings that they are in."""

    name: str
    type: Setting | None
    options: Mapping[str, Setting]

    @property
    def values(self) -> dict[str, Any]:
        return {name: setting.value for name, setting in self.options.items()}


def put_transforms(keys: Keys, sink: Draft) -> None:
    """Put the transforms into the sink, in the order in which they are applied."""
    predicates = {entry.name: entry for entry in _listed(keys, "predicates")}
    for entry in _listed(keys, "transforms"):
        options = dict(entry.options)
        predicate = options.pop("predicate", None)
        options.pop("negate", None)
        negate = keys.boolean(f"transforms.{entry.name}.negate", False)
        values = {name: setting.value for name, setting in options.items()}
        native: dict[str, Any] = {"name": entry.name, "options": values, "negate": negate.value}
        origins: dict[tuple[str | int, ...], Setting] = {("options", name): option for name, option in options.items()}
        if negate.setting is not None:
            origins[("negate",)] = negate.setting
        if entry.type is not None:
            native["type"] = entry.type.value
            origins[("type",)] = entry.type
        if entry.type is not None and entry.type.value == _TOMBSTONES:
            behavior = keys.choice(f"transforms.{entry.name}.behavior", _BEHAVIORS, "drop_silent")
            if not behavior.value:
                keys.report.no_effect(entry.type, "behavior=ignore leaves no record out")
                continue
            _drop_tombstones(keys, entry, native)
        if predicate is not None and predicate.value in predicates:
            listed = predicates[predicate.value]
            native["predicate"] = {"type": listed.type.value if listed.type else "", "options": listed.values}
            origins[("predicate",)] = predicate
            origins |= {("predicate", "type"): listed.type} if listed.type else {}
            origins |= {("predicate", "options", name): option for name, option in listed.options.items()}
        elif predicate is not None:
            near = did_you_mean(predicate.value, list(predicates))
            keys.wrong(
                predicate, f"{predicate.masked_value} is not among predicates; {near}list it there, and give its type"
            )
        add(sink, native, origins)


def _drop_tombstones(keys: Keys, entry: _Listed, native: dict[str, Any]) -> None:
    """Put Apache Kafka's transform for Confluent's handler of tombstones."""
    native["type"], native["options"] = f"{_APACHE}.Filter", {}
    native["predicate"] = {"type": f"{_APACHE}.predicates.RecordIsTombstone", "options": {}}
    keys.report.notice(entry.type, "is Filter with RecordIsTombstone: records without a value are left out")


def add(sink: Draft, native: dict[str, Any], origins: Mapping[tuple[str | int, ...], Setting]) -> None:
    """Add one transform to a sink's chain; its origins are as its own paths."""
    transforms = sink.values.setdefault("transforms", [])
    sink.origins |= {("transforms", len(transforms), *path): setting for path, setting in origins.items()}
    transforms.append(native)


def _listed(keys: Keys, what: str) -> list[_Listed]:
    names = keys.names(what)
    settings = {setting.key.removeprefix(f"{what}."): setting for setting in keys.with_prefix(f"{what}.")}
    entries: list[_Listed] = []
    for name in names.value:
        own = {key.removeprefix(f"{name}."): setting for key, setting in settings.items() if key.startswith(f"{name}.")}
        class_setting = own.pop("type", None)
        if class_setting is None and names.setting is not None:
            keys.wrong(names.setting, f"{name!r} has no type; add {what}.{name}.type=CLASS")
        entries.append(_Listed(name, class_setting, own))
    for key, setting in settings.items():
        if not any(key.startswith(f"{name}.") for name in names.value):
            near = did_you_mean(key.partition(".")[0], names.value)
            keys.report.notice(
                setting, f"is not among {what}, so it is not read; {near}add its name to {what} to use it"
            )
    return entries
