"""The transforms of records before they are converted, and the SQL over their values."""

from typing import Any

from pydantic import Field, model_validator

from s3lake.config.model.base import ConfigModel, RuleError


class Predicate(ConfigModel):
    """A condition of a transform: Kafka Connect's predicates, with their own names of types and options.

    Attributes:
        type: its class, with or without the package.
        options: the options of that class.
    """

    type: str = Field(examples=["RecordIsTombstone"])
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_type(self) -> "Predicate":
        from s3lake.records.transform.families.class_names import PREDICATES

        _check_options(self.type, self.options, PREDICATES)
        return self


class Transform(ConfigModel):
    """One transform, as its connector names it (docs/transforms.md).

    Attributes:
        name: what messages call it.
        type: the connector's class, whole or without its package (`InsertField$Value`), or `iggy.add_fields`.
        options: the connector's own names and values.
        predicate: only the records that it selects are transformed.
        negate: only the records that it does not select.
    """

    name: str = ""
    type: str = Field(examples=["InsertField$Value"])
    options: dict[str, Any] = Field(default_factory=dict)
    predicate: Predicate | None = None
    negate: bool = False

    @model_validator(mode="after")
    def _check_type(self) -> "Transform":
        from s3lake.records.transform.families.class_names import TRANSFORMS, shorten

        _check_options(self.type, self.options, TRANSFORMS)
        if self.predicate is None and shorten(self.type) == "Filter":
            raise RuleError("Filter without a predicate drops every record: name one, for example RecordIsTombstone")
        if self.predicate is None and self.negate:
            raise RuleError("negate has no meaning without a predicate: take it out", "negate")
        return self


def _check_options(type_name: str, options: dict[str, Any], factories: Any) -> None:
    from s3lake.records.transform.families.class_names import UnknownTypeError, build_step
    from s3lake.records.transform.step.option_reader import OptionError

    try:
        build_step(type_name, options, factories)
    except UnknownTypeError as error:
        raise RuleError(str(error), "type") from None
    except OptionError as error:
        # Point at an option only if it is given.
        raise RuleError(str(error), "options", *([error.option] if error.option in options else [])) from None


class Sql(ConfigModel):
    """A SELECT list and a WHERE clause in Spark SQL.

    Columns are the value's fields, and `_key`, `_headers`, `_topic`, `_partition`, `_offset`, `_timestamp`. A record
    for which `where` is not true is filtered out; its offset counts as landed.

    Attributes:
        select: columns as Spark SQL writes them; `*` for all.
        where: records for which it is not true are filtered out.
    """

    select: str = "*"
    where: str | None = None

    @model_validator(mode="after")
    def _check_syntax(self) -> "Sql":
        from s3lake.records.transform.sql import parser

        for name, select, where in (("select", self.select, None), ("where", "*", self.where)):
            try:
                parser.parse_sql(select, where)
            except ValueError as error:
                raise RuleError(str(error), name) from None
        return self

    @property
    def fields(self) -> set[str]:
        """The fields of the value that it reads."""
        from s3lake.records.transform.sql import parser

        return set(parser.parse_sql(self.select, self.where).fields)

    @property
    def keeps_values(self) -> bool:
        """True if values are landed as they are: there is only a filter."""
        from s3lake.records.transform.sql import parser

        return parser.parse_sql(self.select, self.where).keeps_values
