"""`s3lake.observed=true`: as the connector does, where its document says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from s3lake.config.keys import Given, Keys
from s3lake.config.setting import Setting, variable
from s3lake.text.options import flag

KEY = "s3lake.observed"
OBSERVED = "S3LAKE_OBSERVED"
"""The environment variable of `--observed`: for files that do not say it."""


def observed(keys: Keys, environment: Mapping[str, str]) -> Given[bool]:
    """Whether the connector's deeds count and not its document."""
    own = keys.boolean(KEY, False)
    if own.setting is not None or not environment.get(OBSERVED):
        return own
    outside = Setting(KEY, environment[OBSERVED], variable(OBSERVED))
    try:
        return Given(flag(outside.value), outside)
    except ValueError as error:
        keys.wrong(outside, f"{outside.shown} {error}")
        return own
