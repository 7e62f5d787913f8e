"""A run launcher that starts runs as copies of a process which has loaded the code location."""

import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.orchestration import dagster_names
from s3lake.orchestration.preload.liveness import RunProcess
from s3lake.orchestration.preload.preloaded_process import PreloadedProcess, PreloadError
from s3lake.orchestration.preload.private_run_launchers import (
    CheckRunHealthResult,
    Code,
    ConfigurableClassData,
    LaunchRunContext,
    UserConfigSchema,
    WorkerStatus,
    find_code,
    write_instance,
)

if TYPE_CHECKING:
    from typing_extensions import Self

_RUNS = 1000
_AGAIN_S = 300.0


class PreloadedRunLauncher(dg.DefaultRunLauncher):
    """Starts each run as a copy of a process that has imported everything, in place of a new process.

    A run needs two to four CPU seconds to import what it works with. This launcher keeps a process for each code
    location that has done so, on the machine of the daemon, and forks it for each run. An instance names it in
    `dagster.yaml`:

    ```yaml
    run_launcher: {module: s3lake, class: PreloadedRunLauncher}
    ```

    A run that cannot be started so starts as `DefaultRunLauncher` starts it, and its log has the reason. Reloading the
    code location replaces the process.
    """

    def __init__(
        self,
        locations: Sequence[str] = (),
        renew_after_runs: int = _RUNS,
        inst_data: ConfigurableClassData | None = None,
    ) -> None:
        """Make a launcher; Dagster does, from `dagster.yaml`.

        Args:
            locations: names of code locations whose servers are on other hosts, and whose runs start on this one.
            renew_after_runs: runs that a process starts before another one replaces it.
            inst_data: Dagster's.
        """
        super().__init__(inst_data)
        self._locations, self._renew_after_runs = frozenset(locations), renew_after_runs
        self._preloads: dict[str, _Preload] = {}
        self._lock = threading.Lock()

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {
            "locations": dg.Field([str], is_required=False, default_value=[]),
            "renew_after_runs": dg.Field(int, is_required=False, default_value=_RUNS),
        }

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> "Self":
        return cls(**config_value, inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        try:
            code = find_code(context)
            if code is None:
                raise PreloadError("the run has no code server")
            self._require_here(code)
            self._find_preload(code).start_run(code, write_instance(self._instance), run.run_id)
        except PreloadError as error:
            message = f"The run starts in a new process, and not as a copy of a preloaded one: {error}"
            self._instance.report_engine_event(message, run, cls=self.__class__)
            super().launch_run(context)
        else:
            self._run_ids.add(run.run_id)

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        if run is None or run.is_finished or dagster_names.RUN_PROCESS not in run.tags:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        process = RunProcess.read(run.tags[dagster_names.RUN_PROCESS])
        self._instance.report_run_canceling(run)
        if process.is_here():
            return process.send_signal(signal.SIGINT)
        self._instance.add_run_tags(run_id, {dagster_names.STOP: "1"})  # its own process looks for it
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        text = run.tags.get(dagster_names.RUN_PROCESS)
        process = None if text is None else RunProcess.read(text)
        if process is None or not process.is_here() or process.is_alive():
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"process {process.pid} on {process.host} has ended")

    def dispose(self) -> None:
        with self._lock:
            for preload in self._preloads.values():
                preload.close()
            self._preloads.clear()

    def _require_here(self, code: Code) -> None:
        if not sys.platform.startswith("linux"):
            raise PreloadError("only on Linux a process can be copied safely")
        if not code.local and code.location not in self._locations:
            raise PreloadError(
                f"the code server of {code.location} is on another host; if this host has the same code, files and "
                "variables, name it in run_launcher.config.locations"
            )

    def _find_preload(self, code: Code) -> "_Preload":
        with self._lock:
            return self._preloads.setdefault(code.location, _Preload(self._renew_after_runs))


class _Preload:
    """The preloaded process of one code location, which is replaced when the code or the process is too old."""

    def __init__(self, renew_after_runs: int) -> None:
        self._renew_after_runs = renew_after_runs
        self._process: PreloadedProcess | None = None
        self._failed: tuple[str, str, float] | None = None
        self._lock = threading.Lock()

    def start_run(self, code: Code, instance: str, run_id: str) -> None:
        """Start a run of the location.

        Raises:
            PreloadError: the run was not started.
        """
        with self._lock:
            self._find_process(code, instance).start_run(run_id)

    def close(self) -> None:
        """Have the process end, after its runs."""
        if self._process is not None:
            self._process.close()

    def _find_process(self, code: Code, instance: str) -> PreloadedProcess:
        process = self._process
        if process is not None and process.code == code and process.is_usable(self._renew_after_runs):
            return process
        if process is not None:
            process.close()
            self._process = None
        if self._failed is not None:
            server_id, reason, at_s = self._failed
            if server_id == code.server_id and time.monotonic() - at_s < _AGAIN_S:
                raise PreloadError(reason)
        try:
            self._process = PreloadedProcess(code, instance)
        except PreloadError as error:
            self._failed = code.server_id, str(error), time.monotonic()
            raise
        return self._process
