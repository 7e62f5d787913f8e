"""The descriptions of all settings, read from the docstrings of their models, and as JSON Schema for editors."""

import inspect
import re
from typing import Any

from pydantic import BaseModel

from s3lake.config.model.base import models_in
from s3lake.config.model.configuration import Config

_PART = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def model_summary(model: type[BaseModel]) -> str:
    """Return the description of a model, in Markdown."""
    return (inspect.getdoc(model) or "").partition("\n\nAttributes:\n")[0]


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each setting of a model, by its name in the configuration."""
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        attributes = (inspect.getdoc(base) or "").partition("\n\nAttributes:\n")[2]
        meanings |= {name: " ".join(text.split()) for name, text in _PART.findall(attributes + "\n")}
    return {field.alias or name: meanings[name] for name, field in model.model_fields.items() if name in meanings}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the native configuration; every setting has its description."""
    schema = Config.model_json_schema(by_alias=True)
    parts = nested_models(Config)
    for name, definition in {Config.__name__: schema, **schema["$defs"]}.items():
        definition["description"] = model_summary(parts[name])
        for setting, meaning in field_descriptions(parts[name]).items():
            definition["properties"][setting]["description"] = meaning
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def nested_models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the model and the models inside it, by name, each before its own."""
    parts = {model.__name__: model}
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            parts |= {name: part for name, part in nested_models(inner).items() if name not in parts}
    return parts
