"""A code location whose runs report where they work. Its directory has files that change what is loaded."""

import os
import random
import socket
import sys
import threading
import time
from pathlib import Path

import dagster as dg
import numpy as np

HERE = Path(os.environ["LOCATION_HOME"])
VERSION = (HERE / "version").read_text(encoding="utf-8")
FAULT = (HERE / "fault").read_text(encoding="utf-8")

if FAULT == "thread":
    threading.Thread(target=time.sleep, args=(3600,), name="left-behind", daemon=True).start()
if FAULT == "connection":
    CONNECTION = socket.create_connection(("127.0.0.1", int((HERE / "port").read_text(encoding="utf-8"))))
if FAULT == "preload" and "preload.server" in " ".join(sys.orig_argv):
    raise ValueError("cannot be loaded here")


@dg.op
def report(context: dg.OpExecutionContext) -> None:
    """Add tags to the run with what its process is."""
    numbers = f"{random.random()} {np.random.random()}"
    found = {"version": VERSION, "parent": str(os.getppid()), "variable": os.environ.get("FROM_DOTENV", "")}
    context.instance.add_run_tags(context.run_id, {**found, "numbers": numbers, "directory": str(Path.cwd())})


@dg.op
def wait(context: dg.OpExecutionContext) -> None:
    """Wait until the file `over` is there."""
    context.instance.add_run_tags(context.run_id, {"waiting": str(os.getpid()), "parent": str(os.getppid())})
    while not (HERE / "over").exists():
        time.sleep(0.05)


@dg.op
def leave() -> None:
    """End the process as a crash of a library does."""
    os._exit(0)


@dg.job(executor_def=dg.in_process_executor)
def reporting() -> None:
    """Report."""
    report()


@dg.job
def reporting_in_processes() -> None:
    """Report, from a process of the step."""
    report()


@dg.job(executor_def=dg.in_process_executor)
def waiting() -> None:
    """Wait."""
    wait()


@dg.job(executor_def=dg.in_process_executor)
def leaving() -> None:
    """Leave."""
    leave()


defs = dg.Definitions(jobs=[reporting, reporting_in_processes, waiting, leaving])
