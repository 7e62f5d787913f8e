"""A native document: plain values and the setting of each, with the environment's values in them.

`${NAME}` and `${NAME:-default}` in a scalar come from the environment; without quotes the result is typed as if it had
been written there. Scalars are typed as YAML 1.2 has it: `on`, `yes`, `0x10`, `1:30` and `2026-11-20` are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from s3lake.config.report import Path, Place, Report, Setting, dotted
from s3lake.config.syntax import yaml
from s3lake.config.syntax.node import Node
from s3lake.config.variables import Substituted, is_malformed, look_up_variable, substitute
from s3lake.errors import ConfigurationError
from s3lake.text.masking import is_secret

_FORM = "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${"
_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def parse_scalar(text: str) -> Any:
    """Return what a text without quotes is in YAML 1.2.

    Raises:
        ValueError: it is a number with more digits than Python reads.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def read_values(
    text: str, report: Report, is_hidden: Callable[[Path], bool], environment: Mapping[str, str]
) -> tuple[Any, dict[Path, Setting]]:
    """Return the values in a text of YAML, and each as a setting with its path as its key.

    Args:
        report: gets what is wrong; a value that cannot be read is None.
        is_hidden: whether the value at a path must never be printed.
        environment: where `${NAME}` comes from.

    Raises:
        ConfigurationError: it is not YAML, or has several documents.
    """
    return values_of(yaml.parse_yaml(text, report.file), report, is_hidden, environment)


def values_of(
    documents: list[Node], report: Report, is_hidden: Callable[[Path], bool], environment: Mapping[str, str]
) -> tuple[Any, dict[Path, Setting]]:
    """Return the values of a tree, and each as a setting. See `read_values`."""
    if len(documents) > 1:
        raise ConfigurationError(f"{documents[1].place}: a second document begins; a file holds one configuration")
    reader = _Reader(report, is_hidden, environment)
    return (reader.read(documents[0], ()) if documents else None), reader.settings


class _Reader:
    def __init__(self, report: Report, is_hidden: Callable[[Path], bool], environment: Mapping[str, str]) -> None:
        self.settings: dict[Path, Setting] = {}
        self._report = report
        self._is_hidden = is_hidden
        self._environment = environment

    def read(self, node: Node, path: Path) -> Any:
        """Return the value of a node at `path`."""
        if node.tag:
            return self._refuse(node, path, "a tag is not supported; a value that begins with ! needs quotes")
        match node.value:
            case tuple():
                self._note(node, path, shape="a mapping")
                return self._mapping(node, path)
            case list():
                self._note(node, path, shape="a list")
                return [self.read(item, (*path, position)) for position, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        nodes: dict[str, Node] = {}
        for child in node.nodes:
            first = nodes.setdefault(child.key, child)
            if first is not child:
                message = f"is given twice, first in line {first.place.line}; take one out"
                self._report.error(replace(child.place, key=dotted((*path, child.key))), message)
        return {name: self.read(child, (*path, name)) for name, child in nodes.items()}

    def _scalar(self, node: Node, path: Path) -> Any:
        if node.value is None:
            self._note(node, path, shape="null")
            return None
        text, reference, secret = str(node.value), None, self._is_hidden(path)
        if "${" in text:
            part = self._substitute(node, path, text, secret=secret)
            if part is None:
                return None
            text, reference = part.value, part.reference
        if secret:
            self._report.secrets.add(text)
        try:
            value = text if node.is_quoted else parse_scalar(text)
        except ValueError:
            return self._refuse(node, path, "a number has more digits than any setting takes")
        self._note(node, path, text, "null" if value is None else "", secret=secret, reference=reference)
        return value

    def _substitute(self, node: Node, path: Path, text: str, *, secret: bool) -> Substituted | None:
        def look_up(reference: str) -> tuple[str, str, bool]:
            variable = look_up_variable(reference, self._environment)
            if variable is None:
                raise ValueError(_FORM)
            name, value = variable
            if value is None:
                raise ValueError(f"environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            if is_secret(name):
                self._report.secrets.add(value)
            return value, f"${{{reference}}}", is_secret(name)

        try:
            if is_malformed(text):
                raise ValueError(_FORM)
            return substitute(text, look_up, secret=secret)
        except ValueError as error:
            self._refuse(node, path, str(error))
            return None

    def _note(self, node: Node, path: Path, text: str = "", shape: str = "", **more: Any) -> None:
        place = replace(node.place, key=dotted(path))
        self.settings[path] = Setting(place.key, text, place, [node.start], shape=shape, **more)

    def _refuse(self, node: Node, path: Path, message: str) -> None:
        """Report what is wrong with a value, about which nothing else is reported then."""
        key = dotted(path)
        self._report.error(Place(node.place.file, *node.start, key), message)
        self._report.unresolved_keys.add(key)
