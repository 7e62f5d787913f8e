"""A process that has imported what runs import, and is copied for each run.

A launcher starts it (`python -m s3lake.orchestration.preload.server FD`) and talks to it through the socket FD, a line
of JSON each way. It has one thread and no connection, so a copy that `fork` makes is as good as a new process that has
imported the same. When the launcher closes the socket or ends, it waits for its runs, and ends too.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from s3lake.orchestration import dagster_names
from s3lake.orchestration.preload import private_run_launchers
from s3lake.orchestration.preload.liveness import RunProcess

FINISHED = 86
"""The exit code of the process of a run that has executed its run. Every other one is of a process that crashed."""

IMPORTED = (
    "boto3.session",
    "botocore.client",
    "confluent_kafka.admin",
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "pyspark.cloudpickle",
    "pyspark.sql.connect.client",
    "pyspark.sql.connect.session",
    "s3lake.index.store.s3_store",
    "s3lake.land.many_topics.landing_threads",
    "s3lake.land.hour.landing",
)
"""What runs of s3lake import when they need it."""

_LOOK_FOR_STOP_S = 5.0


@dataclass(frozen=True)
class Location:
    """The code location to load, as the launcher's first line has it.

    Attributes:
        instance: Dagster's instance, as text.
        name: the name of the code location.
        origin: where its definitions are, as text.
    """

    instance: str
    name: str
    origin: str


class UnfitError(Exception):
    """The process cannot be copied. The message is the reason."""


def main() -> int:
    """Load the location, and start runs until the launcher closes the socket. Return the exit code, of a copy too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the runs
    control = socket.socket(fileno=int(sys.argv[1]))
    location = Location(**json.loads(_receive_line(control)))
    began_s = time.monotonic()
    try:
        load_location(location)
        require_fit(control.fileno())
    except Exception as error:
        traceback.print_exc()
        _send(control, {"failed": f"{type(error).__name__}: {error}"})
        return 1
    gc.collect()
    gc.freeze()  # no copy touches these objects, so all share their pages
    _send(control, {"ready": True, "seconds": round(time.monotonic() - began_s, 1), "memory": _measure_memory()})
    run_id = RunServer(control, location).serve()
    if run_id is None:
        return 0
    execute(location, run_id)
    return FINISHED


def load_location(location: Location) -> None:
    """Import what a run needs, with the variables that the instance sets for the location."""
    os.environ.update(_ask_copy(lambda: private_run_launchers.read_environment(location.instance, location.name)))
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # importing Arrow would start a thread
    for module in IMPORTED:
        with contextlib.suppress(ImportError):  # a run that needs it raises
            importlib.import_module(module)
    del os.environ["JE_ARROW_MALLOC_CONF"]
    private_run_launchers.load_definitions(location.origin)


def require_fit(control: int) -> None:
    """Raise UnfitError if this process has a second thread, or a connection, which its copies would share.

    Args:
        control: the file descriptor of the socket that it has.
    """
    _ask_copy(dict)  # BLAS ends its threads before a fork, and starts them when it needs them
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if threads:
        raise UnfitError(f"the code location started threads when it was loaded: {', '.join(threads)}")
    count = sum(1 for _ in Path("/proc/self/task").iterdir())
    if count > 1:
        raise UnfitError(f"the code location started {count - 1} threads that are not Python's when it was loaded")
    connections = _list_sockets() - {control}
    if connections:
        raise UnfitError(f"the code location has {len(connections)} open connections after it was loaded")


def execute(location: Location, run_id: str) -> None:
    """Execute a run in this process, which is a copy."""
    if "numpy" in sys.modules:
        importlib.import_module("numpy").random.seed()  # or every run would have the same random numbers
    with private_run_launchers.open_instance(location.instance) as instance:
        instance.add_run_tags(run_id, {dagster_names.RUN_PROCESS: RunProcess.find(os.getpid()).write()})
    over = threading.Event()
    watch = threading.Thread(target=_wait_for_stop, args=(location, run_id, over), name="s3lake-stop", daemon=True)
    watch.start()
    try:
        private_run_launchers.execute_run(location.instance, location.origin, run_id)
    finally:
        over.set()
        watch.join()


def _wait_for_stop(location: Location, run_id: str, over: threading.Event) -> None:
    """Interrupt this process when a tag of its run asks for that: another machine can send it no signal."""
    if over.wait(_LOOK_FOR_STOP_S):
        return
    with private_run_launchers.open_instance(location.instance) as instance:
        while not over.wait(_LOOK_FOR_STOP_S):
            with contextlib.suppress(Exception):  # the storage may be unavailable for a while
                run = instance.get_run_by_id(run_id)
                if run is not None and dagster_names.STOP in run.tags:
                    os.kill(os.getpid(), signal.SIGINT)
                    return


class RunServer:
    """Starts runs as copies of this process, and reports crashed runs."""

    def __init__(self, control: socket.socket, location: Location) -> None:
        self._control, self._location = control, location
        self._runs: dict[int, str] = {}
        self._reporters: set[int] = set()
        self._signals = _open_signals(signal.SIGCHLD, signal.SIGTERM)

    def serve(self) -> str | None:
        """Start what the launcher orders. Return the id of the run in the process of a run; None when all ended."""
        while self._is_open() or self._runs or self._reporters:
            awaited = [self._signals[0], *([self._control.fileno()] if self._is_open() else [])]
            readable, _, _ = select.select(awaited, [], [])
            if self._signals[0] in readable and signal.SIGTERM in os.read(self._signals[0], 4096):
                self._control.close()
            elif self._control.fileno() in readable:
                line = _receive_line(self._control)
                if not line:
                    self._control.close()
                elif self._start(run_id := str(json.loads(line)["run_id"])):
                    return run_id
            self._collect()
        return None

    def _is_open(self) -> bool:
        return self._control.fileno() >= 0

    def _start(self, run_id: str) -> bool:
        """Start a run. Return True in its process."""
        pid = os.fork()
        if pid == 0:
            self._leave()
            return True
        self._runs[pid] = run_id
        with contextlib.suppress(OSError):  # the launcher has ended
            _send(self._control, {"pid": pid, "memory": _measure_memory()})
        return False

    def _leave(self) -> None:
        """Give up, in a copy, what belongs to the server."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in self._signals:
            os.close(descriptor)
        self._control.close()

    def _collect(self) -> None:
        """Collect the processes that have ended, and report crashed runs."""
        while self._runs or self._reporters:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._reporters.discard(pid)
            run_id, code = self._runs.pop(pid, None), os.waitstatus_to_exitcode(status)
            if run_id is not None and code != FINISHED:
                reason = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                self._report(run_id, f"The process of the run (pid: {pid}) {reason}.")

    def _report(self, run_id: str, message: str) -> None:
        """Report from another copy that a run has crashed: this process opens no database."""
        pid = os.fork()
        if pid == 0:
            self._leave()
            _end_copy(lambda: private_run_launchers.report_crash(self._location.instance, run_id, message))
        self._reporters.add(pid)


def _open_signals(*numbers: signal.Signals) -> tuple[int, int]:
    """Make signals readable as bytes. Return both ends of the pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)  # without a handler no byte is written
    return reader, writer


def _ask_copy(question: Callable[[], Mapping[str, str]]) -> dict[str, str]:
    """Return what a function returns in a copy of this process: what it opens and starts ends there.

    Raises:
        UnfitError: the function failed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _end_copy(lambda: os.write(writer, json.dumps(dict(question())).encode()))
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    os.waitpid(pid, 0)
    if not answer:
        raise UnfitError("a copy of the process failed; its output has the reason")
    values: dict[str, str] = json.loads(answer)
    return values


def _end_copy(work: Callable[[], object]) -> NoReturn:
    """Do something, and end this copy without the ends that the process it was copied from has registered."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _receive_line(control: socket.socket) -> bytes:
    """Return a line of the launcher, which sends the next one after an answer; nothing if it has closed the socket."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            part = control.recv(65536)
        except ConnectionError:
            return b""
        if not part:
            return b""
        line += part
    return line


def _send(control: socket.socket, message: Mapping[str, object]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _list_sockets() -> set[int]:
    """Return the file descriptors of this process that are sockets to somewhere."""
    sockets = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one of the directory itself
            if str(path.readlink()).startswith("socket:"):
                sockets.add(int(path.name))
    return sockets - {0, 1, 2}


def _measure_memory() -> int:
    """Return the resident bytes of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
