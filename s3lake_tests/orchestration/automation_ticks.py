"""Ticks of Dagster's own evaluation of automation conditions."""

import dagster as dg

from s3lake import hours


class AutomationTicks:
    """Ticks, at one time, of what materialises some assets of a project."""

    def __init__(
        self, instance: dg.DagsterInstance, definitions: dg.Definitions, keys: list[dg.AssetKey], hour: str
    ) -> None:
        self.instance, self.definitions = instance, definitions
        self._keys, self._hour = keys, hour
        self._cursor = None
        self.tick()

    def tick(self) -> list[tuple[str, str | None]]:
        """Return what is asked for now: asset and partition."""
        result = dg.evaluate_automation_conditions(
            self.definitions,
            self.instance,
            cursor=self._cursor,
            asset_selection=dg.AssetSelection.assets(*self._keys),
            evaluation_time=hours.parse_hour(self._hour),
        )
        self._cursor = result.cursor  # type: ignore[assignment]
        return [
            (key.to_user_string(), partition)
            for key in self._keys
            for partition in sorted(result.get_requested_partitions(key))  # type: ignore[type-var]
        ]

    def materialise(self, key: dg.AssetKey, *partitions: str) -> None:
        """Report a materialisation of each partition."""
        for partition in partitions:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition))
