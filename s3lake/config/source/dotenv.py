"""A `.env` file beside the real environment, which wins."""

import io
from collections.abc import Mapping
from pathlib import Path

from s3lake.config.source.text import text_of
from s3lake.errors import ConfigurationError

VARIABLES = ("S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH")


def completed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with what the file that `S3LAKE_ENV_PATH` (or Iggy's variable) names has beyond it.

    Raises:
        ConfigurationError: the file cannot be read, or a line of it is no `NAME=value`.
    """
    named = {name: environment[name] for name in VARIABLES if environment.get(name)}
    if not named:
        return dict(environment)
    if len(set(named.values())) > 1:
        raise ConfigurationError(f"{' and '.join(named)} name different files: unset one of them")
    variable, path = next(iter(named.items()))
    return {**_values(Path(path), variable), **environment}


def _values(path: Path, variable: str) -> dict[str, str]:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = text_of(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigurationError(f"{variable}: {path} cannot be read: {error.strerror}; correct or unset it") from None
    for binding in parse_stream(io.StringIO(text)):  # dotenv_values skips what it cannot read
        if binding.error or (binding.key is not None and binding.value is None):
            line = binding.original.line
            raise ConfigurationError(f"{path}:{line}:1: this is no NAME=value; correct the line, or begin it with #")
    return {name: value or "" for name, value in dotenv_values(stream=io.StringIO(text)).items()}
