"""YAML text to plain values that know where they stand, with the environment's values in them.

`${NAME}` and `${NAME:-default}` in a scalar come from the environment; without quotes the result is typed as if it had
been written there. Scalars are typed as YAML 1.2 has it: `on`, `yes`, `0x10`, `1:30` and `2026-11-20` are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from s3lake import masking
from s3lake.config.environment import looked_up
from s3lake.config.model import dotted
from s3lake.config.setting import Reference
from s3lake.errors import ConfigurationError
from s3lake.masking import MASK, is_secret

Place = tuple[str | int, ...]
"""Names and positions from the top of the file down to a value."""

_PREFIX = "tag:yaml.org,2002:"
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\})?")


class _Loader(yaml.SafeLoader):
    """The types of YAML 1.2's core, and `<<`."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+", [*"-+0123456789"]),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_PREFIX + _tag, re.compile(f"^(?:{_pattern})$"), _first)

_RESOLVER = _Loader("")


class Dumper(yaml.SafeDumper):
    """Writes text so that it is read as text here: YAML 1.1, PyYAML's own, has other numbers than 1.2.

    What a variable stands for is text too, whatever it looks like.
    """


def _text(dumper: Dumper, value: str) -> ScalarNode:
    tag = _RESOLVER.resolve(ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    plain = tag == f"{_PREFIX}str" and "${" not in value
    return dumper.represent_scalar(f"{_PREFIX}str", value, style=None if plain else "'")


Dumper.add_representer(str, _text)

_LARGEST = 50_000  # values, of which a sink has some fifty
_MEANINGS: dict[str, Callable[[str], Any]] = {
    f"{_PREFIX}str": str,
    f"{_PREFIX}int": int,
    f"{_PREFIX}float": float,
    f"{_PREFIX}bool": lambda text: text.lower() == "true",
    f"{_PREFIX}null": lambda _: None,
}


@dataclass(frozen=True, order=True)
class _Problem:
    line: int
    column: int
    path: str
    message: str
    variable: str = ""


@dataclass
class Document:
    """One file's values, and what is wrong with them.

    Attributes:
        name: what messages call the file.
        hidden: whether the value at a place must never be printed.
        environment: where `${NAME}` comes from.
        data: the values; `UNKNOWN` where one cannot be had.
        texts: scalars as written, after substitution.
        unknown: places of the values that cannot be had.
        variables: places of the values that stand in the environment instead of the file, and their variables.
        references: where scalars came from that hold references.
    """

    name: str
    hidden: Callable[[Place], bool]
    environment: Mapping[str, str]
    data: Any = None
    texts: dict[Place, str] = field(default_factory=dict)
    unknown: set[Place] = field(default_factory=set)
    variables: dict[Place, str] = field(default_factory=dict)
    references: dict[Place, Reference] = field(default_factory=dict)
    _nodes: dict[Place, Node] = field(default_factory=dict)
    _keys: dict[Place, Node] = field(default_factory=dict)
    _problems: list[_Problem] = field(default_factory=list)
    _secrets: set[str] = field(default_factory=set)
    _within: set[int] = field(default_factory=set)
    _size: int = 0

    @classmethod
    def read(cls, text: str, name: str, hidden: Callable[[Place], bool], environment: Mapping[str, str]) -> Document:
        """The document in `text`.

        Raises:
            ConfigurationError: it is no YAML.
        """
        document = cls(name, hidden, environment)
        root = _composed(text, name)
        if root is not None:
            document.data = document._value(root, ())
        if document._size > _LARGEST:
            raise ConfigurationError(f"{name}: with its aliases written out it has more than {_LARGEST:,} values")
        return document

    def note(self, place: Place, message: str, *, at_name: bool = False) -> None:
        """Note what is wrong at `place`; where it does not stand in the file, at what is nearest above it."""
        known = self.variables.keys() | self._nodes.keys()
        above = next(place[:size] for size in range(len(place), -1, -1) if place[:size] in known)
        if above in self.variables:
            self._problems.append(_Problem(0, 0, dotted(place), message, self.variables[above]))
            return
        node = self._keys[place] if at_name and place in self._keys else self._nodes[above]
        self._note_at(node, place, message)

    def check(self) -> None:
        """Raise everything that was noted.

        Raises:
            ConfigurationError: one line per problem, in the file's order.
        """
        lines: dict[tuple[int, int, str, str], str] = {}
        for one in sorted(self._problems):
            at = f"environment variable {one.variable}" if one.variable else f"{self.name}:{one.line}:{one.column}"
            place = f"{at}: " + (f"{one.path}: " if one.path else "")
            # An anchor's mistakes are told once, not again for each alias.
            lines.setdefault((one.line, one.column, one.message, one.variable), place + one.message)
        if lines:
            raise ConfigurationError("\n".join(lines.values()))

    def kind(self, place: Place) -> str:
        """What stands at `place`: a mapping, a list, null or text."""
        node = self._nodes.get(place)
        if isinstance(node, MappingNode):
            return "a mapping"
        if isinstance(node, SequenceNode):
            return "a list"
        return "null" if node is None or node.tag == f"{_PREFIX}null" else "text"

    def holds(self, place: Place) -> bool:
        """Whether something stands at `place`."""
        return place in self._nodes

    def positions(self) -> Iterator[tuple[Place, tuple[int, int]]]:
        """Line and column, from 1, of every value, at its name where it has one."""
        for place, node in self._nodes.items():
            mark = self._keys.get(place, node).start_mark
            yield place, (mark.line + 1, mark.column + 1)

    def shown(self, place: Place) -> str:
        """The value at `place` for a message."""
        node = self._nodes.get(place)
        text = self.texts.get(place)
        if text is None or (place not in self.variables and self.kind(place) != "text"):
            return self.kind(place)
        if self.hidden(place):
            return MASK
        shown = self.without_secrets(repr(text if len(text) <= 60 else f"{text[:60]}…"))
        return shown if not isinstance(node, ScalarNode) or node.value == text else f"{shown} (from {node.value})"

    def without_secrets(self, message: str) -> str:
        """A message that may quote values, with every secret of this file masked."""
        return masking.without(message, self._secrets)

    def put(self, place: Place, value: Any) -> None:
        """Set the value at `place`, where one stands."""
        holder = self.data
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value

    def replace(self, place: Place, value: Any, variable: str) -> None:
        """Say that the value at `place` is now `value`, which stands in an environment variable."""
        for known in (self._nodes, self._keys, self.texts):
            for inner in [one for one in known if one[: len(place)] == place]:
                del known[inner]
        self.texts[place] = str(value)
        self.variables[place] = variable
        if self.hidden(place):
            self._secrets.add(str(value))

    def _note_at(self, node: Node, place: Place, message: str) -> None:
        mark = node.start_mark
        self._problems.append(_Problem(mark.line + 1, mark.column + 1, dotted(place), message))

    def _unknown(self, node: Node, place: Place, message: str) -> Any:
        self._note_at(node, place, message)
        self.unknown.add(place)
        return UNKNOWN

    def _value(self, node: Node, place: Place) -> Any:
        self._nodes[place] = node
        self._size += 1
        if self._size > _LARGEST:  # aliases of aliases, which grow without end
            return UNKNOWN
        if id(node) in self._within:
            return self._unknown(node, place, "an alias stands inside what it names")
        self._within.add(id(node))
        try:
            if isinstance(node, MappingNode) and node.tag == f"{_PREFIX}map":
                return self._mapping(node, place)
            if isinstance(node, SequenceNode) and node.tag == f"{_PREFIX}seq":
                return [self._value(one, (*place, position)) for position, one in enumerate(node.value)]
            if isinstance(node, ScalarNode):
                return self._scalar(node, place)
            return self._unknown(node, place, "a tag is not supported; take it out")
        finally:
            self._within.discard(id(node))

    def _mapping(self, node: MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[tuple[Place, dict[str, Any]]] = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._note_at(key, place, "before a colon stands a name, not a list or a mapping")
            elif key.tag == f"{_PREFIX}merge":
                merged += self._merged(value, (*place, "<<"))
            elif key.value in found:
                first = self._keys[(*place, key.value)].start_mark.line + 1
                self._note_at(key, (*place, key.value), f"is given twice, first in line {first}; take one out")
            else:
                self._keys[(*place, key.value)] = key
                found[key.value] = self._value(value, (*place, key.value))
        for source, mapping in merged:  # as YAML has it: what stands here wins, then the first that is merged
            for name in mapping.keys() - found.keys():
                self._move((*source, name), (*place, name), mapping[name])
            found = mapping | found
        return found

    def _merged(self, node: Node, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
        several = isinstance(node, SequenceNode)
        for position, one in enumerate(node.value if several else [node]):
            where = (*place, position) if several else place
            mapping = self._value(one, where)
            if isinstance(mapping, dict):
                yield where, mapping
            elif mapping is not UNKNOWN:
                self._note_at(one, where, "<< takes a mapping, or a list of them")

    def _move(self, old: Place, new: Place, value: Any) -> None:
        for known in (self._nodes, self._keys, self.texts):
            if old in known:
                known[new] = known.pop(old)  # type: ignore[assignment]
        if old in self.unknown:
            self.unknown.discard(old)
            self.unknown.add(new)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for step, one in inner:
            self._move((*old, step), (*new, step), one)

    def _scalar(self, node: ScalarNode, place: Place) -> Any:
        text = self._substituted(node, place)
        if text is None:
            return UNKNOWN
        tag = node.tag
        if text != node.value and node.style is None:
            tag = _RESOLVER.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if self.hidden(place) and text:
            self._secrets.add(text)
        self.texts[place] = text
        if tag == f"{_PREFIX}merge":
            return text
        if tag not in _MEANINGS:
            return self._unknown(node, place, "a tag is not supported; a value that begins with ! needs quotes")
        try:
            return _MEANINGS[tag](text)
        except ValueError:
            return self._unknown(node, place, f"{self.shown(place)} is no {tag.removeprefix(_PREFIX)}")

    def _substituted(self, node: ScalarNode, place: Place) -> str | None:
        pieces, position, secret = [], 0, False
        for found in _REFERENCE.finditer(node.value):
            pieces.append(node.value[position : found.start()])
            position = found.end()
            if found[0] == "$${":
                pieces.append("${")
                continue
            reference = looked_up(found[1], self.environment) if found[2] else None
            if reference is None or "${" in found[1]:
                self._unknown(node, place, "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${")
                return None
            name, value = reference
            if value is None:
                fix = f"set it, or write ${{{name}:-default}}"
                self._unknown(node, place, f"environment variable {name} is not set; {fix}")
                return None
            if value and is_secret(name):
                self._secrets.add(value)
            secret = secret or is_secret(name)
            pieces.append(value)
        text = "".join([*pieces, node.value[position:]])
        if text != node.value.replace("$${", "${"):
            alone = len(pieces) == 2 and not pieces[0] and position == len(node.value)
            self.references[place] = Reference(node.value, text, alone, secret or self.hidden(place))
        return text


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
"""Stands for a value that cannot be had; why was noted."""


def _composed(text: str, name: str) -> Node | None:
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    # PyYAML's own messages can quote the text, which may be a secret: neither they nor their chain are passed on whole.
    except yaml.reader.ReaderError as error:
        line, column = position_of(text[: error.position])
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise ConfigurationError(f"{name}:{line}:{column}: {message}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise ConfigurationError(f"{name}:{line + 1}:{column + 1}: {_syntax(error, text.splitlines(), line)}") from None
    except RecursionError:
        raise ConfigurationError(f"{name}:1:1: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def position_of(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows the text `before`."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _syntax(error: yaml.MarkedYAMLError, lines: Sequence[str], line: int) -> str:
    there = lines[line] if line < len(lines) else ""
    if isinstance(error, yaml.composer.ComposerError):
        if "alias" in str(error.problem):
            return "an alias without its anchor; a value that begins with * needs quotes"
        if "anchor" in str(error.problem):
            return "an anchor is set twice; a value that begins with & needs quotes"
        return "a second document begins; a file holds one configuration"
    hint = ""
    if re.search(r"[{\[].*\$\{", there):
        hint = '; between braces or brackets write "${NAME}" in quotes'
    elif "\t" in there:
        hint = "; indent with spaces, not with tabs"
    return f"not YAML: {error.problem}{hint}"
