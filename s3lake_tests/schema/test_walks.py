"""Functions that walk the types of columns are few: `fold` and the questions of `schema.types` do it for others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import s3lake

PACKAGE = Path(s3lake.__file__).parent
NESTED = {"List", "Struct", "Map"}
NAMED = re.compile(r"\b(List|Struct|Map)\b")
WALKS = 9
"""One more is an answer that `fold` could have given, or a reason to change this number; one less changes it too."""


def _names(tree: ast.Module) -> Iterator[str]:
    """What a module calls the nested types, which other modules have namesakes of."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="s3lake.schema.types", names=names):
                yield from (alias.asname or alias.name for alias in names if alias.name in NESTED)
            case ast.ImportFrom(module="s3lake.schema", names=names):
                modules = [alias.asname or alias.name for alias in names if alias.name == "types"]
                yield from (f"{module}.{name}" for module in modules for name in NESTED)
            case ast.ClassDef(name=name) if name in NESTED:
                yield name


def walks(source: str) -> list[str]:
    """The functions that ask whether a type is a list, a struct or a map: the outermost of each, no type's own."""
    if not NAMED.search(source):  # most modules, and reading one takes its time
        return []
    tree = ast.parse(source)
    nested = set(_names(tree))

    def asks(node: ast.AST) -> bool:
        match node:
            case ast.MatchClass(cls=asked) | ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]):
                return any(ast.unparse(name) in nested for name in ast.walk(asked) if isinstance(name, ast.expr))
        return False

    def within(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from [child.name] * any(map(asks, ast.walk(child)))
            elif not (isinstance(child, ast.ClassDef) and child.name in nested):
                yield from within(child)

    return list(within(tree))


def test_a_function_that_asks_for_a_nested_type_is_seen_and_a_namesake_is_none() -> None:
    asks = "\ndef f(x):\n    match x:\n        case List(item): ...\n\ndef g(x):\n    return isinstance(x, int | Map)\n"
    assert walks("from s3lake.schema.types import List, Map" + asks) == ["f", "g"]
    assert walks("from typing import List, Map" + asks) == []
    assert walks("from s3lake.schema import types\ndef h(x):\n    return isinstance(x, types.Struct)") == ["h"]


def test_functions_that_walk_types_are_few() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    found = [f"{path.relative_to(PACKAGE)}: {name}" for path in paths for name in walks(path.read_text())]
    assert len(found) == WALKS, "\n".join(found)
