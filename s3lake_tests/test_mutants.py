"""What `benchmarks/mutants.py` makes of mutmut's files and of the list of survivors."""

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
WRITTEN = """
def x_opened__mutmut_orig(start):
    if start > 0:
        return start
    return 1


def x_opened__mutmut_1(start):
    if start >= 0:
        return start
    return 1


def x_opened__mutmut_2(start):
    if start > 0:
        return start
    return 2


class Tile:
    def xǁTileǁclosed__mutmut_orig(self):
        return True

    def xǁTileǁclosed__mutmut_1(self):
        return False
"""


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import mutants

    return mutants


def test_a_survivor_is_its_function_and_the_lines_that_differ(mutants: ModuleType):
    codes = {"plan.x_opened__mutmut_1": 0, "plan.x_opened__mutmut_2": 1, "plan.xǁTileǁclosed__mutmut_1": 33}

    assert mutants.mutants(WRITTEN, "plan", codes) == Counter(
        {
            ("plan.opened", "- if start > 0:\n+ if start >= 0:"): 1,
            ("plan.Tile.closed", "- return True\n+ return False"): 1,
        }
    )


def test_lines_that_come_above_a_change_make_no_other_mutant_of_it(mutants: ModuleType):
    moved = WRITTEN.replace("(start):\n", "(start):\n    start += 1\n")

    assert mutants.mutants(moved, "plan", {"plan.x_opened__mutmut_1": 0}) == mutants.mutants(
        WRITTEN, "plan", {"plan.x_opened__mutmut_1": 0}
    )


def test_the_survivors_of_the_list_and_no_others_are_right(mutants: ModuleType):
    equal, killed = mutants.Mutant("plan.opened", "- a\n+ b"), mutants.Mutant("plan.closed", "- c\n+ d")

    assert list(mutants.compared(Counter({equal: 2}), Counter({equal: 2}))) == []
    assert list(mutants.compared(Counter({equal: 2}), Counter({equal: 1, killed: 1}))) == [
        "plan.opened: survives, and is not in the list: a test is missing, or a reason\n    - a\n    + b",
        "plan.closed: is in the list, and survives no more: take it out\n    - c\n    + d",
    ]


def test_the_list_has_a_reason_for_each_of_its_mutants_all_of_which_are_in_modules_that_there_are(mutants: ModuleType):
    listed = mutants.read((ROOT / "s3lake_tests" / "survivors.yaml").read_text())

    for mutant in listed:
        module = mutant.function.rpartition(".")[0]
        assert any((ROOT / Path(*parts.split("."))).with_suffix(".py").exists() for parts in _modules(module)), mutant


def _modules(name: str) -> tuple[str, str]:
    """A function's module, or the one of its class."""
    return name, name.rpartition(".")[0]


def test_a_reason_that_is_missing_is_no_reason(mutants: ModuleType):
    with pytest.raises(SystemExit, match=r"plan\.opened: a reason is missing"):
        mutants.read("plan.opened:\n- {reason: ' ', mutants: ['- a']}")


def test_only_what_is_mutated_is_compared(mutants: ModuleType):
    listed = Counter(
        {mutants.Mutant(f"s3lake.{name}.opened", "- a"): 1 for name in ("plan.tile", "plan.tiles", "land")}
    )

    assert {mutant.function for mutant in mutants.of_paths(listed, ["s3lake/plan/"])} == {
        "s3lake.plan.tile.opened",
        "s3lake.plan.tiles.opened",
    }
    assert [mutant.function for mutant in mutants.of_paths(listed, ["s3lake/plan/tile.py"])] == [
        "s3lake.plan.tile.opened"
    ]
