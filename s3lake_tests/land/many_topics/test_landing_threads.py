"""Topics that are landed together: each gets what the shared job returns for it, and nothing else."""

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from s3lake.errors import KafkaUnavailableError, RecordError, TaskFailedError, TransientError
from s3lake.land.hour.landing import land as land_topic
from s3lake.land.many_topics import landing_threads, shared_jobs
from s3lake.land.many_topics.landing_threads import land_together
from s3lake.land.request.read_request import ReadRequest, RunTasks
from s3lake.land.topic.observer import LandedHour
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import START, Lake, at, values
from s3lake_tests.kit.processes import until
from s3lake_tests.land.at_hand import FIRST, SECOND, Given, TopicInMemory
from s3lake_tests.land.in_process import TwoCoreSession

Result = list[LandedHour] | BaseException


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, they wait for one another."""
    monkeypatch.setattr(shared_jobs, "PATIENCE_S", PATIENCE_S)


def topics(*sizes: int, **settings: Any) -> list[TopicInMemory]:
    """A world for each topic, of so many records, each of which names its topic."""
    worlds = [TopicInMemory(**settings) for _ in sizes]
    for number, (world, size) in enumerate(zip(worlds, sizes, strict=True)):
        world.produce(0, *(b'{"topic":%d,"n":%d}' % (number, at) for at in range(size)))
    return worlds


def land(worlds: list[TopicInMemory], session: TwoCoreSession, upto: str = FIRST, **last: Any) -> list[Result]:
    """Land them together; `last` are parts of the last one."""
    targets = [*(world.target() for world in worlds[:-1]), worlds[-1].target(**last)]
    hours = [FIRST, SECOND] if upto == SECOND else [FIRST]
    results = land_together({one: landing(one, *hours) for one in targets}, lambda: session)  # type: ignore[arg-type,return-value]
    return [results[one] for one in targets]


def landing(target: TopicSink, *hours: str) -> Callable[[RunTasks], list[LandedHour]]:
    return lambda run: land_topic(target, hours, run=run)


def bodies(world: TopicInMemory) -> bytes:
    """All data that is there."""
    return b"".join(body for key, (body, _) in world.store.objects.items() if not key.startswith(".indexes/"))


def lines(number: int, size: int) -> bytes:
    return b"".join(b'{"topic":%d,"n":%d}\n' % (number, at) for at in range(size))


def test_each_topic_lands_its_own_records_by_one_job() -> None:
    worlds, session = topics(3, 1, 7, 2, 5, 4), TwoCoreSession()
    landed = land(worlds, session, reader=(given := Given(worlds[-1])))
    assert (session.jobs, given.tasks) == ([4], [(TOPIC, OffsetRange(0, 0, 4))])
    assert [bodies(world) for world in worlds] == [lines(*one) for one in enumerate((3, 1, 7, 2, 5, 4))]
    assert [one[0].sums.landed for one in landed if isinstance(one, list)] == [3, 1, 7, 2, 5, 4]


def test_a_topic_whose_record_is_refused_fails_alone() -> None:
    worlds = topics(3, 3, 3)
    worlds[1].produce(0, b"{")
    first, second, third = land(worlds, TwoCoreSession())
    assert isinstance(second, RecordError)
    assert (bodies(worlds[1]), worlds[1].store.uploads) == (b"", {})
    assert isinstance(first, list)
    assert isinstance(third, list)


@pytest.mark.parametrize(
    ("error", "met"),
    [
        (ZeroDivisionError("of the test"), TaskFailedError("landing topic 'orders': ZeroDivisionError: of the test")),
        (KafkaUnavailableError("no broker answers"), KafkaUnavailableError("no broker answers")),
    ],
)
def test_an_error_of_one_topics_reader_fails_no_other_topic(error: Exception, met: Exception) -> None:
    class Broken(Given):
        def batches(self, *_: Any) -> Any:
            raise error

    worlds, session = topics(3, 3), TwoCoreSession()
    first, failure = land(worlds, session, reader=Broken(worlds[1]))
    assert isinstance(first, list)
    assert first[0].sums.landed == 3
    assert (type(failure), str(failure), session.jobs) == (type(met), str(met), [2])


def test_an_hour_far_into_its_topic_is_small_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_jobs, "SMALL", 4)
    worlds, session = topics(3, 3), TwoCoreSession()
    for world in worlds:
        world.produce(1, b"{}")
    land(worlds, session, SECOND)
    assert session.jobs == [2, 2]


def test_a_topic_of_many_records_has_a_job_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_jobs, "SMALL", 4)
    worlds, session = topics(3, 4, 2), TwoCoreSession()
    land(worlds, session)
    assert sorted(session.jobs) == [1, 2]
    assert [bodies(world) for world in worlds] == [lines(0, 3), lines(1, 4), lines(2, 2)]


def test_each_topic_gets_a_job_of_its_own_when_the_shared_job_fails() -> None:
    worlds, session = topics(3, 1), TwoCoreSession(failures=[OSError("a worker crashed")])
    landed = land(worlds, session)
    assert all(isinstance(one, list) for one in landed)
    assert [bodies(world) for world in worlds] == [lines(0, 3), lines(1, 1)]


@pytest.mark.parametrize("sizes", [(3,), (3, 1)], ids=["one topic has a job of its own", "both jobs fail"])
def test_no_topic_is_tried_again_when_spark_has_stopped(sizes: tuple[int, ...]) -> None:
    worlds, session = topics(*sizes), TwoCoreSession(failures=[OSError("closed")] * len(sizes))
    for failure in land(worlds, session):
        assert isinstance(failure, TransientError)
        assert str(failure).startswith(f"Spark went away while landing {len(sizes)} topics in one job")
    assert [bodies(world) for world in worlds] == [b""] * len(sizes)


def test_more_topics_than_land_at_once_are_all_landed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_threads, "MOST", 2)
    worlds = topics(1, 2, 3, 4, 5)
    land(worlds, TwoCoreSession())
    assert [bodies(world) for world in worlds] == [lines(*one) for one in enumerate((1, 2, 3, 4, 5))]


@pytest.mark.parametrize("small", [0, 100])
def test_once_it_is_interrupted_nothing_begins_and_who_waits_for_a_job_ends(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_threads, "MOST", 2)
    monkeypatch.setattr(shared_jobs, "SMALL", small)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun, ended = list[TopicSink](), list[TopicSink]()

    def note(target: TopicSink, run: RunTasks) -> None:
        begun.append(target)
        try:
            land_topic(target, [FIRST], run=run)
        finally:
            ended.append(target)

    def interrupt() -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        threading.Event().wait()

    targets = [world.target() for world in topics(1, 2, 3)]
    monkeypatch.setattr(landing_threads, "CANCEL_S", 10 * PATIENCE_S)  # the test would end with a timeout
    try:
        with pytest.raises(KeyboardInterrupt):
            land_together({one: partial(note, one) for one in targets}, interrupt)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (begun, set(ended)) == (targets[:2], {*targets[:2]})


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Send the main thread Ctrl-C."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    signal.signal(signal.SIGINT, handler)


def await_end_of_threads() -> None:
    """Wait until no thread of a fleet is left; threads of commits are kept for the next one."""
    kinds = ("s3lake-landing", "s3lake-shared-jobs", "s3lake-job", "s3lake-cancel")
    until(lambda: not any(thread.name.startswith(kinds) for thread in threading.enumerate()))


@pytest.mark.parametrize("small", [0, 100], ids=["of one topic", "of all topics"])
def test_an_interruption_cancels_a_job_and_clean_finds_the_uploads_of_its_tasks(
    small: int, monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[], None]
) -> None:
    monkeypatch.setattr(shared_jobs, "SMALL", small)
    worlds, session = topics(3, 3, 3), TwoCoreSession()

    def interrupt_job() -> None:
        interrupt()
        until(lambda: bool(session.interrupted))
        raise OSError("the job was cancelled")

    session.before_results = interrupt_job
    with pytest.raises(KeyboardInterrupt):
        land(worlds, session)
    await_end_of_threads()
    assert (len(session.jobs), len(session.interrupted)) == (1, 1)
    assert [bodies(world) for world in worlds] == [b""] * 3
    assert any(world.store.uploads for world in worlds)
    for world in worlds:
        world.target(now_minute=100_000).clean()
        assert world.store.uploads == {}
    land(worlds, TwoCoreSession())
    assert [bodies(world) for world in worlds] == [lines(number, 3) for number in range(3)]


@pytest.mark.usefixtures("interrupt")
def test_a_signal_that_wakes_no_wait_ends_the_landings_too() -> None:
    worlds, session = topics(3, 3), TwoCoreSession()

    def interrupt_job() -> None:
        # This thread takes it, so the main thread's wait goes on, as it does where a signal arrives just before it.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        until(lambda: bool(session.interrupted))
        raise OSError("the job was cancelled")

    session.before_results = interrupt_job
    with pytest.raises(KeyboardInterrupt):
        land(worlds, session)
    await_end_of_threads()
    assert [bodies(world) for world in worlds] == [b""] * 2


def test_an_interruption_lets_commits_become_visible(interrupt: Callable[[], None]) -> None:
    worlds = topics(3, 3)
    complete_upload, interrupted = worlds[0].store.complete_upload, list[str]()

    def complete(key: str, *of: Any, **options: Any) -> Any:
        if TOPIC in key:  # and not that of the store's trial
            interrupted.append(key)
            interrupt()
        return complete_upload(key, *of, **options)

    worlds[0].store.complete_upload = complete  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        land(worlds, TwoCoreSession())
    await_end_of_threads()
    assert (len(interrupted), bodies(worlds[0])) == (1, lines(0, 3))


def test_a_landing_that_fails_before_it_has_a_request_holds_back_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> Any:
        raise KafkaUnavailableError("no broker answers")

    worlds = topics(3, 3, 3)
    monkeypatch.setattr(worlds[1].kafka, "log_ranges", refuse)
    first, second, third = land(worlds, session := TwoCoreSession())
    assert isinstance(second, KafkaUnavailableError)
    assert [type(one) for one in (first, third)] == [list, list]
    assert session.jobs == [2]
    await_end_of_threads()


def test_requests_do_not_wait_longer_than_a_while_for_a_slow_landing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_jobs, "PATIENCE_S", 0.05)
    worlds, landed = topics(3, 3), threading.Event()
    targets = [world.target() for world in worlds]

    def land_first(run: RunTasks) -> list[LandedHour]:
        result = land_topic(targets[0], [FIRST], run=run)
        landed.set()
        return result

    def land_slowly(run: RunTasks) -> list[LandedHour]:
        assert landed.wait(PATIENCE_S)
        return land_topic(targets[1], [FIRST], run=run)

    session: Any = TwoCoreSession()
    results = land_together(dict(zip(targets, (land_first, land_slowly), strict=True)), lambda: session)
    assert [type(result) for result in results.values()] == [list, list]
    assert session.jobs == [1, 1]


def test_the_stack_of_an_error_names_the_caller_of_each_function_of_the_landing() -> None:
    (failure,) = land(topics(3), TwoCoreSession(failures=[ZeroDivisionError("of the test")]))
    assert isinstance(failure, ZeroDivisionError)
    names = [frame.name for frame in traceback.extract_tb(failure.__traceback__)]
    way = ["land", "stage", "run", "collect"]
    assert [name for name in way if name in names] == way
    assert sorted(way, key=names.index) == way


def test_a_large_topic_does_not_hold_back_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_jobs, "SMALL", 4)
    worlds, others_landed = topics(3, 4, 2), threading.Event()

    class Large(Given):
        def batches(self, *of: Any) -> Any:
            assert others_landed.wait(PATIENCE_S)
            yield from super().batches(*of)

    targets = [world.target(reader=(Large if at == 1 else Given)(world)) for at, world in enumerate(worlds)]
    landed = []

    def note(target: TopicSink, run: RunTasks) -> None:
        land_topic(target, [FIRST], run=run)
        landed.append(target)
        if len(landed) == 2:
            others_landed.set()

    session: Any = TwoCoreSession()
    assert land_together({one: partial(note, one) for one in targets}, lambda: session) == dict.fromkeys(targets)
    assert landed[2] is targets[1]


def test_on_real_parts_each_topic_has_a_job_of_its_own_if_the_shared_one_fails(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that takes its worker along would fail all topics, again and again."""

    def exit_worker() -> None:
        raise SystemExit(9)

    monkeypatch.setattr(shared_jobs, "assign_tasks", lambda *_: [[exit_worker]])
    names = [lake.filled(values(80 + number), at(START, 5)) for number in range(3)]
    targets = [lake.target(topic, "flush: {count: 5000}", at("2026-01-06T00")) for topic in names]
    results = land_together({one: landing(one, START) for one in targets}, lake.session)
    assert all(isinstance(result, list) for result in results.values())
    reports = [lake.verify(one) for one in targets]
    assert [(report.differences, report.landed) for report in reports] == [((), 80 + number) for number in range(3)]


# Tasks of a shared job


def test_topics_are_shared_out_so_that_tasks_have_as_much_to_read() -> None:
    sizes = {"a": 10, "b": 50_000, "c": 20_000, "d": 31_000, "e": 100}
    nothing: Any = None
    requests = [(nothing, ReadRequest(nothing, topic, nothing, {0: (7, 7 + size)})) for topic, size in sizes.items()]
    loads = shared_jobs.assign_tasks(requests, 2)
    assert [[(load.topic, load.number) for load in task] for task in loads] == [
        [("b", 1), ("e", 4), ("a", 0)],
        [("d", 3), ("c", 2)],
    ]
