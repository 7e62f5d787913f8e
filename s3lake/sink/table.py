"""The table that follows a sink's commits by reference."""

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_serializer, field_validator

from s3lake.layout import partitioners
from s3lake.sink.part import Misfit, Part, matching
from s3lake.text.masking import masked

if TYPE_CHECKING:
    from s3lake.sink.sink import Sink

HOUR = "hour"
_CATALOGS = ("rest", "glue", "sql", "hive")
_STEP = r"(?:[A-Za-z0-9_-]|\{topic\}|\{sink\})+"


class Table(Part):
    """An Iceberg table that lists the committed files of a sink of Parquet (docs/iceberg.md).

    Attributes:
        type: of the table.
        name: `namespace.table`, in which `{sink}` and `{topic}` stand for their names, with `_` for dots and dashes.
        catalog: properties of pyiceberg's catalog: `type` is one of rest, glue, sql and hive; `uri`, `warehouse`,
            `credential` and others are the catalog's own. What reaches S3 is taken from `s3` where it is not given.
        partition: what the table is partitioned by: `hour`, of landing, and fields that `layout.partition_by` names;
            empty for a table without partitions.
        location: where the table's metadata are kept; None leaves it to the catalog.
    """

    type: Literal["iceberg"] = "iceberg"
    name: str = Field(examples=["lake.{topic}"])
    catalog: dict[str, str] = Field(
        repr=False, examples=[{"type": "rest", "uri": "http://localhost:8181", "credential": "${CATALOG_CREDENTIAL}"}]
    )
    partition: tuple[str, ...] = (HOUR,)
    location: str | None = None

    _hide = field_serializer("catalog")(masked)
    _two_steps = field_validator("name")(
        matching(rf"{_STEP}(\.{_STEP})+", "namespace.table, of A-Z, a-z, 0-9, '_' and '-'; {topic} and {sink} stand in")
    )

    @field_validator("catalog")
    @classmethod
    def _reachable(cls, value: dict[str, str]) -> dict[str, str]:
        if value.get("type") not in _CATALOGS:
            raise Misfit(f"{value.get('type')!r} is no catalog: use one of {', '.join(_CATALOGS)}", "type")
        if value["type"] != "glue" and not value.get("uri"):
            raise Misfit(f"a catalog of type {value['type']} needs the uri that it is reached at", "uri")
        return value

    @field_validator("location")
    @classmethod
    def _of_objects(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"s3a?://[^/]+/.+", value):
            raise ValueError(f"{value!r} is no place for a table: write s3://BUCKET/PREFIX")
        return value

    def fits(self, sink: "Sink") -> None:
        """Refuse what needs the whole sink to be seen.

        Raises:
            Misfit: the sink cannot have this table.
        """
        if sink.format.type != "parquet":
            raise Misfit(f"a table lists files of parquet, this sink writes {sink.format.type}", "table")
        if (sink.layout.template or "").startswith("/") and not sink.root:
            raise Misfit("a table's files have no empty step: take the '/' at the template's beginning out", "table")
        place = (self.location or "").partition("://")[2].rstrip("/") + "/"
        index = f"{sink.bucket}/{sink.index.prefix}/"
        if place.startswith(index) or ".indexes" in place.split("/"):
            raise Misfit(
                f"{self.location!r} is inside an index, which s3lake keeps for itself: write another place",
                "table",
                "location",
            )
        if not sink.exactly_once:
            raise Misfit("a table needs exactly_once: without it a file may be replaced under the same name", "table")
        if "{topic}" not in self.name and (sink.topics_regex is not None or len(sink.topics) > 1):
            raise Misfit(
                f"{self.name!r} would hold several topics: give each a table of its own with {{topic}}", "table", "name"
            )
        fields = [
            ".".join(element.path)
            for element in map(partitioners.parse, sink.layout.partition_by)
            if element.source == "value" and element.path
        ]
        for position, column in enumerate(self.partition):
            if column != HOUR and column not in fields:
                allowed = ", ".join([HOUR, *fields])
                raise Misfit(
                    f"{column!r}: a file holds one value only of what layout.partition_by names; use {allowed}",
                    *("table", "partition", position),
                )

    def identifier(self, sink: str, topic: str) -> str:

        def plain(name: str) -> str:
            return re.sub(r"[.-]", "_", name)

        return self.name.replace("{sink}", plain(sink)).replace("{topic}", plain(topic))
