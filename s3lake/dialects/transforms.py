"""A chain of single message transforms, as Kafka Connect's `transforms` and `predicates` spell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from s3lake.dialects.keys import Keys
from s3lake.dialects.schema import meant


@dataclass(frozen=True)
class Predicate:
    """What a record must be for a transform to be applied to it."""

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    negate: bool = False


@dataclass(frozen=True)
class Transform:
    """One transform of a chain.

    Attributes:
        type: its class, or Iggy's name of it.
        options: as text, or as its file types them.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    predicate: Predicate | None = None

    def native(self) -> dict[str, Any]:
        """As the sink model spells it."""
        found: dict[str, Any] = {"name": self.name, "type": self.type, "options": dict(self.options)}
        if self.predicate is not None:
            found |= {"predicate": self.predicate.name, "negate": self.predicate.negate}
        return found


def chain(keys: Keys) -> tuple[Transform, ...]:
    """The transforms in the order in which they are applied."""
    predicates = {name: Predicate(name, kind, options) for name, kind, options in _listed(keys, "predicates")}
    found: list[Transform] = []
    for name, kind, options in _listed(keys, "transforms"):
        wanted = keys.get(f"transforms.{name}.predicate")
        negate = keys.boolean(f"transforms.{name}.negate", False).value
        rest = {key: value for key, value in options.items() if key not in ("predicate", "negate")}
        predicate = None
        if wanted is not None:
            if wanted.value in predicates:
                plain = predicates[wanted.value]
                predicate = Predicate(plain.name, plain.type, plain.options, negate)
            else:
                near = meant(wanted.value, list(predicates))
                keys.wrong(wanted, f"{wanted.shown} is not among predicates; {near}list it there, and give its type")
        found.append(Transform(name, kind, rest, predicate))
    return tuple(found)


def _listed(keys: Keys, what: str) -> list[tuple[str, str, dict[str, str]]]:
    names = keys.several(what)
    given = {one.key.removeprefix(f"{what}."): one for one in keys.below(f"{what}.")}
    found: list[tuple[str, str, dict[str, str]]] = []
    for name in dict.fromkeys(names.value):
        own = {key.removeprefix(f"{name}."): one.value for key, one in given.items() if key.startswith(f"{name}.")}
        kind = own.pop("type", "")
        if not kind and names.setting is not None:
            keys.wrong(names.setting, f"{name!r} has no type; add {what}.{name}.type=CLASS")
        found.append((name, kind, own))
    for key, one in given.items():
        if not any(key.startswith(f"{name}.") for name in names.value):
            near = meant(key.partition(".")[0], names.value)
            keys.wrong(one, f"is not among {what}; {near}add its name to {what}, or take it out")
    return found
