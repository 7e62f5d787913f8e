"""An S3 API on this machine: moto's server, which keeps objects in memory.

`python -m s3lake.demo.s3 -H 127.0.0.1 -p PORT` is this server, with one writer at a time.
"""

import importlib.util
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from s3lake.demo.process import GuardedProcess, Service, free_ports, spawn
from s3lake.errors import ConfigurationError, StoreUnavailableError

_ATTEMPTS = 5
_TAKEN = re.compile("(?:address|port) (?:is )?already in use", re.IGNORECASE)
_START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Launch:
    """How a server is started, and how it shows that it listens.

    What shows it is the log or an answer of this very process: another may have taken the port first.
    """

    command: list[str]
    is_listening: Callable[[GuardedProcess], bool]
    env: Mapping[str, str] | None = None


class EmbeddedS3(Service):
    """An S3 server on 127.0.0.1 that ends with this process, even after SIGKILL, and keeps nothing."""

    access_key_id = "s3lake-demo"
    secret_access_key = "s3lake-demo-secret"
    region = "us-east-1"

    def __init__(self, process: GuardedProcess, port: int) -> None:
        self._process = process
        self.endpoint_url = f"http://127.0.0.1:{port}"

    @classmethod
    def start(cls) -> "EmbeddedS3":
        """Start moto and wait until it listens.

        Raises:
            ConfigurationError: moto is not installed.
            StoreUnavailableError: it did not start; the message ends with its log.
        """
        if importlib.util.find_spec("moto") is None:
            raise ConfigurationError(
                "The demo's S3 server, moto, is not installed. Install it: in a clone of s3lake, pip install '.[demo]'"
            )

        def prepare(port: int, _: Path) -> Launch:
            command = [sys.executable, "-m", "s3lake.demo.s3", "-H", "127.0.0.1", "-p", str(port)]
            return Launch(command, lambda process: "Running on http://" in process.log())

        return cls(*launch("moto", prepare))

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        # Imported here: it takes a second, and starting the server does not need it.
        import boto3
        from botocore.config import Config

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name=self.region,
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        try:
            client.create_bucket(Bucket=name)
        finally:
            client.close()


def launch(name: str, prepare: Callable[[int, Path], Launch]) -> tuple[GuardedProcess, int]:
    """Start a server on a free port and wait until it listens; return its process and port.

    `prepare` gets the port and a directory, which is deleted when the server has ended.
    """
    for _ in range(_ATTEMPTS):
        (port,) = free_ports(1)
        home = Path(tempfile.mkdtemp(prefix=f"s3lake-{name}-"))
        try:
            server = prepare(port, home)
            process = spawn(server.command, home / "server.log", server.env, remove=home)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        try:
            _wait_until_listening(process, server, f"{name} on 127.0.0.1:{port}")
        except BaseException as error:
            log = process.log()
            process.stop()
            if isinstance(error, StoreUnavailableError) and _TAKEN.search(log):
                continue
            raise
        return process, port
    raise StoreUnavailableError(
        f"{name} found its port on 127.0.0.1 taken {_ATTEMPTS} times in a row. Stop what opens ports that fast."
    )


def _wait_until_listening(process: GuardedProcess, server: Launch, name: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.running and time.monotonic() < deadline:
        if server.is_listening(process):
            return
        time.sleep(0.02)
    what = "did not listen in time" if process.running else f"ended with exit code {process.returncode}"
    raise StoreUnavailableError(f"{name} {what}. The end of its log:\n{process.log()}")


def _serve_moto() -> None:
    """Run moto's server. Each request is a thread of moto's, which checks a condition and then writes.

    Without the lock two writers with one condition could both succeed; no S3 that s3lake may land in allows that.
    """
    from moto import server
    from moto.s3.responses import S3Response

    writing = threading.Lock()

    def lock(respond: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(respond)
        def respond_alone(*arguments: Any, **options: Any) -> Any:
            with writing:  # the request's body has been read: a slow client blocks no other
                return respond(*arguments, **options)

        return respond_alone

    for name in ("put_object", "_key_response_post"):  # the latter completes uploads
        setattr(S3Response, name, lock(getattr(S3Response, name)))
    server.main()


if __name__ == "__main__":
    _serve_moto()
