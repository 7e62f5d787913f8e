"""One tick of a sensor: reads the index of the topics of which something can be due, and remembers when that is."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg

from s3lake import hours
from s3lake.errors import S3LakeError
from s3lake.index.plan import due
from s3lake.land.topic.missing_topic import refuse_absent
from s3lake.orchestration.catalog import Catalog, Route
from s3lake.orchestration.due_hours import TopicView, closing_soon_ms, hours_due, max_wait_ms, mean_size, read_due_tiles
from s3lake.orchestration.runs import SinkRuns
from s3lake.orchestration.sealed_hours import unannounced_hours
from s3lake.orchestration.sensor_memory import UNLIMITED, Memory, RouteMemory

if TYPE_CHECKING:
    from s3lake.land.topic.topic_sink import TopicSink

TICK_S = 20  # Dagster gives a tick 60 seconds, and a sink that cannot be reached takes up to 20
LOOKS_PER_TICK = 250
ROUND_TICKS = 120
"""Within this number of ticks the index of every topic is read."""
_AT_ONCE = 8
_WAIT_MS = 60_000
_START_MS = 10_000
"""How long after its request a run asks Kafka for the ends: what comes later waits from then on."""


@dataclass(frozen=True)
class RouteState:
    """The state of a topic of a sink in a tick.

    Attributes:
        why: the reason to land it now; else what waits, and what it waits for.
        span: the first and the last hour to land; None if nothing is due, or has to wait.
        is_due: False if it is only landed together with topics that are.
        word: the reason as the tag of the run has it.
        alone: True if it has to be landed in a run of its own.
        by_memory: True if the index was not read.
        in_turn: True if it was not due by the memory.
        must_wait: True if it is due and waits for a run that has not ended, or after one that failed.
        lag: offsets that wait in the tiles that were read; None if there are none.
        sealed: hours that no run announces.
    """

    route: Route
    why: str = ""
    span: tuple[str, str] | None = None
    is_due: bool = False
    word: str = ""
    alone: bool = False
    in_turn: bool = False
    must_wait: bool = False
    lag: int | None = None
    sealed: Sequence[dg.AssetMaterialization] = ()
    error: S3LakeError | None = None
    by_memory: bool = False


@dataclass(frozen=True)
class Tick:
    """One evaluation of a sensor.

    Attributes:
        ends: end offsets by topic and topic-partition.
        together: True if one run lands all that is due.
        runs: the runs of each sink, by its name.
        open: opens the index of a topic, and cannot land.
    """

    instance: dg.DagsterInstance
    catalog: Catalog
    routes: Sequence[Route]
    ends: Mapping[str, Mapping[int, int]]
    memory: Memory
    now_ms: int
    together: bool
    runs: Mapping[str, SinkRuns]
    open: "Callable[[Route], TopicSink]"
    began_s: float = field(default_factory=time.monotonic)

    def recall(self, route: Route) -> RouteMemory:
        """Return the memory of a route, which the tick changes."""
        return self.memory.routes.setdefault(f"{route.sink.name}/{route.topic}", RouteMemory())

    def look_at_routes(self) -> list[RouteState]:
        """Read the index of topics of which something can be due. Then also of topics that come along."""
        idle: list[Route] = []
        ready: list[Route] = []
        for route in self.routes:
            if self.ends.get(route.topic):
                (ready if self._may_be_due(route) else idle).append(route)
        if self.together and any(self.runs[route.sink.name].is_waiting for route in ready[:1]):
            return []
        states = []
        for route in ready[:]:
            if self._has_landed_expected(route):
                ready.remove(route)
                idle.append(route)
            elif quiet := self._recall_quiet_hour(route):
                ready.remove(route)
                states.append(quiet)
            elif wait := self.runs[route.sink.name].run_of(route.topic):
                ready.remove(route)
                self.recall(route).landed = -1  # what the run lands decides
                states.append(RouteState(route, wait, must_wait=True))
        first = sorted(ready, key=self._urgency)[:LOOKS_PER_TICK]
        turns = sorted(idle, key=lambda route: self.recall(route).looked_ms)[: 1 + len(self.routes) // ROUND_TICKS]
        states += self._look_at(first, self._look)
        states += self._look_at(turns, partial(self._look, in_turn=True))
        if not any(state.is_due for state in states):
            return [replace(state, span=None, why="") if state.span else state for state in states]
        along = [route for route in idle if route not in turns and self._may_come_along(route)]
        return states + self._look_at(along[: LOOKS_PER_TICK - len(first)], self._look)

    def look_at_absent(self, routes: Collection[Route]) -> list[S3LakeError]:
        """Return why topics without ends in Kafka cannot be landed: of some of them in turn, each costs a request."""

        def look(route: Route) -> RouteState:
            target = self.open(route)
            refuse_absent(route.sink, target.index, target.offsets)
            return RouteState(route)

        turns = sorted(routes, key=lambda route: (self.recall(route).looked_ms, route.topic))
        return [state.error for state in self._look_at(turns[:_AT_ONCE], look) if state.error is not None]

    def remember_request(self, state: RouteState) -> None:
        """Remember a requested run: once it has ended the index is read, unless the memory expects its result."""
        memory = self.recall(state.route)
        memory.expected = state.span if state.by_memory else None
        memory.quiet_end = sum(self.ends[state.route.topic].values())
        memory.landed, memory.requested_ms = -1, self.now_ms

    def waiting(self, route: Route) -> int:
        """Return how many offsets wait, by the memory; 0 if that is not known."""
        memory = self.recall(route)
        return 0 if memory.landed < 0 else sum(self.ends[route.topic].values()) - memory.landed

    def due_ms(self, route: Route) -> int:
        """Return when what waits is due at the latest, by the memory."""
        return self.recall(route).waiting_since_ms + max_wait_ms(route.sink)

    def _may_be_due(self, route: Route) -> bool:
        """Return whether the index has to be read, by the memory."""
        memory, waiting = self.recall(route), self.waiting(route)
        if memory.landed < 0 or waiting < 0 or self.now_ms >= memory.look_at_ms:
            return True
        if not waiting:
            memory.waiting_since_ms = 0
            return False
        memory.waiting_since_ms = memory.waiting_since_ms or self.memory.ticked_ms or self.now_ms
        closing_soon = self.now_ms >= memory.look_at_ms - closing_soon_ms(route.sink)
        return not closing_soon and (waiting >= memory.due_offsets or self.now_ms >= self.due_ms(route))

    def _recall_quiet_hour(self, route: Route) -> RouteState | None:
        """Return that an hour without a record is over, if the memory shows it. The run reads the index."""
        memory, sink, runs = self.recall(route), route.sink, self.runs[route.sink.name]
        if not self.together or sink.table is not None or not memory.open_hour or memory.landed < 0:
            return None
        policy = due.Policy(sink.start, int(sink.close_grace * 1000), sink.flush.count, sink.flush.size)
        over = due.list_unopened_hours(memory.open_hour, policy, self.now_ms, sink.hours_per_run)
        chosen = self.catalog.within(sink, route.topic, set(over))
        if self.waiting(route) or not chosen or runs.run_of(route.topic) or runs.failures(route.topic, 0):
            return None
        span, reason = due.split_into_runs(chosen, sink.hours_per_run)[0], due.HOUR_OVER
        return RouteState(route, reason.sentence, span, is_due=True, word=reason.word, by_memory=True)

    def _has_landed_expected(self, route: Route) -> bool:
        """Return whether the run of a quiet hour has succeeded, and remember what it has landed."""
        memory, sink, runs = self.recall(route), route.sink, self.runs[route.sink.name]
        if memory.expected is None or runs.run_of(route.topic):
            return False
        (first, last), memory.expected = memory.expected, None
        if not runs.has_landed(route.topic, first, last):
            return False
        memory.complete = hours.merge_ranges([*memory.complete, (first, hours.shift(last, -1))])
        memory.open_hour, memory.landed = last, memory.quiet_end
        memory.look_at_ms = hours.end_ms(last) + int(sink.close_grace * 1000)
        memory.requested_ms = memory.waiting_since_ms = 0
        return True

    def _may_come_along(self, route: Route) -> bool:
        """Return whether it is due before long: topics that are landed together are due together from then on."""
        early_ms = max_wait_ms(route.sink) // 2
        return self.together and self.waiting(route) > 0 and self.now_ms >= self.due_ms(route) - early_ms

    def _urgency(self, route: Route) -> tuple[int, int]:
        memory = self.recall(route)
        due_ms = memory.looked_ms if memory.landed < 0 else min(memory.look_at_ms, self.due_ms(route))
        return due_ms, memory.looked_ms

    def _look_at(self, routes: Sequence[Route], look: Callable[[Route], RouteState]) -> list[RouteState]:
        def look_in_time(route: Route) -> RouteState | None:
            if time.monotonic() - self.began_s > TICK_S:
                return None  # the next tick
            try:
                return look(route)
            except S3LakeError as error:  # the others are looked at all the same
                self.recall(route).looked_ms = self.now_ms
                return RouteState(route, error=error)

        if len(routes) < 2:
            return [state for state in map(look_in_time, routes) if state is not None]
        with ThreadPoolExecutor(_AT_ONCE, "s3lake-look") as pool:
            return [state for state in pool.map(look_in_time, routes) if state is not None]

    def _look(self, route: Route, *, in_turn: bool = False) -> RouteState:
        sink, memory, runs = route.sink, self.recall(route), self.runs[route.sink.name]
        target = self.open(route)
        head, etag = target.index.head() or (None, "")
        whole = in_turn or not self.together
        tiles = read_due_tiles(target, head, memory, again=whole) if head else []
        view = TopicView(target, head, etag, tiles, self.ends[route.topic], memory, self.now_ms)
        if memory.requested_ms and view.sums.landed_ms >= memory.requested_ms:
            memory.waiting_since_ms, memory.requested_ms = memory.requested_ms + _START_MS, 0
        hours_found = hours_due(self.catalog, view)
        chosen = set(hours_found.hours)
        self._remember(route, view)
        if not chosen and view.open_tile is not None and self._may_come_along(route):
            chosen = self.catalog.within(sink, route.topic, {view.open_tile.hour})
        state = RouteState(
            route,
            hours_found.waiting,
            in_turn=in_turn,
            lag=hours_found.lag,
            sealed=self._seal(view, always=whole),
        )
        if not chosen:
            return state
        run, failures = runs.run_of(route.topic), runs.failures(route.topic, view.sums.landed_ms)
        wait = run or runs.reason_to_wait(failures)
        if wait:
            memory.landed, memory.due_offsets = -1 if run else sum(view.ends.values()), UNLIMITED
            memory.look_at_ms = self.now_ms + _WAIT_MS
            return replace(state, why=wait, must_wait=True)
        reason, has_asset = hours_found.why or due.TOGETHER, route.topic in self.catalog.topics[sink.name]
        return replace(
            state,
            why=reason.sentence,
            span=due.split_into_runs(chosen, sink.hours_per_run)[0],
            is_due=bool(hours_found.hours),
            word=reason.word,
            alone=not self.together or (has_asset and runs.is_to_land_alone(failures)),
        )

    def _remember(self, route: Route, view: TopicView) -> None:
        """Remember when something can be due."""
        memory, sink, tile = view.memory, route.sink, view.open_tile
        memory.looked_ms, memory.open_hour = self.now_ms, ""
        if tile is None:
            start_ms = hours.start_ms(sink.start)
            memory.landed = sum(view.ends.values())
            memory.look_at_ms = start_ms if start_ms > self.now_ms else self.now_ms + _WAIT_MS
            return
        behind = due.count_backlog(tile, view.ends)
        memory.landed = sum(view.ends.values()) - sum(behind.values())
        memory.look_at_ms = hours.end_ms(tile.hour) + int(sink.close_grace * 1000)
        size = mean_size(tile.sums)
        least = [sink.flush.size / size if size else UNLIMITED, sink.flush.count or UNLIMITED]
        memory.due_offsets = min(UNLIMITED, int(min(least) * max(1, len(behind))))
        incomplete = hours.without(view.head.hours, memory.complete) if view.head is not None else []
        is_quiet = not behind and not tile.commits and tile.pending is None
        memory.open_hour = tile.hour if is_quiet and incomplete == [(tile.hour, tile.hour)] else ""
        if not behind:
            memory.waiting_since_ms = 0
        elif not memory.waiting_since_ms or (self.together and self.now_ms >= hours.end_ms(tile.hour)):
            memory.waiting_since_ms = self.now_ms  # in a group, records of the next hour wait for its tile

    def _seal(self, view: TopicView, *, always: bool) -> Sequence[dg.AssetMaterialization]:
        """Announce hours that are complete and not announced, `always` or if one is new; Dagster is asked for each."""
        memory, target = view.memory, view.target
        if view.head is None or not (always or hours.without(memory.complete, memory.announced)):
            return ()
        runs = self.runs[target.sink.name]
        return unannounced_hours(self.instance, self.catalog, view, lambda: runs.run_of(target.topic) is not None)
