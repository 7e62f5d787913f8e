"""The code location that workspace.yaml loads: the configuration of `S3LAKE_CONFIG`, else `s3lake.yaml` here."""

import atexit
import functools
import gc
import os
import sys

# A code location is hundreds of thousands of objects that stay. Python goes through all of them again and again while
# they are made: a third of what loading takes, in the process of each run too. At its end it does so again.
gc.set_threshold(50_000, *gc.get_threshold()[1:])
atexit.register(lambda: None if "duckdb" in sys.modules else gc.freeze())  # DuckDB would list what it still has

import dagster as dg  # noqa: E402

from s3lake.config import load as configuration  # noqa: E402
from s3lake.config.locations import list_files  # noqa: E402
from s3lake.config.variable_names import LOCATION  # noqa: E402
from s3lake.orchestration.build import build_definitions  # noqa: E402


@dg.definitions
def defs() -> dg.Definitions:
    """Definitions of the configuration."""
    location = os.environ.get(LOCATION) or "s3lake.yaml"
    changed_ns = tuple(file.stat().st_mtime_ns for file in list_files(location) if file.exists())
    return _build(location, changed_ns, os.environ.get("S3LAKE_SENSORS") == "running")


@functools.lru_cache(maxsize=1)
def _build(location: str, changed_ns: tuple[int, ...], sensors_running: bool) -> dg.Definitions:
    """Build the definitions once a process: Dagster asks twice for them, to find a run's job and its selected part."""
    del changed_ns  # a file that was changed is another one
    built = build_definitions(configuration.load(location), sensors_running=sensors_running)
    # A JVM per step costs more than the steps; the location is ours, so runs that are of no job of ours have it too.
    return dg.Definitions.merge(built, dg.Definitions(executor=dg.in_process_executor))
