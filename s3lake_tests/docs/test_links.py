"""What the documents link to: every file and every heading that a relative link names is there."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from s3lake_tests.docs.documents import DOCUMENTS, FENCED, ROOT, find_links
from s3lake_tests.kit.cost import PATIENCE_S

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]")


def anchors(document: Path) -> set[str]:
    """The headings of a document as GitHub calls them."""
    known: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(FENCED.sub("", document.read_text("utf-8"))):
        plain = _MARKUP.sub(lambda match: match[1] or "", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        names.add(f"{name}-{known[name]}" if known[name] else name)
        known[name] += 1
    return names


def broken(document: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for link in find_links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(document: Path) -> None:
    assert broken(document) == []


def test_a_link_to_no_file_and_to_no_heading_is_seen(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# One\n## `Two` of [three](x)\n## One\n```\n# Four\n```\n")
    document = tmp_path / "a.md"
    targets = [
        "there.md#two-of-three",
        "there.md#one-1",
        "there.md#four",
        "missing.md",
        "https://elsewhere.example/missing",
    ]
    document.write_text("".join(f"[x]({target}) `[y](code.md)`\n" for target in targets))
    assert broken(document) == ["there.md#four", "missing.md"]


# What is promised is shown by tests that exist


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


CONTRIBUTORS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/design").glob("*.md"))]


@pytest.mark.parametrize("document", CONTRIBUTORS, ids=lambda path: path.name)
def test_each_file_that_contributors_are_sent_to_exists(document: Path) -> None:
    files = [f"/{path}" for room in ("s3lake", "s3lake_tests", "trials", "docs") for path in (ROOT / room).rglob("*.*")]
    named = set(re.findall(r"`([\w/]+\.(?:py|c|tla|yaml))(?:::\w+)?`", document.read_text("utf-8")))
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []


# The site of docs/ is built without network, and fetches nothing from elsewhere when it is read


LOADS = re.compile(r'<(?:img|script|iframe|source)\b[^>]*\ssrc="([^"]+)"|<link\b[^>]*\srel="stylesheet"[^>]*>')


@pytest.mark.slow("builds the site, which `make docs` and test_links.py check too")
@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(tmp_path: Path) -> None:
    away = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:1")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **away, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    loads = [load[0] for path in tmp_path.rglob("*.html") for load in LOADS.finditer(path.read_text("utf-8"))]
    assert loads
    assert [load for load in loads if re.search(r'(src|href)="(https?:)?//', load)] == []
