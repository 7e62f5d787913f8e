"""How soon the next commit comes after SIGKILL, with nobody there: `python -m trials kills --times 3`.

Records arrive steadily. At a random moment of a landing something is killed with all that it started, what a supervisor
would start again is started again, and the seconds until every topic has a new commit are counted from when all
services answer. In the end `verify` compares every record. Prints a table, and one JSON line.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import dagster as dg
import numpy as np
import psutil
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES, RunRecord

from s3lake import hours
from s3lake.land.topic.open_topic_sink import open_topic_sink
from trials.production import CODE, CONNECT, DAEMON, SINK, Production, kill, production
from trials.traffic import Traffic

RUN, ALL = "run", "all"
KILLS = (RUN, CODE, DAEMON, CONNECT, ALL)
_POLL_S = 0.25
_MOST_S = 400.0
_CATCH_UP_S = 300.0


@dataclass
class Recovery:
    """One kill: the state of the run that was under way, and how long it took."""

    kill: str
    state: str
    down_s: float
    seconds: float | None


def main() -> None:
    """Kills, and prints what came of it."""
    options = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # what was started ends, and leaves nothing
    topics = [f"t{number:03d}" for number in range(options.topics)]
    start = hours.key_of_ms(int(time.time() * 1000))
    # In the grace of an hour nothing of the next is landed, and a kill there would count that waiting.
    sink = {
        "start": start,
        "flush": {"interval": options.flush_interval},
        "close_grace": "10s",
        "together": options.together == "yes",
    }
    with (
        tempfile.TemporaryDirectory(prefix="s3lake-kills-") as scratch,
        production(Path(scratch), topics, 4, sink, connect=options.master == "connect", clock=None) as made,
        dg.DagsterInstance.from_config(scratch) as instance,
    ):
        made.start()
        traffic = Traffic(made.kafka.bootstrap_servers, topics, 4, options.records, time.time)
        traffic.start(time.time())
        stage = Stage(made, instance, random.Random(options.seed))
        stage.await_reached(stage.nothing, _MOST_S)
        kinds = [kind for kind in options.kills if kind in made.services or kind in (RUN, ALL)]
        recoveries = [stage.recovery(kind) for _ in range(options.times) for kind in kinds]
        traffic.stop()
        stage.await_reached(stage.written(traffic), _CATCH_UP_S)
        totals = _verified(made)
    _tell(options, kinds, recoveries, totals)


class Stage:
    """Production, what it has landed, and what is killed of it."""

    def __init__(self, made: Production, instance: dg.DagsterInstance, rng: random.Random) -> None:
        self._made, self._instance, self._rng = made, instance, rng
        sink = made.config.sink(SINK)
        self._targets = {topic: open_topic_sink(made.config, sink, topic) for topic in made.topics}
        self.nothing = dict.fromkeys(made.topics, 0)

    def recovery(self, kind: str) -> Recovery:
        """Kill at a moment of a run, and wait for a commit of every topic."""
        killed = [name for name in self._made.services if kind in (name, ALL)]
        run, processes = self._moment(), self._find_processes(killed)
        while not processes:  # the run is still in the queue, or ends just now
            run, processes = self._moment(), self._find_processes(killed)
        began = time.monotonic()
        kill(processes)
        for name in killed:
            self._made.services[name].start()
        for name in killed:
            self._made.services[name].await_up()
        back = time.monotonic()
        took = self.await_reached(self._reached(), _MOST_S)
        found = Recovery(kind, str(run.dagster_run.status.value), round(back - began, 1), took)
        print(f"{kind}: {found}", file=sys.stderr, flush=True)
        return found

    def _find_processes(self, services: Sequence[str]) -> list[psutil.Process]:
        """Return the processes of services; without any, those of runs."""
        return [process for name in services for process in self._made.services[name].tree] or self._made.runs

    def await_reached(self, before: dict[str, int], most_s: float) -> float | None:
        """Seconds until every topic is landed further than before; None where it is not in time."""
        began = time.monotonic()
        while time.monotonic() - began < most_s:
            if all(reached > before[topic] for topic, reached in self._reached().items()):
                return round(time.monotonic() - began, 1)
            time.sleep(_POLL_S)
        return None

    def written(self, traffic: Traffic) -> dict[str, int]:
        """To be surpassed by what is landed when nothing is left."""
        return dict.fromkeys(self._made.topics, traffic.records - 1)

    def _reached(self) -> dict[str, int]:
        return {topic: sum(one.find_landed_offsets().values()) for topic, one in self._targets.items()}

    def _another_than(self, run_id: str) -> bool:
        return self._last()[0].dagster_run.run_id != run_id

    def _moment(self) -> RunRecord:
        """A run of which nobody knows how far it is: somewhere between its making and its usual end."""
        while True:
            last = self._last()
            latest = last[0].dagster_run.run_id
            lengths = [one.end_time - one.create_timestamp.timestamp() for one in last if one.end_time]
            self._await(partial(self._another_than, latest))
            time.sleep(self._rng.uniform(0, median(lengths or [10.0])))
            run = self._last()[0]
            if run.dagster_run.status in NOT_FINISHED_STATUSES:
                return run

    def _last(self) -> Sequence[RunRecord]:
        return self._instance.get_run_records(limit=4)

    def _await(self, condition: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > _MOST_S:
                raise SystemExit(f"no run was asked for in {_MOST_S:g} s:\n{self._made.services[DAEMON].said[-4000:]}")
            time.sleep(0.05)


def _verified(made: Production) -> dict[str, Any]:
    """What `verify` found in all; the hour under way is not due yet."""
    done = made.verify("--allow-open")
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or not lines:
        raise SystemExit(f"verify failed:\n{done.stderr[-4000:]}")
    if done.returncode:
        print("\n".join(lines[:20]), file=sys.stderr)
    totals: dict[str, Any] = json.loads(lines[-1])
    return totals


def _tell(
    options: argparse.Namespace, kinds: Sequence[str], recoveries: Sequence[Recovery], totals: dict[str, Any]
) -> None:
    lost, doubled = totals["not_landed"] + totals["missing"], totals["duplicated"]
    table = []
    for kind in kinds:
        seconds = [inf if one.seconds is None else one.seconds for one in recoveries if one.kill == kind]
        p50, p95 = (float(np.percentile(seconds, share, method="higher")) for share in (50, 95))
        table.append({"kill": kind, "times": len(seconds), "p50_s": p50, "p95_s": p95})
    print(f"{'kill':<8} times  p50 s  p95 s", file=sys.stderr)
    for row in table:
        print(f"{row['kill']:<8} {row['times']:>5} {row['p50_s']:>6} {row['p95_s']:>6}", file=sys.stderr)
    print(f"of {totals['compared']:,} records {lost} are lost and {doubled} doubled", file=sys.stderr)
    print(json.dumps({**vars(options), "table": table, "lost": lost, "doubled": doubled, "verify": totals}))


def _names(text: str) -> list[str]:
    return text.split(",")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3, help="of each kill (default: %(default)s)")
    parser.add_argument("--kills", type=_names, default=list(KILLS), help=f"of {','.join(KILLS)} (default: all)")
    parser.add_argument("--seed", type=int, default=11, help="of the moments (default: %(default)s)")
    parser.add_argument("--topics", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--records", type=int, default=36_000, help="of a topic in an hour (default: %(default)s)")
    parser.add_argument("--flush-interval", default="10s", help="of the sink (default: %(default)s)")
    parser.add_argument(
        "--together", choices=("yes", "no"), default="yes", help="one run for all topics (default: %(default)s)"
    )
    parser.add_argument("--master", choices=("connect", "local"), default="connect", help="(default: %(default)s)")
    return parser.parse_args()
