"""An instance with the launcher, its code server and the code location of `location.py`, as the daemon has them."""

import logging
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.test_utils import create_run_for_test, instance_for_test
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration

from s3lake_tests.kit.processes import until

LOCATION = "here"


class LaunchingSite:
    """Runs are launched in this process, as the daemon launches them."""

    def __init__(self, instance: dg.DagsterInstance, workspace: WorkspaceProcessContext, home: Path) -> None:
        self.instance, self._workspace, self.home = instance, workspace, home

    def launch(self, job_name: str) -> str:
        """Launch a run. Return its id."""
        context = self._workspace.create_request_context()
        job = context.get_code_location(LOCATION).get_repositories()["__repository__"].get_full_job(job_name)
        run = create_run_for_test(
            self.instance,
            job_name=job_name,
            remote_job_origin=job.get_remote_origin(),
            job_code_origin=job.get_python_origin(),
        )
        self.instance.launch_run(run.run_id, context)
        return run.run_id

    def run(self, job_name: str) -> dict[str, str]:
        """Launch a run and wait for its success. Return its tags."""
        run_id = self.launch(job_name)
        self.wait_for_end(run_id)
        assert self.status(run_id) == dg.DagsterRunStatus.SUCCESS, self.log(run_id)
        return self.tags(run_id)

    def start_waiting(self) -> tuple[str, int]:
        """Launch a run that waits. Return its id and its process when it waits."""
        run_id = self.launch("waiting")
        until(lambda: "waiting" in self.tags(run_id))
        return run_id, int(self.tags(run_id)["waiting"])

    def end_waiting(self) -> None:
        (self.home / "over").touch()

    def wait_for_end(self, run_id: str) -> None:
        until(lambda: self._find(run_id).is_finished)

    def status(self, run_id: str) -> dg.DagsterRunStatus:
        return self._find(run_id).status

    def tags(self, run_id: str) -> dict[str, str]:
        return dict(self._find(run_id).tags)

    def log(self, run_id: str) -> str:
        return "\n".join(entry.message or entry.user_message for entry in self.instance.all_logs(run_id))

    def reload(self) -> None:
        self._workspace.reload_code_location(LOCATION)

    def monitor(self) -> None:
        """Look at the runs once, as the daemon's monitoring does."""
        errors = execute_run_monitoring_iteration(self._workspace, logging.getLogger())
        assert [error for error in errors if error] == []

    def _find(self, run_id: str) -> dg.DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run


@contextmanager
def open_site(home: Path, *, fault: str = "", settings: dict[str, object] | None = None) -> Iterator[LaunchingSite]:
    """Yield a site whose processes end with the block."""
    write_location(home, fault)
    launcher = {"module": "s3lake", "class": "PreloadedRunLauncher", "config": settings or {}}
    monitored = {"enabled": True, "start_timeout_seconds": 600}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCATION_HOME", str(home))
        try:
            with instance_for_test(overrides={"run_launcher": launcher, "run_monitoring": monitored}) as instance:
                target = PythonFileTarget(str(home / "location.py"), "defs", str(home), LOCATION)
                with WorkspaceProcessContext(instance, target) as workspace:
                    yield LaunchingSite(instance, workspace, home)
                    (home / "over").touch()
            until(lambda: preloaded(home) == [])
        finally:
            for process in preloaded(home):
                process.send_signal(signal.SIGKILL)


def write_location(home: Path, fault: str) -> None:
    """Write the code location, which has a fault when it is loaded."""
    shutil.copy(Path(__file__).with_name("location.py"), home / "location.py")
    (home / "version").write_text("1")
    (home / "fault").write_text(fault)
    (home / ".env").write_text("FROM_DOTENV=found\n")


def preloaded(home: Path) -> list[psutil.Process]:
    """Return the preloaded processes of a site, with their runs."""
    found = []
    for process in psutil.process_iter():
        try:
            if "s3lake.orchestration.preload.server" in process.cmdline() and process.cwd() == str(home):
                found.append(process)
        except psutil.Error:
            continue
    return found
