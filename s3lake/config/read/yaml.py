"""YAML text to plain values and the place of each, with the environment's values in them.

`${NAME}` and `${NAME:-default}` in a scalar come from the environment; without quotes the result is typed as if it had
been written there. Scalars are typed as YAML 1.2 has it: `on`, `yes`, `0x10`, `1:30` and `2026-11-20` are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from s3lake.config.read.members import Member, Value, join_surrogates
from s3lake.config.report import Path, Place, Report, Setting, dotted
from s3lake.config.variables import Substituted, is_malformed, look_up_variable, substitute
from s3lake.errors import ConfigurationError
from s3lake.text.masking import is_secret

T = TypeVar("T")
_PREFIX = "tag:yaml.org,2002:"


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

_NULLS = ("", "~", "null", "Null", "NULL")
_KIND = re.compile(r"""^\s*["']?kind["']?\s*:\s*["']?KafkaConnector\b""", re.MULTILINE)
_CLASS = re.compile(r"""^\s*["']?connector\.class["']?\s*:""", re.MULTILINE)
_FORM = "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${"
_LARGEST = 50_000  # values, of which a sink has some fifty
_MEANINGS: dict[str, Callable[[str], Any]] = {
    f"{_PREFIX}str": str,
    f"{_PREFIX}int": int,
    f"{_PREFIX}float": float,
    f"{_PREFIX}bool": lambda text: text.lower() == "true",
    f"{_PREFIX}null": lambda _: None,
}


def read(
    text: str, report: Report, hidden: Callable[[Path], bool], environment: Mapping[str, str]
) -> tuple[Any, dict[Path, Setting]]:
    """Return the values in `text`, and each as a setting with its path as its key.

    Args:
        report: gets what is wrong; `UNKNOWN` stands for a value that cannot be had.
        hidden: whether the value at a path must never be printed.
        environment: where `${NAME}` comes from.

    Raises:
        ConfigurationError: it is not YAML.
    """
    root = composed(text, report.file)
    reader = _Reader(report, hidden, environment)
    data = reader.value(root, (), root) if root is not None else None
    if reader.size > _LARGEST:
        raise ConfigurationError(f"{report.file}: with its aliases written out it has more than {_LARGEST:,} values")
    return data, reader.settings


def composed(text: str, name: str) -> Node | None:
    """Return the tree of a text's nodes, each with its place; `name` is the file's name in errors.

    Raises:
        ConfigurationError: it is not YAML.
    """
    return _composed(text, name, _Loader.get_single_node)


class _Reader:
    def __init__(self, report: Report, hidden: Callable[[Path], bool], environment: Mapping[str, str]) -> None:
        self.settings: dict[Path, Setting] = {}
        self.size = 0
        self._report = report
        self._hidden = hidden
        self._environment = environment
        self._within: set[int] = set()

    def value(self, node: Node, path: Path, name: Node) -> Any:
        """Return the value of a node at `path`, whose name is at the node `name`."""
        self.size += 1
        if self.size > _LARGEST:  # aliases of aliases, which grow without end
            return UNKNOWN
        if id(node) in self._within:
            return self._unknown(node, path, "an alias is inside what it names")
        self._within.add(id(node))
        try:
            if isinstance(node, MappingNode) and node.tag == f"{_PREFIX}map":
                self._note(node, path, name, shape="a mapping")
                pairs = self._pairs(node, path)
                return {title: self.value(inner, (*path, title), key) for title, (key, inner) in pairs.items()}
            if isinstance(node, SequenceNode) and node.tag == f"{_PREFIX}seq":
                self._note(node, path, name, shape="a list")
                return [self.value(inner, (*path, position), inner) for position, inner in enumerate(node.value)]
            if isinstance(node, ScalarNode):
                return self._scalar(node, path, name)
            return self._unknown(node, path, "a tag is not supported; take it out")
        finally:
            self._within.discard(id(node))

    def _note(self, node: Node, path: Path, name: Node, text: str = "", shape: str = "", **more: Any) -> Setting:
        key, mark = dotted(path), node.start_mark
        place = self._place(name, path, key)
        setting = Setting(key, text, place, [(mark.line + 1, mark.column + 1)], shape=shape, **more)
        self.settings[path] = setting
        return setting

    def _place(self, node: Node, path: Path, key: str = "") -> Place:
        mark = node.start_mark
        return Place(self._report.file, mark.line + 1, mark.column + 1, key or dotted(path))

    def _unknown(self, node: Node, path: Path, message: str) -> Any:
        place = self._place(node, path)
        self._report.error(place, message)
        self._report.unresolved_keys.add(place.key)
        return UNKNOWN

    def _pairs(self, node: MappingNode, path: Path) -> dict[str, tuple[Node, Node]]:
        """Return the names of a mapping, each with its own node and its value's; own names win over merged ones."""
        pairs: dict[str, tuple[Node, Node]] = {}
        merged: list[dict[str, tuple[Node, Node]]] = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._report.error(self._place(key, path), "a name is needed before a colon, not a list or a mapping")
            elif key.tag == f"{_PREFIX}merge":
                merged += self._merged(value, (*path, "<<"))
            elif key.value in pairs:
                first = pairs[key.value][0].start_mark.line + 1
                self._report.error(
                    self._place(key, (*path, key.value)), f"is given twice, first in line {first}; take one out"
                )
            else:
                pairs[key.value] = (key, value)
        for inherited in merged:
            pairs = inherited | pairs
        return pairs

    def _merged(self, node: Node, path: Path) -> Iterator[dict[str, tuple[Node, Node]]]:
        for part in node.value if isinstance(node, SequenceNode) else [node]:
            self.size += 1
            if self.size > _LARGEST:  # merges of merges
                return
            if id(part) in self._within:
                self._unknown(part, path, "an alias is inside what it names")
            elif isinstance(part, MappingNode):
                self._within.add(id(part))
                yield self._pairs(part, path)
                self._within.discard(id(part))
            else:
                self._report.error(self._place(part, path), "<< takes a mapping, or a list of them")

    def _scalar(self, node: ScalarNode, path: Path, name: Node) -> Any:
        text, reference = node.value, None
        secret = self._hidden(path)
        if "${" in text:
            part = self._filled(node, path)
            if part is None:
                return UNKNOWN
            reference = part.reference(node.value, secret=secret)
            text = part.value
        tag = node.tag
        if text != node.value and node.style is None:
            tag = _RESOLVER.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if secret:
            self._report.secrets.add(text)
        shape = "null" if tag == f"{_PREFIX}null" else ""
        setting = self._note(node, path, name, text, shape, secret=secret, reference=reference)
        if tag == f"{_PREFIX}merge":
            return text
        if tag not in _MEANINGS:
            return self._unknown(node, path, "a tag is not supported; a value that begins with ! needs quotes")
        try:
            return _MEANINGS[tag](text)
        except ValueError:
            return self._unknown(node, path, f"{setting.masked_value} is not a valid {tag.removeprefix(_PREFIX)}")

    def _filled(self, node: ScalarNode, path: Path) -> Substituted | None:
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
            if is_malformed(node.value):
                raise ValueError(_FORM)
            return substitute(node.value, look_up)
        except ValueError as error:
            self._unknown(node, path, str(error))
            return None


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
"""A placeholder for a value that cannot be read; the reason is reported."""


def is_connector(text: str, file: str) -> bool:
    """True if `text` is YAML that holds a connector: a Strimzi resource, or by the file's name."""
    return _KIND.search(text) is not None or (
        file.endswith((".yaml", ".yml")) and _CLASS.search(text) is not None and not text.lstrip().startswith("{")
    )


def documents(text: str, file: str, loader: Any = _Loader) -> list[tuple[Member, ...]]:
    """Return the members of every mapping that `text` holds, one for each document.

    Raises:
        ConfigurationError: it is not YAML.
    """

    def nodes(loader: _Loader) -> list[Node]:
        composed = []
        while loader.check_node() and (node := loader.get_node()) is not None:
            composed.append(node)
        return composed

    reader = _Members(file, text.splitlines())
    values = [reader.value(root, "") for root in _composed(text, file, nodes, loader)]
    return [value for value in values if isinstance(value, tuple)]


class _Members:
    def __init__(self, file: str, lines: list[str]) -> None:
        self._file = file
        self._lines = lines
        self._size = 0

    def value(self, node: Node, key: str) -> Value:
        self._size += 1
        if self._size > _LARGEST:  # aliases of aliases, which grow without end
            raise ConfigurationError(f"{self._file}:1:1: has more than {_LARGEST:,} values, aliases written out")
        match node:
            case MappingNode():
                return self._mapping(node)
            case SequenceNode():
                return [self._member(item, item, key) for item in node.value]
        plain = isinstance(node, ScalarNode) and not node.style
        return None if plain and node.value in _NULLS else join_surrogates(str(node.value)).strip()

    def _mapping(self, node: MappingNode) -> tuple[Member, ...]:
        own: list[Member] = []
        merged: list[Member] = []
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.tag.endswith(":merge"):
                several = value.value if isinstance(value, SequenceNode) else [value]
                for part in several:
                    inherited = self.value(part, "")
                    merged += inherited if isinstance(inherited, tuple) else ()
            elif isinstance(key, ScalarNode):
                own.append(self._member(key, value, join_surrogates(str(key.value))))
        names = {part.key for part in own}
        return (*own, *(part for part in merged if part.key not in names))

    def _member(self, at: Node, node: Node, key: str) -> Member:
        place = Place(self._file, at.start_mark.line + 1, at.start_mark.column + 1, key)
        content = self.value(node, key)
        return Member(key, place, content, self._positions(node, content))

    def _positions(self, node: Node, content: Value) -> list[tuple[int, int]]:
        """Return the position of each character, if the text is written as it is."""
        if (
            not isinstance(content, str)
            or not isinstance(node, ScalarNode)
            or node.start_mark.line != node.end_mark.line
        ):
            return []
        line, column = node.start_mark.line, node.start_mark.column + bool(node.style)
        if not self._lines[line].startswith(content, column):
            return []
        return [(line + 1, column + position + 1) for position in range(len(content))]


def _composed(text: str, name: str, compose: Callable[[_Loader], T], loader_class: Any = _Loader) -> T:
    loader = None
    try:
        loader = loader_class(text)
        return compose(loader)
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
    """Return line and column, from 1, of what follows the text `before`."""
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
