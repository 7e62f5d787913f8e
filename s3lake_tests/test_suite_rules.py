"""What modules of tests may take from each other, and from the package."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3lake_tests.conftest import LONGEST_ID, short_id

ROOT = Path(__file__).parents[1]
PLACES = ("s3lake_tests", "trials", "benchmarks", "docs")
LONGEST_NAME = 240
"""How many characters the name of a test has at most, with its module and parameters."""


def _imports(source: str) -> Iterator[str]:
    """Yield the dotted name of everything that is imported, at any place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def list_imports_of_tests(source: str) -> list[str]:
    """List what a module imports from the modules of tests of s3lake."""
    names = [name.split(".") for name in _imports(source)]
    ours = [steps for steps in names if steps[0] in PLACES]
    return [".".join(steps) for steps in ours if any(step.startswith("test_") for step in steps)]


def test_imports_from_test_modules_are_found_and_no_others() -> None:
    source = (
        "from s3lake_tests.docs.test_links import ROOT\n"
        "def read():\n    from s3lake_tests.docs import test_links\n"
        "import trials.test_stack\n"
        "from s3lake_tests.kit.lake import Lake\n"
        "from dagster._core.test_utils import instance_for_test\n"
    )
    assert sorted(list_imports_of_tests(source)) == [
        "s3lake_tests.docs.test_links",
        "s3lake_tests.docs.test_links.ROOT",
        "trials.test_stack",
    ]


def test_no_module_imports_a_helper_from_a_test_module() -> None:
    """A helper is in the kit or next to the tests of its room, in a module that is named for what it has."""
    paths = [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): list_imports_of_tests(path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


# Private names of the package

OF_OTHERS = {
    ("s3lake_tests/index/store/test_client.py", "_credentials"): "botocore shows the keys of a client nowhere else",
    ("s3lake_tests/orchestration/instances.py", "_connect"): "Dagster's storage in memory connects for each query",
    ("s3lake_tests/orchestration/preload/test_private_dagster.py", "_fields"): "documented of named tuples",
}
"""Names of other packages that a private name of s3lake equals, where tests use them. None of s3lake's own is here."""

_BY_NAME = {"delattr", "getattr", "object", "patch", "setattr", "setitem"}
"""Functions that take an attribute by its name: of Python, of pytest's monkeypatch, of unittest.mock."""


def _is_private(name: str) -> bool:
    return re.match("_[^_]", name) is not None


def _defined_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                yield name


@functools.cache
def _private_names_of_the_package() -> frozenset[str]:
    trees = (ast.parse(path.read_text("utf-8")) for path in (ROOT / "s3lake").rglob("*.py"))
    return frozenset(name for tree in trees for name in _defined_names(tree) if _is_private(name))


def list_private_names(source: str, ours: frozenset[str]) -> list[str]:
    """List the names in `ours` that a module imports, takes from an object, or patches, and does not define itself."""
    tree = ast.parse(source)
    own = set(_defined_names(tree))
    used = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=aliases) if module.partition(".")[0] == "s3lake":
                used += [alias.name for alias in aliases if _is_private(alias.name)]
            case ast.Attribute(attr=name) if name in ours - own:
                used.append(name)
            case ast.Call(func=ast.Attribute(attr=function) | ast.Name(id=function)) if function in _BY_NAME:
                texts = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
                used += [name for text in texts if (name := str(text).rpartition(".")[2]) in ours]
    return sorted(used)


def test_private_names_are_found_however_they_are_used() -> None:
    source = (
        "from s3lake.hours import _parse, parse\n"
        "from other import _else\n"
        "class Mine:\n    def __init__(self): self._kept = 1\n"
        "def test(monkeypatch, store):\n"
        "    monkeypatch.setattr('s3lake.hours._PAUSE_S', 0)\n"
        "    monkeypatch.setattr(store, '_client', None)\n"
        "    return store._objects, Mine()._kept, store.client, store._elsewhere\n"
    )
    ours = frozenset({"_parse", "_PAUSE_S", "_client", "_objects", "_kept"})
    assert list_private_names(source, ours) == ["_PAUSE_S", "_client", "_objects", "_parse"]


def test_no_test_uses_a_private_name_of_the_package() -> None:
    """A public seam is an argument with a default, a public constant, a fresh object, or a real part."""
    ours = _private_names_of_the_package()
    paths = [path for place in ("s3lake_tests", "trials") for path in sorted((ROOT / place).rglob("*.py"))]
    uses = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in paths
        for name in list_private_names(path.read_text("utf-8"), ours)
    }
    assert uses == OF_OTHERS.keys()


# The checker of the trials


def _find_module(name: str) -> Path | None:
    """Return the file of a module of the repository that an import names; the last step may be a name in it."""
    steps = name.split(".")
    paths = [ROOT.joinpath(*steps[:count]).with_suffix(".py") for count in (len(steps), len(steps) - 1) if count]
    return next((path for path in paths if path.is_file()), None)


def test_the_checker_of_the_trials_shares_no_code_with_the_package() -> None:
    """docs/guarantees.md states it: what the checker finds landed, no mistake of the package can have hidden."""
    left, seen = [ROOT / "trials/checker.py"], set[Path]()
    while left:
        path = left.pop()
        seen.add(path)
        found = {_find_module(name) for name in _imports(path.read_text("utf-8"))}
        left += [module for module in found if module is not None and module not in seen]
    names = {path.relative_to(ROOT).as_posix() for path in seen}
    assert names == {"trials/checker.py", "trials/truth.py", "s3lake_tests/kit/object_rows.py"}


# Names of parameters


def test_a_parameter_is_in_the_name_of_its_test_on_one_line_and_cut() -> None:
    assert short_id("a\nb") == "a\\nb"
    assert short_id(b"\xff") == "\\xff"
    assert short_id({"a": 1}) == "{'a': 1}"
    assert short_id("a" * LONGEST_ID) == "a" * LONGEST_ID
    assert short_id("a" * (LONGEST_ID + 1)) == "a" * LONGEST_ID + "..."


def test_no_test_has_a_longer_name_than_a_wide_terminal_has_columns(request: pytest.FixtureRequest) -> None:
    """Of the tests that run with this one: all of them, in a whole suite."""
    names = [item.nodeid for item in request.session.items]
    assert [name for name in names if len(name) > LONGEST_NAME] == []
