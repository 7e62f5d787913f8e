"""A run that lands: its log, a materialisation of each hour when it is done, errors, one topic and many."""

import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.execution.plan.objects import ErrorSource
from dagster._core.loader import LoadingContextForTest

from s3lake.config.model import Errors
from s3lake.errors import KafkaUnavailableError, RecordError, S3LakeError, StoreUnavailableError
from s3lake.index.commit.protocol import Attempt
from s3lake.land.hour.landing import rewrite
from s3lake.land.spark import installation
from s3lake.orchestration import dagster_names, hour_checks
from s3lake.orchestration.jobs import group_job
from s3lake.orchestration.landing_run import as_dagster_errors, log_start
from s3lake.orchestration.runs import group_config
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.processes import until
from s3lake_tests.land.unstaged import FIRST, SECOND, THIRD, Filed, Landed, UnstagedTopic
from s3lake_tests.orchestration import unstaged_runs
from s3lake_tests.orchestration.unstaged_runs import ALL, KEY, OneTopic
from s3lake_tests.orchestration.world import catalog

TOPICS = ("one", "two", "three")


@pytest.fixture
def runs(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> OneTopic:
    return OneTopic(instance, monkeypatch)


class TestLog:
    def test_has_the_plan_each_commit_and_each_hour_between_the_output_and_the_end_of_its_handling(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = OneTopic(instance, monkeypatch, batch_records=4)
        runs.land(FIRST, FIRST)
        assert runs.lines() == [
            "STEP_OUTPUT",
            f"events orders, hour {FIRST}: planned 10 offsets in 3 micro-batches",
            f"events orders, hour {FIRST}: commit 1 of 3: 4 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: commit 2 of 3: 4 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: commit 3 of 3: 2 rows in 0 files, 0 dead letters",
            f"events orders, hour {FIRST}: done, 10 rows in 0 files; 1 of 1 hour, 100%",
            "ASSET_MATERIALIZATION",
            "HANDLED_OUTPUT",
        ]

    def test_reports_of_complete_hours_that_nothing_is_new(self, runs: OneTopic) -> None:
        runs.land()
        runs.again()
        runs.land()
        assert [line.partition(": ")[2] for line in runs.lines() if "hour" in line] == [
            "done, 10 rows in 0 files; nothing new to land; 1 of 3 hours, 33%",
            "done, 10 rows in 0 files; nothing new to land; 2 of 3 hours, 66%",
            "done, 10 rows in 0 files; nothing new to land; 3 of 3 hours, 100%",
        ]

    def test_has_the_start_of_the_session_and_its_readiness_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(installation, "fit", lambda session, **_: session)
        session, message = object(), list[str]()
        spark = log_start(lambda: session, SimpleNamespace(info=message.append), sql=False)
        assert spark() is session
        assert spark() is session
        assert message == ["Spark session: starting", "Spark session: ready after 0.0 s"]


class TestMaterialisations:
    def test_an_hour_is_materialised_while_the_run_goes_on(self, runs: OneTopic) -> None:
        seen: list[Any] = []

        def look(attempt: Attempt) -> None:
            if attempt.tile.hour == THIRD:
                seen.extend(runs.hours()[TOPIC])

        runs.targets[TOPIC].before = look
        assert runs.land().success
        assert seen == [FIRST]  # the second one becomes visible while the third is read
        assert runs.hours()[TOPIC] == [FIRST, SECOND, THIRD]
        assert [one.metadata["dagster/row_count"].value for one in runs.materialisations()] == [10, 10, 10]

    def test_a_cancelled_run_has_them_for_what_it_has_committed(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = OneTopic(instance, monkeypatch, batch_records=4)

        def cancel(attempt: Attempt) -> None:
            if attempt.tile.hour == SECOND and attempt.tile.commits:
                raise KeyboardInterrupt

        runs.targets[TOPIC].before = cancel
        assert not runs.land().success
        assert runs.hours()[TOPIC] == [FIRST, SECOND]
        found = [
            (one.metadata["dagster/row_count"].value, one.metadata["complete"].value) for one in runs.materialisations()
        ]
        assert found == [(10, True), (4, False)]
        assert f"events orders, hour {SECOND}: not done, 1 commit of this run stay" in runs.lines()

    def test_a_cancelled_run_is_cancelled_though_the_index_cannot_be_read(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = OneTopic(instance, monkeypatch, batch_records=4)

        def cancel(attempt: Attempt) -> None:
            if attempt.tile.commits:
                monkeypatch.setattr(Landed, "report", away)
                raise KeyboardInterrupt

        def away(*_: object) -> None:
            raise StoreUnavailableError("S3 is away")

        runs.targets[TOPIC].before = cancel
        result = runs.land()
        (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        assert failure.error_source is ErrorSource.INTERRUPT
        assert runs.hours()[TOPIC] == []

    def test_an_hour_that_failed_has_none_and_those_before_it_have(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs = OneTopic(instance, monkeypatch, batch_records=4)

        def refuse(attempt: Attempt) -> None:
            if attempt.tile.hour == SECOND and attempt.tile.commits:
                raise RecordError("refused")

        runs.targets[TOPIC].before = refuse
        assert not runs.land().success
        assert runs.hours()[TOPIC] == [FIRST]

    def test_a_second_attempt_does_not_repeat_those_of_the_first(self, runs: OneTopic) -> None:
        outages = [KafkaUnavailableError("away")]

        def fail(attempt: Attempt) -> None:
            if attempt.tile.hour == THIRD and outages:
                raise outages.pop()

        runs.targets[TOPIC].before = fail
        assert runs.land().success
        assert runs.hours()[TOPIC] == [FIRST, SECOND, THIRD]

    def test_the_open_hour_has_its_lag_and_a_closed_one_has_none(self, runs: OneTopic) -> None:
        runs.targets[TOPIC] = runs.world.target(now_minute=130)
        runs.land(SECOND, SECOND)
        runs.targets[TOPIC].before = lambda _: runs.world.kafka.produce(0, 128, 129)
        runs.land(THIRD, THIRD)
        closed, opened = runs.materialisations()
        assert "lag_s" not in closed.metadata
        assert (opened.metadata["lag_s"].value, opened.metadata["complete"].value) == (120.0, False)
        (row,) = opened.metadata["offsets"].value.records
        assert row.data == {"topic-partition": "orders-0", "start": 20, "landed": 30, "end": 32, "lag": 2}

    def test_complete_hours_are_checked_in_the_same_run(self, runs: OneTopic) -> None:
        evaluations = runs.land().get_asset_check_evaluations()
        assert {evaluation.partition for evaluation in evaluations} == {FIRST, SECOND, THIRD}
        assert len(evaluations) == 12

    def test_a_run_that_selects_the_checks_misses_no_output_of_theirs(self, runs: OneTopic) -> None:
        result = runs.job.execute_in_process(
            asset_selection=[KEY], tags={"dagster/partition": FIRST}, instance=runs.instance
        )
        events = [event.event_type_value for event in result.all_events]
        assert (events.count("ASSET_CHECK_EVALUATION"), events.count("STEP_OUTPUT")) == (4, 5)
        log = [entry.user_message for entry in runs.instance.all_logs(result.run_id)]
        assert not [line for line in log if "did not yield or return" in line]

    def test_the_open_hour_is_not_checked(self, runs: OneTopic) -> None:
        runs.targets[TOPIC] = runs.world.target(now_minute=130)
        assert {evaluation.partition for evaluation in runs.land().get_asset_check_evaluations()} == {FIRST, SECOND}


class TestVersions:
    def test_an_hour_has_a_version_of_its_own_that_changes_with_its_commits_alone(self, runs: OneTopic) -> None:
        runs.land()
        runs.again()
        runs.land()
        versions = [one.tags["dagster/data_version"] for one in runs.materialisations()]
        assert len(set(versions)) == 3
        assert versions[:3] == versions[3:]
        rewrite(runs.again(), SECOND)
        runs.land()
        assert runs.materialisations()[-2].tags["dagster/data_version"] not in versions

    def test_an_hour_stays_fresh_when_its_topic_goes_on(self, runs: OneTopic) -> None:
        def observe(ends: str) -> None:
            observed = dg.AssetObservation(["kafka", TOPIC], tags={"dagster/data_version": ends})
            runs.instance.report_runless_asset_event(observed)

        observe("before")
        runs.land(FIRST, FIRST)
        observe("after")
        graph = runs.job.asset_layer.asset_graph
        resolver = CachingStaleStatusResolver(runs.instance, graph, LoadingContextForTest(runs.instance))
        assert resolver.get_status(KEY, FIRST) == StaleStatus.FRESH


def failing(error: S3LakeError, errors: Errors) -> None:
    def work() -> None:
        raise error

    as_dagster_errors(work, errors)


AWAY = KafkaUnavailableError("the brokers did not answer")


class TestErrors:
    @pytest.mark.parametrize(
        ("errors", "retries", "seconds"),
        [
            (Errors(), 3, 10),
            (Errors(tolerance="all"), 3, 10),
            (Errors(max_retries=20, retry_interval=60.0), 20, 60.0),
            (Errors(max_retries=0, retry_interval=0.0), 0, 0.0),
        ],
    )
    def test_a_transient_one_is_retried_as_often_and_as_late_as_the_sink_sets(
        self, errors: Errors, retries: int, seconds: float
    ) -> None:
        with pytest.raises(dg.RetryRequested) as requested:
            failing(AWAY, errors)
        assert (requested.value.max_retries, requested.value.seconds_to_wait) == (retries, seconds)
        assert requested.value.__cause__ is AWAY

    def test_a_failure_is_not_tried_again_names_the_record_and_has_no_second_text_behind_it(self) -> None:
        with pytest.raises(dg.Failure) as failed:
            failing(RecordError("refused", partition=3, offset=17, stage="value"), Errors(max_retries=20))
        shown = {name: entry.value for name, entry in failed.value.metadata.items()}
        assert shown == {"error": "RecordError", "partition": 3, "offset": 17, "stage": "value"}
        assert failed.value.allow_retries is False
        assert failed.value.__cause__ is None
        assert failed.value.__suppress_context__

    def test_a_mistake_in_the_code_is_left_as_it_is(self) -> None:
        def work() -> None:
            raise AttributeError("no such thing")

        with pytest.raises(AttributeError):
            as_dagster_errors(work, Errors(max_retries=20))


class Group(unstaged_runs.Runs):
    """Runs of many topics in one op."""

    def __init__(self, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        super().__init__(instance, patch, *TOPICS, errors={"retry_interval": 0, "max_retries": 2})
        self.catalog = catalog(self.sink)
        self.job = group_job(self.catalog, self.sink)

    def land(self) -> dg.ExecuteInProcessResult:
        config = group_config(self.catalog, self.sink, {f"{FIRST}..{THIRD}": TOPICS})
        return self.job.execute_in_process(
            run_config=config,
            instance=self.instance,
            raise_on_error=False,
        )

    def lines(self, result: dg.ExecuteInProcessResult) -> str:
        return "\n".join(one.user_message for one in self.instance.all_logs(result.run_id))


@pytest.fixture
def group(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(instance, monkeypatch)


class TestManyTopics:
    def test_a_transient_error_is_tried_again_within_the_run_for_that_topic_alone(self, group: Group) -> None:
        staged: list[str] = []
        away = [KafkaUnavailableError("away")]

        def before(attempt: Any) -> None:
            staged.append(attempt.tile.hour)
            if attempt.tile.hour == SECOND and away:
                raise away.pop()

        group.targets["two"].before = before
        result = group.land()
        assert result.success
        assert staged == [FIRST, SECOND, SECOND, THIRD]
        assert group.hours() == dict.fromkeys(TOPICS, ALL)
        assert "1 topic failed with a transient error, and will be tried again" in group.lines(result)

    def test_after_its_tries_a_topic_has_failed_and_the_others_are_landed(self, group: Group) -> None:
        def before(attempt: Any) -> None:
            if attempt.tile.hour == SECOND:
                raise KafkaUnavailableError("away")

        group.targets["two"].before = before
        result = group.land()
        assert not result.success
        assert group.hours() == {"one": ALL, "two": [FIRST], "three": ALL}
        (run,) = group.instance.get_runs()
        assert run.tags[dagster_names.FAILED] == "two"

    def test_hours_that_are_over_are_checked_and_sealed(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(UnstagedTopic, "lands", Filed)
        group = Group(instance, monkeypatch)
        group.land()
        for topic in TOPICS:
            sealed = unstaged_runs.materialisations(group.instance, sealed_key(group.sink, topic))
            assert [one.partition for one in sealed] == ALL
            for name in hour_checks.NAMES:
                key = dg.AssetCheckKey(sink_key(group.sink, topic), name)
                assert len(group.instance.event_log_storage.get_asset_check_execution_history(key, limit=10)) == 3

    def test_a_terminal_error_is_tried_once(self, group: Group) -> None:
        tries: list[str] = []

        def before(attempt: Any) -> None:
            tries.append(attempt.tile.hour)
            raise RecordError("refused")

        group.targets["two"].before = before
        assert not group.land().success
        assert tries == [FIRST]
        assert group.hours() == {"one": ALL, "two": [], "three": ALL}

    def test_a_mistake_in_the_code_that_one_topic_meets_is_reported_with_its_trace(self, group: Group) -> None:
        def before(_: Any) -> None:
            raise ZeroDivisionError("of the test")

        group.targets["two"].before = before
        result = group.land()
        assert not result.success
        assert group.hours() == {"one": ALL, "two": [], "three": ALL}
        assert "in before" in group.lines(result)

    def test_a_run_that_is_canceled_shows_what_it_has_committed(self, group: Group) -> None:
        def before(attempt: Any) -> None:
            if attempt.tile.hour == SECOND:
                until(lambda: [group.hours()[topic] for topic in ("one", "three")] == [ALL, ALL])
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                time.sleep(0.2)

        group.targets["two"].before = before
        assert not group.land().success
        assert group.hours()["one"] == ALL
        assert group.hours()["two"][0] == FIRST
