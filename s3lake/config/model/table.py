"""The table that follows a sink's commits by reference."""

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator

from s3lake.config.model.base import ConfigModel, Properties, RuleError, matches
from s3lake.records.layout import partition_elements
from s3lake.records.layout.pieces import FieldElement as ValueField

if TYPE_CHECKING:
    from s3lake.config.model.sink import Sink

HOUR = "hour"
_PARTITION = ("table", "partition")
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

    def check(self, sink: "Sink") -> None:
        """Check the rules that need the whole sink.

        Raises:
            RuleError: the sink cannot have this table.
        """
        if sink.format.type != "parquet":
            raise RuleError(f"a table lists files of parquet, this sink writes {sink.format.type}", "table")
        if (sink.layout.template or "").startswith("/") and not sink.root:
            raise RuleError("a table's files have no empty step: take the '/' at the template's beginning out", "table")
        place = (self.location or "").partition("://")[2].rstrip("/") + "/"
        index = f"{sink.bucket}/{sink.index.prefix}/"
        if place.startswith(index) or ".indexes" in place.split("/"):
            raise RuleError(
                f"{self.location!r} is inside an index, which only s3lake writes: write another location",
                "table",
                "location",
            )
        if not sink.exactly_once:
            raise RuleError(
                "a table needs exactly_once: without it a file may be replaced under the same name", "table"
            )
        if sink.has_several_topics and "{topic}" not in self.name:
            raise RuleError(
                f"{self.name!r} would hold several topics: give each a table of its own with {{topic}}", "table", "name"
            )
        pieces = [partition_elements.parse_element(text)[1] for text in sink.layout.partition_by]
        fields = [".".join(piece.path) for piece in pieces if isinstance(piece, ValueField)]
        if HOUR not in self.partition:
            raise RuleError(
                f"{HOUR} is missing: without it the rows of a replaced hour are not known; add it", *_PARTITION
            )
        for position, column in enumerate(self.partition):
            if column != HOUR and column not in fields:
                allowed = ", ".join([HOUR, *fields])
                raise RuleError(
                    f"{column!r}: a file has one value only of a field in layout.partition_by; use {allowed}",
                    *(*_PARTITION, position),
                )

    def identifier(self, sink: str, topic: str) -> str:
        """Return the table's name for a topic of a sink."""

        def plain(name: str) -> str:
            return re.sub(r"[.-]", "_", name)

        return self.name.replace("{sink}", plain(sink)).replace("{topic}", plain(topic))
