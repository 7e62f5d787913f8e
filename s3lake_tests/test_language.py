"""The English of the code and the docs: what `docs/design/english.md` forbids is not there."""

import ast
import re
from collections.abc import Callable, Iterator
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
_ENTRY = re.compile(r"    [\w*.]+(?: \([^)]*\))?: (.+)")
_SECTIONS = {"Args:", "Attributes:", "Raises:", "Returns:", "Yields:"}
_FRAGMENT = re.compile(
    r"(about|above|after|against|as|at|before|below|between|by|during|for|from|if|in|into|of|on|over|per|since"
    r"|that|through|to|under|until|which|who|whose|with|within|without)\b",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(r"test_(what|who|whose|where|which|of|without)(_|$)")
_PRONOUN = re.compile(r"test_(it|that|they|this|those|these)_")
_WORDS = re.compile(
    r"\b(nobody|somebody|beside|anew|told(?! apart)|(?<!there )is none|(?<!there )is no|None where|those of|those that"
    r"|(?<!at )once more|dead writers?|died"
    r"|stands?|dies|heeds?|gone|spells?|spelled|spelt|(?<!error )(?<!errors )(?<!message )(?<!notice )(?:says?|said))\b"
)
_DEAD_LETTERS = {"letter", "letters"}


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
    """Count words and phrases that have a plain one in their place; errors, messages and notices say something."""
    return len(_WORDS.findall(text))


def count_letters(source: str) -> int:
    """Count names of dead letters that leave out `dead`."""
    return sum(_name(node) in _DEAD_LETTERS for node in ast.walk(ast.parse(source)))


def count_fragments(source: str) -> int:
    """Count entries of docstrings, and descriptions of parameters, that begin with a preposition."""
    tree = ast.parse(source)
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    texts = [entry for node in documented for entry in _entries(ast.get_docstring(node) or "")]
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "description" and isinstance(node.value, ast.Constant):
            texts.append(str(node.value.value))
    return sum(bool(_FRAGMENT.match(text)) for text in texts)


def _entries(docstring: str) -> Iterator[str]:
    """Yield the first lines of the entries below `Attributes:` and the like."""
    is_below = False
    for line in docstring.splitlines():
        if line and not line.startswith(" "):
            is_below = line in _SECTIONS
        elif is_below and (entry := _ENTRY.fullmatch(line)):
            yield entry[1]


def count_names_without_subject(source: str) -> int:
    """Count tests whose name begins with a relative clause or a preposition, or, outside of a class, with a pronoun."""
    tree = ast.parse(source)
    pronouns = (node for node in tree.body if isinstance(node, ast.FunctionDef) and _PRONOUN.match(node.name))
    return sum(bool(_NO_SUBJECT.match(node.name)) for node in _functions(tree)) + len(list(pronouns))


RULES: dict[str, tuple[Callable[[str], int], tuple[str, ...]]] = {
    "functions without a verb": (count_nouns, ("s3lake",)),
    "docstrings that do not begin with what is done": (count_beginnings, ("s3lake",)),
    "names that could be anything": (count_vague_names, ("s3lake",)),
    "entries of docstrings that begin with a preposition": (count_fragments, ("s3lake",)),
    "tests whose name does not begin with a subject": (count_names_without_subject, ("s3lake_tests", "trials")),
    "words that have a plain one in their place": (
        count_words,
        ("s3lake", "s3lake_tests", "docs", "README.md", "CONTRIBUTING.md"),
    ),
    "dead letters that are called letters": (
        count_letters,
        ("s3lake/index", "s3lake/lake", "s3lake/land", "s3lake/orchestration", "s3lake/source", "s3lake_tests/land"),
    ),
}
"""What is counted for each rule, and in which files."""


def _files(place: str) -> list[Path]:
    """Return the files of a directory that the rules are about, or the file itself."""
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.md" if place == "docs" else "*.py"))
    return [
        file for file in files if file not in (Path(__file__), ROOT / "docs/design/english.md")
    ]  # they name the words


def list_breaks(rule: str) -> Iterator[str]:
    """Yield a message for each file that breaks a rule, with the number of places."""
    count, places = RULES[rule]
    for path in (path for place in places for path in _files(place)):
        if number := count(path.read_text("utf-8")):
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
    assert count_words("what is gone, as Avro spells it and the clock says; the error says why, in its spelling") == 3
    assert count_letters("letters = [letter.reason for letter in dead_letters]") == 3
    assert count_words("dead writers that died land once more; of two at once more than one wins") == 3
    assert count_words("it is no tile if there is no hour, and the two cannot be told apart") == 1


def test_entries_of_docstrings_that_begin_with_a_preposition_are_counted() -> None:
    source = (
        "class Store:\n"
        '    """A store.\n\n'
        "    Attributes:\n"
        "        region: of the buckets.\n"
        "        bucket: the name of the bucket, or\n"
        "            of: this line goes on.\n"
        '    """\n'
        "    def put(self):\n"
        '        """Put: of no entry.\n\n'
        "        Args:\n"
        "            key (bytes): in the bucket.\n"
        "            informed: whether somebody is.\n"
        '        """\n'
        "        return Field(description='of the bucket'), Field(description='the bucket')\n"
    )
    assert count_fragments(source) == 3


def test_names_of_tests_that_have_no_subject_are_counted() -> None:
    source = "def test_what_is_landed(): ...\ndef test_a_tile_is_closed(): ...\ndef test_offsets_of_a_topic(): ...\n"
    assert count_names_without_subject(source) == 1
    assert (
        count_names_without_subject("def test_it_is_closed(): ...\nclass TestTile:\n    def test_it_is(self): ...") == 1
    )


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
def test_no_file_breaks_a_rule(rule: str) -> None:
    assert list(list_breaks(rule)) == []
