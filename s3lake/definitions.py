"""The code location that workspace.yaml loads: the configuration of `S3LAKE_CONFIG`, else `s3lake.yaml` here."""

import os

import dagster as dg

from s3lake.config import load as configuration
from s3lake.orchestration.build import build_definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Definitions of the configuration."""
    config = configuration.load(os.environ.get(configuration.LOCATION) or "s3lake.yaml")
    built = build_definitions(config, sensors_running=os.environ.get("S3LAKE_SENSORS") == "running")
    # A JVM per step costs more than the steps; the location is ours, so runs that are of no job of ours have it too.
    return dg.Definitions.merge(built, dg.Definitions(executor=dg.in_process_executor))
