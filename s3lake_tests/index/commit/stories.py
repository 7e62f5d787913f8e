"""Stories of what happens in the world, which Hypothesis invents and a corpus keeps: their `repr` is Python."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from s3lake_tests.index.commit.bucket import Circumstances
from s3lake_tests.index.commit.events import (
    AddPartition,
    Arrive,
    Catalog,
    Compact,
    Foreign,
    Lifecycle,
    Produce,
    Recreate,
    Refuse,
    Retention,
    Run,
    Stale,
    Start,
    Stop,
    Transaction,
    Wait,
)
from s3lake_tests.index.commit.world import FAULTS, Mode, World

PARTITION = st.integers(0, 3)
produce = st.builds(Produce, PARTITION, st.sampled_from([1, 1, 2, 4]), st.sampled_from([0, 0, 0, 0, -24, -84, 18, 150]))
SKEWS = (0, 0, 0, -72, 72)


def starts(
    kinds: Sequence[str], hours_ago: Sequence[int], limits: Sequence[int] = (99, 2, 4), skews: Sequence[int] = SKEWS
) -> st.SearchStrategy[Start]:
    """Starts of actors of these kinds."""
    chunk = st.sampled_from([2, 1, 3])
    drawn = (st.sampled_from(values) for values in (limits, skews))
    return st.builds(Start, st.sampled_from(kinds), st.sampled_from(hours_ago), chunk, *drawn)


start = starts(
    ["materialise"] * 5
    + ["backfill"] * 2
    + ["recover", "rewrite", "land and rewrite", "land and rewrite", "merge", "land and merge", "land and merge"]
    + ["clean", "clean old", "read", "close", "patient", "quiet", "quiet or land", "quiet or land"],
    [0, 0, 0, 1, 2, 4],
)
run = st.builds(
    Run,
    st.integers(0, 5),
    st.sampled_from([1, 2, 3, 5, 8, 13, 30, 100]),
    st.just("ok"),
    st.sampled_from(["none", "none", "late"]),
)
faulty = st.builds(
    Run,
    st.integers(0, 5),
    st.integers(1, 20),
    st.sampled_from(FAULTS[1:]),
    st.sampled_from(["none", "none", "conflict", "late"]),
)
refuse = st.builds(
    Refuse,
    st.integers(0, 5),
    st.integers(0, 4),
    st.sampled_from(["conflict", "conflict, in flight", "untrue", "refused", "slow"]),
)
outside = st.one_of(
    produce,
    produce,
    produce,
    st.builds(Wait, st.sampled_from([6, 18, 36, 60, 126])),
    st.builds(Retention, PARTITION, st.integers(1, 6)),
    st.builds(AddPartition),
    st.builds(AddPartition),
    st.builds(Compact, PARTITION, st.integers(0, 5), st.integers(1, 3)),
    st.builds(Stale, PARTITION),
    st.builds(Lifecycle, st.integers(0, 9)),
    st.builds(Arrive, st.integers(0, 3)),
    st.builds(Transaction, PARTITION),
    st.builds(Foreign, st.integers(0, 9), st.sampled_from([False, False, True])),
    st.builds(Foreign, st.integers(0, 9), st.just(False)),
)
EXACTLY_ONCE, PLAIN, WITH_DEAD_LETTERS = st.just("exactly once"), st.just(False), st.just(True)
TABLES = st.just("tables")
everyday = st.one_of(start, start, run, run, run, run, faulty, faulty, refuse, outside, outside)
accept = starts(["accept"], [0], [99], [0])
change = starts(
    ["land and change"] * 4
    + ["compact", "reformat", "erase", "erase", "expire", "replay", "replay", "follow", "try", "land and expire"],
    [0, 0, 0, 1, 2, 4],
)
landed_is_changed = st.one_of(*[everyday] * 3, change)
replace = starts(
    ["land and rewrite", "land and merge", "land and change", "rewrite", "merge", "replay", "erase"],
    [0, 0, 0, 1, 2],
    skews=[0],
)
to_the_end = st.builds(Run, st.integers(0, 5), st.just(100))
quiet = starts(
    ["quiet"] * 4 + ["quiet or land", "materialise", "backfill", "close", "clean"], [0, 0, 0, 1], [99], skews=[0]
)
an_hour = st.builds(Wait, st.just(60))
hours_are_quiet = st.one_of(*[quiet, to_the_end, an_hour] * 3, run, faulty, refuse, outside)
catalog_comes_and_goes = st.one_of(*[landed_is_changed] * 3, *[replace, to_the_end] * 2, st.builds(Catalog))
put = starts(
    ["put"] * 5 + ["recover", "clean", "clean old", "read", "read", "compact", "follow"], [0, 0, 0, 1, 2], [99]
)
storage = st.one_of(
    st.builds(Lifecycle, st.integers(0, 9)),
    st.builds(Arrive, st.integers(0, 3)),
    st.builds(Wait, st.sampled_from([18, 60, 126])),
    st.builds(Foreign, st.integers(0, 9), st.booleans()),
    st.builds(Catalog),
)
tables_are_handed_in = st.one_of(put, put, run, run, run, run, faulty, faulty, refuse, storage)
adopt = starts(["adopt"], [0], [99], [0, 0, 72])
stop = st.builds(Stop, st.integers(0, 3))
adopted_at_first = st.one_of(*[landed_is_changed] * 4, adopt)
topics_come_and_go = st.one_of(
    *[everyday] * 10,
    st.builds(Recreate, st.integers(0, 2)),
    st.builds(Run, st.integers(0, 5), st.just(100)),
    accept,
    accept,
)
circumstances = st.builds(
    Circumstances,
    overwrites=st.sampled_from([False, False, True]),
    repeats=st.booleans(),
    opaque=st.booleans(),
    late=st.sampled_from([False, False, True]),
    conflicts=st.sampled_from([False, False, True]),
    refuses=st.booleans(),
)


at_once = st.builds(
    Circumstances, repeats=st.booleans(), opaque=st.booleans(), conflicts=st.sampled_from([False, False, True])
)


@dataclass(frozen=True)
class Story:
    """What happens in a world, and how it comes to rest.

    Attributes:
        rest: seed of what is left to chance at the end.
        dead_letters: see `World`.
    """

    script: list[Any]
    circumstances: Circumstances
    rest: int
    mode: Mode
    dead_letters: bool

    def play(self, tried: Counter[str]) -> None:
        """Let the script happen, then let everything come to rest; `tried` counts what was done."""
        with World(self.circumstances, minute=30, mode=self.mode, dead_letters=self.dead_letters) as world:
            world.kafka.produce(0, 1, 2, 3, 31, 70)
            world.kafka.produce(1, 1, 71)
            # a store that overwrites or shows objects late, and keys that replace, cannot protect what others write
            unprotected = self.circumstances.overwrites or self.circumstances.late or self.mode == "replacing"
            try:
                for event in self.script:
                    if not (isinstance(event, Foreign) and unprotected):
                        event.happen(world)
                world.come_to_rest(random.Random(self.rest))
            finally:
                tried.update(examples=1, requests=world.requests, events=len(self.script), actors=world.started)
                tried.update(world.outcomes)


def read(text: str) -> Story:
    """A story that was kept: its `repr`."""
    words = {name: value for name, value in globals().items() if isinstance(value, type)}
    story = eval(text, {"__builtins__": {}}, words)
    assert isinstance(story, Story)
    return story


def stories(
    event: st.SearchStrategy[Any],
    *first: st.SearchStrategy[Any],
    circumstances: st.SearchStrategy[Circumstances] = circumstances,
    mode: st.SearchStrategy[Mode] = EXACTLY_ONCE,
    dead_letters: st.SearchStrategy[bool] = PLAIN,
) -> st.SearchStrategy[Story]:
    """Return stories of such events, which follow the first ones."""
    return st.builds(Story, _scripts(event, *first), circumstances, st.integers(0, 999), mode, dead_letters)


@st.composite
def _scripts(draw: st.DrawFn, event: st.SearchStrategy[Any], *first: st.SearchStrategy[Any]) -> list[Any]:
    """Long scripts mostly, that can still shrink to short ones."""
    least = draw(st.sampled_from([0, 20, 40, 40, 60, 60, 90]))
    return [draw(each) for each in first] + draw(st.lists(event, min_size=least, max_size=least + 20))
