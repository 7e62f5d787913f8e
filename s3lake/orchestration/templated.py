"""The sink model as Dagster's YAML has it: any value may be a template, and each setting says what it means."""

import functools
import operator
import warnings
from types import UnionType
from typing import Any, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, SecretStr, create_model
from pydantic.fields import FieldInfo

from s3lake.sink import Part
from s3lake.sink.schema import meanings, summary

_NO_LITERAL = "\0"


@functools.cache
def templated(part: type[Part]) -> type[BaseModel]:
    """A model of the settings of `part`, whose values may still be templates; the rules of `part` come after them."""
    described = meanings(part)
    fields: dict[str, Any] = {}
    for name, field in part.model_fields.items():
        setting, resolver = field.alias or name, _resolver(field)
        annotation = _inner(field.annotation) if resolver is None else resolver.model_field_type or field.annotation
        description = described.get(setting) or (resolver.description if resolver else None)
        about = Field(default=_default(field), description=description, examples=field.examples)
        fields[setting] = (annotation if annotation is str else annotation | str, about)
    with warnings.catch_warnings():
        # Dagster asks a model for the keys of its YAML by name, and pydantic has an old method `schema`.
        warnings.filterwarnings("ignore", r'Field name "schema" .* shadows an attribute', UserWarning)
        config = ConfigDict(extra="forbid", json_schema_extra=part.model_config.get("json_schema_extra"))
        return create_model(part.__name__, __config__=config, __doc__=summary(part), **fields)


def settings(part: type[Part], context: dg.ResolutionContext, model: BaseModel) -> dict[str, Any]:
    """What a templated model of `part` says, with its templates filled in."""
    resolvers = {field.alias or name: _resolver(field) for name, field in part.model_fields.items()}
    values = {}
    for setting in model.model_fields_set:
        if (resolver := resolvers[setting]) is None:
            values[setting] = _filled(context.at_path(setting), getattr(model, setting))
        else:
            values[setting] = resolver.execute(context=context, model=model, field_name=setting)
    return values


def _filled(context: dg.ResolutionContext, value: Any) -> Any:
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in value.model_fields_set}
    match value:
        case dict():
            return {name: _filled(context.at_path(name), inner) for name, inner in value.items()}
        case list() | tuple():
            return [_filled(context.at_path(position), inner) for position, inner in enumerate(value)]
        case str() if "{" in value:
            result = context.resolve_value(value)
            # Jinja takes text for the literal that it looks like: of a password 1_000 it would make a number.
            if isinstance(result, (bool, int, float, str)):
                return str(context.resolve_value(_NO_LITERAL + value)).removeprefix(_NO_LITERAL)
            return result
    return value


def _resolver(field: FieldInfo) -> dg.Resolver | None:
    """How Dagster reads a setting that is its own, or that of who inherits from the component."""
    return next((extra for extra in field.metadata if isinstance(extra, dg.Resolver)), None)


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return ...
    return field.default if isinstance(field.default, (bool, int, float, str)) else None


def _inner(annotation: Any) -> Any:
    """An annotation with templated models in the place of parts, and text in that of secrets."""
    if annotation is SecretStr:
        return str
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return templated(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, map(_inner, arguments))
    if origin in (tuple, list, dict):
        return origin[tuple(map(_inner, arguments))]
    return annotation
