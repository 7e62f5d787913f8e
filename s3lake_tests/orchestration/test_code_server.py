"""`s3lake code-server`: runs in processes that are forked from one which has imported everything."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
import yaml

from s3lake.cli import main
from s3lake.demo.process import free_ports
from s3lake.orchestration.code_server import IMPORTS
from s3lake_tests.processes import MARK, kill_all, marked, until

_DEFINITIONS = """
import sys, time
import dagster as dg

SAYS = "{says}"
IMPORTED = sorted(sys.modules)

@dg.op
def look(context):
    context.log.info("says " + SAYS)
    context.log.info("imported " + " ".join(name for name in {imports!r} if name in IMPORTED))

@dg.op
def wait():
    time.sleep(300)

@dg.job(executor_def=dg.in_process_executor)
def short():
    look()

@dg.job(executor_def=dg.in_process_executor)
def long():
    wait()

defs = dg.Definitions(jobs=[short, long])
"""
_INSTANCE = {
    "telemetry": {"enabled": False},
    "run_coordinator": {
        "module": "dagster._core.run_coordinator",
        "class": "DefaultRunCoordinator",
    },  # without a daemon
}


class Server:
    """The command in a process of its own, and an instance whose workspace is that code server."""

    def __init__(self, home: Path) -> None:
        [port] = free_ports(1)
        self.home, self.mark = home, str(uuid.uuid4())
        self.write("one")
        (home / "dagster.yaml").write_text(yaml.safe_dump(_INSTANCE))
        server = {"host": "127.0.0.1", "port": port, "location_name": "ours"}
        (home / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))
        path = os.pathsep.join([str(home), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._environment = {**os.environ, "DAGSTER_HOME": str(home), "PYTHONPATH": path}
        command = [sys.executable, "-c", "from s3lake.cli import main; main()", "code-server"]
        with (home / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--module-name", "looked_at", "--port", str(port)],
                env={**self._environment, MARK: self.mark},
                stdout=log,
                stderr=log,
                preexec_fn=_in_the_background,
            )
        until(120, lambda: "Started Dagster code server" in (home / "server.log").read_text())

    def write(self, says: str) -> None:
        """The module whose definitions it serves."""
        (self.home / "looked_at.py").write_text(_DEFINITIONS.format(says=says, imports=IMPORTS))

    def launch(self, job: str) -> str:
        """As somebody in the UI does; the run's id."""
        run_id = str(uuid.uuid4())
        command = ["job", "launch", "-w", str(self.home / "workspace.yaml"), "-j", job, "--run-id", run_id]
        subprocess.run([sys.executable, "-m", "dagster", *command], env=self._environment, check=True, timeout=120)
        return run_id

    def ended(self, run_id: str) -> dg.DagsterRunStatus:
        """What became of a run."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            until(60, lambda: instance.get_run_by_id(run_id).is_finished)  # type: ignore[union-attr]
            run = instance.get_run_by_id(run_id)
            assert run is not None
            return run.status

    def lines(self, run_id: str) -> list[str]:
        """What its ops said."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return [entry.user_message for entry in instance.all_logs(run_id) if entry.dagster_event is None]


def _in_the_background() -> None:
    """What a script's `&` does to a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("code-server"))
    try:
        yield made
    finally:
        kill_all(made.mark)
        made.process.wait(10)


@pytest.mark.slow("starts a code server; goes with ours")
@pytest.mark.long
def test_a_run_has_everything_imported_before_its_definitions_are(server: Server) -> None:
    run_id = server.launch("short")
    assert server.ended(run_id) == dg.DagsterRunStatus.SUCCESS
    assert server.lines(run_id)[:2] == ["says one", f"imported {' '.join(IMPORTS)}"]


@pytest.mark.slow("starts a code server; goes with ours")
@pytest.mark.long
def test_definitions_of_ours_find_all_of_s3lake_and_dagster_s_storage_imported() -> None:
    script = f"""
import importlib, sys
for name in {IMPORTS!r}:
    importlib.import_module(name)
before = set(sys.modules)
import dagster._core.storage.runs, s3lake.definitions, s3lake.orchestration.fleet
print(*(set(sys.modules) - before))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["s3lake.definitions"]


@pytest.mark.slow("starts a code server; goes with ours")
@pytest.mark.long
def test_definitions_are_loaded_by_each_run_as_they_are_then(server: Server) -> None:
    server.write("two")
    run_id = server.launch("short")
    assert server.ended(run_id) == dg.DagsterRunStatus.SUCCESS
    assert server.lines(run_id)[0] == "says two"


@pytest.mark.slow("starts a code server; goes with ours")
@pytest.mark.long
def test_a_killed_run_is_seen_to_have_failed_by_a_server_that_goes_on(server: Server) -> None:
    run_id = server.launch("long")
    _worker(server, run_id).kill()
    assert server.ended(run_id) == dg.DagsterRunStatus.FAILURE
    assert server.ended(server.launch("short")) == dg.DagsterRunStatus.SUCCESS


@pytest.mark.slow("starts a code server; goes with ours")
@pytest.mark.long
def test_runs_are_terminated_and_the_end_of_the_server_leaves_no_process(server: Server) -> None:
    run_id = server.launch("long")
    worker = _worker(server, run_id)
    with dg.DagsterInstance.from_config(str(server.home)) as instance:
        assert instance.run_launcher.terminate(run_id)
    assert server.ended(run_id) == dg.DagsterRunStatus.CANCELED
    psutil.wait_procs([worker], timeout=30)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    until(10, lambda: not marked(server.mark))


def _worker(server: Server, run_id: str) -> psutil.Process:
    """The process of a run, once its op is at work."""
    with dg.DagsterInstance.from_config(str(server.home)) as instance:

        def begun() -> list[int]:
            events = [entry.dagster_event for entry in instance.all_logs(run_id)]
            return [event.pid for event in events if event and event.event_type_value == "STEP_START" and event.pid]

        until(60, lambda: bool(begun()))
        return psutil.Process(begun()[0])


def test_an_address_that_is_taken_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["s3lake", "code-server", "--port", port])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    assert f"--host 127.0.0.1 --port {port}: cannot listen there: Address already in use" in capsys.readouterr().err
