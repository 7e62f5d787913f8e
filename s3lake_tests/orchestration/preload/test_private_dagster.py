"""What `private_dagster.py` takes for granted. If a test fails after an update of Dagster, that module must change."""

import inspect

import dagster as dg
from dagster._cli.api import execute_run_command
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._core.storage.dagster_run import DagsterRun
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import ExecuteRunArgs

from s3lake.orchestration.preload.run_launcher import PreloadedRunLauncher


def test_launchers_have_the_methods_that_ours_overrides() -> None:
    assert RunLauncher.__abstractmethods__ == {"launch_run", "terminate"}
    ours = {name for name in vars(PreloadedRunLauncher) if not name.startswith("_")}
    assert [name for name in sorted(ours) if not hasattr(dg.DefaultRunLauncher, name)] == []
    assert hasattr(dg.DefaultRunLauncher(), "_run_ids")


def test_context_and_health_have_the_fields_that_are_used() -> None:
    assert {"dagster_run", "workspace"} <= set(LaunchRunContext._fields)
    assert CheckRunHealthResult._fields[:2] == ("status", "msg")
    assert {"RUNNING", "FAILED"} <= set(WorkerStatus.__members__)


def test_run_names_its_code_and_a_client_its_server() -> None:
    assert {"remote_job_origin", "job_code_origin"} <= set(inspect.signature(DagsterRun).parameters)
    client = DagsterGrpcClient(host="localhost", port=1)
    assert (client.host, client.socket) == ("localhost", None)
    assert callable(client.get_server_id)


def test_command_that_executes_a_run_takes_its_arguments_as_text() -> None:
    assert execute_run_command.params[0].name == "input_json"
    assert list(inspect.signature(ExecuteRunArgs.__new__).parameters)[1:4] == ["job_origin", "run_id", "instance_ref"]
