"""YAML as trees, one for each document; and JSON, which the standard library judges and PyYAML has the places of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from s3lake.config.report import Place
from s3lake.config.syntax.node import Node, join_surrogates, position_of
from s3lake.errors import ConfigurationError

_LARGEST = 50_000  # values, of which a sink has some fifty
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")}
_NULLS = ("", "~", "null", "Null", "NULL")


class _Loader(yaml.SafeLoader):
    """Reads every scalar as text: what it is typed as is another's decision."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way


class _JsonLoader(_Loader):
    """Reads what is JSON: a name may be of any length, and its colon in another line."""

    def stale_possible_simple_keys(self) -> None:
        """Keep each text that may be a name: YAML's limits of names are not JSON's."""


def parse_yaml(text: str, name: str) -> list[Node]:
    """Return the tree of each document of a text, with aliases and merges written out.

    Raises:
        ConfigurationError: it is not YAML.
    """
    return _parse(text, name, _Loader)


def _parse(text: str, name: str, loader_class: type[_Loader]) -> list[Node]:
    loader = None
    try:
        loader = loader_class(text)
        builder, trees = _Builder(name, text.splitlines()), []
        while loader.check_node() and (node := loader.get_node()) is not None:
            trees.append(builder.build(node, "", node))
        return trees
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


def parse_json(text: str, name: str) -> Node:
    """Return the tree of a JSON object; `name` is the file's name in errors.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        data = json.loads(text, parse_int=float)  # Python makes no integer of more than 4,300 digits
    except RecursionError:
        raise ConfigurationError(f"{name}:1:1: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{name}:1:1: not JSON: an object begins with {{")
    # A text of JSON may hold these as they are, one of YAML only escaped; tabs are between tokens only.
    escaped = re.sub(r"[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text.replace("\t", " "))
    return _parse(escaped, name, _JsonLoader)[0]


def _syntax(error: yaml.MarkedYAMLError, lines: Sequence[str], line: int) -> str:
    there = lines[line] if line < len(lines) else ""
    if isinstance(error, yaml.composer.ComposerError):
        if "alias" in str(error.problem):
            return "an alias without its anchor; a value that begins with * needs quotes"
        return "an anchor is set twice; a value that begins with & needs quotes"
    hint = ""
    if re.search(r"[{\[].*\$\{", there):
        hint = '; between braces or brackets write "${NAME}" in quotes'
    elif "\t" in there:
        hint = "; indent with spaces, not with tabs"
    return f"not YAML: {error.problem}{hint}"


class _Builder:
    """Makes the tree of PyYAML's nodes."""

    def __init__(self, name: str, lines: Sequence[str]) -> None:
        self._name, self._lines = name, lines
        self._size = 0

    def build(self, at: Any, key: str, node: Any) -> Node:
        """Return the tree of a node; `at` is the node of its key."""
        self._size += 1
        place = Place(self._name, at.start_mark.line + 1, at.start_mark.column + 1, key)
        if self._size > _LARGEST:  # aliases of aliases, which grow without end
            raise ConfigurationError(f"{self._name}: with its aliases written out it has more than {_LARGEST:,} values")
        start = (node.start_mark.line + 1, node.start_mark.column + 1)
        tag = "" if node.tag in _TAGS else str(node.tag)
        if isinstance(node, ScalarNode):
            quoted = bool(node.style)
            text = None if not quoted and not tag and node.value in _NULLS else join_surrogates(str(node.value))
            return Node(key, place, text, self._positions(node, text), start, quoted, tag)
        if isinstance(node, SequenceNode):
            return Node(key, place, [self.build(item, key, item) for item in node.value], start=start, tag=tag)
        return Node(key, place, tuple(self._pairs(node)), start=start, tag=tag)

    def _pairs(self, node: MappingNode) -> Iterator[Node]:
        """Yield the nodes of a mapping, then the merged nodes that it does not have itself."""
        merged: list[Any] = []
        names: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                message = "a name is needed before a colon, not a list or a mapping"
                raise self._error(key, message)
            if key.value == "<<" and not key.style:
                merged += value.value if isinstance(value, SequenceNode) else [value]
                continue
            child = self.build(key, join_surrogates(str(key.value)), value)
            names.add(child.key)
            yield child
        for part in merged:
            if not isinstance(part, MappingNode):
                raise self._error(part, "<< takes a mapping, or a list of them")
            inherited = [child for child in self.build(part, "<<", part).nodes if child.key not in names]
            names |= {child.key for child in inherited}
            yield from inherited

    def _error(self, node: Any, message: str) -> ConfigurationError:
        mark = node.start_mark
        return ConfigurationError(f"{self._name}:{mark.line + 1}:{mark.column + 1}: {message}")

    def _positions(self, node: ScalarNode, text: str | None) -> list[tuple[int, int]]:
        """Return the position of each character, if the text is written as it is in one line."""
        if not text:
            return []
        content = text.strip()
        line, column = node.start_mark.line, node.start_mark.column + bool(node.style)
        if node.end_mark.line != line or not self._lines[line].startswith(content, column):
            return []
        return [(line + 1, column + position + 1) for position in range(len(content))]
