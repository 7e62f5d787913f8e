"""The keys of a connector: tables of keys that are native settings, readers of all others; unknown ones are noted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from s3lake.config.draft import SHARED, Draft
from s3lake.config.model import Config, Sink
from s3lake.config.model.base import models_in
from s3lake.config.overrides import names_of_model
from s3lake.config.report import Reference, Report, Setting, Value, by_key, variable
from s3lake.text import option_values
from s3lake.text.option_values import find_nearest, suggest

_LISTED = 24
_UNUSED = "changes nothing next to the other settings of this file"
SPELLED_OTHERWISE = {
    "s3.endpoint": "store.url",
    "s3.endpoint.url": "store.url",
    "aws.s3.endpoint.url": "aws.s3.endpoint",
    "topics.directory": "topics.dir",
    "aws.endpoint": "store.url",
    "connect.s3.endpoint": "connect.s3.custom.endpoint",
    "connect.s3.flush.size": "'flush.size' in PROPERTIES of connect.s3.kcql",
    "connect.s3.flush.count": "'flush.count' in PROPERTIES of connect.s3.kcql",
    "connect.s3.flush.interval": "'flush.interval' in PROPERTIES of connect.s3.kcql",
}
"""Names that people write for keys of a connector."""
T = TypeVar("T")


class ConnectorKey(NamedTuple):
    """A key of a connector that is one native setting: `to` is its path, `read` makes its value of the text.

    Without the key the value is `default`, or the model's if that is None. A key with an `example` is required.
    """

    name: str
    to: str
    read: Callable[[str], Any] = str
    default: Any = None
    example: str = ""


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return the reader of a whole number within bounds."""
    return partial(option_values.parse_whole_number, low=low, high=high)


def milliseconds(low: int) -> Callable[[str], float]:
    """Return the reader of milliseconds as seconds."""
    return lambda text: option_values.parse_whole_number(text, low) / 1000


def choice(choices: Mapping[str, T]) -> Callable[[str], T]:
    """Return the reader of what one of some words means, in any case."""
    return lambda text: choices[option_values.parse_choice(text, choices)]


def same(*words: str) -> dict[str, str]:
    """Return words that mean themselves."""
    return {word: word for word in words}


class Keys:
    """The settings of one connector."""

    def __init__(self, settings: Sequence[Setting], report: Report, deciding: Sequence[str] = ()) -> None:
        """Initialize; of keys that are `deciding` the choice among other keys is the effect."""
        self.report = report
        self.deciding = set(deciding)
        self._settings = by_key(settings, report)
        self._known_keys: dict[str, None] = {}

    def get(self, key: str) -> Setting | None:
        """Return the setting of that key, which is known from now on."""
        self._known_keys[key] = None
        return self._settings.get(key)

    def has(self, key: str) -> bool:
        """Return whether the key is given with a value that is not empty."""
        setting = self.get(key)
        return setting is not None and setting.value != ""

    def text(self, key: str, default: str = "") -> Value[str]:
        """Return text; empty as given."""
        setting = self.get(key)
        return Value(default) if setting is None else Value(setting.value, setting)

    def require(self, key: str, example: str) -> Value[str]:
        """Return text that must be there."""
        setting = self.get(key)
        if setting is None:
            self.report.error(None, f"{key} is missing; add it, for example {key}={example}")
            return Value("")
        if not setting.value:
            self.error(setting, f"is empty; write it, for example {key}={example}")
        return Value(setting.value, setting)

    def read(self, key: str, default: T, reader: Callable[[str], T]) -> Value[T]:
        """Return a value as `reader` understands it; what it raises is reported with the value in front."""
        setting = self.get(key)
        if setting is None:
            return Value(default)
        try:
            value = reader(setting.value)
            if value == default:
                self.deciding.add(key)
            return Value(value, setting)
        except ValueError as error:
            quoted = repr(setting.value) in str(error)
            self.error(setting, str(error) if quoted else f"{setting.masked_value} {error}")
            return Value(default)

    def integer(self, key: str, default: int, low: int, high: int | None = None) -> Value[int]:
        """Return a whole number within bounds."""
        return self.read(key, default, whole(low, high))

    def boolean(self, key: str, default: bool) -> Value[bool]:
        """Return `true` or `false`, in any case."""
        return self.read(key, default, option_values.parse_bool)

    def choice(self, key: str, choices: Mapping[str, T], default: str) -> Value[T]:
        """Return what one of some words means, in any case."""
        return self.read(key, choices[default], choice(choices))

    def names(self, key: str) -> Value[tuple[str, ...]]:
        """Return names separated by commas, each once."""
        setting = self.get(key)
        if setting is None:
            return Value(())
        self.read(key, [""], option_values.parse_names)
        names = [name.strip() for name in setting.value.split(",") if name.strip()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            self.error(setting, f"{twice!r} is named twice; take one out")
        return Value(tuple(dict.fromkeys(names)), setting)

    def put(self, sink: Draft, table: Iterable[ConnectorKey]) -> None:
        """Put the native settings that a table's keys are."""
        for key in table:
            value = self.require(key.name, key.example) if key.example else self.read(key.name, key.default, key.read)
            if value.value == "":
                value = Value(key.default)
            if value.value is not None:
                sink.put(key.to, value)

    def with_prefix(self, prefix: str) -> list[Setting]:
        """Return all settings whose keys begin with `prefix`, which are known from now on."""
        settings = [
            setting for key, setting in self._settings.items() if key.startswith(prefix) and len(key) > len(prefix)
        ]
        for setting in settings:
            self._known_keys[setting.key] = None
        return settings

    def no_effect(self, reasons: Mapping[str, str]) -> None:
        """Accept keys that have no effect here, each for a reason."""
        for key, reason in reasons.items():
            setting = self.get(key)
            if setting is not None:
                self.report.no_effect(setting, reason)

    def rename(self, old: str, new: str) -> None:
        """Take an old name of a key for the new one, with a notice."""
        setting = self.get(old)
        if setting is None:
            return
        del self._settings[old]
        if new in self._settings:
            self.error(setting, f"is the old name of {new}, which is given too; take it out")
            return
        self.report.notice(setting, f"is an old name: write {new}")
        self._settings[new] = setting

    def note(self, why: str, *values: Value[Any]) -> None:
        """Note something about some values, if the file sets them."""
        for value in values:
            if value.setting is not None:
                self.report.notice(value.setting, why)

    def error(self, where: Setting | None, message: str) -> None:
        """Report what is wrong with a setting."""
        self.report.error(where, message)

    def report_unused(self, sinks: Sequence[Draft], *, refuse_unknown: bool = False) -> None:
        """Note unknown keys, which another program may read, and list known ones from which nothing in `sinks` came.

        With `refuse_unknown` no other program reads these keys, and an unknown one is an error.
        """
        used = {setting.place for sink in sinks for setting in sink.origins.values()}
        for key, setting in self._settings.items():
            if key in self._known_keys:
                if key not in self.deciding and setting.place not in used and not self.report.mentions(setting.place):
                    self.report.no_effect(setting, _UNUSED)
                continue
            usual = SPELLED_OTHERWISE.get(key, "")
            near = usual if usual in self._known_keys or " " in usual else find_nearest(key, list(self._known_keys))
            allowed = f"; allowed here: {', '.join(self._known_keys)}" if len(self._known_keys) <= _LISTED else ""
            hint = f"; did you mean {near}?" if near else allowed
            if refuse_unknown:
                self.error(setting, f"is not known{hint}")
            else:
                self.report.notice(setting, f"unknown key: nothing reads it here{hint}")


# `s3lake.<native path>`: any native setting, which a connector has no key for, or in place of its key

PREFIX = "s3lake."
SERVERS, START = "S3LAKE_BOOTSTRAP_SERVERS", "S3LAKE_START"
_WHERE = f"Kafka is; add bootstrap.servers=HOST:PORT, or set {SERVERS}"


def put_native(keys: Keys, sinks: Sequence[Draft], environment: Mapping[str, str], *, where: str = _WHERE) -> None:
    """Put the file's settings after `s3lake.` over everything else, with ones that only these or variables can set.

    `where` is the remedy if neither names the source of the records.
    """
    for setting in keys.with_prefix(PREFIX):
        _put_native(setting, sinks, keys.report)
    for sink in sinks:
        if not sink.get("start"):
            fix = f"which hour is the first; add {PREFIX}start=2026-11-20T00 (UTC), or set {START}"
            _fill(sink, "start", START, environment, fix, keys.report)
        if not sink.get("kafka.bootstrap_servers") and not sink.get("source.type"):
            _fill(sink, "kafka.bootstrap_servers", SERVERS, environment, f"where {where}", keys.report)


def _fill(sink: Draft, path: str, name: str, environment: Mapping[str, str], missing: str, report: Report) -> None:
    """Put the value of a variable."""
    if environment.get(name):
        sink.put(path, environment[name], read_variable(name, name, environment))
    else:
        report.error(None, f"the file does not state {missing}")


def _put_native(setting: Setting, sinks: Sequence[Draft], report: Report) -> None:
    """Put the text of a setting at the native path that its key names, in each of the sinks."""
    path, value = setting.key.removeprefix(PREFIX), setting.value
    if path == "kafka.bootstrap.servers":
        path = "kafka.bootstrap_servers"
    is_shared = path.partition(".")[0] in SHARED
    names, steps, rest = names_of_model(Config if is_shared else Sink), list[str](), path
    while rest:
        if names.added is not None:  # a name of a mapping may hold dots
            names, steps, rest = names.added, [*steps, rest], ""
            continue
        name, _, below = rest.partition(".")
        if name not in names.inside:
            allowed = [title for title in names.inside if isinstance(title, str)]  # not the positions of a list
            allowed += () if steps or is_shared else SHARED
            wrong = f"{name!r} is not a native setting; {suggest(name, allowed, 'allowed here')}"
            if not allowed:
                wrong = f"{steps[-1]!r} holds nothing below it; take {'.' + rest!r} out"
            report.error(setting, wrong)
            return
        names, steps, rest = names.inside[name], [*steps, name], below
    if names.added is not None or (value == "" and any(models_in(names.annotation))):
        message = f"holds several settings: name one of them, for example {setting.key}.NAME"
        report.error(setting, f"{path!r} {message}")
        return
    for sink in sinks:
        sink.put(steps, names.typed(value), setting)


def read_variable(key: str, name: str, environment: Mapping[str, str]) -> Setting:
    """Return what a variable sets for `key`; written as native YAML, it stays that variable."""
    reference = Reference(f"${{{name}}}", environment[name], alone=True, secret=False)
    return Setting(key, environment[name], variable(name), reference=reference)
