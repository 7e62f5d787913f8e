"""Names are nouns of the field: words that could hold anything are rare, and get no more."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import s3lake

PACKAGE = Path(s3lake.__file__).parent
VAGUE = {"found", "given", "held", "kind", "kinds", "known", "made", "meant", "one", "said", "told", "wanted"}
MOST_IN_A_THOUSAND_LINES = 15
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def _name(node: ast.AST) -> str | None:
    """What a node names, if it names something."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=name):
            return name
    return None


def _in_one_line(tree: ast.AST) -> Iterator[ast.AST]:
    """`one` inside of a comprehension of one line, where nobody has to remember what it is."""
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS) and node.lineno == node.end_lineno:
            yield from (inner for inner in ast.walk(node) if _name(inner) == "one")


def vague_lines(source: str) -> set[int]:
    """Numbers of the lines with a vague name."""
    tree = ast.parse(source)
    excused = set(map(id, _in_one_line(tree)))
    vague = (node for node in ast.walk(tree) if (_name(node) or "").strip("_") in VAGUE and id(node) not in excused)
    return {node.lineno for node in vague}  # type: ignore[attr-defined]


def test_vague_names_are_seen_outside_of_one_line_comprehensions() -> None:
    source = (
        "found = [one for one in rows]\nfor one in found:\n    tile = {\n        one\n        for one in rows\n    }\n"
    )
    assert vague_lines(source) == {1, 2, 4, 5}


def test_vague_names_are_rare() -> None:
    lines: Counter[str] = Counter()
    vague: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        source, room = path.read_text(), path.relative_to(PACKAGE).parts[0]
        lines[room] += source.count("\n")
        vague[room] += len(vague_lines(source))
    assert 1000 * vague.total() / lines.total() <= MOST_IN_A_THOUSAND_LINES, vague.most_common(10)
