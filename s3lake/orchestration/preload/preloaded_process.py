"""A preloaded process, as its launcher sees it: `server.py` is what runs in it."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from s3lake.orchestration.preload.private_run_launchers import Code

_LOAD_S = 180.0
"""A busy machine takes a minute to load a large code location."""
_START_S = 60.0
_GROWTH = 1.5


class PreloadError(Exception):
    """No run was started. The message is the reason."""


class PreloadedProcess:
    """A process that has loaded a code location, and starts its runs."""

    def __init__(self, code: Code, instance: str) -> None:
        """Start the process, and wait until it has loaded the location.

        Raises:
            PreloadError: it could not be started or loaded.
        """
        self.code = code
        self._runs = 0
        self._control, server_end = socket.socketpair()
        directory = code.directory if code.directory and Path(code.directory).is_dir() else None
        command = [code.python, "-m", "s3lake.orchestration.preload.server", str(server_end.fileno())]
        try:
            self._process = subprocess.Popen(
                command, cwd=directory, stdin=subprocess.DEVNULL, pass_fds=[server_end.fileno()]
            )
        except OSError as error:
            self._control.close()
            raise PreloadError(f"{code.python} could not be started: {error}") from error
        finally:
            server_end.close()
        # It outlives its launcher while a run works; without this its end would leave a zombie.
        threading.Thread(target=self._process.wait, name="s3lake-preload", daemon=True).start()
        try:
            self._memory = self._first_memory = self._load(instance)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def is_usable(self, runs: int) -> bool:
        """Return whether it can start another run: it has not ended, started so many runs, or grown by half."""
        return (
            self._process.returncode is None
            and self._control.fileno() >= 0
            and self._runs < runs
            and self._memory <= self._first_memory * _GROWTH
        )

    def start_run(self, run_id: str) -> int:
        """Start a run. Return the number of its process.

        Raises:
            PreloadError: the run was not started.
            RuntimeError: the process ended while it started the run, so the run may have been started.
        """
        self._control.settimeout(_START_S)
        try:
            self._send({"run_id": run_id})
        except OSError as error:
            self.close()
            raise PreloadError(f"the preloaded process (pid: {self.pid}) has ended: {error}") from error
        try:
            answer = self._receive()
        except OSError as error:
            self.close()
            raise RuntimeError(
                f"The preloaded process (pid: {self.pid}) did not report that it started run {run_id}: {error}. "
                "The run is not started a second time."
            ) from error
        self._runs, self._memory = self._runs + 1, int(answer["memory"])
        return int(answer["pid"])

    def close(self) -> None:
        """Have the process end, after its runs."""
        self._control.close()

    def _load(self, instance: str) -> int:
        self._control.settimeout(_LOAD_S)
        began_s = time.monotonic()
        try:
            self._send({"instance": instance, "name": self.code.location, "origin": self.code.origin})
            answer = self._receive()
        except TimeoutError as error:
            self._process.kill()
            raise PreloadError(
                f"loading the code location took longer than {time.monotonic() - began_s:.0f} s"
            ) from error
        except OSError as error:
            code = self._process.wait(timeout=_START_S)
            raise PreloadError(f"the preloaded process ended with exit code {code} before it was ready") from error
        if "failed" in answer:
            raise PreloadError(str(answer["failed"]))
        return int(answer["memory"])

    def _send(self, message: Mapping[str, object]) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self) -> dict[str, Any]:
        line = b""
        while not line.endswith(b"\n"):
            part = self._control.recv(65536)
            if not part:
                raise ConnectionError("it closed its end")
            line += part
        message: dict[str, Any] = json.loads(line)
        return message
