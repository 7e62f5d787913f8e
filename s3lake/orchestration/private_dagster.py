"""Everything that s3lake uses of Dagster and that Dagster does not document, with the reasons.

Dagster may change it with any version: `s3lake_tests/orchestration/test_private_dagster.py` fails then.

- A partition mapping is public; what its methods get and return is not: `AllPartitionsSubset`, `PartitionsSubset`,
  `TimeWindowPartitionsSubset`, `UpstreamPartitionsResult`, `DynamicPartitionsStore`, `partition_loading_context`.
- The selection of a sensor of conditions gets the graph of assets: `BaseAssetGraph`, `BaseAssetNode`.
- A check result names the materialization that was checked, so that the UI shows the two together:
  `AssetCheckEvaluationTargetMaterializationData`.
- Dagster's daemon loads a code location and cannot import s3lake: `send_as`.
- A handler of the log separates messages from events: `read_logged_message`.
"""

import logging

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph, BaseAssetNode
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.partitions.mapping import UpstreamPartitionsResult
from dagster._core.definitions.partitions.subset import (
    AllPartitionsSubset,
    PartitionsSubset,
    TimeWindowPartitionsSubset,
)
from dagster._core.instance import DynamicPartitionsStore
from dagster_shared.serdes.serdes import _WHITELIST_MAP

__all__ = [
    "AllPartitionsSubset",
    "AssetCheckEvaluationTargetMaterializationData",
    "BaseAssetGraph",
    "BaseAssetNode",
    "DynamicPartitionsStore",
    "PartitionsSubset",
    "TimeWindowPartitionsSubset",
    "UpstreamPartitionsResult",
    "partition_loading_context",
    "read_logged_message",
    "send_as",
]


def send_as(mapping: type[dg.PartitionMapping], base: type[dg.PartitionMapping]) -> None:
    """Send partition mappings of the class `mapping` to other processes as mappings of its base class `base`."""
    _WHITELIST_MAP.object_serializers[mapping.__name__] = _WHITELIST_MAP.object_serializers[base.__name__]


def read_logged_message(record: logging.LogRecord) -> str | None:
    """Return what the code of a run has logged. Return None for an event of Dagster."""
    metadata = record.__dict__["dagster_meta"]
    return metadata["orig_message"] if metadata["dagster_event"] is None else None
