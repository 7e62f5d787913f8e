"""What a sink asks of its records and of a micro-batch before it is committed."""

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from s3lake.convert import converters
from s3lake.convert.converters import CONVERTERS
from s3lake.encode.formats import FORMATS
from s3lake.sink.part import Misfit, Part, at_least
from s3lake.text.quantities import share_of

if TYPE_CHECKING:
    from s3lake.sink.sink import Sink

Departure = Literal["evolve", "drop", "dead_letter", "fail"]


class Gate(Part):
    """What a micro-batch has to be before it is committed: else it fails, and nothing of it is visible.

    Attributes:
        min_rows: rows that it lands at least, if it read any record.
        max_dead_letters: the share of its records that may be dead letters, as `1%` or 0.01; None for any.
        max_broken: the share of its records that may break `required` or `rules`; None for any.
    """

    min_rows: int = 0
    max_dead_letters: float | None = None
    max_broken: float | None = None

    _rows = field_validator("min_rows")(at_least(0))
    _text = field_validator("max_dead_letters", "max_broken", mode="before")(share_of)

    @field_validator("max_dead_letters", "max_broken")
    @classmethod
    def _part_of_all(cls, value: float | None) -> float | None:
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"{value} is out of range: a share is 0 to 1, or 0% to 100%")
        return value


class Contract(Part):
    """What values have to be: their fields against the columns that files have, and rules (docs/schema.md).

    Attributes:
        on_new_field: what a field does that the files so far have no column for. `evolve`: they get one. `drop`: it is
            left out, and counted. `dead_letter`: its record becomes a dead letter. `fail`: the micro-batch fails,
            whatever `errors.tolerance` says.
        on_type_change: what a field of another type than its column does. `evolve`: the column is widened where one
            type holds both, and else the record is refused; a record with a schema of its own goes into files of that.
            The others as above.
        required: fields that every value has and that are not null, as `order.id`; a record without one is refused.
        rules: a JSON Schema that every value fits, as format json would write it; else its record is refused.
        compatibility: of schemas that come with records. `none`: each has files of its own. `backward`, `full`: a
            record goes into files of a schema that has all of its fields. `forward`: a record goes into files of a
            schema that lacks some of its fields, which are left out, and counted.
        gate: what a micro-batch has to be before it is committed.
    """

    on_new_field: Departure = "evolve"
    on_type_change: Departure = "evolve"
    required: tuple[str, ...] = Field(default=(), examples=[["order.id"]])
    rules: dict[str, Any] | None = Field(default=None, examples=[{"properties": {"amount": {"minimum": 0}}}])
    compatibility: Literal["none", "backward", "forward", "full"] = "none"
    gate: Gate = Field(default_factory=Gate)

    @field_validator("required")
    @classmethod
    def _paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for position, path in enumerate(value):
            if not re.fullmatch(r"[^.]+(\.[^.]+)*", path):
                raise Misfit(f"{path!r} is no field: write its path, as order.id", position)
        return value

    @field_validator("rules")
    @classmethod
    def _schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            from s3lake.convert import rules

            rules.validator(value)
        return value

    def fits(self, sink: "Sink") -> None:
        """Refuse what needs the whole sink to be seen.

        Raises:
            Misfit: the sink cannot have this contract.
        """
        landed, tabular = sink.landed, FORMATS[sink.format.type].tabular
        is_json = CONVERTERS[landed.converter.value].gives == "json"
        allowed = converters.in_words(lambda converter: converter.gives == "json")
        flat = sink.envelope is not None and sink.envelope.style == "flat"
        for name in ("on_new_field", "on_type_change"):
            if getattr(self, name) != "evolve" and not (tabular and is_json and not flat):
                raise Misfit(
                    f"{name} needs columns of values: format avro, parquet or csv, and converter.value {allowed}",
                    *("schema", name),
                )
            if getattr(self, name) == "dead_letter" and sink.errors.tolerance == "none":
                raise Misfit("dead letters need errors.tolerance: all: set it, or write fail", "schema", name)
        for name in ("required", "rules"):
            if getattr(self, name) and not is_json:
                raise Misfit(f"{name} needs values with fields: converter.value {allowed}", "schema", name)
        if self.compatibility != "none" and not (tabular and CONVERTERS[landed.converter.value].versioned):
            versioned = converters.in_words(lambda converter: converter.versioned)
            raise Misfit(
                f"compatibility is about schemas: format avro, parquet or csv, and converter.value {versioned}",
                *("schema", "compatibility"),
            )
        if self.gate.max_broken is not None and not (self.required or self.rules):
            raise Misfit("max_broken is about required and rules: give one of them", "schema", "gate", "max_broken")
