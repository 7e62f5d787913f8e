"""The base of every model of a configuration, and the types that their settings share."""

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf, isfinite
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticKnownError

from s3lake.records.layout.pieces import RESERVED_STEPS
from s3lake.text.masking import mask_logins, mask_properties
from s3lake.text.quantities import format_duration, format_size, parse_duration, parse_size

# S3 takes keys of 1,024 bytes. A topic has at most 249; this leaves room for it, numbers and the mark of a commit.
_PREFIX_BYTES = 480


class RuleError(ValueError):
    """A rule is broken at `path`, seen from the model or the field that noticed it."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class ConfigModel(BaseModel):
    """Base of every part of a configuration: frozen; unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and _takes_number(cls.model_fields[str(info.field_name)].annotation):
            raise ValueError(f"{str(value).lower()} is not a number")
        return value


def _takes_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_takes_number, get_args(annotation)))


def models_in(annotation: Any) -> Iterator[type[ConfigModel]]:
    """Yield the models that a field of that annotation may hold, also in lists."""
    # Python 3.10 calls list[X] a type too.
    if get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, ConfigModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def at_least(low: float, high: float = inf, form: Callable[[Any], str] = str) -> AfterValidator:
    """Return a validator that refuses a number below `low`, one above `high`, and infinity; `form` prints numbers."""
    allowed = f"at least {form(low)}" if high == inf else f"{form(low)} to {form(high)}"

    def check(value: Any) -> Any:
        if not low <= value <= high or value == inf:
            shown = form(value) if isfinite(value) else value
            raise ValueError(f"{shown} is out of range: {allowed}")
        return value

    return AfterValidator(check)


def lasts_at_least(shortest: float, longest: float = inf) -> AfterValidator:
    """Return a validator that refuses seconds below `shortest`, above `longest`, and infinity."""
    return at_least(shortest, longest, format_duration)


def matches(pattern: str, rule: str) -> AfterValidator:
    """Return a validator that refuses a text which the expression does not match as a whole."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{mask_logins(value)!r} is not allowed: {rule}")
        return value

    return AfterValidator(check)


def accepted_by(parse: Callable[[str], object]) -> AfterValidator:
    """Return a validator that refuses a text for which `parse` raises ValueError."""

    def check(value: str) -> str:
        parse(value)
        return value

    return AfterValidator(check)


def one_of(catalogue: Mapping[str, Any]) -> BeforeValidator:
    """Return a validator that refuses a name which is not in the catalogue, in pydantic's words for a literal."""

    def check(name: Any) -> Any:
        if not isinstance(name, str) or name not in catalogue:
            *first, last = map(repr, catalogue)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"})
        return name

    return BeforeValidator(check, json_schema_input_type=Literal[tuple(catalogue)])


def _check_prefix(value: str) -> str:
    steps = value.removesuffix("/").split("/")
    if value and (not all(steps) or not RESERVED_STEPS.isdisjoint(steps) or not value.isprintable()):
        raise ValueError(
            f"{value!r} is not allowed: no leading or double '/', no '.', '..', '.probe' or '_dead_letters' between "
            "slashes, no control characters; for example raw/kafka"
        )
    if len(value.encode()) > _PREFIX_BYTES:
        raise ValueError(f"{value[:40]!r}… is too long: at most {_PREFIX_BYTES} bytes, or keys exceed S3's 1,024")
    return value


_SECONDS = BeforeValidator(parse_duration, json_schema_input_type=float | str)
_BYTES = BeforeValidator(parse_size, json_schema_input_type=int | str)

Duration = Annotated[float, _SECONDS, PlainSerializer(format_duration)]
"""Seconds, or a text such as `5m`."""

Size = Annotated[int, _BYTES, PlainSerializer(format_size)]
"""Bytes, or a text such as `500MB`."""

Prefix = Annotated[str, AfterValidator(_check_prefix)]
"""The beginning of keys that every S3 client finds: to some of them `//`, `.` and `..` have a meaning."""

Name = Annotated[str, matches(r"[A-Za-z0-9_-]{1,100}", "1 to 100 of A-Z, a-z, 0-9, '_' and '-'")]
"""The name of something that object keys and Dagster's assets contain."""

Topic = Annotated[
    str,
    matches(
        r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}",
        "a topic has letters, digits, '.', '_' and '-', at most 249; patterns belong in topics_regex",
    ),
]

Properties = Annotated[dict[str, str], PlainSerializer(mask_properties)]
"""Settings of another program; secrets are masked when they are printed."""

Options = Annotated[dict[str, Any], PlainSerializer(mask_properties)]
"""Options of a plugin; secrets are masked when they are printed."""
