"""What modules of tests may take from each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("s3lake_tests", "trials", "benchmarks", "docs")


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
