"""Commands of ours beside the landings, as a person runs them."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trials.production import CODE, S3LAKE, Production

_TRIES = 12
_FINE = "; missing 0, duplicated 0"
"""In a line of `verify`'s of a topic-partition with which nothing is wrong."""


class Command(NamedTuple):
    """One of ours under way."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


class Commands:
    """Those that are under way, and how the others ended.

    Attributes:
        codes: by command, how often it ended with each exit code.
    """

    def __init__(self, made: Production) -> None:
        self.codes: dict[str, Counter[int]] = {}
        self._made, self._begun = made, 0
        self._under_way: list[Command] = []

    def begin(self, words: Sequence[str]) -> None:
        """Run it beside all else."""
        self._under_way.append(self._started(words))

    def insist(self, words: Sequence[str], done_before: str) -> None:
        """Run it again until it is done; `done_before` is what it says where an earlier one had done it."""
        for attempt in range(_TRIES):
            command = self._started(words)
            if self._note(command) == 0 or (attempt and done_before in command.log.read_text()):
                return
            time.sleep(2)
        raise SystemExit(f"{command.name} does not come to its end:\n{command.log.read_text()[-4000:]}")

    def ended(self, words: Sequence[str]) -> int:
        """The exit code of a command that is waited for."""
        return self._note(self._started(words))

    def collect(self, *, all_of_them: bool = False) -> None:
        """Note those that have ended, or wait for each."""
        for command in [*self._under_way]:
            if all_of_them or command.process.poll() is not None:
                self._note(command)
                self._under_way.remove(command)

    def _started(self, words: Sequence[str]) -> Command:
        self._begun += 1
        log = self._made.home / f"command-{self._begun}.log"
        environment = self._made.services[CODE].environment
        command = [sys.executable, "-W", "ignore", *S3LAKE, *words]
        with log.open("wb") as output:
            run = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        return Command(" ".join(words), run, log)

    def _note(self, command: Command) -> int:
        code = command.process.wait(600)
        self.codes.setdefault(command.name, Counter())[code] += 1
        if code:
            told = "\n".join(line for line in command.log.read_text().splitlines() if _FINE not in line)
            print(f"{command.name}: exit code {code}\n{told[-1500:]}", file=sys.stderr, flush=True)
        return code
