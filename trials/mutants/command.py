"""Mutation testing: `python -m trials mutants s3lake/index/plan s3lake/index/commit/recovery.py`.

The functions of these modules are changed, one place at a time as mutmut does it, and the tests of their room that need
no server run, those of rooms within it too. A mutant that no test notices has to be in `survivors.yaml` with its
reason, and nothing else may be there. Changes are made in memory, in forked processes: nothing is left in the tree.

What a log or an error says is left alone: the calls of `_log`, and texts in a `raise` or in the call of an `...Error`.

Hypothesis tries the same examples for every mutant, and again the next time, for it is told that this is a CI.
"""

import argparse
import os
import sys
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import yaml

from trials.mutants.apart import Apart
from trials.mutants.changes import Mutant, changes

ROOT = Path(__file__).parents[2]
MUTMUT = ROOT / ".venv-mutants"
OF_ROOMS = ("records", "index", "lake")
"""Rooms whose inner rooms are tested each by its own tests; those of the others are tested together."""
LIST = Path(__file__).with_name("survivors.yaml")
DEFAULT = [
    *("s3lake/index/plan", "s3lake/index/store", "s3lake/index/commit"),
    *(f"s3lake/land/{name}.py" for name in ("hour/landing", "topic/topic_sink", "micro_batch/gate", "topic/observer")),
    *(f"s3lake/land/task/{name}.py" for name in ("outcomes", "staging", "refused_records")),
]
"""What decides over offsets or speaks to S3."""
WITHOUT_SERVERS = "not (real or slow) or (long and not real)"
"""All stories of a commit too, those of the slow slices: much lives through fewer."""


def main() -> None:
    """Exit code 1 where the survivors are not those of the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="*", default=DEFAULT, help="rooms, modules or module.py::function, from the root"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many mutants are tried at once")
    parser.add_argument("--one-a-line", action="store_true", help="try no more of a line where one survived")
    arguments = parser.parse_args()
    sys.path.append(str(MUTMUT))
    os.chdir(ROOT)
    os.environ["CI"] = "true"
    rooms: dict[Path, list[str]] = defaultdict(list)
    for path in arguments.paths:
        module = Path(path.partition("::")[0])
        parts = (module.parent if module.suffix else module).relative_to("s3lake").parts
        room = parts[: 2 if parts[0] in OF_ROOMS else 1]
        rooms[Path("s3lake_tests", *room)].append(path)
    survivors: Counter[Mutant] = Counter()
    with tempfile.TemporaryDirectory(prefix="s3lake-mutants-") as scratch:
        tempfile.tempdir = os.environ["TMPDIR"] = scratch
        for tests, paths in rooms.items():
            work = partial(mutated, paths, tests, arguments.processes, arguments.one_a_line)
            living = Apart(work, quiet=False).answer()
            if living is None:
                raise SystemExit(f"{tests} has not come to its end")
            survivors += living
    listed = of_paths(read(LIST.read_text()), arguments.paths)
    differences = list(compared(survivors, listed))
    print("\n".join([*differences, f"{survivors.total()} survivors, {len(differences)} of them or of the list wrong"]))
    sys.exit(1 if differences else 0)


def mutated(paths: Sequence[str], tests: Path, processes: int, one_a_line: bool) -> Counter[Mutant]:
    """The mutants in `paths` that pass the tests in `tests`."""
    import pytest

    from trials.mutants.plugin import Trials

    places = {Path(path.partition("::")[0]) for path in paths}
    modules = sorted(module for place in places for module in (place.glob("*.py") if not place.suffix else [place]))
    below = tuple(map(named, paths))
    tried = [change for path in modules for change in changes(ROOT, path) if _below(change.mutant, below)]
    trials = Trials(tried, processes, one_a_line)
    # A test that waits for a thread that never ends can only be ended with its process.
    limits = ["-o", "timeout=900", "-o", "timeout_method=thread"]
    options = ["-qs", "-m", WITHOUT_SERVERS, "-p", "no:cacheprovider", "--tb=native", "--assert=plain", *limits]
    code = pytest.main([*options, str(tests)], plugins=[trials])
    if code != 0:
        raise SystemExit(f"the tests in {tests} ended with code {code}")
    return Counter(change.mutant for change in trials.survivors)


def compared(survivors: Counter[Mutant], listed: Counter[Mutant]) -> Iterator[str]:
    """What is wrong, in words, each with the mutant as the list has it."""
    for mutant in sorted((survivors - listed).elements()):
        yield _in_words("survives, and is not in the list: a test is missing, or a reason", mutant)
    for mutant in sorted((listed - survivors).elements()):
        yield _in_words("is in the list, and survives no more: take it out", mutant)


def read(text: str) -> Counter[Mutant]:
    """The list: per function groups of mutants, which have a reason together."""
    listed: Counter[Mutant] = Counter()
    for function, groups in (yaml.safe_load(text) or {}).items():
        for group in groups:
            if not group["reason"].strip():
                raise SystemExit(f"{LIST.name}: {function}: a reason is missing")
            listed.update(Mutant(function, change.strip()) for change in group["mutants"])
    return listed


def of_paths(listed: Counter[Mutant], paths: Iterable[str]) -> Counter[Mutant]:
    """Those of the list that are in these rooms, modules or functions."""
    below = tuple(map(named, paths))
    return Counter({mutant: count for mutant, count in listed.items() if _below(mutant, below)})


def named(path: str) -> str:
    """A room, module or function as Python names it: `s3lake/index/plan/tile.py::Tile.closed`."""
    place, _, function = path.partition("::")
    return ".".join(filter(None, [place.removesuffix(".py").strip("/").replace("/", "."), function]))


def _below(mutant: Mutant, names: tuple[str, ...]) -> bool:
    return mutant.function.startswith(tuple(f"{name}." for name in names)) or mutant.function in names


def _in_words(what: str, mutant: Mutant) -> str:
    return f"{mutant.function}: {what}\n{textwrap.indent(mutant.change, '    ')}"
