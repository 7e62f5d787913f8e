"""Which run lands a topic, and which one failed last to land it, and why."""

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._utils.error import SerializableErrorInfo

from s3lake import hours
from s3lake.orchestration import dagster_names
from s3lake.orchestration.runs import SinkRuns, last_failure
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.orchestration.world import add_run, catalog

ALONE = {dagster_names.SINK: "events", dagster_names.TOPIC: "orders"}


def run(instance: dg.DagsterInstance, error: Exception | None, tags: dict[str, str], log: str = "") -> str:
    @dg.op
    def land(context: dg.OpExecutionContext) -> None:
        if log:
            context.log.error(log)
        if error is not None:
            raise error

    @dg.job
    def job() -> None:
        land()

    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False).run_id[:8]


def fail_to_start(instance: dg.DagsterInstance, topics: list[str]) -> str:
    """Do what Dagster does if its launcher cannot reach the code server; the run's id in short."""
    if len(topics) == 1:
        tags, config = {dagster_names.SINK: "events", dagster_names.TOPIC: topics[0]}, {}
    else:
        tags = {dagster_names.SINK: "events", dagster_names.GROUP: str(len(topics))}
        config = {"ops": {"land": {"config": {"hours": {"2026-11-20T05": topics}}}}}
    failed = add_run(instance, "land", dg.DagsterRunStatus.NOT_STARTED, tags=tags, run_config=config)
    error = SerializableErrorInfo("Unexpected error in IPC client\n", [], "DagsterIPCProtocolError")
    instance.report_engine_event("", failed, EngineEventData.engine_error(error))
    instance.report_run_failed(failed)
    return failed.run_id[:8]


class TestLastFailure:
    def test_is_the_newest_failed_run_of_the_topic_with_its_error(self, instance: dg.DagsterInstance) -> None:
        run(instance, dg.Failure("the bucket is full"), ALONE)
        newest = run(instance, dg.Failure("offset 7 of orders-0 was refused"), ALONE)
        run(instance, None, ALONE)
        run(instance, dg.Failure("of another topic"), {**ALONE, dagster_names.TOPIC: "clicks"})
        assert last_failure(instance, "events", "orders", 0) == f"run {newest}: offset 7 of orders-0 was refused"

    def test_is_none_if_no_run_failed_since(self, instance: dg.DagsterInstance) -> None:
        run(instance, dg.Failure("earlier"), ALONE)
        assert last_failure(instance, "events", "orders", hours.now_ms() + 60_000) is None

    def test_a_run_of_many_topics_has_each_topics_own_failure(self, instance: dg.DagsterInstance) -> None:
        many = {dagster_names.SINK: "events", dagster_names.GROUP: "2"}
        found = run(instance, dg.Failure("1 of 2 topics failed"), many, "orders: Kafka did not answer")
        assert last_failure(instance, "events", "orders", 0) == f"run {found}: Kafka did not answer"
        assert last_failure(instance, "events", "clicks", 0) is None

    @pytest.mark.parametrize("topics", [["orders"], ["clicks", "orders"]], ids=["alone", "with others"])
    def test_has_the_reason_why_a_run_could_not_be_started(
        self, topics: list[str], instance: dg.DagsterInstance
    ) -> None:
        found = fail_to_start(instance, topics)
        reason = "it could not be started: Unexpected error in IPC client"
        assert last_failure(instance, "events", "orders", 0) == f"run {found}: {reason}"
        assert last_failure(instance, "events", "payments", 0) is None

    @pytest.mark.parametrize(
        ("sink", "error", "words"),
        [
            ("lake/events", dg.Failure("Kafka did not answer"), ": Kafka did not answer"),
            ("events", KeyError("x"), "KeyError"),
        ],
        ids=["under the prefix of a component", "an exception that is not ours"],
    )
    def test_is_found(self, sink: str, error: Exception, words: str, instance: dg.DagsterInstance) -> None:
        found = run(instance, error, {**ALONE, dagster_names.SINK: sink})
        failure = last_failure(instance, "events", "orders", 0) or ""
        assert failure.startswith(f"run {found}: ")
        assert words in failure


def test_a_long_queue_of_a_backfill_hides_no_run_that_lands(instance: dg.DagsterInstance) -> None:
    sink = make_sink()
    entries = catalog(sink)
    selection = frozenset({entries.key(sink, "orders")})
    lands = add_run(instance, "__ASSET_JOB", dg.DagsterRunStatus.STARTED, asset_selection=selection)
    for _ in range(501):
        add_run(instance, "__ASSET_JOB", dg.DagsterRunStatus.QUEUED, asset_selection=selection)
    assert lands.run_id[:8] in (SinkRuns(instance, entries, sink, hours.now_ms()).run_of("orders") or "")


def test_a_run_of_the_whole_job_of_a_sink_lands_each_of_its_topics(instance: dg.DagsterInstance) -> None:
    sink = make_sink()
    run = add_run(instance, "land_events", dg.DagsterRunStatus.STARTED)
    assert run.run_id[:8] in (SinkRuns(instance, catalog(sink), sink, hours.now_ms()).run_of("orders") or "")


def test_a_run_that_could_not_be_started_is_asked_for_again_later_and_later(instance: dg.DagsterInstance) -> None:
    sink = make_sink()
    entries = catalog(sink)
    pauses = []
    for _ in range(5):
        fail_to_start(instance, ["orders"])
        runs = SinkRuns(instance, entries, sink, hours.now_ms(), "orders")
        reason = runs.reason_to_wait(runs.failures("orders", 0)) or ""
        assert "could not be started; the next request is " in reason
        pauses.append(int(reason.partition("request is ")[2].split()[0]))
    assert pauses == [1, 2, 4, 8, 10]
