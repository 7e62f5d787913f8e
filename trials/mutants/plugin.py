"""A plugin of pytest: instead of the tests that were collected, once each, those that reach a mutant, for each mutant.

Everything is imported and collected once; each mutant has a fork of that process, which plants it and runs the tests
that ran its lines, those first that noticed another of the same function, then quick files, until one fails.
"""

import gc
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import hypothesis
import pytest

from trials.mutants.apart import Apart
from trials.mutants.changes import Change

_PATIENCE_S = 600.0
"""How long a mutant may hang: pytest's own time limit of a test comes before."""


class Reached(NamedTuple):
    """What the tests ran of the modules that are mutated.

    Attributes:
        lines: per file and line the tests that ran it, or whole files of tests, in what they set up.
        seconds: per test, of the processor.
        failed: tests that fail without any mutant.
    """

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    failed: list[str]


class Trials:
    """The plugin.

    Attributes:
        survivors: in the end.
    """

    def __init__(self, changes: Sequence[Change], processes: int, one_a_line: bool) -> None:
        self.survivors: list[Change] = []
        self._changes = changes
        self._processes = processes
        self._one_a_line = one_a_line
        self._failed = False
        self._coverage: Any = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A counterexample is one, however large."""
        phases = [
            phase for phase in hypothesis.Phase if phase not in (hypothesis.Phase.shrink, hypothesis.Phase.explain)
        ]
        for item in items:
            test: Any = getattr(item, "obj", None)
            settings = getattr(test, "_hypothesis_internal_use_settings", None)
            if settings is not None:
                test = getattr(test, "__func__", test)
                test._hypothesis_internal_use_settings = hypothesis.settings(settings, phases=phases)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """What is set up may be set up for all tests of a file."""
        if self._coverage:
            self._coverage.switch_context(_file(item.nodeid))

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        if self._coverage:
            self._coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            pytest.exit("tests cannot be collected", returncode=1)
        for change in self._changes:
            import_module(change.module)  # also one that no test of its room imports
        gc.freeze()  # what is imported and collected is shared with every fork as long as nobody writes to it
        reached = Apart(lambda: self._reached(session.items)).answer()
        if reached is None or reached.failed:
            pytest.exit(f"fails without a mutant: {reached and reached.failed}", returncode=1)
        shards = [
            Apart(partial(self._survivors, session.items, reached, shard), quiet=False)
            for shard in (range(number, len(self._changes), self._processes) for number in range(self._processes))
        ]
        for shard in shards:
            numbers = shard.answer()
            if numbers is None:
                pytest.exit("a process that tries mutants has died", returncode=1)
            self.survivors += [self._changes[number] for number in numbers]
        return True

    def _reached(self, items: Sequence[pytest.Item]) -> Reached:
        files = {str(sys.modules[change.module].__file__) for change in self._changes}
        # Actors of stories are greenlets: without being told coverage sees none of the lines that they run.
        self._coverage = import_module("coverage").Coverage(
            data_file=None, include=sorted(files), config_file=False, concurrency=["thread", "greenlet"]
        )
        self._coverage.start()
        seconds, failed = {}, []
        for item, following in _pairs(items):
            before = time.process_time()
            if not self._passes(item, following):
                failed.append(item.nodeid)
            seconds[item.nodeid] = time.process_time() - before
        self._coverage.stop()
        data = self._coverage.get_data()
        return Reached({file: data.contexts_by_lineno(file) for file in data.measured_files()}, seconds, failed)

    def _survivors(self, items: Sequence[pytest.Item], reached: Reached, numbers: range) -> list[int]:
        """Those of these changes, by their numbers."""
        survivors: list[int] = []
        noticed: dict[str, list[str]] = defaultdict(list)
        for count, number in enumerate(numbers):
            change = self._changes[number]
            if self._one_a_line and any(change.lines & self._changes[survivor].lines for survivor in survivors):
                continue
            tests = self._order(items, reached, change, noticed[change.mutant.function])
            noticing = Apart(partial(self._noticing, change, tests, reached)).answer(_PATIENCE_S) if tests else ""
            if noticing:
                noticed[change.mutant.function] = [noticing, *(set(noticed[change.mutant.function]) - {noticing})]
            if noticing == "":
                print(f"lives through {len(tests)} tests: {change.mutant.function}\n{change.mutant.change}", flush=True)
                survivors.append(number)
            if count % 50 == 49:
                print(f"{count + 1} of {len(numbers)} mutants tried", flush=True)
        return survivors

    def _order(
        self, items: Sequence[pytest.Item], reached: Reached, change: Change, noticed: Sequence[str]
    ) -> list[pytest.Item]:
        lines = reached.lines.get(str(sys.modules[change.module].__file__), {})
        running = {test for line in change.lines for test in lines.get(line, ())}
        tests = [item for item in items if item.nodeid in running or _file(item.nodeid) in running]
        files: dict[str, float] = defaultdict(float)
        for item in tests:
            files[_file(item.nodeid)] += reached.seconds[item.nodeid]
        return sorted(
            tests,
            key=lambda item: (
                item.nodeid not in noticed,
                files[_file(item.nodeid)],
                _file(item.nodeid),
                reached.seconds[item.nodeid],
            ),
        )

    def _noticing(self, change: Change, tests: Sequence[pytest.Item], reached: Reached) -> str:
        """The test that notices; empty where none does. A mutant that never ends is ended by the timer's signal."""
        change.plant()
        for item, following in _pairs(tests):
            signal.setitimer(signal.ITIMER_PROF, 2 + 5 * reached.seconds[item.nodeid])
            if not self._passes(item, following):
                return item.nodeid
        return ""

    def _passes(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        self._failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self._failed


def _pairs(items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
    """Each with the next, so that what tests of a file share stands until the last of them."""
    return zip(items, [*items[1:], None], strict=True)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
