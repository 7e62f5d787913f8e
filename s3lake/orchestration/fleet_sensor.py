"""The sensor of a fleet: one for all topics of a sink.

It asks Kafka once for all end offsets, looks at the index of those topics only of which something can be due, and asks
for one run. What it remembers of a topic says when that can be, and is advice: the index is the truth. A lost cursor
costs slow ticks, `LOOKS_PER_TICK` topics each.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import dagster as dg

from s3lake import hours
from s3lake.commit.sealing import Sealing
from s3lake.errors import S3LakeError, TransientError
from s3lake.land.missing import refuse_absent
from s3lake.orchestration import fleet_runs, names, runs, sensors
from s3lake.orchestration.catalogue import Catalogue
from s3lake.orchestration.connections import open_topic
from s3lake.orchestration.fleet_memory import NEVER, Memory, RunAsked, Topic, kept, remembered
from s3lake.orchestration.fleet_runs import FleetRuns, State
from s3lake.orchestration.sealed import left_behind
from s3lake.orchestration.sensors import INTERVAL_S, OBSERVE_EVERY_MS, TICK_S, Cursor, Seen, look, observation, wanted
from s3lake.plan import due
from s3lake.plan.tile import Tile
from s3lake.sink import Sink
from s3lake.source import opening
from s3lake.text import expressions

if TYPE_CHECKING:
    from s3lake.commit.index import TopicHead
    from s3lake.land.landing import Landing

MOST = 1_000
"""Topics of one run."""
LOOKS_PER_TICK = 250
OBSERVED_PER_TICK = 4
"""So a tick costs the same whatever there is; a hundred topics that grow are each observed every 13 minutes."""
ROUND_TICKS = 120
"""In so many ticks every topic is looked at, whatever is remembered of it."""
_AT_ONCE = 8
_HELD_MS = 60_000


def fleet_sensor(
    catalogue: Catalogue, sink: Sink, observed: Collection[str], status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    """Asks for what is due of all topics of `sink`, as one run.

    Args:
        catalogue: which topics have assets; with `topics_regex` others may match meanwhile.
        sink: the sink.
        observed: topics that another sensor observes.
        status: before anybody switches it in the UI.
    """
    assets = frozenset(catalogue.topics[sink.name])

    @dg.sensor(
        name=catalogue.name("sink", sink.name),
        required_resource_keys={catalogue.keys.s3},
        job_name=fleet_runs.job_name(catalogue, sink),  # of a job itself Dagster would make another one, with a warning
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description=f"Lands the topics of sink {sink.name}, many in one run.",
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        offsets = opening.opened(catalogue.config).offsets
        now, memory = hours.now_ms(), remembered(context.cursor)
        try:
            matching = assets if sink.topics_regex is None else assets | _matching(sink, offsets.topics())
            ends = offsets.ends(matching)
        except S3LakeError as error:
            raise dg.Failure(str(error)) from error
        for topic in sorted(matching - assets - memory.topics.keys()):
            context.log.warning(
                f"topic {topic} matches topics_regex of sink {sink.name} and is landed from now on; reload the code "
                "location to give it assets"
            )
        memory.topics = {topic: memory.topics.get(topic) or Topic() for topic in matching}
        standing = FleetRuns(context.instance, catalogue, sink, now)
        open_one = partial(open_topic, context.resources, catalogue, sink, fail_fast=True)
        tick = _Tick(catalogue, sink, ends, memory, standing, now, open_one)
        looks = [] if standing.waits else tick.looks(context.instance)
        for looked in looks:
            if looked.error is not None:
                context.log.error(f"topic {looked.topic}: {looked.error}")
        if looks and all(isinstance(looked.error, TransientError) for looked in looks):
            raise dg.Failure(str(looks[0].error)) from looks[0].error
        gone = [looked.error for looked in tick.absent(matching - ends.keys()) if looked.error is not None]
        for failure in gone:
            context.log.error(str(failure))
        asked = [looked for looked in looks if looked.span][:MOST]
        # A tick that fails keeps neither its cursor nor its events: only one that found nothing new may.
        if gone and not asked and all(looked.turn and not looked.sealed for looked in looks):
            raise dg.Failure(str(gone[0])) from gone[0]
        for why, count in Counter(looked.why for looked in asked).most_common():
            context.log.info(f"{count} topics: {why}")
        for looked in asked:
            tick.remember_run(looked)
        memory.ticked_ms = now
        observations = tick.observations(observed)  # which the cursor remembers
        return dg.SensorResult(
            run_requests=[_request(catalogue, sink, asked, now)] if asked else [],
            skip_reason=None if asked else "; ".join([tick.why(looks), *map(str, gone)]),
            cursor=kept(memory),
            asset_events=[*chain.from_iterable(looked.sealed for looked in looks), *observations],
        )

    return sense


@dataclass(frozen=True)
class _Looked:
    """What the index says of one topic.

    Attributes:
        span: first and last hour to land; None where nothing is due, or has to wait.
        due: whether somebody has to land that now; else it is landed with others that are due.
        word: why that is landed, as the tag of the run has it.
        turn: it was not due, and looked at in turn.
        state: what the request depends on.
        sealed: hours that nobody else announces.
    """

    topic: str
    why: str = ""
    span: tuple[str, str] | None = None
    due: bool = False
    word: str = ""
    turn: bool = False
    state: State | None = None
    sealed: Sequence[dg.AssetMaterialization] = ()
    error: S3LakeError | None = None


@dataclass(frozen=True)
class _Tick:
    """One evaluation of the sensor."""

    catalogue: Catalogue
    sink: Sink
    ends: Mapping[str, Mapping[int, int]]
    memory: Memory
    standing: FleetRuns
    now: int
    landing: "Callable[[str], Landing]"
    began_s: float = field(default_factory=time.monotonic)

    def looks(self, instance: dg.DagsterInstance) -> list[_Looked]:
        """Look at the topics of which something can be due, and when it is, at those that can come along."""
        idle: list[str] = []
        ready: list[str] = []
        for topic in self.ends:
            if self.standing.busy(topic):
                self.memory.topics[topic].landed = -1  # what the run lands decides
            else:
                (ready if self._may_be_due(topic) else idle).append(topic)
        first = sorted(ready, key=self._urgency)[:LOOKS_PER_TICK]
        turns = sorted(idle, key=lambda topic: self.memory.topics[topic].looked_ms)[: 1 + len(self.ends) // ROUND_TICKS]
        looks = self._look_at(first, partial(self._look, instance))
        looks += [replace(one, turn=True) for one in self._look_at(turns, partial(self._look, instance, turn=True))]
        if not any(looked.due for looked in looks):
            return [replace(looked, span=None, why="") if looked.span else looked for looked in looks]
        along = [topic for topic in idle if topic not in turns and self._may_come_along(topic)]
        return looks + self._look_at(along[: LOOKS_PER_TICK - len(first)], partial(self._look, instance))

    def absent(self, topics: Collection[str]) -> list[_Looked]:
        """Look at topics of which Kafka knows no ends: some in turn, for each is asked for until that is sure."""

        def look(topic: str) -> _Looked:
            lander = self.landing(topic)
            refuse_absent(self.sink, lander.index, lander.offsets)
            return _Looked(topic)

        turns = sorted(topics, key=lambda topic: (self.memory.topics[topic].looked_ms, topic))
        return self._look_at(turns[:_AT_ONCE], look)

    def why(self, looks: Sequence[_Looked]) -> str:
        """Why nothing is asked for."""
        if self.standing.waits:
            return "a run of this sink waits to begin"
        waiting = [self.memory.topics[topic] for topic in self.ends if self._waiting(topic) > 0]
        held = Counter(looked.why for looked in looks if looked.why)
        reasons = "".join(f"; {count} of them: {why}" for why, count in held.most_common(3))
        due_ms = min((min(self._due_ms(kept), kept.until_ms) for kept in waiting), default=0)
        first = f"the first are {sensors.at_the_latest(due_ms)}" if due_ms > self.now else "nothing is due"
        return f"{len(self.ends)} topics, records wait in {len(waiting)}; {first}{reasons}"

    def remember_run(self, looked: _Looked) -> None:
        """What is asked for; once it has landed the hour under way, that says as much as another look at the index."""
        kept = self.memory.topics[looked.topic]
        assert looked.span is not None
        hour, ends = looked.span[1], sum(self.ends[looked.topic].values())
        kept.landed = -1
        kept.run = RunAsked(hour, ends, self.now) if hours.end_ms(hour) > self.now else None

    def observations(self, observed: Collection[str]) -> list[dg.AssetObservation]:
        """Some of the topics that have grown: events are kept for ever, and storing them costs more than all else."""
        grown = [
            topic
            for topic in self.ends
            if topic not in observed
            and self.now - self.memory.topics[topic].cursor.observed_ms >= OBSERVE_EVERY_MS
            and self.memory.topics[topic].cursor.ends != self.ends[topic]
        ]
        events = []
        for topic in sorted(grown, key=lambda topic: self.memory.topics[topic].cursor.observed_ms)[:OBSERVED_PER_TICK]:
            kept, ends = self.memory.topics[topic], self.ends[topic]
            lags = {self.sink.name: self._waiting(topic)} if kept.landed >= 0 else {}
            events.append(observation(self.catalogue, topic, ends, lags, kept.cursor, self.now))
            kept.cursor.observed_ms, kept.cursor.ends = self.now, dict(ends)
        return events

    @property
    def _interval_ms(self) -> int:
        return sensors.patience_ms(self.sink)

    def _waiting(self, topic: str) -> int:
        kept = self.memory.topics[topic]
        return 0 if kept.landed < 0 else sum(self.ends[topic].values()) - kept.landed

    def _may_be_due(self, topic: str) -> bool:
        """Whether the index has to be asked, by what is remembered."""
        kept = self.memory.topics[topic]
        self._take_over(topic, kept)
        waiting = self._waiting(topic)
        if kept.landed < 0 or waiting < 0 or self.now >= kept.until_ms:
            return True
        if not waiting:
            kept.since_ms = 0
            return False
        kept.since_ms = kept.since_ms or self.memory.ticked_ms or self.now
        soon = self.now >= kept.until_ms - sensors.soon_ms(self.sink)
        return not soon and (waiting >= kept.enough or self.now >= self._due_ms(kept))

    def _take_over(self, topic: str, kept: Topic) -> None:
        """The run that was asked for has ended: what it was to land, it has landed, if it succeeded."""
        run, kept.run = kept.run, None
        start_ms = run and self.standing.landed_ms(topic, run.hour, run.asked_ms)
        if run and start_ms:
            kept.landed, kept.landed_ms, kept.since_ms, kept.hour = run.ends, start_ms, start_ms, run.hour

    def _may_come_along(self, topic: str) -> bool:
        """Whether it would be due before long: topics that are landed together are due together from then on."""
        kept = self.memory.topics[topic]
        return self._waiting(topic) > 0 and self.now >= self._due_ms(kept) - self._interval_ms // 2

    def _due_ms(self, kept: Topic) -> int:
        return max(kept.since_ms, kept.landed_ms) + self._interval_ms

    def _urgency(self, topic: str) -> tuple[int, int]:
        kept = self.memory.topics[topic]
        return (kept.looked_ms if kept.landed < 0 else min(kept.until_ms, self._due_ms(kept))), kept.looked_ms

    def _look_at(self, topics: Sequence[str], look: "Callable[[str], _Looked]") -> list[_Looked]:
        def looked(topic: str) -> _Looked | None:
            if time.monotonic() - self.began_s > TICK_S:
                return None  # the next tick
            try:
                return look(topic)
            except S3LakeError as error:  # one topic's index is no reason to keep the others waiting
                self.memory.topics[topic].looked_ms = self.now
                return _Looked(topic, error=error)

        with ThreadPoolExecutor(_AT_ONCE, "s3lake-look") as pool:
            return [seen for seen in pool.map(looked, topics) if seen is not None]

    def _foreseen(self, topic: str) -> _Looked | None:
        """What is due of the hour that a run has landed, by that alone; None where the index has to be asked."""
        kept = self.memory.topics[topic]
        over = not kept.hour or self.now >= min(hours.end_ms(kept.hour), kept.until_ms)
        if over or kept.landed < 0 or self._waiting(topic) >= kept.enough or self.standing.failed(topic):
            return None
        if not self.catalogue.within(self.sink, topic, {kept.hour}):
            return None
        waited = self.now >= self._due_ms(kept)
        why = due.WAITED if waited else due.TOGETHER
        return _Looked(topic, why.sentence, (kept.hour, kept.hour), waited, why.word)

    def _look(self, instance: dg.DagsterInstance, topic: str, *, turn: bool = False) -> _Looked:
        foreseen = None if turn else self._foreseen(topic)
        if foreseen is not None:
            return foreseen
        sink, kept, ends = self.sink, self.memory.topics[topic], self.ends[topic]
        lander = self.landing(topic)
        head = lander.index.head()
        tiles = look(lander, head[0], kept.cursor, again=turn) if head else []
        last = tiles[-1] if tiles else None
        if last is not None and kept.since_ms:
            kept.cursor.waiting[sink.name] = Seen(last.hour, last.rev, kept.since_ms)
        hours_due = wanted(self.catalogue, lander, head[0] if head else None, tiles, ends, kept.cursor, self.now)
        chosen = set(hours_due.hours)
        self._keep(kept, lander, last, ends)
        if not chosen and last is not None and not last.closed and self._may_come_along(topic):
            chosen = self.catalogue.within(sink, topic, {last.hour})
        sealed = self._sealed(instance, lander, head[0], tiles, kept.cursor, turn=turn) if head else ()
        if not chosen:
            return _Looked(topic, sealed=sealed)

        def state(begin: str, end: str) -> State:
            return State.of(sink, begin, end, tiles)

        held = self.standing.held(topic, state)
        if held:
            kept.landed, kept.enough, kept.until_ms = sum(ends.values()), NEVER, self.now + _HELD_MS
            return _Looked(topic, held, sealed=sealed)
        span = due.chunks(chosen, sink.hours_per_run)[0]
        why = hours_due.why or due.TOGETHER
        return _Looked(topic, why.sentence, span, bool(hours_due.hours), why.word, state=state(*span), sealed=sealed)

    def _keep(self, kept: Topic, lander: "Landing", last: Tile | None, ends: Mapping[int, int]) -> None:
        """Remember when something can be due."""
        kept.looked_ms = self.now
        if last is None or last.closed or last.hour != kept.hour:
            kept.hour = ""
        if last is None or last.closed:
            start_ms = hours.start_ms(self.sink.start)
            kept.landed, kept.until_ms = sum(ends.values()), start_ms if start_ms > self.now else self.now + _HELD_MS
            return
        behind, sums = due.backlog(last, ends), lander.recent(last)
        kept.landed = sum(ends.values()) - sum(behind.values())
        kept.landed_ms = sums.landed_ms
        kept.until_ms = hours.end_ms(last.hour) + int(self.sink.close_grace * 1000)
        flush, size = self.sink.flush, sums.bytes / sums.records if sums.records else 0.0
        least = [flush.size / size if size else NEVER, NEVER if flush.count is None else flush.count]
        kept.enough = min(NEVER, int(min(least) * max(1, len(behind))))
        if not behind:
            kept.since_ms = 0
        elif not kept.since_ms or self.now >= hours.end_ms(last.hour):  # the next hour's wait for its tile
            kept.since_ms = self.now

    def _sealed(
        self,
        instance: dg.DagsterInstance,
        lander: "Landing",
        head: "TopicHead",
        tiles: Sequence[Tile],
        cursor: Cursor,
        *,
        turn: bool,
    ) -> Sequence[dg.AssetMaterialization]:
        """Hours that are complete and not announced, in turn and where one is new; Dagster is asked for each."""
        name = lander.sink.name
        announced, complete = cursor.announced.get(name, []), cursor.complete.get(name, [])
        if not turn and not hours.without(complete, announced):
            return ()
        sealing = Sealing.of(lander.index, head, tiles)
        events, cursor.announced[name] = left_behind(
            instance, self.catalogue, lander, sealing, tiles, announced, complete, self.now
        )
        return events


def _matching(sink: Sink, topics: Sequence[str]) -> frozenset[str]:
    try:
        return frozenset(topic for topic in topics if sink.reads(topic))
    except expressions.PatternTimeoutError as error:
        raise dg.Failure(f"topics_regex: {error}") from None


def _request(catalogue: Catalogue, sink: Sink, asked: Sequence[_Looked], now: int) -> dg.RunRequest:
    spans: dict[str, list[str]] = defaultdict(list)
    for looked in asked:
        assert looked.span is not None
        spans["..".join(looked.span)].append(looked.topic)
    state = "\n".join(sorted(f"{looked.topic} {looked.span} {looked.state}" for looked in asked))
    ((word, _),) = Counter(looked.word for looked in asked).most_common(1)
    return dg.RunRequest(
        run_key=f"{catalogue.tag(sink)}/{fleet_runs.digest(state)}/{now // runs.SOON_MS}",
        job_name=fleet_runs.job_name(catalogue, sink),
        run_config=fleet_runs.run_config(catalogue, sink, spans),
        tags={
            **fleet_runs.run_tags(catalogue, sink, [looked.topic for looked in asked]),
            names.REASON: word,
        },
    )
