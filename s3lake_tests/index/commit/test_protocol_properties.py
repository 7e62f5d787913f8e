"""Hypothesis invents what happens; the invariants must hold after every request and at the end.

A failure shows the shortest story that leads to it and the requests that were made. `S3LAKE_EXAMPLES=100` tries a
hundred times as many, `--hypothesis-seed` others; `S3LAKE_COUNT=1` prints what was tried. The trial `protocol`
looks for long, and puts the story of a failure into `corpus/`, whose stories are played here each time.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.index.commit import stories
from s3lake_tests.index.commit.stories import Story

COUNT = "S3LAKE_COUNT" in os.environ
FAILURES = os.environ.get("S3LAKE_FAILURES")
CORPUS = Path(__file__).parent / "corpus"
tried: Counter[str] = Counter()


def play(story: Story) -> None:
    """Play a story; the last that fails is the shortest, and is kept."""
    try:
        story.play(tried)
    except Exception:
        if FAILURES:
            Path(FAILURES).write_text(f"{story}\n")
        raise


def slowly(examples: int) -> settings:
    # An explanation costs more than the failure, whose trace is complete.
    phases = [phase for phase in Phase if phase is not Phase.explain]
    return settings(max_examples=examples * EXAMPLES, database=None, phases=phases)


FEW = 40
"""Stories that `make test` plays of each kind."""
STORIES = {
    "whatever happens": (stories.stories(stories.everyday), 200),
    "hours are quiet": (stories.stories(stories.hours_are_quiet), 400),
    "the topic is created again": (stories.stories(stories.topics_come_and_go), 100),
    "without exactly once": (
        stories.stories(
            stories.everyday, circumstances=stories.at_once, mode=st.sampled_from(["at once", "replacing"])
        ),
        100,
    ),
    "what has landed is changed": (
        stories.stories(stories.landed_is_changed, dead_letters=stories.WITH_DEAD_LETTERS),
        100,
    ),
    "the catalog comes and goes": (
        stories.stories(stories.catalog_comes_and_goes, dead_letters=stories.WITH_DEAD_LETTERS),
        100,
    ),
    "a connector stopped": (
        stories.stories(stories.adopted_at_first, stories.stop, stories.adopt, dead_letters=stories.WITH_DEAD_LETTERS),
        50,
    ),
    "tables are handed in": (
        stories.stories(stories.tables_are_handed_in, mode=stories.TABLES, dead_letters=stories.WITH_DEAD_LETTERS),
        100,
    ),
}
"""Kinds of stories, and how many are played of each in a slice of the slow tests."""


@pytest.mark.long
@pytest.mark.parametrize("kind", STORIES)
def test_every_invariant_holds_in_stories_of_each_kind(kind: str) -> None:
    slowly(FEW)(given(STORIES[kind][0])(play))()


@pytest.mark.slow("more of the same stories")
@pytest.mark.long
@pytest.mark.parametrize("kind", STORIES)
def test_every_invariant_holds_in_many_more_stories(kind: str) -> None:
    strategy, examples = STORIES[kind]
    slowly(examples)(given(strategy)(play))()


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.txt")), ids=lambda path: path.stem)
def test_stories_that_once_failed_hold(path: Path) -> None:
    stories.read(path.read_text()).play(tried)


@pytest.fixture(scope="module", autouse=True)
def _what_was_tried():
    yield
    if COUNT:
        print("\n", dict(tried))
