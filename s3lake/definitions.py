"""The code location that workspace.yaml loads: the configuration of `S3LAKE_CONFIG`, else `s3lake.yaml` here."""

import os
from pathlib import Path

import dagster as dg

from s3lake.dialects import native
from s3lake.orchestration.build import build_definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Definitions of the configuration."""
    config = native.load(Path(os.environ.get("S3LAKE_CONFIG") or "s3lake.yaml"))
    return build_definitions(config, sensors_running=os.environ.get("S3LAKE_SENSORS") == "running")
