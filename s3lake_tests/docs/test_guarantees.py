"""What is promised is shown by tests that exist."""

import ast
import re

import pytest

from s3lake_tests.docs.test_links import ROOT

GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`((?:s3lake_tests|trials)/[^`]+)`", GUARANTEES)))


def functions(path: str) -> set[str]:
    """The names of a file's tests."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("named", NAMED)
def test_each_test_that_is_named_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert (ROOT / path).is_file()
    if "test_" in path.rpartition("/")[2]:
        assert functions(path)
    assert not name or name in functions(path)


@pytest.mark.parametrize("line", [line for line in GUARANTEES.splitlines() if line.startswith("**")])
def test_each_promise_names_a_test(line: str) -> None:
    following = GUARANTEES[GUARANTEES.index(line) + len(line) :].partition("\n**")[0].partition("\n## ")[0]
    assert "/test_" in line + following
