"""One entry for every trial: `python -m trials soak --minutes 10 --seed 3`, or `make trial TRIAL="soak --minutes 10"`.

A trial is a program of this package, a few modules of pytest, or both: the tests of a program come first, and end the
trial if one of them fails. What follows the name goes to the program, or to pytest if there is no program.
"""

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Trial(NamedTuple):
    """What one trial runs.

    Attributes:
        about: one line for `--help`.
        program: the module whose `main` is run; none if the tests are all of it.
        tests: paths of test modules below this directory.
    """

    about: str
    program: str | None = None
    tests: tuple[str, ...] = ()


TRIALS = {
    "soak": Trial(
        "production for N minutes under kills, stops and faults", "soak", ("test_checker.py", "test_catalog.py")
    ),
    "matrix": Trial(
        "a command killed at each of its requests to S3 and Kafka", "matrix", ("test_checker.py", "test_catalog.py")
    ),
    "recovery": Trial("the next commit after a run was killed with its code server", tests=("test_recovery.py",)),
    "kills": Trial("how soon the next commit comes after SIGKILL to each service", "kills"),
    "day": Trial("what a day of production costs, by a clock that skips waiting", "day", ("test_day.py",)),
    "production": Trial("a small day and a kill of the Connect server, compared", tests=("test_production.py",)),
    "scale": Trial("a Spark cluster whose executors and drivers are killed", tests=("test_scale.py",)),
    "stack": Trial("the services of docker/compose.yaml as processes", tests=("test_stack.py",)),
    "served": Trial("`s3lake demo --serve`, and a run that its UI starts", tests=("test_served.py",)),
    "protocol": Trial("stories that Hypothesis invents for the commit: --examples 100000", "protocol"),
    "mutants": Trial("modules changed one place at a time", "mutants.command", ("mutants/test_mutants.py",)),
}


def main() -> int:
    """Run the trial that the command line names. Return its exit code."""
    name, arguments = (sys.argv[1:2] or ["--help"])[0], sys.argv[2:]
    if name not in TRIALS:
        print(__doc__)
        print("\n".join(f"  {trial:<11} {TRIALS[trial].about}" for trial in TRIALS))
        return 0 if name in ("-h", "--help") else 2
    trial = TRIALS[name]
    if trial.program is None:
        return run_tests(trial.tests, arguments)
    asks_for_help = {"-h", "--help"} & {*arguments}
    if trial.tests and not asks_for_help and run_tests(trial.tests, ["-q"]):
        return 1
    sys.argv = [f"trials {name}", *arguments]
    return import_module(f"trials.{trial.program}").main() or 0


def run_tests(tests: Sequence[str], arguments: Sequence[str]) -> int:
    """Run test modules with the fixtures of the suite. Return pytest's exit code; stdout is the program's."""
    paths = [str(Path("trials", test)) for test in tests]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "s3lake_tests.conftest", *paths, *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
