"""The code location that workspace.yaml loads: the configuration of `S3LAKE_CONFIG`, else `s3lake.yaml` here."""

import gc
import os

# A code location is hundreds of thousands of objects that stay. Python goes through all of them again and again while
# they are made: a third of what loading takes, in the process of each run too.
gc.set_threshold(50_000, *gc.get_threshold()[1:])

import dagster as dg  # noqa: E402

from s3lake.config import load as configuration  # noqa: E402
from s3lake.orchestration.build import build_definitions  # noqa: E402


@dg.definitions
def defs() -> dg.Definitions:
    """Definitions of the configuration."""
    config = configuration.load(os.environ.get(configuration.LOCATION) or "s3lake.yaml")
    built = build_definitions(config, sensors_running=os.environ.get("S3LAKE_SENSORS") == "running")
    # A JVM per step costs more than the steps; the location is ours, so runs that are of no job of ours have it too.
    return dg.Definitions.merge(built, dg.Definitions(executor=dg.in_process_executor))
