"""The sink model as a tree of names: what stands where, what is allowed there, and how messages say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from s3lake.sink import Config, ConfigModel

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


def fields(model: type[ConfigModel]) -> dict[str, FieldInfo]:
    """The fields of `model` as they are written."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def names(model: type[ConfigModel]) -> list[str]:
    """The names that a mapping may have which becomes `model`."""
    return list(fields(model))


def model_at(place: Sequence[str | int]) -> type[ConfigModel]:
    """The part of the configuration that a mapping at `place` becomes."""
    model: type[ConfigModel] = Config
    for step in place:
        if isinstance(step, str):
            model = next(parts(fields(model)[step].annotation))
    return model


def parts(annotation: Any) -> Iterator[type[ConfigModel]]:
    """The parts that a field of that annotation may hold, in lists too."""
    if isinstance(annotation, type) and issubclass(annotation, ConfigModel):
        yield annotation
    for argument in get_args(annotation):
        yield from parts(argument)


def alternatives(annotation: Any) -> Iterator[Any]:
    """What an annotation is a union of; itself where it is none."""
    if get_origin(annotation) is Annotated:
        yield from alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for argument in get_args(annotation):
            yield from alternatives(argument)
    else:
        yield annotation


def holds(annotation: Any, *types: Any) -> bool:
    """Whether an annotation is, or is a union with, one of some types: tuple, dict, str or NoneType."""
    return any(option in types or get_origin(option) in types for option in alternatives(annotation))
