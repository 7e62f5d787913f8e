"""Dagster's code server, whose runs are forked from a process that has imported what they need."""

import multiprocessing
import signal
from multiprocessing import forkserver
from typing import Any

from dagster._cli.api import grpc_command
from dagster._grpc import server

IMPORTS = (
    "boto3",
    "confluent_kafka",
    "dagster._core.execution.plan.active",
    "dagster._core.executor.in_process",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "dagster._grpc.impl",
    "pyspark.sql.connect.session",
    "s3lake.config.load",
    "s3lake.land.fleet",
    "s3lake.land.spark.shared",
    "s3lake.objects.readback",
    "s3lake.orchestration.build",
    "s3lake.source.kafka.reader",
    "s3lake.table.iceberg",
    "tenacity",
)
"""What every run imports sooner or later, and nobody's definitions: those are loaded by each run, as they are then."""


class ForkingServer(server.DagsterApiServer):
    """Dagster's own starts an interpreter for each run, which imports for longer than a small run lands."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start the process that imports, and do not wait for it."""
        super().__init__(*args, **kwargs)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTS))
        forkserver.ensure_running()
        self._mp_ctx: Any = context


def serve(module: str, host: str, port: int) -> None:
    """Serve a module's definitions until SIGTERM or SIGINT; the log goes to stderr."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A job that a script has put in the background ignores SIGINT, and Dagster takes SIGTERM for the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    server.DagsterApiServer = ForkingServer  # type: ignore[misc]  # the command takes it from there, and from nowhere else
    grpc_command.main(["--module-name", module, "--host", host, "--port", str(port)], prog_name="s3lake code-server")
