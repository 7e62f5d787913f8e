"""The texts of a configuration: of a file, a directory of files or an address; and the environment's `.env` file."""

import io
from collections.abc import Mapping
from pathlib import Path

from s3lake.config import http
from s3lake.config.report import Text, decode
from s3lake.errors import ConfigurationError

_ENVIRONMENTS = ("S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH")


def read_texts(location: str, environment: Mapping[str, str]) -> tuple[Text, ...]:
    """Return the texts at `location`, in the order of their names.

    Args:
        location: a file, a directory (its own files; hidden ones and directories inside are left out), or an address
            that begins with http:// or https://.
        environment: holds the settings `S3LAKE_CONFIG_HTTP_*` of an address.

    Raises:
        ConfigurationError: there is nothing to read; no secret of the address or its headers is in the message.
    """
    if location.lower().startswith(("http://", "https://")):
        return (http.fetch(location, http.Settings.from_environment(environment)),)
    path = Path(location)
    if not path.is_dir():
        return (_read(path),)
    files = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    if not files:
        raise ConfigurationError(f"{path}: there is no file in this directory; give a file, or a directory with some")
    return tuple(map(_read, files))


def _read(path: Path) -> Text:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file or directory; correct the path, or set S3LAKE_CONFIG") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    return Text(str(path), decode(data, str(path)))


def with_dotenv(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, with the variables of the file that `S3LAKE_ENV_PATH` (or Iggy's variable) names.

    A variable of the environment itself wins.

    Raises:
        ConfigurationError: the file cannot be read, or a line of it is not `NAME=value`.
    """
    named = {name: environment[name] for name in _ENVIRONMENTS if environment.get(name)}
    if not named:
        return dict(environment)
    if len(set(named.values())) > 1:
        raise ConfigurationError(f"{' and '.join(named)} name different files: unset one of them")
    variable, path = next(iter(named.items()))
    return {**_variables(Path(path), variable), **environment}


def _variables(path: Path, variable: str) -> dict[str, str]:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = decode(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigurationError(f"{variable}: {path} cannot be read: {error.strerror}; correct or unset it") from None
    for binding in parse_stream(io.StringIO(text)):  # dotenv_values skips what it cannot read
        if binding.error or (binding.key is not None and binding.value is None):
            line = binding.original.line
            raise ConfigurationError(f"{path}:{line}:1: this is not NAME=value; correct the line, or begin it with #")
    return {name: value or "" for name, value in dotenv_values(stream=io.StringIO(text)).items()}
