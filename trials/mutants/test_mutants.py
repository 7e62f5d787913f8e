"""What `command.py` makes of mutmut's changes and of the list of survivors."""

import os
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from trials.mutants import changes
from trials.mutants import command as mutants
from trials.mutants.apart import Apart

ROOT = Path(__file__).parents[2]
SOURCE = """
def opened(start):
    if start > 0:
        return start
    return 1


class Tile:
    @classmethod
    def closed(cls):
        return True
"""
WRITTEN = """
def x_opened__mutmut_orig(start):
    if start > 0:
        return start
    return 1


def x_opened__mutmut_1(start):
    if start >= 0:
        return start
    return 1


class Tile:
    def xǁTileǁclosed__mutmut_orig(cls):
        return True

    def xǁTileǁclosed__mutmut_1(cls):
        return False
"""
NAMES = ["x_opened__mutmut_1", "xǁTileǁclosed__mutmut_1"]


def test_a_mutant_is_its_function_and_the_lines_that_differ():
    found = [change.mutant for change in changes.of_source(SOURCE, WRITTEN, NAMES, "plan")]

    assert found == [
        ("plan.opened", "- if start > 0:\n+ if start >= 0:"),
        ("plan.Tile.closed", "- return True\n+ return False"),
    ]


def test_a_change_of_what_a_function_takes_has_its_own_name():
    source, mutated = (f"def {{}}(start={start}):\n    return start\n" for start in (1, 2))
    written = source.format("x_opened__mutmut_orig") + mutated.format("x_opened__mutmut_1")
    (change,) = changes.of_source(source.format("opened"), written, NAMES[:1], "plan")

    assert change.mutant.change == "- def opened(start=1):\n+ def opened(start=2):"


def test_a_declaration_of_a_protocol_has_no_mutants():
    source, mutated = (f'def {{}}(start={start}):\n    """What is asked for."""\n    ...\n' for start in (1, 2))
    written = source.format("x_opened__mutmut_orig") + mutated.format("x_opened__mutmut_1")

    assert list(changes.of_source(source.format("opened"), written, NAMES[:1], "plan")) == []


def test_lines_that_come_above_a_change_make_no_other_mutant_of_it():
    sources = [text.replace("(start):\n", "(start):\n    start += 1\n") for text in (SOURCE, WRITTEN)]
    moved, mutant = (next(changes.of_source(*texts, NAMES, "plan")) for texts in (sources, (SOURCE, WRITTEN)))

    assert moved.mutant == mutant.mutant
    assert (moved.lines, mutant.lines) == ({4}, {3})


@pytest.mark.parametrize(
    ("line", "mutated", "of_words"),
    [
        ("raise LandingError(f'{place}: gone')", "raise LandingError(None)", True),
        ("raise LandingError(f'{place[0]}: gone')", "raise LandingError(f'{place[1]}: gone')", True),
        ("raise LandingError(place, 'gone')", "raise LandingError(place)", True),
        ("raise LandingError(place, 'gone')", "raise LandingError('gone')", False),
        ("raise LandingError(place, 'gone')", "raise LandingError(None, 'gone')", False),
        ("_log.warning('%s', place)", "_log.warning('%s', None)", True),
        ("_log.warning('%s', place)", "_log.warning('%s')", True),
        ("raise _refused(place, 'gone')", "raise _refused(place, 'GONE')", True),
        ("return len(place) + 1", "return len(place) - 1", False),
        ("return 'gone'", "return 'GONE'", False),
    ],
)
def test_the_text_of_an_error_or_a_log_is_not_mutated(line: str, mutated: str, of_words: bool):
    source = f"def opened(place):\n    {line}\n"
    written = source.replace("opened", "x_opened__mutmut_orig") + f"def x_opened__mutmut_1(place):\n    {mutated}\n"

    assert len(list(changes.of_source(source, written, NAMES[:1], "plan"))) == (0 if of_words else 1)


def test_importers_of_a_function_and_its_class_call_the_planted_change(
    monkeypatch: pytest.MonkeyPatch,
):
    plan = ModuleType("plan")
    exec(SOURCE, vars(plan))
    monkeypatch.setitem(sys.modules, "plan", plan)
    opened, closed = plan.opened, plan.Tile.closed
    for change in changes.of_source(SOURCE, WRITTEN, NAMES, "plan"):
        change.plant()

    assert opened(0) == 0
    assert closed() is False


# Python 3.12 warns of a fork beside threads, and those that run tests in parallel have some.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_work_that_is_done_apart_changes_nothing_here_and_answers_unless_it_ends_before():
    here: list[int] = []
    assert Apart(lambda: [*here, here.append(1)]).answer() == [None]
    assert Apart(lambda: os._exit(0)).answer() is None
    assert Apart(lambda: time.sleep(60)).answer(0.01) is None
    assert here == []


def test_the_survivors_of_the_list_and_no_others_are_right():
    equal, killed = mutants.Mutant("plan.opened", "- a\n+ b"), mutants.Mutant("plan.closed", "- c\n+ d")

    assert list(mutants.compared(Counter({equal: 2}), Counter({equal: 2}))) == []
    assert list(mutants.compared(Counter({equal: 2}), Counter({equal: 1, killed: 1}))) == [
        "plan.opened: survives, and is not in the list: a test is missing, or a reason\n    - a\n    + b",
        "plan.closed: is in the list, and survives no more: take it out\n    - c\n    + d",
    ]


def test_the_list_has_a_reason_for_each_of_its_mutants_all_of_which_are_in_modules_that_there_are():
    listed = mutants.read(mutants.LIST.read_text())

    for mutant in listed:
        assert "__mutmut" not in mutant.change
        module = mutant.function.rpartition(".")[0]
        assert any((ROOT / Path(*parts.split("."))).with_suffix(".py").exists() for parts in _modules(module)), mutant


def _modules(name: str) -> tuple[str, str]:
    """A function's module, or the one of its class."""
    return name, name.rpartition(".")[0]


def test_the_paths_mutated_by_default_exist():
    assert [path for path in mutants.DEFAULT if not (ROOT / path).exists()] == []


def test_a_reason_that_is_missing_is_no_reason():
    with pytest.raises(SystemExit, match=r"plan\.opened: a reason is missing"):
        mutants.read("plan.opened:\n- {reason: ' ', mutants: ['- a']}")


def test_only_what_is_mutated_is_compared():
    listed = Counter(
        {mutants.Mutant(f"s3lake.{name}.opened", "- a"): 1 for name in ("index.plan.tile", "index.plan.tiles", "land")}
    )

    assert {mutant.function for mutant in mutants.of_paths(listed, ["s3lake/index/plan/"])} == {
        "s3lake.index.plan.tile.opened",
        "s3lake.index.plan.tiles.opened",
    }
    assert [mutant.function for mutant in mutants.of_paths(listed, ["s3lake/index/plan/tile.py"])] == [
        "s3lake.index.plan.tile.opened"
    ]
