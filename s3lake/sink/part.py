"""What every part of the sink model is made of."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from s3lake.layout.pieces import RESERVED_STEPS

# S3 takes keys of 1,024 bytes. A topic has at most 249; this leaves room for it, numbers and the mark of a commit.
_PREFIX_BYTES = 480


class Misfit(ValueError):
    """A rule is broken at `path`, seen from the model or the field that noticed it."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


def at_least(low: float) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and not low <= value < float("inf"):
            raise ValueError(f"{value} is out of range: at least {low}")
        return value

    return check


def matching(pattern: str, rule: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{value!r} is not allowed: {rule}")
        return value

    return check


def plain_path(value: str) -> str:
    """A prefix whose objects every S3 client finds: `//`, `.` and `..` mean something else to some.

    `_dead_letters` and `.probe`, where the store is tried, are steps that s3lake keeps for itself.
    """
    steps = value.removesuffix("/").split("/")
    if value and (not all(steps) or not RESERVED_STEPS.isdisjoint(steps) or not value.isprintable()):
        raise ValueError(
            f"{value!r} is not allowed: no leading or double '/', no '.', '..', '.probe' or '_dead_letters' between "
            "slashes, no control characters; for example raw/kafka"
        )
    if len(value.encode()) > _PREFIX_BYTES:
        raise ValueError(f"{value[:40]!r}… is too long: at most {_PREFIX_BYTES} bytes, or keys exceed S3's 1,024")
    return value


class Part(BaseModel):
    """Base of every part of a configuration: frozen, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation in (int, float, int | None):
            raise ValueError(f"{str(value).lower()} is no number")
        return value
