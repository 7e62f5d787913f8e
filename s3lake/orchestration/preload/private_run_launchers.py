"""All that run launchers need of Dagster and that Dagster does not export. Nothing else here imports a private name.

Dagster documents `RunLauncher` and exports `DefaultRunLauncher`, but not the types of their methods, nor how a process
executes a run. Dagster's own launchers of other packages (dagster-docker, dagster-k8s) use the names below, or start
what they name as a command. `s3lake_tests/orchestration/preload/test_private_dagster.py` fails if one has changed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from dagster._cli.api import execute_run_command
from dagster._config.config_schema import UserConfigSchema as UserConfigSchema
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import CheckRunHealthResult as CheckRunHealthResult
from dagster._core.launcher import LaunchRunContext as LaunchRunContext
from dagster._core.launcher import WorkerStatus as WorkerStatus
from dagster._core.origin import RepositoryPythonOrigin
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClassData as ConfigurableClassData
from dagster._serdes import deserialize_value, serialize_value

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Code:
    """The code of a location, as its server has loaded it.

    Attributes:
        location: the name of the code location.
        server_id: another one after each reload.
        local: true if the code server is on this machine, by its address.
        python: the interpreter of the code server.
        directory: the directory from which the code is loaded; None for the directory of this process.
        origin: where the definitions are, for `load_definitions`.
    """

    location: str
    server_id: str
    local: bool
    python: str
    directory: str | None
    origin: str


def find_code(context: LaunchRunContext) -> Code | None:
    """Return the code of a run. None if the run has no code server, or does not name the place of its definitions.

    Raises:
        DagsterUserCodeUnreachableError: the code server does not answer.
    """
    run, workspace = context.dagster_run, context.workspace
    if run.remote_job_origin is None or run.job_code_origin is None or workspace is None:
        return None
    name = run.remote_job_origin.repository_origin.code_location_origin.location_name
    client = getattr(workspace.get_code_location(name), "client", None)
    if client is None:
        return None
    origin = run.job_code_origin.repository_origin
    return Code(
        location=name,
        server_id=client.get_server_id(),  # the location may be one that was loaded before the last reload
        local=bool(client.socket) or client.host in _LOCAL_HOSTS,
        python=origin.executable_path,
        directory=getattr(origin.code_pointer, "working_directory", None),
        origin=serialize_value(origin),
    )


def write_instance(instance: dg.DagsterInstance) -> str:
    """Return an instance as text, from which another process opens it."""
    return serialize_value(instance.get_ref())


def open_instance(text: str) -> dg.DagsterInstance:
    """Open the instance that `write_instance` wrote."""
    return dg.DagsterInstance.from_ref(deserialize_value(text, InstanceRef))


def read_environment(instance: str, location: str) -> Mapping[str, str]:
    """Return the variables that an instance sets for a code location, as its code server does: what `.env` has."""
    before = dict(os.environ)
    with open_instance(instance) as opened:
        opened.inject_env_vars(location)
    return {name: value for name, value in os.environ.items() if before.get(name) != value}


def load_definitions(origin: str) -> None:
    """Import the definitions of a code location, and build what a run asks them for."""
    repository = deserialize_value(origin, RepositoryPythonOrigin)
    ReconstructableRepository(
        repository.code_pointer,
        repository.container_image,
        repository.executable_path,
        repository.entry_point,
        repository.container_context,
    ).get_definition().get_all_jobs()


def execute_run(instance: str, origin: str, run_id: str) -> None:
    """Execute a run in this process, as the command `dagster api execute_run` does that other launchers start."""
    job = deserialize_value(origin, RepositoryPythonOrigin).get_job_origin("")  # the command reads it from the run
    arguments = serialize_value(ExecuteRunArgs(job, run_id, deserialize_value(instance, InstanceRef)))
    execute_run_command.main(args=[arguments], prog_name="dagster api execute_run", standalone_mode=False)


def report_crash(instance: str, run_id: str, message: str) -> None:
    """Report that a run has failed, unless it has ended."""
    with open_instance(instance) as opened:
        run = opened.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            opened.report_engine_event(message, run)
            opened.report_run_failed(run)
