"""The table that follows a sink's commits by reference."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from s3lake.config.model.base import ConfigModel, Properties, RuleError, matches

HOUR = "hour"
_CATALOGS = ("rest", "glue", "sql", "hive")
_STEP = r"(?:[A-Za-z0-9_-]|\{topic\}|\{sink\})+"
_NAME = matches(rf"{_STEP}(\.{_STEP})+", "namespace.table, of A-Z, a-z, 0-9, '_' and '-', {topic} and {sink}")


class Table(ConfigModel):
    """An Iceberg table that lists the committed files of a sink of Parquet (docs/iceberg.md).

    Attributes:
        type: the type of the table.
        name: `namespace.table`, in which `{sink}` and `{topic}` become their names, with `_` for dots and dashes.
        catalog: properties of pyiceberg's catalog: `type` is one of rest, glue, sql and hive; `uri`, `warehouse`,
            `credential` and others are the catalog's own. Settings for S3 are taken from `s3` if they are not given.
        partition: the partitions of the table: `hour`, of landing, and fields that `layout.partition_by` names.
        location: the location of the table's metadata; None leaves it to the catalog.
    """

    type: Literal["iceberg"] = "iceberg"
    name: Annotated[str, _NAME] = Field(examples=["lake.{topic}"])
    catalog: Properties = Field(
        repr=False, examples=[{"type": "rest", "uri": "http://localhost:8181", "credential": "${CATALOG_CREDENTIAL}"}]
    )
    partition: tuple[str, ...] = (HOUR,)
    location: Annotated[str, matches(r"s3a?://[^/]+/.+", "write s3://BUCKET/PREFIX")] | None = None

    @field_validator("catalog")
    @classmethod
    def _check_catalog(cls, value: dict[str, str]) -> dict[str, str]:
        if value.get("type") not in _CATALOGS:
            raise RuleError(f"{value.get('type')!r} is not a catalog: use one of {', '.join(_CATALOGS)}", "type")
        if value["type"] != "glue" and not value.get("uri"):
            raise RuleError(f"a catalog of type {value['type']} needs a uri", "uri")
        return value

    def identifier(self, sink: str, topic: str) -> str:
        """Return the table's name for a topic of a sink."""

        def plain(name: str) -> str:
            return re.sub(r"[.-]", "_", name)

        return self.name.replace("{sink}", plain(sink)).replace("{topic}", plain(topic))
