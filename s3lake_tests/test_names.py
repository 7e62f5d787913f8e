"""Names are nouns of the field: words that could hold anything are rare, and get no more."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import s3lake

PACKAGE = Path(s3lake.__file__).parent
VAGUE = {"found", "given", "held", "kind", "kinds", "known", "made", "meant", "one", "said", "told", "wanted"}
MOST_IN_A_THOUSAND_LINES = 15
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


NAMED_BY: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.Attribute: "attr",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
}


def _name(node: ast.AST) -> str | None:
    """What a node names, if it names something."""
    attribute = NAMED_BY.get(type(node))
    return getattr(node, attribute) if attribute else None


def _in_one_line(comprehensions: Iterable[ast.expr]) -> Iterator[ast.AST]:
    """`one` inside of a comprehension of one line, where nobody has to remember what it is."""
    for node in comprehensions:
        if node.lineno == node.end_lineno:
            yield from (inner for inner in ast.walk(node) if _name(inner) == "one")


def vague_lines(source: str) -> set[int]:
    """Numbers of the lines with a vague name."""
    vague, comprehensions = [], []
    for node in ast.walk(ast.parse(source)):
        if (_name(node) or "").strip("_") in VAGUE:
            vague.append(node)
        elif isinstance(node, COMPREHENSIONS):
            comprehensions.append(node)
    excused = {id(node) for node in _in_one_line(comprehensions)}
    return {node.lineno for node in vague if id(node) not in excused}  # type: ignore[attr-defined]


def test_vague_names_are_seen_outside_of_one_line_comprehensions() -> None:
    source = (
        "found = [one for one in rows]\nfor one in found:\n    tile = {\n        one\n        for one in rows\n    }\n"
    )
    assert vague_lines(source) == {1, 2, 4, 5}


@pytest.mark.long
def test_vague_names_are_rare() -> None:
    lines: Counter[str] = Counter()
    vague: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        source, room = path.read_text(), path.relative_to(PACKAGE).parts[0]
        lines[room] += source.count("\n")
        vague[room] += len(vague_lines(source))
    assert 1000 * vague.total() / lines.total() <= MOST_IN_A_THOUSAND_LINES, vague.most_common(10)
