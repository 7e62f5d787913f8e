"""An S3 API on this machine: moto's server, which keeps objects in memory.

`python -m s3lake.demo.embedded_s3 -H 127.0.0.1 -p PORT` is this server, with one writer at a time.
"""

import sys
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from s3lake.demo.process import GuardedProcess, Launch, Service, start_server
from s3lake.errors import StoreUnavailableError
from s3lake.plugins import require_extra


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
        with require_extra("demo", "the S3 server of the demo"):
            import moto  # noqa: F401 - the process that is started imports all of it
        return cls.launch("moto", _prepare)

    @classmethod
    def launch(cls, name: str, prepare: Callable[[list[int], Path], Launch]) -> "EmbeddedS3":
        """Start the server that `prepare` returns; see `start_server`."""
        process, (port,), _ = start_server(name, prepare, StoreUnavailableError)
        return cls(process, port)

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


def _prepare(ports: list[int], _: Path) -> Launch:
    command = [sys.executable, "-m", "s3lake.demo.embedded_s3", "-H", "127.0.0.1", "-p", str(ports[0])]
    return Launch(command, lambda process: "Running on http://" in process.log())


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
