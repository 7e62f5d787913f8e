"""An S3 API on this machine: moto for the demo and most tests, versitygw or MinIO for tests that need real storage.

`python -m s3lake.demo.s3 -H 127.0.0.1 -p PORT` is moto's server, with one writer at a time.
"""

import base64
import http.client
import importlib.util
import os
import re
import shutil
import ssl
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal

from s3lake.demo.process import GuardedProcess, Service, free_ports, spawn
from s3lake.errors import ConfigurationError, StoreUnavailableError

Server = Literal["moto", "versitygw", "minio"]

GO_PROGRAMS = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",  # the last that was published as Go module
}

MINIO_KEY = "lake"
"""The key of its own key management, which SSE-KMS may name."""

_ATTEMPTS = 5
_TAKEN = re.compile("(?:address|port) (?:is )?already in use", re.IGNORECASE)
_START_TIMEOUT_S = 60.0
_REGION = "us-east-1"


class EmbeddedS3(Service):
    """An S3 server on 127.0.0.1 that ends with this process, even after SIGKILL, and keeps nothing."""

    access_key_id = "s3lake-demo"
    secret_access_key = "s3lake-demo-secret"
    region = _REGION

    def __init__(self, process: GuardedProcess, port: int, server: Server, ca_file: Path | None = None) -> None:
        self._process = process
        self.endpoint_url = f"{'https' if ca_file else 'http'}://127.0.0.1:{port}"
        self.server = server
        self.ca_file = ca_file

    @classmethod
    def start(
        cls, server: Server = "moto", requests: Path | None = None, certificates: Path | None = None
    ) -> "EmbeddedS3":
        """Start the server and wait until it listens.

        Args:
            server: `moto` keeps objects in memory; `versitygw` keeps them in a temporary directory and is much faster;
                `minio` has users and encryption. The programs of the latter two must be installed (`find_program`).
            requests: a file that gets a line for each request, as S3 logs them; `versitygw` only.
            certificates: a directory with `public.crt`, `private.key` and the signer's `ca.pem`; `minio` only.

        Raises:
            ConfigurationError: the server is not installed.
            StoreUnavailableError: the server did not start; the message ends with its log.
        """
        for _ in range(_ATTEMPTS):
            (port,) = free_ports(1)
            home = Path(tempfile.mkdtemp(prefix=f"s3lake-{server}-"))
            try:
                launch = _prepare(server, port, home, requests, certificates)
                process = spawn(launch.command, home / "server.log", launch.env, remove=home)
            except BaseException:
                shutil.rmtree(home, ignore_errors=True)
                raise
            try:
                _wait_until_listening(process, launch, f"{server} on 127.0.0.1:{port}")
            except BaseException as error:
                log = process.log()
                process.stop()
                if isinstance(error, StoreUnavailableError) and _TAKEN.search(log):
                    continue
                raise
            return cls(process, port, server, certificates and certificates / "ca.pem")
        raise StoreUnavailableError(
            f"{server} found its port on 127.0.0.1 taken {_ATTEMPTS} times in a row. Stop what opens ports that fast."
        )

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
            verify=str(self.ca_file) if self.ca_file else None,
            config=Config(s3={"addressing_style": "path"}),
        )
        try:
            client.create_bucket(Bucket=name)
        finally:
            client.close()


@dataclass(frozen=True)
class _Launch:
    """How a server is started, and how it shows that it listens.

    The health check has a path, or moto a log, that only this very process has: another may have taken the port first.
    """

    command: list[str]
    env: dict[str, str]
    is_listening: Callable[[GuardedProcess], bool]


def find_program(name: str) -> Path | None:
    """Find a program on PATH or where `go install` puts it. Return None if it is not installed."""
    program = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go" / "bin"))
    return Path(program) if program else None


def _prepare(server: Server, port: int, home: Path, requests: Path | None, certificates: Path | None) -> _Launch:
    if server == "moto":
        return _prepare_moto(port)
    program, module, variables = find_program(server), GO_PROGRAMS[server], ("VGW_", "ROOT_", "MINIO_")
    if program is None:
        raise ConfigurationError(f"{server} is neither on PATH nor in ~/go/bin. Install it: go install {module}")
    # Every option can also come from the environment: only ours may count.
    env = {name: value for name, value in os.environ.items() if not name.startswith(variables)}
    if server == "versitygw":
        return _prepare_versitygw(program, env, port, home, requests)
    return _prepare_minio(program, env, port, home, certificates)


def _prepare_moto(port: int) -> _Launch:
    if importlib.util.find_spec("moto") is None:
        raise ConfigurationError(
            "The demo's S3 server, moto, is not installed. Install it: in a clone of s3lake, pip install '.[demo]'"
        )
    command = [sys.executable, "-m", "s3lake.demo.s3", "-H", "127.0.0.1", "-p", str(port)]
    return _Launch(command, dict(os.environ), lambda process: "Running on http://" in process.log())


def _prepare_versitygw(program: Path, env: dict[str, str], port: int, home: Path, requests: Path | None) -> _Launch:
    data, health = home / "data", f"/{uuid.uuid4().hex}"
    data.mkdir()
    command = [str(program), "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "--region", _REGION]
    command += ["--health", health, *(["--access-log", str(requests)] if requests else []), "posix"]
    if not _keeps_attributes(data):
        sidecar = home / "attributes"
        sidecar.mkdir()
        command += ["--sidecar", str(sidecar)]
    env |= {"ROOT_ACCESS_KEY_ID": EmbeddedS3.access_key_id, "ROOT_SECRET_ACCESS_KEY": EmbeddedS3.secret_access_key}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    return _Launch([*command, str(data)], env, lambda _: _is_healthy(connection, health))


def _prepare_minio(program: Path, env: dict[str, str], port: int, home: Path, certificates: Path | None) -> _Launch:
    secured = str(certificates or home / "certificates")
    command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{port}", "--certs-dir", secured]
    env |= {
        "MINIO_ROOT_USER": EmbeddedS3.access_key_id,
        "MINIO_ROOT_PASSWORD": EmbeddedS3.secret_access_key,
        "MINIO_SHUTDOWN_TIMEOUT": "0s",
        "MINIO_BROWSER": "off",
        "MINIO_KMS_SECRET_KEY": f"{MINIO_KEY}:{base64.b64encode(bytes(32)).decode()}",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    if certificates:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=1, context=unchecked)
    return _Launch([*command, str(home / "data")], env, lambda _: _is_healthy(connection, "/minio/health/cluster"))


def _is_healthy(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _keeps_attributes(directory: Path) -> bool:
    """Return whether files here can have extended attributes, where versitygw stores an object's metadata."""
    if sys.platform != "linux":
        return True
    try:
        os.setxattr(directory, "user.s3lake", b"1")
    except OSError:  # tmpfs has them since Linux 6.6 only
        return False
    os.removexattr(directory, "user.s3lake")
    return True


def _wait_until_listening(process: GuardedProcess, launch: _Launch, name: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.running and time.monotonic() < deadline:
        if launch.is_listening(process):
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
