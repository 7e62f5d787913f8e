"""Automation: what a downstream asset says to be materialised by sealed hours, and by nothing else."""

import warnings

import dagster as dg

from s3lake.orchestration import names

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)  # selections of assets that Dagster does not materialise
    _SEALED = dg.AssetSelection.tag(names.SEALED, "true", include_sources=True)


def on_sealed_hours() -> "dg.AutomationCondition[dg.AssetKey]":
    """Materialise an asset when an hour that it depends on is sealed, and again when that hour was rewritten.

    A partition of several hours, as of a day, is materialised once all of its hours are sealed. Dependencies other than
    `s3/<sink>/<topic>_sealed` count for nothing. An hour that is sealed while the asset is being materialised is not
    forgotten: it is materialised again afterwards.
    """
    sealed = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.newly_updated()).allow(_SEALED)
    missing = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.missing()).allow(_SEALED)
    return (sealed.since_last_handled() & ~missing & ~dg.AutomationCondition.in_progress()).with_label(
        "on_sealed_hours"
    )


def follower(
    name: str, assets: "list[dg.AssetsDefinition]", status: dg.DefaultSensorStatus
) -> list[dg.SensorDefinition]:
    """The sensor that materialises these `assets` by their conditions; none where there are no assets."""
    if not assets:
        return []
    return [
        dg.AutomationConditionSensorDefinition(
            name,
            target=dg.AssetSelection.assets(*assets),
            default_status=status,
            description="Materialises forwards and example assets of an hour when it is sealed.",
        )
    ]
