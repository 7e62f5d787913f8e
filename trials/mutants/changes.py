"""The mutants of a module: what mutmut makes of its functions, one change each, and where that is."""

import __future__

import ast
import difflib
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A change of the code, told so that it is the same one after lines above it came or went.

    Attributes:
        function: with its module and class: `s3lake.index.plan.tile.Tile.closed`.
        change: lines that go, after a `-`, and lines that come, after a `+`.
    """

    function: str
    change: str


class Change(NamedTuple):
    """A mutant that can be tried.

    Attributes:
        lines: of the module, of which a test has to run one to notice anything.
        code: the function as it became.
    """

    mutant: Mutant
    module: str
    lines: frozenset[int]
    code: ast.FunctionDef

    def plant(self) -> None:
        """Change the function in this process: whoever holds it, under whatever name, calls what it became."""
        module = sys.modules[self.module]
        *owner, name = self.mutant.function.removeprefix(f"{self.module}.").split(".")
        body: Any = self.code
        if owner:
            (body,) = ast.parse(f"class {owner[0]}: pass").body
            body.body = [self.code]
        tree = ast.fix_missing_locations(ast.Module([body], type_ignores=[]))
        lazy = getattr(module, "annotations", None) is __future__.annotations
        flags = __future__.annotations.compiler_flag if lazy else 0
        namespace = dict(vars(module))
        exec(compile(tree, f"<mutant of {self.module}>", "exec", flags, dont_inherit=True), namespace)
        planted: FunctionType = vars(namespace[owner[0]])[name] if owner else namespace[name]
        function = vars(getattr(module, owner[0]) if owner else module)[name]
        function = getattr(function, "__func__", function)
        function.__code__ = planted.__code__
        function.__defaults__, function.__kwdefaults__ = planted.__defaults__, planted.__kwdefaults__


def changes(root: Path, path: Path) -> Iterator[Change]:
    """Of the module at `path` below `root`, but for those of words."""
    source = (root / path).read_text()
    mutated = import_module("mutmut.mutation.file_mutation").mutate_file_contents(str(path), source)
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    yield from of_source(source, mutated.code, mutated.mutant_names, module)


def of_source(source: str, written: str, names: list[str], module: str) -> Iterator[Change]:
    """The changes of a module, all of which stand beside each other in what mutmut has written.

    Args:
        source: of the module.
        written: by mutmut.
        names: of the changed functions in that: `x_opened__mutmut_34`, or `xǁTileǁclosed__mutmut_1` of a method.
        module: its name.
    """
    functions = {node.name: node for node in ast.walk(ast.parse(written)) if isinstance(node, ast.FunctionDef)}
    originals = dict(_functions(ast.parse(source)))
    lines = written.splitlines()
    for name in names:
        mangled = name.partition("__mutmut_")[0]
        plain = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        first, mutated, original = functions[f"{mangled}__mutmut_orig"], functions[name], originals[plain]
        before, after = ("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in (first, mutated))
        mutated.name, mutated.decorator_list = original.name, original.decorator_list
        trail = list(_trail(original, mutated))
        if not _is_declared(original) and not _of_words(trail, mutated):
            mutated.decorator_list = []
            change = in_lines(before.replace(first.name, original.name), after.replace(name, original.name))
            yield Change(Mutant(f"{module}.{plain}", change), module, _lines(trail), mutated)


def in_lines(before: str, after: str) -> str:
    """What differs between the sources of a function and of its mutant."""
    lines, mutated_lines = (textwrap.dedent(source).splitlines() for source in (before, after))
    differing = list(difflib.unified_diff(lines, mutated_lines, n=0, lineterm=""))[2:]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in differing if not line.startswith("@@"))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Of several with a name, as typing's overloads, the last is the one that runs."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{part.name}", part) for part in node.body if isinstance(part, ast.FunctionDef))


def _trail(before: ast.AST, after: ast.AST) -> Iterator[ast.AST]:
    """The nodes from a function to the smallest that holds all that differs, as they were."""
    yield before
    if type(before) is not type(after):
        return
    differing = []
    for field, value in ast.iter_fields(before):
        other = getattr(after, field)
        values, others = (part if isinstance(part, list) else [part] for part in (value, other))
        if len(values) != len(others):
            return
        differing += [pair for pair in zip(values, others, strict=True) if _dump(pair[0]) != _dump(pair[1])]
    if len(differing) == 1 and all(isinstance(part, ast.AST) for part in differing[0]):
        yield from _trail(*differing[0])


def _is_declared(function: ast.FunctionDef) -> bool:
    """Whether nothing ever runs it, for it is a protocol's."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def _of_words(trail: list[ast.AST], mutated: ast.AST) -> bool:
    """Whether only what a log or an error says is another: people read it, and no code does."""
    for at, node in enumerate(trail):
        below = trail[at + 1 :]
        if isinstance(node, ast.Raise) and any(map(_is_text, below)):
            return True
        if isinstance(node, ast.Call) and _is_log(node.func) and node.func not in below:
            return True
        if isinstance(node, ast.Call) and _is_error(node.func):
            return any(map(_is_text, below)) or (not below and _only_texts_go(node, mutated))
    return False


def _only_texts_go(call: ast.Call, mutated: ast.AST) -> bool:
    """Whether a call with other arguments lacks but texts."""
    kept = {_dump(node) for node in ast.walk(mutated)}
    gone = [part for part in chain(call.args, (word.value for word in call.keywords)) if _dump(part) not in kept]
    return bool(gone) and all(map(_is_text, gone))


def _is_log(function: ast.AST) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "_log"


def _is_error(function: ast.AST) -> bool:
    name: str = getattr(function, "id", "") or getattr(function, "attr", "")
    return name.endswith("Error")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _lines(trail: list[ast.AST]) -> frozenset[int]:
    """Of the smallest statement; of one that holds others, until they begin."""
    statement = [node for node in trail if isinstance(node, ast.stmt)][-1]
    body = getattr(statement, "body", None)
    if body and not isinstance(statement, ast.FunctionDef):
        return frozenset(range(statement.lineno, max(body[0].lineno, statement.lineno + 1)))
    return frozenset(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))


def _dump(value: object) -> object:
    return ast.dump(value) if isinstance(value, ast.AST) else (type(value), value)
