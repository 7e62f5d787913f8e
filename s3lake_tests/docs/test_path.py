"""The path from the README to a job in production is short, and its costs are right."""

import itertools
import re
from typing import Any

import pytest
import yaml

from s3lake_tests.conftest import short_id
from s3lake_tests.docs.code_blocks import CodeBlock, find_blocks
from s3lake_tests.docs.documents import ROOT, find_links

MOST_WORDS = 4_000
TIMES = "\N{MULTIPLICATION SIGN}"
HOUR = f"4 + 12 {TIMES} (6 + 4 {TIMES} 3) = 220 requests"
HOME = {"index.md": "README.md"}


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags of Python are not needed."""


_LOADER: Any = _Loader
_LOADER.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def list_path() -> list[str]:
    """Return the files of "Start here", in the order of the menu."""
    [pages] = [
        section["Start here"]
        for section in yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), _LOADER)["nav"]
        if "Start here" in section
    ]
    names = [page if isinstance(page, str) else next(iter(page.values())) for page in pages]
    return [HOME.get(name, f"docs/{name}") for name in names]


def test_the_path_leads_from_the_readme_to_operate() -> None:
    steps = ["README.md", "docs/install.md", "docs/first-sink.md", "docs/your-connector.md", "docs/dagster.md"]
    assert list_path() == [*steps, "docs/operate.md"]


def test_the_path_has_at_most_4000_words() -> None:
    words = {page: len((ROOT / page).read_text("utf-8").split()) for page in list_path()}
    assert sum(words.values()) <= MOST_WORDS, words


def test_each_step_links_to_the_next_one() -> None:
    path = list_path()
    lacking = []
    for page, following in itertools.pairwise(path):
        targets = {(ROOT / page).parent / link.partition("#")[0] for link in find_links(ROOT / page)}
        if (ROOT / following) not in {target.resolve() for target in targets}:
            lacking.append((page, following))
    assert lacking == []


COSTS = [block for block in find_blocks("text") if block.document == "docs/costs.md"]


@pytest.mark.parametrize("block", COSTS, ids=short_id)
def test_each_calculation_of_costs_has_its_result(block: CodeBlock) -> None:
    for line in block.text.splitlines():
        calculation, _, result = line.partition(" = ")
        written = result.split()[0].replace(",", "")
        places = len(written.partition(".")[2])
        assert f"{_calculate(calculation):.{places}f}" == written, line


def _calculate(text: str) -> float:
    term = text.replace(",", "").replace(TIMES, "*").replace("÷", "/")
    assert re.fullmatch(r"[\d.()+*/ ]+", term), text
    return float(eval(term))


def test_costs_count_requests_as_scale_does() -> None:
    scale = (ROOT / "docs/scale.md").read_text("utf-8")
    costs = (ROOT / "docs/costs.md").read_text("utf-8")
    assert HOUR in scale
    assert HOUR in costs
