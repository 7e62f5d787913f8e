"""One scrape: all routes looked at side by side, within seconds, whatever does not answer."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec
from prometheus_client import Metric
from prometheus_client.registry import Collector

from s3lake import hours
from s3lake.errors import S3LakeError, TransientError
from s3lake.land.metrics.families import FAMILIES
from s3lake.land.metrics.route import Measured, Progress, Route
from s3lake.plan.freshness import quantile_s
from s3lake.plan.tile import Sums, Tile

if TYPE_CHECKING:
    from s3lake.land.landing import Landing

A = TypeVar("A")
_log = logging.getLogger(__name__)
_AT_ONCE = 16
FRESH_S = 5.0
ROUTES_FRESH_S = 60.0
DEADLINE_S = 9.0
"""Of a scrape: Prometheus waits for 10 seconds unless it is told otherwise."""


class Scrape(Collector):
    """What a registry of `prometheus_client` collects.

    Scrapes within `FRESH_S` get the same answer, and one that is under way is waited for. Which topics there are is
    asked again every minute.

    Args:
        routes: every sink and topic.
        tiles: of each topic, how many tiles are read at most each time.
        deadline_s: what is not known by then is down; it is looked at to its end all the same, for a later scrape.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        routes: Callable[[], Iterable[Landing]],
        tiles: int = 3,
        deadline_s: float = DEADLINE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find, self._tiles, self._deadline_s, self._clock = routes, tiles, deadline_s, clock
        self._pool = ThreadPoolExecutor(_AT_ONCE, "s3lake-metrics")
        self._under_way: dict[tuple[str, str], Future[Measured]] = {}
        self._lock = threading.Lock()
        self._routes: dict[tuple[str, str], Route] = {}
        self._routes_s = self._looked_s = float("-inf")
        self._errors: Counter[tuple[str, str, str]] = Counter()
        self._answer: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked to register the collector."""
        return [Metric(family.name, family.help, family.type) for family in FAMILIES.values()]

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        with self._lock:
            if self._clock() - self._looked_s >= FRESH_S:
                self._answer = list(self._look())
                self._looked_s = self._clock()
            answer = self._answer
        yield from answer

    def _look(self) -> Iterator[Metric]:
        began = self._clock()
        self._renew()
        routes = list(self._routes.values())
        samples = _Samples()
        for route, measured in zip(routes, self._measured(self._routes), strict=True):
            self._add(samples, route, measured)
        for sink, topics in Counter(sink for sink, _ in self._routes).items():
            samples.add("topics", topics, sink)
        requests: Counter[str] = sum((route.landing.requests for route in routes), Counter())
        for operation, count in sorted(requests.items()):
            samples.add("requests_total", count, operation)
        samples.add("scrape_seconds", self._clock() - began)
        return samples.families()

    def _measured(self, routes: Mapping[tuple[str, str], Route]) -> list[Measured]:
        looks = Looks()
        before, self._under_way = self._under_way, {}
        running = [before.get(name) or self._pool.submit(looks.measure, route) for name, route in routes.items()]
        wait(running, self._deadline_s)
        found = []
        for (name, route), look in zip(routes.items(), running, strict=True):
            if look.done():
                found.append(look.result())
            else:
                self._under_way[name] = look
                late = TransientError(f"no answer within {self._deadline_s:g} s")
                found.append(Measured(None, None, {route.asking: late}))
        return found

    def _renew(self) -> None:
        """The routes as they are now, with what was seen of those that are known."""
        if self._clock() - self._routes_s < ROUTES_FRESH_S:
            return
        try:
            found = list(self._find())
        except S3LakeError as error:
            if not self._routes:
                raise
            _log.warning("topics: %s", error)
        else:
            named = {(one.sink.name, one.topic): one for one in found}
            self._routes = {
                name: self._routes.get(name) or Route(landing, self._tiles) for name, landing in sorted(named.items())
            }
        self._routes_s = self._clock()

    def _add(self, samples: _Samples, route: Route, measured: Measured) -> None:
        name = (route.landing.sink.name, route.landing.topic)
        for part in ("kafka", "s3"):
            failed = part in measured.errors
            self._errors[(*name, part)] += failed
            samples.add("up", not failed, *name, part)
            samples.add("errors_total", self._errors[(*name, part)], *name, part)
        if measured.waiting is not None:
            samples.add("lag_records", measured.waiting.records, *name)
            samples.add("lag_seconds", measured.waiting.seconds, *name)
        if measured.progress is None:
            return
        samples.add("hours_incomplete", measured.progress.incomplete, *name)
        samples.add("hours_unread", measured.progress.unread, *name)
        if measured.last_commit_ms is not None:
            samples.add("last_commit_timestamp_seconds", measured.last_commit_ms / 1000, *name)
        if measured.progress.complete is not None:
            started = hours.start_ms(measured.progress.complete.hour) / 1000
            samples.add("last_complete_hour_timestamp_seconds", started, *name)
        if measured.progress.sealed is not None:
            samples.add("last_sealed_hour_timestamp_seconds", hours.start_ms(measured.progress.sealed) / 1000, *name)
        if measured.last_commit_s is not None:
            samples.add("last_commit_seconds", measured.last_commit_s, *name)
        for which, tile in (("newest", measured.progress.newest), ("complete", measured.progress.complete)):
            samples.hour(tile, *name, which)


class _Samples:
    """Values by metric."""

    def __init__(self) -> None:
        self._families = {
            name: Metric(name.removesuffix("_total"), family.help, family.type) for name, family in FAMILIES.items()
        }

    def add(self, name: str, value: float, *labels: str) -> None:
        name = f"s3lake_{name}"
        named = dict(zip(FAMILIES[name].labels, labels, strict=True))
        self._families[name].add_sample(name, named, float(value))

    def hour(self, tile: Tile | None, *labels: str) -> None:
        if tile is None:
            return
        self.add("hour_expired", sum(end - first for _, first, end in tile.expired), *labels)
        if tile.sums is msgspec.UNSET and tile.commits:
            return  # of an earlier s3lake: what it holds stands in its manifests
        sums = Sums() if tile.sums is msgspec.UNSET else tile.sums
        self.add("hour_rows", sums.landed, *labels)
        self.add("hour_bytes", sums.bytes, *labels)
        self.add("hour_files", sums.files, *labels)
        self.add("hour_dead_letters", sums.dead, *labels)
        self.add("hour_late", sums.late, *labels)
        for share in (0.5, 0.95, 1.0):
            seconds = quantile_s(sums.waits, share)
            if seconds is not None:
                self.add("hour_freshness_seconds", seconds, *labels, f"{share:g}")

    def families(self) -> Iterator[Metric]:
        return (family for family in self._families.values())


class Looks:
    """Looks at routes. A part that has not answered is not asked again for each topic, which would take minutes."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], S3LakeError] = {}

    def measure(self, route: Route) -> Measured:
        """Look at a route; `errors` of the result has what did not answer."""
        errors: dict[str, S3LakeError] = {}
        route.asking = "s3"
        progress = self._asked("s3", route.landing.sink.bucket, route.progress, errors)
        route.asking = "kafka"
        # Whether Kafka is there is told where S3 is not, all the same.
        waiting = self._asked("kafka", "", partial(route.waiting, progress or Progress()), errors)
        return Measured(progress, None if progress is None else waiting, errors)

    def _asked(self, part: str, where: str, question: Callable[[], A], errors: dict[str, S3LakeError]) -> A | None:
        counted = self._parts.get((part, where))
        if counted is not None:
            errors[part] = counted
            return None
        try:
            return question()
        except S3LakeError as error:
            if isinstance(error, TransientError):
                self._parts[part, where] = error
            _log.warning("%s: %s", part, error)
            errors[part] = error
            return None
