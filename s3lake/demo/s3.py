"""An S3 API on this machine.

It is moto for the demo and most tests, versitygw where real storage matters, MinIO where rights and encryption do.
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
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from s3lake.demo.process import GuardedProcess, Service, free_ports, spawn
from s3lake.errors import ConfigurationError, StoreUnavailableError

Server = Literal["moto", "versitygw", "minio"]

MINIO = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
"""The last that was published as a module of Go."""

MINIO_KEY = "lake"
"""The key of its own key management, which SSE-KMS may name."""

_ATTEMPTS = 5
_TAKEN = re.compile("(?:address|port) (?:is )?already in use", re.IGNORECASE)
_START_TIMEOUT_S = 60.0
_REGION = "us-east-1"


class EmbeddedS3(Service):
    """An S3 server on 127.0.0.1 that ends with this process, SIGKILL included, and forgets everything."""

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
        """Starts the server and waits until it listens.

        Args:
            server: `moto` keeps objects in memory; `versitygw` keeps them in a temporary directory and is much faster,
                but its binary has to be there (see `versitygw_binary`); so does `minio`, which knows users and keys.
            requests: a file that gets a line for each request, as S3 logs them; `versitygw` only.
            certificates: a directory with `public.crt`, `private.key` and, of who signed it, `ca.pem`; `minio` only.

        Raises:
            ConfigurationError: the server is not installed.
            StoreUnavailableError: the server did not start; the message ends with its log.
        """
        for _ in range(_ATTEMPTS):
            (port,) = free_ports(1)
            home = Path(tempfile.mkdtemp(prefix=f"s3lake-{server}-"))
            try:
                launch = _launch(server, port, home, requests, certificates)
                process = spawn(launch.command, home / "server.log", launch.env, remove=home)
            except BaseException:
                shutil.rmtree(home, ignore_errors=True)
                raise
            try:
                _wait_until_listening(process, launch.listens, f"{server} on 127.0.0.1:{port}")
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
        """Creates a bucket."""
        # A second of imports that nobody who only starts the server should pay.
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
    command: list[str]
    env: dict[str, str]
    # Has to be sure that it is this very process that listens: a stranger may have been faster to take the port.
    listens: Callable[[GuardedProcess], bool]


def versitygw_binary() -> Path | None:
    """The `versitygw` program on PATH or where `go install` puts it; None when there is none."""
    return _installed("versitygw")


def minio_binary() -> Path | None:
    """The `minio` program on PATH or where `go install` puts it; None when there is none."""
    return _installed("minio")


def _installed(name: str) -> Path | None:
    program = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go" / "bin"))
    return Path(program) if program else None


def _launch(server: Server, port: int, home: Path, requests: Path | None, certificates: Path | None) -> _Launch:
    match server:
        case "moto":
            return _moto(port)
        case "versitygw":
            return _versitygw(port, home, requests)
        case "minio":
            return _minio(port, home, certificates)


def _moto(port: int) -> _Launch:
    if importlib.util.find_spec("moto") is None:
        raise ConfigurationError(
            "The demo's S3 server, moto, is not installed. Install it: in a clone of s3lake, pip install '.[demo]'"
        )

    def listens(process: GuardedProcess) -> bool:
        return "Running on http://" in process.log()

    command = [sys.executable, "-m", "s3lake.demo.moto_server", "-H", "127.0.0.1", "-p", str(port)]
    return _Launch(command, dict(os.environ), listens)


def _versitygw(port: int, home: Path, requests: Path | None) -> _Launch:
    binary = versitygw_binary()
    if binary is None:
        raise ConfigurationError(
            "versitygw is neither on PATH nor in ~/go/bin. "
            "Install it: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0"
        )
    data = home / "data"
    data.mkdir()
    health = f"/{uuid.uuid4().hex}"
    command = [
        str(binary),
        "--quiet",
        "--keep-alive",
        "--port",
        f"127.0.0.1:{port}",
        "--region",
        _REGION,
        "--health",
        health,
        *(["--access-log", str(requests)] if requests else []),
        "posix",
    ]
    if not _keeps_attributes(data):
        sidecar = home / "attributes"
        sidecar.mkdir()
        command += ["--sidecar", str(sidecar)]
    # Every option can also come from the environment: only ours shall count.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VGW_", "ROOT_"))}
    env |= {"ROOT_ACCESS_KEY_ID": EmbeddedS3.access_key_id, "ROOT_SECRET_ACCESS_KEY": EmbeddedS3.secret_access_key}

    def listens(process: GuardedProcess) -> bool:  # noqa: ARG001 (moto's needs it)
        return _is_well(http.client.HTTPConnection("127.0.0.1", port, timeout=1), health)

    return _Launch([*command, str(data)], env, listens)


def _minio(port: int, home: Path, certificates: Path | None) -> _Launch:
    binary = minio_binary()
    if binary is None:
        raise ConfigurationError(f"minio is neither on PATH nor in ~/go/bin. Install it: go install {MINIO}")
    data = certificates or home / "certificates"
    command = [str(binary), "server", "--quiet", "--address", f"127.0.0.1:{port}", "--certs-dir", str(data)]
    # Every option can also come from the environment: only ours shall count.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MINIO_")}
    env |= {"MINIO_ROOT_USER": EmbeddedS3.access_key_id, "MINIO_ROOT_PASSWORD": EmbeddedS3.secret_access_key}
    env |= {"MINIO_SHUTDOWN_TIMEOUT": "0s"}  # nobody waits for its answers when it is ended
    env |= {"MINIO_BROWSER": "off", "MINIO_KMS_SECRET_KEY": f"{MINIO_KEY}:{base64.b64encode(bytes(32)).decode()}"}
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE

    def listens(process: GuardedProcess) -> bool:  # noqa: ARG001 (moto's needs it)
        secured = http.client.HTTPSConnection("127.0.0.1", port, timeout=1, context=unchecked)
        connection = secured if certificates else http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        return _is_well(connection, "/minio/health/cluster")

    return _Launch([*command, str(home / "data")], env, listens)


def _is_well(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _keeps_attributes(directory: Path) -> bool:
    """Whether files here can have extended attributes, where versitygw puts an object's metadata."""
    if sys.platform != "linux":
        return True
    try:
        os.setxattr(directory, "user.s3lake", b"1")
    except OSError:
        # tmpfs learnt this only with Linux 6.6.
        return False
    os.removexattr(directory, "user.s3lake")
    return True


def _wait_until_listening(process: GuardedProcess, listens: Callable[[GuardedProcess], bool], name: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.running and time.monotonic() < deadline:
        if listens(process):
            return
        time.sleep(0.02)
    what = "did not listen in time" if process.running else f"ended with exit code {process.returncode}"
    raise StoreUnavailableError(f"{name} {what}. The end of its log:\n{process.log()}")
