"""The rules of a sink for the fields and schemas of its records, and for a micro-batch before it is committed."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from s3lake.config.model.base import ConfigModel, at_least, matches
from s3lake.text.quantities import parse_share

OnChange = Literal["evolve", "drop", "dead_letter", "fail"]
_PATH = matches(r"[^.]+(\.[^.]+)*", "write the path of a field, as order.id")
Share = Annotated[float, BeforeValidator(parse_share), at_least(0, 1)]


class Gate(ConfigModel):
    """The conditions of a commit: a micro-batch that breaks one fails, and nothing of it is visible.

    Attributes:
        min_rows: the fewest rows that it lands, if it read any record.
        max_dead_letters: the share of its records that may be dead letters, as `1%` or 0.01; None for any.
        max_broken: the share of its records that may break `required` or `rules`; None for any.
    """

    min_rows: Annotated[int, at_least(0)] = 0
    max_dead_letters: Share | None = None
    max_broken: Share | None = None


class SchemaPolicy(ConfigModel):
    """The rules for values: their fields compared with the columns of the files, and JSON Schema (docs/schemas.md).

    Attributes:
        on_new_field: how a field without a column in the files so far is handled. `evolve`: they get one. `drop`: it is
            left out, and counted. `dead_letter`: its record becomes a dead letter. `fail`: the micro-batch fails,
            also with `errors.tolerance: all`.
        on_type_change: how a field of another type than its column is handled. `evolve`: the column is widened if one
            type holds both, and else the record is refused; a record with a schema of its own goes into files of that.
            The others as above.
        required: fields that every value has and that are not null, as `order.id`; a record without one is refused.
        rules: a JSON Schema that every value fits, as format json would write it; else its record is refused.
        compatibility: the compatibility of schemas that come with records. `none`: each has files of its own.
            `backward`, `full`: a record goes into files of a schema that has all of its fields. `forward`: a record
            goes into files of a schema that lacks some of its fields, which are left out, and counted.
        gate: the conditions of a commit.
    """

    on_new_field: OnChange = "evolve"
    on_type_change: OnChange = "evolve"
    required: tuple[Annotated[str, _PATH], ...] = Field(default=(), examples=[["order.id"]])
    rules: dict[str, Any] | None = Field(default=None, examples=[{"properties": {"amount": {"minimum": 0}}}])
    compatibility: Literal["none", "backward", "forward", "full"] = "none"
    gate: Gate = Field(default_factory=Gate)

    @field_validator("rules")
    @classmethod
    def _check_rules(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            from s3lake.records.convert.fit import contract

            contract.make_validator(value)
        return value
