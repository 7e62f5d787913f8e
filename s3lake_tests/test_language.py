"""The English of the code and the docs: what `docs/design/english.md` forbids is not there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_BEGINNING = re.compile(r"(What|Whether|Where|Which|Those|Of|The same|As)\b")
_NOT_VERBS = {
    *("held", "kept", "kind", "known", "left", "made", "meant"),
    *("of", "one", "others", "said", "together", "told"),
}
_PARTICIPLE = re.compile(r"_*[a-z]+(ed|en|wn|und)")
_VERBS = {
    *("bound", "embed", "feed", "flatten", "len", "need", "open"),
    *("round", "seed", "shed", "shorten", "spawn", "speed", "widen"),
}
_VAGUE = {"found", "given", "held", "kind", "kinds", "known", "made", "meant", "one", "said", "told", "wanted"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
# Not `ast.keyword`: the name of a parameter is counted at the function that has it.
_NAMED_BY = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.Attribute: "attr",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
}
_WORDS = re.compile(
    r"\b(nobody|somebody|beside|anew|told(?! apart)|(?<!there )is none|(?<!there )is no|None where|those of|those that"
    r"|stands?|dies|heeds?)\b"
)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield functions and methods; a property is a noun."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(one) for one in node.decorator_list):
            yield node


def count_nouns(source: str) -> int:
    """Count functions whose name is a bare participle, or no verb at all."""
    names = (node.name.strip("_") for node in _functions(ast.parse(source)))
    return sum(name in _NOT_VERBS or (bool(_PARTICIPLE.fullmatch(name)) and name not in _VERBS) for name in names)


def count_beginnings(source: str) -> int:
    """Count docstrings that do not begin with what is done."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return sum(bool(_BEGINNING.match(ast.get_docstring(node) or "")) for node in nodes)


def count_vague_names(source: str) -> int:
    """Count lines with a name that could be anything; `one` in a comprehension of one line is allowed."""
    tree = ast.parse(source)
    short = [node for node in ast.walk(tree) if isinstance(node, _COMPREHENSIONS) and node.lineno == node.end_lineno]
    allowed = {id(node) for part in short for node in ast.walk(part) if _name(node) == "one"}
    return len({node.lineno for node in ast.walk(tree) if _name(node) in _VAGUE and id(node) not in allowed})  # type: ignore[attr-defined]


def _name(node: ast.AST) -> str:
    attribute = _NAMED_BY.get(type(node))
    return str(getattr(node, attribute)).strip("_") if attribute else ""


def count_words(text: str) -> int:
    """Count words and phrases that have a plain one in their place."""
    return len(_WORDS.findall(text))


def list_breaks() -> Iterator[str]:
    """Yield each file that breaks a rule, with the rule and how often."""
    package, tests = (sorted((ROOT / room).rglob("*.py")) for room in ("s3lake", "s3lake_tests"))
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    rules = {
        "functions without a verb": (count_nouns, package),
        "docstrings that do not begin with what is done": (count_beginnings, package),
        "names that could be anything": (count_vague_names, package),
        "words that have a plain one in their place": (count_words, [*package, *tests, *pages]),
    }
    for rule, (count, paths) in rules.items():
        for path in paths:
            is_exempt = path in (Path(__file__), ROOT / "docs/design/english.md")  # they name the words
            if not is_exempt and (number := count(path.read_text("utf-8"))):
                yield f"{path.relative_to(ROOT)}: {number} {rule}: see docs/design/english.md"


def test_each_rule_counts_what_it_forbids_and_nothing_else() -> None:
    source = (
        "class Tile:\n"
        "    def opened(self): 'Where it is.'\n"
        "    def open(self): 'Open the tile.'\n"
        "    @property\n"
        "    def closed(self): 'True if the tile is closed.'\n"
    )
    assert (count_nouns(source), count_beginnings(source)) == (1, 1)
    names = (
        "found = [one for one in rows]\nfor one in found:\n    tile = {\n        one\n        for one in rows\n    }\n"
    )
    assert count_vague_names(names) == 4
    assert count_words("nobody is told; the standing of a tile is not counted") == 2
    assert count_words("it is no tile if there is no hour, and the two cannot be told apart") == 1


@pytest.mark.long
def test_no_file_breaks_a_rule() -> None:
    assert list(list_breaks()) == []
