"""S3 servers of tests next to moto: versitygw keeps objects in files and is fast, MinIO has users and encryption."""

import base64
import http.client
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Literal

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import Launch
from s3lake.errors import ConfigurationError
from s3lake.index.store.s3_connection import S3Connection

Server = Literal["moto", "versitygw", "minio"]

GO_PROGRAMS = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",  # the last that was published as Go module
}

MINIO_KEY = "lake"
"""The key of its own key management, which SSE-KMS may name."""


def connection_to(server: EmbeddedS3) -> S3Connection:
    """Return the connection with the server's keys."""
    return S3Connection(
        endpoint_url=server.endpoint_url,
        region=server.region,
        access_key_id=server.access_key_id,
        secret_access_key=server.secret_access_key,
    )


def start_s3(server: Server = "moto", requests: Path | None = None) -> EmbeddedS3:
    """Start a server and wait until it listens.

    Args:
        server: which one; the programs of all but moto must be installed (`find_program`).
        requests: a file that gets a line for each request, as S3 logs them; versitygw only.
    """
    if server == "moto":
        return EmbeddedS3.start()
    program, module, variables = find_program(server), GO_PROGRAMS[server], ("VGW_", "ROOT_", "MINIO_")
    if program is None:
        raise ConfigurationError(f"{server} is neither on PATH nor in ~/go/bin. Install it: go install {module}")
    # Every option can also come from the environment: only ours may count.
    env = {name: value for name, value in os.environ.items() if not name.startswith(variables)}

    def prepare(ports: list[int], home: Path) -> Launch:
        (port,) = ports
        if server == "versitygw":
            return _prepare_versitygw(program, env, port, home, requests)
        return _prepare_minio(program, env, port, home)

    return EmbeddedS3.launch(server, prepare)


def find_program(name: str) -> Path | None:
    """Find a program on PATH or where `go install` puts it. Return None if it is not installed."""
    program = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go" / "bin"))
    return Path(program) if program else None


def _prepare_versitygw(program: Path, env: dict[str, str], port: int, home: Path, requests: Path | None) -> Launch:
    data, health = home / "data", f"/{uuid.uuid4().hex}"
    data.mkdir()
    command = [str(program), "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "--region", EmbeddedS3.region]
    command += ["--health", health, *(["--access-log", str(requests)] if requests else []), "posix"]
    if not _keeps_attributes(data):
        sidecar = home / "attributes"
        sidecar.mkdir()
        command += ["--sidecar", str(sidecar)]
    env |= {"ROOT_ACCESS_KEY_ID": EmbeddedS3.access_key_id, "ROOT_SECRET_ACCESS_KEY": EmbeddedS3.secret_access_key}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    return Launch([*command, str(data)], lambda _: _is_healthy(connection, health), env)


def _prepare_minio(program: Path, env: dict[str, str], port: int, home: Path) -> Launch:
    command = [
        str(program),
        "server",
        "--quiet",
        "--address",
        f"127.0.0.1:{port}",
        "--certs-dir",
        str(home / "certificates"),
    ]
    env |= {
        "MINIO_ROOT_USER": EmbeddedS3.access_key_id,
        "MINIO_ROOT_PASSWORD": EmbeddedS3.secret_access_key,
        "MINIO_SHUTDOWN_TIMEOUT": "0s",
        "MINIO_BROWSER": "off",
        "MINIO_KMS_SECRET_KEY": f"{MINIO_KEY}:{base64.b64encode(bytes(32)).decode()}",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    return Launch([*command, str(home / "data")], lambda _: _is_healthy(connection, "/minio/health/cluster"), env)


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
