"""A connector's file that is YAML, above all a Kubernetes resource, as members with their places."""

from __future__ import annotations

import re

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from s3lake.config.read.members import Member, Value
from s3lake.config.setting import Place
from s3lake.errors import ConfigurationError

_KIND = re.compile(r"""^\s*["']?kind["']?\s*:\s*["']?KafkaConnector\b""", re.MULTILINE)
_CLASS = re.compile(r"""^\s*["']?connector\.class["']?\s*:""", re.MULTILINE)
_LARGEST = 50_000  # values, of which a connector has some fifty
_NULL = ("", "~", "null", "Null", "NULL")


def is_connector(text: str, file: str) -> bool:
    """Whether `text` is YAML that holds a connector: a Strimzi resource, or by the file's name."""
    return _KIND.search(text) is not None or (
        file.endswith((".yaml", ".yml")) and _CLASS.search(text) is not None and not text.lstrip().startswith("{")
    )


def documents(text: str, file: str) -> list[tuple[Member, ...]]:
    """The members of every mapping that `text` holds, documents apart.

    Raises:
        ConfigurationError: it is no YAML.
    """
    try:
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        reader = _Reader(file, text.splitlines())
        return [found for one in roots if isinstance(found := reader.value(one, ""), tuple)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise ConfigurationError(f"{file}:{line}:{column}: not YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise ConfigurationError(f"{file}:1:1: not YAML: it holds a character that YAML does not allow") from None
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None


class _Reader:
    def __init__(self, file: str, lines: list[str]) -> None:
        self._file = file
        self._lines = lines
        self._size = 0

    def value(self, node: Node, key: str) -> Value:
        self._size += 1
        if self._size > _LARGEST:  # aliases of aliases, which grow without end
            raise ConfigurationError(f"{self._file}:1:1: with its aliases written out it has too many values")
        match node:
            case MappingNode():
                return self._mapping(node)
            case SequenceNode():
                return [self._member(one, one, key) for one in node.value]
        plain = isinstance(node, ScalarNode) and node.style is None
        return None if plain and node.value in _NULL else str(node.value).strip()

    def _mapping(self, node: MappingNode) -> tuple[Member, ...]:
        own: list[Member] = []
        merged: list[Member] = []
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.tag.endswith(":merge"):
                several = value.value if isinstance(value, SequenceNode) else [value]
                for one in several:
                    found = self.value(one, "")
                    merged += found if isinstance(found, tuple) else ()
            elif isinstance(key, ScalarNode):
                own.append(self._member(key, value, str(key.value)))
        names = {one.key for one in own}
        return (*own, *(one for one in merged if one.key not in names))

    def _member(self, at: Node, node: Node, key: str) -> Member:
        place = Place(self._file, at.start_mark.line + 1, at.start_mark.column + 1, key)
        found = self.value(node, key)
        return Member(key, place, found, self._spots(node, found))

    def _spots(self, node: Node, found: Value) -> list[tuple[int, int]]:
        """Where each character stands, where it stands there as it is."""
        if not isinstance(found, str) or not isinstance(node, ScalarNode) or node.start_mark.line != node.end_mark.line:
            return []
        line, column = node.start_mark.line, node.start_mark.column + (node.style is not None)
        if not self._lines[line].startswith(found, column):
            return []
        return [(line + 1, column + position + 1) for position in range(len(found))]
