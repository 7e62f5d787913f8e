"""Mutation testing: `benchmarks/mutants.py s3lake/plan s3lake/commit/recovery.py`, or `make mutants`.

mutmut changes the code of these modules, one place at a time, and runs the fast tests of the room that mirrors theirs.
A mutant that no test notices has to stand in `s3lake_tests/survivors.yaml` with its reason, and nothing else may stand
there. All of it happens in a copy: nothing is left in the tree.

Hypothesis tries the same examples for every mutant, and again the next time, for it is told that this is a CI.
"""

import argparse
import ast
import difflib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
MUTMUT = ROOT / ".venv-mutants"
LIST = ROOT / "s3lake_tests" / "survivors.yaml"
FAST = "not (long or spark or kafka or s3 or ui)"
COPIED = ("s3lake", "s3lake_tests", "docs", "pyproject.toml")

ALIVE = {0, 5, 33}
"""mutmut's codes of a mutant: every test passed, none was selected, none reaches it."""
UNDECIDED = {None, 2}


class Mutant(NamedTuple):
    """A change of the code, told so that it is the same one after lines above it came or went.

    Attributes:
        function: with its module and class: `s3lake.plan.tile.Tile.closed`.
        change: lines that go, after a `-`, and lines that come, after a `+`.
    """

    function: str
    change: str


def main() -> None:
    """Exit code 1 where the survivors are not those of the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="modules or rooms, from the root of the repository")
    paths = parser.parse_args().paths
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    rooms: dict[Path, list[str]] = defaultdict(list)
    for path in map(Path, paths):
        room = path.parent if path.suffix else path
        rooms["s3lake_tests" / room.relative_to("s3lake")].append(str(path if path.suffix else path / "*.py"))
    survivors: Counter[Mutant] = Counter()
    for tests, modules in rooms.items():
        with tempfile.TemporaryDirectory(prefix="s3lake-mutants-") as scratch:
            survivors += mutated(Path(scratch), modules, tests)
    listed = of_paths(read(LIST.read_text()), paths)
    differences = list(compared(survivors, listed))
    print("\n".join([*differences, f"{survivors.total()} survivors, {len(differences)} of them or of the list wrong"]))
    sys.exit(1 if differences else 0)


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
    """Those of the list that are in these modules or rooms."""
    modules = tuple(path.removesuffix(".py").strip("/").replace("/", ".") + "." for path in paths)
    return Counter({mutant: count for mutant, count in listed.items() if mutant.function.startswith(modules)})


def change(before: str, after: str) -> str:
    """What differs between the sources of a function and of its mutant."""
    lines, mutated_lines = (textwrap.dedent(source).splitlines() for source in (before, after))
    differing = list(difflib.unified_diff(lines, mutated_lines, n=0, lineterm=""))[2:]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in differing if not line.startswith("@@"))


def mutants(source: str, module: str, codes: Mapping[str, int | None]) -> Counter[Mutant]:
    """The survivors among the mutants of a module, all of which stand beside each other in what mutmut has written.

    Args:
        source: what mutmut has written.
        module: its name.
        codes: per mutant `s3lake.plan.tile.x_opened__mutmut_34`, or `...xǁTileǁclosed__mutmut_1` of a method.
    """
    functions = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    lines = source.splitlines()
    survivors: Counter[Mutant] = Counter()
    for key in [key for key, code in codes.items() if code in ALIVE]:
        name = key.rpartition(".")[2]
        mangled = name.partition("__mutmut_")[0]
        plain = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        nodes = functions[f"{mangled}__mutmut_orig"], functions[name]
        before, after = ("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes)
        survivors[Mutant(f"{module}.{plain}", change(before, after.replace(name, nodes[0].name)))] += 1
    return survivors


def mutated(scratch: Path, modules: Sequence[str], tests: Path) -> Counter[Mutant]:
    """The mutants of `modules` that pass the tests in `tests`."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, scratch / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, scratch / name)
    with (scratch / "pyproject.toml").open("a") as project:
        project.write(_settings(modules, tests))
    environment = {**os.environ, "PYTHONPATH": str(MUTMUT), "CI": "true"}
    done = subprocess.run([sys.executable, MUTMUT / "bin" / "mutmut", "run"], cwd=scratch, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"mutmut ended with code {done.returncode} for {tests}")
    survivors: Counter[Mutant] = Counter()
    counts: Counter[str] = Counter()
    for meta in sorted((scratch / "mutants" / "s3lake").rglob("*.py.meta")):
        written = meta.with_suffix("")
        module = ".".join(written.relative_to(scratch / "mutants").with_suffix("").parts)
        codes: dict[str, Any] = json.loads(meta.read_text())["exit_code_by_key"]
        if UNDECIDED & set(codes.values()):
            raise SystemExit(f"mutmut has not come to the end of {module}")
        if codes:
            survivors += mutants(written.read_text(), module, codes)
            counts[module] = len(codes)
    print(f"\n{counts.total()} mutants: {dict(counts)}", flush=True)
    return survivors


def _settings(modules: Sequence[str], tests: Path) -> str:
    """Of mutmut. JSON's lists of texts are TOML's too."""
    return "\n".join(
        [
            "",
            "[tool.mutmut]",
            'source_paths = ["s3lake"]',
            f"only_mutate = {json.dumps(modules)}",
            'also_copy = ["s3lake_tests", "docs"]',
            f"pytest_add_cli_args = {json.dumps(['-m', FAST, '-p', 'no:cacheprovider'])}",
            f"pytest_add_cli_args_test_selection = {json.dumps([str(tests)])}",
            "track_dependencies = false",
            "use_git_change_detection = false",
            "",
        ]
    )


def _in_words(what: str, mutant: Mutant) -> str:
    return f"{mutant.function}: {what}\n{textwrap.indent(mutant.change, '    ')}"


if __name__ == "__main__":
    main()
