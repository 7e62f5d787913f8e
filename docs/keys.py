"""What becomes of every key of every connector's own definition, found by loading it.

`keys/` has the definitions as data; `reference.py` writes what becomes of them, and a test counts.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from s3lake.config.draft import LoadedConfig
from s3lake.config.load import read_draft
from s3lake.errors import ConfigurationError

ENVIRONMENT = {"S3LAKE_START": "2026-11-20T00", "S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092", "S3LAKE_NAME": ""}
HERE = Path(__file__).parent / "keys"
_KCQL = "connect.s3.kcql"


@dataclass(frozen=True)
class Key:
    """A key of a connector's definition.

    Attributes:
        name: as files write it.
        default: the connector's own; empty where it has none.
        value: one that is not the default.
        beside: the other keys without which the connector itself does not read the key.
    """

    name: str
    default: str
    value: Any
    beside: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Definition:
    """What one connector knows.

    Attributes:
        title: how the page calls it.
        base: the least configuration that loads.
        keys: all of them.
        properties: of KCQL, where the connector has it.
        toml: whether its files are TOML.
        note: what has to be known of the list.
    """

    title: str
    base: dict[str, Any]
    keys: tuple[Key, ...]
    properties: tuple[Key, ...] = ()
    toml: bool = False
    note: str = ""

    def text(self, settings: dict[str, Any]) -> str:
        """The base with settings of its own, as a file."""
        whole = {name: value for name, value in {**self.base, **settings}.items() if value is not None}
        return _toml(whole) if self.toml else json.dumps(whole)


def _definitions(name: str) -> Iterator[Definition]:
    """Yield those of a file of `keys/`, whose rows are name, default, value, and what else the key needs."""
    for document in yaml.safe_load_all((HERE / f"{name}.yaml").read_text(encoding="utf-8")):
        keys, properties = (tuple(Key(*row) for row in document.get(rows, ())) for rows in ("keys", "properties"))
        toml, note = document.get("toml", False), document.get("note", "")
        yield Definition(document["title"], document["base"], keys, properties, toml, note)


def _toml(settings: dict[str, Any]) -> str:
    """Dotted keys as TOML; what begins with `streams.` is of the one stream."""
    top = [f"{name} = {json.dumps(value)}" for name, value in settings.items() if "." not in name]
    tables: dict[str, list[str]] = {}
    for name, value in settings.items():
        if "." in name:
            table, _, key = name.rpartition(".")
            tables.setdefault(table, []).append(f"{key} = {_inline(value)}")
    heads = {table: "[[streams]]" if table == "streams" else f"[{table}]" for table in tables}
    return "\n".join([*top, *(line for table, lines in tables.items() for line in (heads[table], *lines))])


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_inline(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


_FILES = ("connect", "confluent", "cloud", "aiven", "lenses", "iggy", "iggy_others")
DEFINITIONS = tuple(definition for name in _FILES for definition in _definitions(name))


@dataclass(frozen=True)
class Outcome:
    """What becomes of a key.

    Attributes:
        key: of the definition.
        becomes: `silent` is what none may be.
        explanation: the native settings that it changes, the notice, or the refusal.
    """

    key: Key
    becomes: Literal["honoured", "notice", "no effect", "refused", "silent"]
    explanation: str


@functools.cache
def outcomes(definition: Definition) -> tuple[Outcome, ...]:
    """What becomes of each key, by loading it."""
    plain, found = _loaded(definition, {}), []
    for key in definition.keys:
        beside = {name: value for name, value in key.beside.items() if name != key.name}
        without, changed = (_loaded(definition, {**beside, key.name: value}) for value in (None, key.value))
        found.append(_outcome(key, plain, without, changed))
    return tuple(found)


@functools.cache
def outcomes_of_properties(definition: Definition) -> tuple[Outcome, ...]:
    """The same of KCQL's properties."""

    def loaded(settings: dict[str, Any]) -> LoadedConfig | ConfigurationError:
        properties = ", ".join(f"'{name}'={value}" for name, value in settings.items())
        statement = f"{definition.base[_KCQL]} PARTITIONBY type" + (f" PROPERTIES({properties})" if settings else "")
        return _loaded(definition, {_KCQL: statement})

    found = []
    for key in definition.properties:
        without, changed = loaded(key.beside), loaded({**key.beside, key.name: key.value})
        found.append(_outcome(key, without, without, changed))
    return tuple(found)


def _loaded(definition: Definition, settings: dict[str, Any]) -> LoadedConfig | ConfigurationError:
    try:
        return read_draft(definition.text(settings), "f", None, ENVIRONMENT, Path()).validate(ENVIRONMENT)
    except ConfigurationError as error:
        return error


def _outcome(key: Key, plain: Any, without: Any, changed: Any) -> Outcome:
    if isinstance(changed, ConfigurationError):
        return Outcome(key, "refused", str(changed).split("\n")[0].partition(f"{key.name}: ")[2])
    for becomes, remarks in (("notice", changed.notices), ("no effect", changed.without_effect)):
        for remark in remarks:
            if _is(key, remark.place.key) and remark not in getattr(without, "notices", ()):
                return Outcome(key, becomes, remark.message)
    # What selects the connector has one value alone, and that is in every configuration that loads.
    selects = key.name in ("connector.class", "storage.class", "type", "enabled")
    if selects or any(_differs(changed, other) for other in (plain, without)):
        other = without if isinstance(without, LoadedConfig) and _differs(changed, without) else plain
        return Outcome(key, "honoured", ", ".join(f"`{path}`" for path in _changes(changed, other)))
    return Outcome(key, "silent", "")


def _is(key: Key, name: str) -> bool:
    return name.replace("[0]", "") == key.name or name.startswith(f"{key.name}.")


def _changes(one: LoadedConfig, other: LoadedConfig) -> list[str]:
    """The native settings in which two configurations differ, of their last sinks."""
    first, second = (dict(_flat(loaded.config.model_dump(mode="json", by_alias=True))) for loaded in (one, other))
    return [path for path in {**first, **second} if first.get(path) != second.get(path)]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if path == "sinks":
        value, path = value[-1], ""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}".lstrip("."))
    else:
        yield path, value


def _differs(one: LoadedConfig, other: Any) -> bool:
    return isinstance(other, ConfigurationError) or (one.config, one.connectors) != (other.config, other.connectors)


def counted(definition: Definition) -> tuple[int, int]:
    """How many keys are honoured or harmless, and how many there are."""
    every = [*outcomes(definition), *outcomes_of_properties(definition)]
    return sum(outcome.becomes in ("honoured", "notice", "no effect") for outcome in every), len(every)
