"""What a day of production costs and how fresh it is: `python -m trials day --topics 20 --hours 6 --records 100000`.

Records arrive steadily in T topics, and the code server, Dagster's daemon with its sensors and run queue, and the runs
that they ask for land them, by a clock that runs fast while nothing is under way. Prints one JSON line, after `verify`
has found every record in one file. See README.md for how to read it.
"""

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np

from benchmarks.process_tree import Meter
from s3lake import hours
from trials import landed
from trials.clock.shared_clock import SharedClock
from trials.pacer import Pacer
from trials.production import CODE, CONNECT, DAEMON, SINK, Production, production
from trials.requests_log import Request, requests
from trials.traffic import Traffic

_SETTLE_S = 10.0
_LEAD_HOURS = 4
_PATIENCE_H = 2.0


@dataclass
class Zero:
    """What is used with the sensors off, in CPU seconds a second of the world.

    Attributes:
        slow: by Dagster, while the clock runs as the world's.
        fast: by Dagster, while it runs at `--speed`.
        connect: by the Connect server.
    """

    slow: float
    fast: float
    connect: float


@dataclass
class Used:
    """CPU seconds and the world's, while there was a run and while there was none.

    Attributes:
        runs: how often there came to be one; several at once count as one.
    """

    meter: Meter
    cpu: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})
    seconds: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})
    runs: int = 0

    def __post_init__(self) -> None:
        self._last = self.meter.cpu_seconds, time.monotonic()

    def changed(self, running: bool) -> None:
        """There is a run from now on, or none any more."""
        self.count(not running)
        self.runs += running

    def count(self, running: bool) -> None:
        """Until now there was one, or none."""
        now = self.meter.cpu_seconds, time.monotonic()
        self.cpu[running] += now[0] - self._last[0]
        self.seconds[running] += now[1] - self._last[1]
        self._last = now


@dataclass
class S3Use:
    """What S3 was asked in the day; nothing where its server has no log."""

    asked: list[Request]

    @property
    def counted(self) -> dict[str, int]:
        return dict(Counter(one.operation for one in self.asked).most_common())

    def per_gb(self, size: int) -> float | None:
        return round(len(self.asked) / size * 1e9, 1) if self.asked else None


def main() -> None:
    """Measures, and prints one JSON line."""
    options = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # what was started ends, and leaves nothing
    with tempfile.TemporaryDirectory(prefix="s3lake-day-") as scratch:
        print(json.dumps(_day(options, Path(scratch))), flush=True)


def _day(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    base = math.ceil(time.time() / 3600) * 3600
    clock = SharedClock.create(home / "clock", base)
    begin = base + _LEAD_HOURS * 3600
    first = hours.key_of_ms(begin * 1000)
    wanted = list(hours.span(first, hours.shift(first, options.hours - 1)))
    topics = [f"t{number:03d}" for number in range(options.topics)]
    with production(
        home,
        topics,
        options.partitions,
        {"start": first, **_sink(options)},
        connect=options.master == "connect",
        clock=home / "clock",
    ) as made:
        zero = _zero(made, clock, options.speed, options.zero)
        made.stop(DAEMON, CODE)
        made.sensors(on=True)
        made.start(CODE, DAEMON)
        clock.set_forward(begin - 2)
        traffic = Traffic(made.kafka.bootstrap_servers, topics, options.partitions, options.records, clock.time)
        pacer = Pacer(clock, home, options.speed, lambda: traffic.behind_s)
        with Meter(*_pids(made).values()) as meter, dg.DagsterInstance.from_config(str(home)) as instance:
            began_s, used = time.time(), Used(meter)
            pacer.changed = used.changed
            traffic.start(begin, options.hours * options.records)
            pacer.start()
            sealed = _await_sealed(instance, made, pacer, wanted)
            pacer.stop()
            used.count(pacer.running)
            ended_s = time.time()
        traffic.stop()
        made.stop()
        _verify(made, wanted)
        return {
            **_told(options),
            **_cost(options, used, zero, pacer),
            **_seen(made, pacer, traffic, wanted, sealed, _s3_use(made, began_s, ended_s)),
            "peak_rss_bytes": meter.peak_rss,
            "real_s": round(ended_s - began_s),
        }


def _zero(made: Production, clock: SharedClock, speed: float, seconds: float) -> Zero:
    """Dagster with nothing to do, and the Connect server with nobody who asks."""
    made.sensors(on=False)
    made.start()
    time.sleep(_SETTLE_S)
    pids = _pids(made)
    rates: dict[str, list[float]] = {name: [] for name in pids}
    with Meter(*pids.values()) as meter:
        for pace in (1.0, speed):
            clock.run(pace)
            before = {name: meter.cpu_seconds_of(pid) for name, pid in pids.items()}
            time.sleep(seconds)
            for name, pid in pids.items():
                rates[name].append((meter.cpu_seconds_of(pid) - before[name]) / seconds)
    clock.run(1.0)
    slow, fast = (rates[CODE][at] + rates[DAEMON][at] for at in range(2))
    connect = sum(rates[CONNECT]) / 2 if CONNECT in rates else 0.0
    _say(f"with nothing to do: Dagster {slow * 3600:.0f} CPU s an hour, Connect server {connect * 3600:.0f}")
    return Zero(slow, fast, connect)


def _await_sealed(
    instance: dg.DagsterInstance, made: Production, pacer: Pacer, wanted: list[str]
) -> dict[tuple[str, str], float]:
    """Every hour of every topic."""
    end = hours.end_ms(wanted[-1]) / 1000
    told = 0.0
    while True:
        time.sleep(1)
        now = pacer.clock.time()
        if now // 600 != told:
            told = now // 600
            _say(f"{hours.key_of_ms(int(now * 1000))}:{int(now % 3600 // 60):02d}")
        for service in made.services.values():
            if not service.running:
                raise SystemExit(f"{service.name} ended:\n{service.said[-4000:]}")
        if now < end or pacer.running:
            continue
        found = landed.sealed(instance, made.config.sink(SINK), wanted)
        if len(found) == len(made.topics) * len(wanted):
            return found
        if now > end + _PATIENCE_H * 3600:
            missing = sorted({(t, h) for t in made.topics for h in wanted} - set(found))
            raise SystemExit(f"not sealed {_PATIENCE_H:g} h after the last hour: {missing[:10]}, {len(missing)} in all")


def _verify(made: Production, wanted: list[str]) -> None:
    """Every record in one file, or no figures."""
    done = made.verify("--to", wanted[-1])
    if done.returncode:
        raise SystemExit(f"no figures, because not every record is in one file:\n{(done.stdout + done.stderr)[-4000:]}")
    _say(f"verify: {done.stdout.splitlines()[-1]}")


def _cost(options: argparse.Namespace, used: Used, zero: Zero, pacer: Pacer) -> dict[str, Any]:
    """CPU seconds beyond those of an idle Dagster, for each hour of records."""
    spans = [
        (after.monotonic - pace.monotonic, pace.speed)
        for pace, after in zip(pacer.paces, pacer.paces[1:], strict=False)
    ]
    fast = sum(real for real, speed in spans if speed > 1)
    waited = sum(used.seconds.values()) - fast - used.seconds[True]
    # What the Connect server would have used in the seconds that were left out.
    skipped = zero.connect * sum(real * (speed - 1) for real, speed in spans)
    runs = used.cpu[True] - zero.slow * used.seconds[True]
    between = used.cpu[False] - zero.slow * waited - zero.fast * fast + skipped
    cpu = runs + between
    return {
        "cpu_s_per_hour": round(cpu / options.hours, 2),
        "cpu_s_per_topic_hour": round(cpu / options.hours / options.topics, 3),
        "cpu_s_per_million_records": round(cpu / (options.topics * options.hours * options.records) * 1e6, 2),
        "runs": used.runs,
        "cpu_s_per_run": round(runs / max(1, used.runs), 2),
        "between_runs_cpu_s_per_hour": round(between / options.hours, 2),
        "dagster_idle_cpu_s_per_hour": round(zero.slow * 3600),
        "connect_idle_cpu_s_per_hour": round(zero.connect * 3600, 1),
    }


def _seen(
    made: Production,
    pacer: Pacer,
    traffic: Traffic,
    wanted: list[str],
    sealed: Mapping[tuple[str, str], float],
    s3: S3Use,
) -> dict[str, Any]:
    """How soon, in the clock's seconds, and in what files."""
    indexes = landed.indexes(made)
    visible = {key: pacer.shown(at) for key, at in landed.visible(s3.asked).items()}
    fresh = landed.freshness(indexes, wanted, traffic, visible)
    late = [at - hours.end_ms(hour) / 1000 for (_, hour), at in sealed.items()]
    sizes = landed.file_sizes(indexes, wanted)
    p50, p95 = np.percentile(fresh, [50, 95])
    return {
        "freshness_p50_s": round(float(p50), 1),
        "freshness_p95_s": round(float(p95), 1),
        "sealed_after_p95_s": round(float(np.percentile(late, 95)), 1),
        "requests_per_gb": s3.per_gb(traffic.bytes),
        "requests": s3.counted,
        "record_bytes": traffic.bytes,
        "files": len(sizes),
        "median_file_bytes": round(float(np.median(sizes))),
    }


def _s3_use(made: Production, since: float, until: float) -> S3Use:
    """Requests of the day alone; the log has whole seconds."""
    asked = requests(made.requests) if made.requests.exists() else []
    return S3Use([one for one in asked if int(since) <= one.at <= until])


def _sink(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of the sink; the rest are s3lake's own defaults."""
    sink: dict[str, Any] = {"format": {"type": options.format}}
    if options.flush_interval:
        sink["flush"] = {"interval": options.flush_interval}
    if options.close_grace:
        sink["close_grace"] = options.close_grace
    return sink


def _told(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if value is not None}


def _pids(made: Production) -> dict[str, int]:
    return {name: service.pid for name, service in made.services.items()}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--hours", type=int, default=6, help="(default: %(default)s)")
    parser.add_argument("--records", type=int, default=100_000, help="of a topic in an hour (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of a topic (default: %(default)s)")
    parser.add_argument("--master", choices=("connect", "local"), default="connect", help="(default: %(default)s)")
    parser.add_argument("--format", choices=("json", "parquet"), default="json", help="(default: %(default)s)")
    parser.add_argument("--flush-interval", metavar="30s", help="the sink's flush.interval, or s3lake's own default")
    parser.add_argument("--close-grace", metavar="1m", help="the sink's close_grace, or s3lake's own default")
    parser.add_argument(
        "--speed", type=float, default=60.0, help="of the clock while nothing is under way (default: %(default)s)"
    )
    parser.add_argument(
        "--zero", type=float, default=60.0, metavar="S", help="how long Dagster is watched with sensors off, twice"
    )
    options = parser.parse_args()
    if options.speed * options.zero > (_LEAD_HOURS - 1) * 3600:
        parser.error(
            f"--speed {options.speed:g} --zero {options.zero:g}: their product is at most {(_LEAD_HOURS - 1) * 3600}"
        )
    return options
