"""A connector's file that is JSON, as members with their places: `json` judges the text, PyYAML gives the places."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from s3lake.config.read.members import Member
from s3lake.config.read.yaml import documents
from s3lake.errors import ConfigurationError

_MESSAGES = {
    "Expecting property name": "a key in double quotes is needed, or }",
    "Expecting ':'": "a colon is needed after a key",
    "Expecting ','": "a comma is needed between values, or the end of the object or list",
    "Expecting value": "a value is needed: text in double quotes, a number, true, false or null",
    "Illegal trailing comma": "a comma before the end is not allowed",
    "Extra data": "something is after the object",
}
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_OTHERWISE = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters of texts that YAML refuses, or takes for the end of a line."""


def members(text: str, file: str) -> tuple[Member, ...]:
    """Return the members of the object that a text is, in its order.

    Raises:
        ConfigurationError: it is not a JSON object.
    """
    try:
        data = _load(text)
    except RecursionError:
        raise ConfigurationError(f"{file}:1:1: nested too deeply") from None
    except json.JSONDecodeError as error:
        unclosed = "a text is not closed, or has a character that needs a backslash"
        message = next((told for begin, told in _MESSAGES.items() if error.msg.startswith(begin)), unclosed)
        raise ConfigurationError(f"{file}:{error.lineno}:{error.colno}: not JSON: {message}") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{file}:1:1: not JSON: an object begins with {{")
    plain = _OTHERWISE.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\t", " "))
    # libyaml is ten times as fast, and refuses characters that are written as two escapes.
    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    (root,) = documents(plain, file, yaml.SafeLoader if _HALF.search(plain) else fast)
    return root


def names(text: str) -> set[str] | None:
    """Return the keys of a JSON object and of its `config`; None if the text is not a JSON object."""
    try:
        data = _load(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    config = data.get("config")
    return {*data, *(config if isinstance(config, dict) else ())}


def _load(text: str) -> Any:
    """Return the data of a text. Numbers stay approximate: Python makes no integer of more than 4,300 digits."""
    return json.loads(text, parse_int=float)
