"""The metrics of every sink and topic, as a collector of Prometheus's client, which the extra `metrics` installs."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from prometheus_client import Metric
from prometheus_client.registry import Collector

from s3lake import hours
from s3lake.errors import S3LakeError, TransientError
from s3lake.index.plan.counts import list_counts
from s3lake.index.plan.sealed import compute_wait_quantile_s
from s3lake.index.plan.tile import Tile
from s3lake.lake.metrics import LandedTopic, Looks, Measured

_log = logging.getLogger(__name__)
_AT_ONCE = 16
FRESH_S = 5.0
ROUTES_FRESH_S = 60.0
DEADLINE_S = 9.0
"""Of a scrape: Prometheus waits for 10 seconds by default."""

_ROUTE = ("sink", "topic")
_HOUR = (*_ROUTE, "hour")

METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "up": ("Whether Kafka or S3 (part) answered: 1, or 0", (*_ROUTE, "part")),
    "lag_records": ("Offsets that Kafka has beyond what is landed, markers included", _ROUTE),
    "lag_seconds": ("Age of the oldest record that is not landed, at least, by its timestamp; 0: none waits", _ROUTE),
    "last_complete_hour_timestamp_seconds": ("Start of the newest hour that is complete, since the epoch", _ROUTE),
    "last_sealed_hour_timestamp_seconds": (
        "Start of the last hour up to which all are sealed, as Dagster noted it, since the epoch",
        _ROUTE,
    ),
    "hours_incomplete": (
        "Hours that are over, their grace as well, and not complete: of the newest three, or after them",
        _ROUTE,
    ),
    "hours_unsealed": ("Hours that are over, their grace as well, and after the last sealed hour", _ROUTE),
    "last_commit_timestamp_seconds": ("When the last commit was made, since the epoch", _ROUTE),
    "last_commit_seconds": ("How long it took, from its plan to the tile that lists it", _ROUTE),
    "hour_rows": ("Records landed in the newest hour, or the newest complete one", _HOUR),
    "hour_bytes": ("Bytes of all its objects, as stored", _HOUR),
    "hour_files": ("Its data files", _HOUR),
    "hour_dead_letters": ("Records refused in it", _HOUR),
    "hour_expired": ("Offsets of it that Kafka expired before they were landed", _HOUR),
    "hour_late": ("Records of it that are stamped before it", _HOUR),
    "hour_records": ("Records of it by what is counted; of counts by field, the sum", (*_HOUR, "count")),
    "hour_freshness_seconds": ("From record timestamp to commit in it, at most", (*_HOUR, "quantile")),
    "topics": ("Topics that the sink lands", ("sink",)),
    "scrape_seconds": ("How long the last look at all of it took", ()),
    "errors_total": ("Looks in which Kafka or S3 (part) failed", (*_ROUTE, "part")),
    "requests_total": ("Requests to S3 by this process", ("operation",)),
}
"""Help and labels of every metric, without `s3lake_`; names that end in `_total` are counters, the others gauges."""


class Scrape(Collector):
    """The collector for a registry of `prometheus_client`.

    Scrapes within `FRESH_S` get the same answer. Topics are looked up again every minute.

    Args:
        find_targets: returns every sink and topic.
        deadline_s: what has not answered by then is down; its answer counts in a later scrape.
        clock: seconds that only increase.
    """

    def __init__(
        self,
        find_targets: Callable[[], Iterable[LandedTopic]],
        deadline_s: float = DEADLINE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find, self._deadline_s, self._clock = find_targets, deadline_s, clock
        self._pool = ThreadPoolExecutor(_AT_ONCE, "s3lake-metrics")
        self._lock = Lock()
        self._targets: dict[tuple[str, str], LandedTopic] = {}  # kept, because they count their requests
        self._running: dict[tuple[str, str], Future[Measured]] = {}
        self._found_s = self._looked_s = float("-inf")
        self._errors: Counter[tuple[str, str, str]] = Counter()
        self._answer: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without values: registering the collector asks nothing."""
        return _Samples().metrics.values()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        with self._lock:
            if self._clock() - self._looked_s >= FRESH_S:
                self._answer = self._look()
                self._looked_s = self._clock()
            answer = self._answer
        yield from answer

    def _look(self) -> list[Metric]:
        began = self._clock()
        self._find_topics()
        samples, looks = _Samples(), Looks()
        running = {
            name: self._running.get(name) or self._pool.submit(looks.measure, target)
            for name, target in self._targets.items()
        }
        wait(running.values(), self._deadline_s)
        self._running = {name: look for name, look in running.items() if not look.done()}
        late = TransientError(f"no answer within {self._deadline_s:g} s")
        for name, look in running.items():
            measured = Measured(None, None, {"s3": late}) if name in self._running else look.result()
            self._add(samples, name, measured)
        for sink, topics in Counter(sink for sink, _ in self._targets).items():
            samples.add("topics", topics, sink)
        requests: Counter[str] = sum((target.requests for target in self._targets.values()), Counter())
        for operation, count in sorted(requests.items()):
            samples.add("requests_total", count, operation)
        samples.add("scrape_seconds", self._clock() - began)
        return list(samples.metrics.values())

    def _find_topics(self) -> None:
        if self._clock() - self._found_s < ROUTES_FRESH_S:
            return
        try:
            present = {(target.sink.name, target.topic): target for target in self._find()}
        except S3LakeError as error:
            if not self._targets:
                raise
            _log.warning("topics: %s", error)
        else:
            self._targets = {name: self._targets.get(name, target) for name, target in sorted(present.items())}
        self._found_s = self._clock()

    def _add(self, samples: _Samples, name: tuple[str, str], measured: Measured) -> None:
        for part in ("kafka", "s3"):
            failed = part in measured.errors
            self._errors[(*name, part)] += failed
            samples.add("up", not failed, *name, part)
            samples.add("errors_total", self._errors[(*name, part)], *name, part)
        if measured.waiting is not None:
            samples.add("lag_records", measured.waiting.records, *name)
            samples.add("lag_seconds", measured.waiting.seconds, *name)
        progress = measured.progress
        if progress is None:
            return
        samples.add("hours_incomplete", progress.incomplete, *name)
        samples.add("hours_unsealed", progress.unsealed, *name)
        if progress.last_commit is not None:
            samples.add("last_commit_timestamp_seconds", progress.last_commit[0] / 1000, *name)
            samples.add("last_commit_seconds", progress.last_commit[1] / 1000, *name)
        if progress.complete is not None:
            samples.add("last_complete_hour_timestamp_seconds", hours.start_ms(progress.complete.hour) / 1000, *name)
        if progress.sealed is not None:
            samples.add("last_sealed_hour_timestamp_seconds", hours.start_ms(progress.sealed) / 1000, *name)
        for which, tile in (("newest", progress.newest), ("complete", progress.complete)):
            if tile is not None:
                samples.add_hour(tile, *name, which)


class _Samples:
    """Values by metric."""

    def __init__(self) -> None:
        self.metrics = {
            name: Metric(
                f"s3lake_{name.removesuffix('_total')}", text, "counter" if name.endswith("_total") else "gauge"
            )
            for name, (text, _) in METRICS.items()
        }

    def add(self, name: str, value: float, *labels: str) -> None:
        named = dict(zip(METRICS[name][1], labels, strict=True))
        self.metrics[name].add_sample(f"s3lake_{name}", named, float(value))

    def add_hour(self, tile: Tile, *labels: str) -> None:
        self.add("hour_expired", sum(end - first for _, first, end in tile.expired), *labels)
        sums = tile.sums
        self.add("hour_rows", sums.landed, *labels)
        self.add("hour_bytes", sums.bytes, *labels)
        self.add("hour_files", sums.files, *labels)
        self.add("hour_dead_letters", sums.dead, *labels)
        self.add("hour_late", sums.late, *labels)
        for definition, count in list_counts(sums):
            self.add("hour_records", count, *labels, definition.name)
        for share in (0.5, 0.95, 1.0):
            seconds = compute_wait_quantile_s(sums.waits, share)
            if seconds is not None:
                self.add("hour_freshness_seconds", seconds, *labels, f"{share:g}")
