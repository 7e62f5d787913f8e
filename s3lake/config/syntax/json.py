"""JSON as a tree: the standard library judges it, PyYAML, to which it is YAML, has the places."""

from __future__ import annotations

import json
import re

from s3lake.config.syntax.node import Node
from s3lake.config.syntax.yaml import parse_yaml
from s3lake.errors import ConfigurationError


def parse_json(text: str, name: str) -> Node:
    """Return the tree of a JSON object; `name` is the file's name in errors.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        data = json.loads(text, parse_int=float)  # Python makes no integer of more than 4,300 digits
    except RecursionError:
        raise ConfigurationError(f"{name}:1:1: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{name}:1:1: not JSON: an object begins with {{")
    # A text of JSON may hold these as they are, one of YAML only escaped; tabs are between tokens only.
    escaped = re.sub(r"[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text.replace("\t", " "))
    return parse_yaml(escaped, name)[0]
