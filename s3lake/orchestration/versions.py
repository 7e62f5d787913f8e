"""What an hour was made from: the tags by which Dagster tells which data and which code a materialisation has."""

from collections.abc import Sequence

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)

from s3lake.plan.sealed import content


def version_tags(context: dg.AssetExecutionContext, key: dg.AssetKey, commits: Sequence[str]) -> dict[str, str]:
    """The tags that Dagster gives its own materialisations, with a data version for each hour.

    An hour that is materialised again without a new commit keeps its version, so nothing downstream is out of date.
    """
    step = context.get_step_execution_context()
    tags = own_tags(context.assets_def.code_versions_by_key[key] or context.run.run_id, commits)
    for parent in sorted(context.assets_def.asset_deps[key]):
        version_info = step.maybe_fetch_and_get_input_asset_version_info(parent)
        tags |= input_tags(parent, version_info and version_info.data_version, version_info and version_info.storage_id)
    return tags


def own_tags(code_version: str, commits: Sequence[str]) -> dict[str, str]:
    """What the hour is: of which code and which commits."""
    return {
        CODE_VERSION_TAG: code_version,
        DATA_VERSION_TAG: content(commits),
        DATA_VERSION_IS_USER_PROVIDED_TAG: "true",
    }


def input_tags(parent: dg.AssetKey, version: dg.DataVersion | None, storage_id: int | None) -> dict[str, str]:
    """What it was made from, as the event log last had it."""
    return {
        get_input_data_version_tag(parent): (version or DEFAULT_DATA_VERSION).value,
        get_input_event_pointer_tag(parent): NULL_EVENT_POINTER if storage_id is None else str(storage_id),
    }
