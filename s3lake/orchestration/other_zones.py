"""The sensor of assets whose partitions are in another time zone, and the check of all assets that read hours.

Dagster's daemon does not know the mapping of such assets, so their conditions are evaluated in the code server.
"""

import warnings
from collections.abc import Set as AbstractSet

import dagster as dg

from s3lake.orchestration import dagster_names
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.overlapping_hours import OverlappingHours
from s3lake.orchestration.private_dagster import BaseAssetGraph, BaseAssetNode

NAME = "follow_other_zones"


def other_zones_sensor(catalog: Catalog, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    """Return the sensor that materialises by their conditions assets of the project that use `OverlappingHours`.

    When the code location is loaded, it also checks the partitions of every asset that reads hours of this
    configuration: a mapping that fails in a tick fails it for all assets of that tick.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # evaluation in the code server
        return dg.AutomationConditionSensorDefinition(
            catalog.name(NAME),
            target=_AssetsOfOtherZones(catalog),
            default_status=status,
            use_user_code_server=True,
            description="Materialises the assets that read hours of this configuration by the partition mapping "
            "s3lake.OverlappingHours, by their automation conditions.",
        )


class _AssetsOfOtherZones(dg.AssetSelection):
    """The automated assets of a code location that use `OverlappingHours`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def resolve_inner(
        self,
        asset_graph: "BaseAssetGraph[BaseAssetNode]",
        allow_missing: bool,  # noqa: ARG002 -- Dagster's signature
    ) -> AbstractSet[dg.AssetKey]:
        for node in asset_graph.asset_nodes:
            for parent in asset_graph.get_parents(node):
                if self._catalog.route(parent.key) is not None:
                    _require_mapping(asset_graph, node, parent)
        return {
            node.key
            for node in asset_graph.asset_nodes
            if node.is_materializable and node.automation_condition is not None and self._is_ours(asset_graph, node)
        }

    def _is_ours(self, asset_graph: "BaseAssetGraph[BaseAssetNode]", node: BaseAssetNode) -> bool:
        """Return whether the sensor is this configuration's: an asset that reads hours of two has one all the same."""
        mapped = [
            key
            for key, mapping in node.partition_mappings.items()
            if isinstance(key, dg.AssetKey) and isinstance(mapping, OverlappingHours)
        ]
        parents = [parent for parent in asset_graph.get_parents(node) if parent.key in mapped]
        sealed = [parent.key for parent in parents if dagster_names.SEALED in parent.tags]
        return bool(mapped) and self._catalog.route(min(sealed or mapped)) is not None


def _require_mapping(asset_graph: "BaseAssetGraph[BaseAssetNode]", node: BaseAssetNode, hours: BaseAssetNode) -> None:
    """Check that the partitions of an asset can be mapped to hours.

    Raises:
        DagsterInvalidDefinitionError: they cannot, and the asset has a condition, so that a tick would fail.
    """
    if node.partitions_def is None or hours.partitions_def is None:
        return
    try:
        mapping = asset_graph.get_partition_mapping(node.key, hours.key)
        mapping.validate_partition_mapping(hours.partitions_def, node.partitions_def)
    except Exception as error:  # whatever a project's own mapping raises
        reason = (
            f"asset {node.key.to_user_string()} cannot read the hours of {hours.key.to_user_string()}: {error}. Give "
            "the dependency partition_mapping=s3lake.OverlappingHours(), and the asset partitions of time"
        )
        if node.automation_condition is not None:
            raise dg.DagsterInvalidDefinitionError(reason) from error
        warnings.warn(reason, stacklevel=2)
