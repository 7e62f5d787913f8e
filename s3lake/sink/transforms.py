"""The chain of transforms that records go through before they are converted."""

from typing import Any

from pydantic import Field, model_validator

from s3lake.sink.part import Misfit, Part


class Predicate(Part):
    """Which records a transform is for: Kafka Connect's predicates, with their own names of types and options.

    Attributes:
        type: its class, with or without the package.
        options: of that class.
    """

    type: str = Field(examples=["RecordIsTombstone"])
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _exists(self) -> "Predicate":
        from s3lake.transform import registry

        try:
            registry.predicate(self.type, self.options)
        except registry.UnknownType as error:
            raise Misfit(str(error), "type") from None
        except registry.OptionError as error:
            raise _misfit(error, self.options) from None
        return self


class Transform(Part):
    """One transform, as its connector names it (docs/transforms.md).

    Attributes:
        name: what messages call it.
        type: the connector's class, whole or without its package (`InsertField$Value`), or `iggy.add_fields`.
        options: the connector's own names and values.
        predicate: only the records that it picks are transformed.
        negate: only the records that it does not pick.
    """

    name: str = ""
    type: str = Field(examples=["InsertField$Value"])
    options: dict[str, Any] = Field(default_factory=dict)
    predicate: Predicate | None = None
    negate: bool = False

    @model_validator(mode="after")
    def _exists(self) -> "Transform":
        from s3lake.transform import registry

        try:
            registry.build(self.type, self.options)
        except registry.UnknownType as error:
            raise Misfit(str(error), "type") from None
        except registry.OptionError as error:
            raise _misfit(error, self.options) from None
        if self.predicate is None and registry.short(self.type) == "Filter":
            raise Misfit("Filter without a predicate drops every record: say which, for example RecordIsTombstone")
        if self.predicate is None and self.negate:
            raise Misfit("negate has no meaning without a predicate: take it out", "negate")
        return self


def _misfit(error: Any, options: dict[str, Any]) -> Misfit:
    # A place that is not there cannot be pointed at.
    return Misfit(str(error), "options", *([error.option] if error.option in options else []))
