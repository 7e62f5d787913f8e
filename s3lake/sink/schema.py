"""What the models say of themselves: each setting's meaning, and all of it as JSON Schema for editors."""

import inspect
import re
from typing import Any

from pydantic import BaseModel

from s3lake.sink.config import Config

_PART = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def summary(model: type[BaseModel]) -> str:
    """What a part of the configuration is, in Markdown."""
    return (inspect.getdoc(model) or "").partition("\n\nAttributes:\n")[0]


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each setting of a part means, by its name in the configuration."""
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        attributes = (inspect.getdoc(base) or "").partition("\n\nAttributes:\n")[2]
        meanings |= {name: " ".join(text.split()) for name, text in _PART.findall(attributes + "\n")}
    return {field.alias or name: meanings[name] for name, field in model.model_fields.items() if name in meanings}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the native configuration; every setting has its description."""
    schema = Config.model_json_schema(by_alias=True)
    parts = parts_of(Config)
    for name, definition in {Config.__name__: schema, **schema["$defs"]}.items():
        definition["description"] = summary(parts[name])
        for setting, meaning in meanings(parts[name]).items():
            definition["properties"][setting]["description"] = meaning
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def parts_of(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The model and those that it is made of, by name, each before those inside it."""
    parts = {model.__name__: model}
    for field in model.model_fields.values():
        annotations = [field.annotation]
        while annotations:
            annotation = annotations.pop()
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                parts |= {name: part for name, part in parts_of(annotation).items() if name not in parts}
            annotations += getattr(annotation, "__args__", ())
    return parts
