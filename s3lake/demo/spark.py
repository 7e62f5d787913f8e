"""Warm Spark sessions on this machine: `s3lake spark`, restarted on the same port if it crashes."""

import sys
import time
from pathlib import Path

from s3lake.demo.process import GuardedProcess, Service, free_port, free_ports, spawn
from s3lake.errors import SparkUnavailableError

_START_TIMEOUT_S = 60.0
_ENDING_S = 20.0  # it first stops Python workers and deletes temporary files


class EmbeddedSpark(Service):
    """A Spark Connect server on 127.0.0.1 that ends with this process, even after SIGKILL."""

    def __init__(self, command: list[str | Path], log: Path, port: int) -> None:
        self._command, self._log, self._port = command, log, port
        self._process = self._spawned()

    @classmethod
    def start(cls, config: Path, master: str, log: Path) -> "EmbeddedSpark":
        """Start the server for a configuration and a master, with its output in `log`; `ready` waits for it."""
        (port,) = free_ports(1)
        program = [sys.executable, "-c", "from s3lake.cli import main; main()"]
        return cls([*program, "spark", config, "--master", master, "--port", str(port)], log, port)

    @property
    def address(self) -> str:
        """The value of `spark.master`."""
        return f"sc://127.0.0.1:{self._port}"

    def ready(self) -> None:
        """Wait until it serves. Raise SparkUnavailableError if it does not start; the message ends with its log."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while free_port(self._port):
            if not self._process.running or time.monotonic() > deadline:
                raise SparkUnavailableError(
                    f"{self.address} does not serve. The end of its log:\n{self._process.log()}"
                )
            time.sleep(0.05)

    def keep(self) -> None:
        """Restart it if it has ended."""
        if not self._process.running:
            self._process.stop()
            self._process = self._spawned()

    def _spawned(self) -> GuardedProcess:
        return spawn(self._command, self._log, grace_s=_ENDING_S)
