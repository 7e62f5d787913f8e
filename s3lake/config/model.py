"""The sink model as a tree of names: what stands where, what is allowed there, and how messages say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from s3lake.sink import Config, Part

LIST = "write a list: one entry a line after '- ', or [one, two]"
MAPPING = "write a mapping: one `name: value` a line"
WANTED: Mapping[str, str] = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_parsing": "write a number",
    "float_type": "write a number",
    "string_type": "write text",
    "tuple_type": LIST,
    "dict_type": MAPPING,
    "model_type": MAPPING,
}
"""What to write instead, by pydantic's type of error."""
_NEAR = 0.77


def meant(name: str, allowed: Sequence[str]) -> str:
    """`did you mean …? ` where a name is near one that is allowed, else nothing."""
    near = get_close_matches(name, allowed, 1)
    return f"did you mean {near[0]}? " if near else ""


def nearest(key: str, known: Sequence[str]) -> str | None:
    """The known key that a mistyped one was meant to be; a key has many letters, so few may differ."""
    return next(iter(get_close_matches(key, known, 1, _NEAR)), None)


def names(model: type[Part]) -> list[str]:
    """The names that a mapping may have which becomes `model`."""
    return [info.alias or name for name, info in model.model_fields.items()]


def field(model: type[Part], name: str | int) -> FieldInfo:
    """The field of `model` that is written `name`."""
    return next(info for known, info in model.model_fields.items() if name in (known, info.alias))


def model_at(place: Sequence[str | int]) -> type[Part]:
    """The part of the configuration that a mapping at `place` becomes."""
    model: type[Part] = Config
    for step in place:
        if isinstance(step, str):
            model = next(parts(field(model, step).annotation))
    return model


def parts(annotation: Any) -> Iterator[type[Part]]:
    """The parts that a field of that annotation may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for argument in get_args(annotation):
        yield from parts(argument)


def holds(annotation: Any, kind: type) -> bool:
    """Whether an annotation is, or is a union with, `kind`: tuple, dict or NoneType."""
    return (
        annotation is kind
        or get_origin(annotation) is kind
        or (get_origin(annotation) not in (tuple, dict) and any(holds(one, kind) for one in get_args(annotation)))
    )


def nullable(annotation: Any) -> bool:
    """Whether null may stand there."""
    return holds(annotation, NoneType)
