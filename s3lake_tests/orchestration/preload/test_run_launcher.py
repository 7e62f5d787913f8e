"""The launcher with a real code server, real processes and an instance in files, as Dagster's daemon has them."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from s3lake.orchestration import dagster_names
from s3lake.orchestration.preload.liveness import RunProcess
from s3lake_tests.kit.processes import until
from s3lake_tests.orchestration.preload.site import LaunchingSite, open_site, preloaded

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site").resolve()


@pytest.fixture(scope="module")
def _opened(_home: Path) -> Iterator[LaunchingSite]:
    with open_site(_home) as site:
        yield site


@pytest.fixture
def site(_opened: LaunchingSite) -> LaunchingSite:
    (_opened.home / "over").unlink(missing_ok=True)
    return _opened


def test_runs_are_copies_of_one_process_with_random_numbers_of_their_own(site: LaunchingSite) -> None:
    first, second = site.run("reporting"), site.run("reporting")
    assert first["parent"] == second["parent"]
    assert "preload.server" in " ".join(psutil.Process(int(first["parent"])).cmdline())
    assert set(first["numbers"].split()).isdisjoint(second["numbers"].split())


def test_run_has_the_directory_and_the_variables_of_the_code_server(site: LaunchingSite) -> None:
    tags = site.run("reporting")
    assert (tags["directory"], tags["variable"]) == (str(site.home), "found")


def test_run_with_a_process_for_each_step_succeeds(site: LaunchingSite) -> None:
    assert site.run("reporting_in_processes")["version"] == "1"


def test_terminated_run_is_canceled(site: LaunchingSite) -> None:
    run_id, pid = site.start_waiting()
    assert site.instance.run_launcher.terminate(run_id)
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.CANCELED
    until(lambda: not psutil.pid_exists(pid))
    assert not site.instance.run_launcher.terminate(run_id)


def test_run_of_another_machine_is_canceled_through_its_tags(
    site: LaunchingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, _ = site.start_waiting()
    monkeypatch.setattr(socket, "gethostname", lambda: "webserver")
    assert site.instance.run_launcher.terminate(run_id)
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.CANCELED
    assert dagster_names.STOP in site.tags(run_id)


def test_run_ends_on_sigterm(site: LaunchingSite) -> None:
    run_id, pid = site.start_waiting()
    os.kill(pid, signal.SIGTERM)
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.FAILURE
    assert "interrupt" in site.log(run_id)


def test_killed_run_is_failed_at_once_and_the_process_starts_others(site: LaunchingSite) -> None:
    run_id, pid = site.start_waiting()
    os.kill(pid, signal.SIGKILL)
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.FAILURE
    assert f"(pid: {pid}) was ended by signal 9" in site.log(run_id)
    assert site.run("reporting")["parent"] == site.tags(run_id)["parent"]


def test_run_whose_process_exits_by_itself_is_failed(site: LaunchingSite) -> None:
    run_id = site.launch("leaving")
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.FAILURE
    assert "ended with exit code 0" in site.log(run_id)


def test_preloaded_process_has_no_zombies(site: LaunchingSite) -> None:
    parent = psutil.Process(int(site.run("reporting")["parent"]))
    until(lambda: parent.children() == [])


def test_run_outlives_the_killed_preloaded_process_and_the_next_one_has_another(site: LaunchingSite) -> None:
    run_id, _ = site.start_waiting()
    parent = int(site.tags(run_id)["parent"])
    os.kill(parent, signal.SIGKILL)
    until(lambda: not psutil.pid_exists(parent))
    assert site.run("reporting")["parent"] != str(parent)
    site.end_waiting()
    site.wait_for_end(run_id)
    assert site.status(run_id) == dg.DagsterRunStatus.SUCCESS


def test_monitoring_fails_a_run_that_was_killed_with_its_preloaded_process(site: LaunchingSite) -> None:
    run_id, pid = site.start_waiting()
    site.monitor()
    assert site.status(run_id) == dg.DagsterRunStatus.STARTED
    os.kill(int(site.tags(run_id)["parent"]), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    process = RunProcess.read(site.tags(run_id)[dagster_names.RUN_PROCESS])
    until(lambda: not process.is_alive())
    site.monitor()
    assert site.status(run_id) == dg.DagsterRunStatus.FAILURE
    assert f"process {pid} on {socket.gethostname()} has ended" in site.log(run_id)


def test_reload_replaces_the_process_when_its_runs_have_ended(site: LaunchingSite) -> None:
    waiting_id, _ = site.start_waiting()
    before = int(site.tags(waiting_id)["parent"])
    (site.home / "version").write_text("2")
    assert site.run("reporting")["version"] == "1"
    site.reload()
    tags = site.run("reporting")
    assert tags["version"] == "2"
    assert int(tags["parent"]) != before
    assert psutil.pid_exists(before)
    site.end_waiting()
    site.wait_for_end(waiting_id)
    until(lambda: not psutil.pid_exists(before))


def test_process_is_renewed_after_so_many_runs(tmp_path: Path) -> None:
    with open_site(tmp_path, settings={"renew_after_runs": 2}) as site:
        parents = [site.run("reporting")["parent"] for _ in range(3)]
        assert parents[0] == parents[1] != parents[2]
        until(lambda: [str(one.pid) for one in preloaded(tmp_path)] == [parents[2]])


@pytest.fixture(scope="module")
def unfit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchingSite]:
    """A site whose location cannot be preloaded."""
    with open_site(tmp_path_factory.mktemp("unfit").resolve(), fault="preload") as site:
        yield site


def test_run_starts_in_a_new_process_with_a_reason_when_the_location_cannot_be_preloaded(unfit: LaunchingSite) -> None:
    run_id = unfit.launch("reporting")
    unfit.wait_for_end(run_id)
    assert unfit.status(run_id) == dg.DagsterRunStatus.SUCCESS
    reason = "ValueError: cannot be loaded here"
    assert f"The run starts in a new process, and not as a copy of a preloaded one: {reason}" in unfit.log(run_id)
    assert dagster_names.RUN_PROCESS not in unfit.tags(run_id)


def test_run_in_a_new_process_is_monitored_and_terminated_by_its_code_server(unfit: LaunchingSite) -> None:
    run_id, _ = unfit.start_waiting()
    unfit.monitor()
    assert unfit.status(run_id) == dg.DagsterRunStatus.STARTED
    assert unfit.instance.run_launcher.terminate(run_id)
    unfit.wait_for_end(run_id)
    assert unfit.status(run_id) == dg.DagsterRunStatus.CANCELED
