"""The texts of a configuration: of a file, a directory of files or an address; and the environment's `.env` file.

What an address needs is set by variables `S3LAKE_CONFIG_HTTP_*`, with the names of Iggy's HTTP provider. Headers, user,
password and query go to the server alone: they are in no message.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, Json, StringConstraints, ValidationError

from s3lake.config.model.base import ConfigModel, Duration, at_least, lasts_at_least
from s3lake.errors import ConfigurationError
from s3lake.text.option_values import did_you_mean

if TYPE_CHECKING:
    import requests

PREFIX = "S3LAKE_CONFIG_HTTP_"
_ENVIRONMENTS = ("S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_UNAUTHORIZED = f"give what it asks for in {PREFIX}HEADERS"
_REMEDIES = {401: _UNAUTHORIZED, 403: _UNAUTHORIZED, 404: "correct the address"}


@dataclass(frozen=True)
class ConfigText:
    """A text of a configuration; `name` is a path, or an address without anything secret."""

    name: str
    text: str


def read_texts(location: str, environment: Mapping[str, str]) -> tuple[ConfigText, ...]:
    """Return the texts at `location`, in the order of their names.

    Args:
        location: a file, a directory (its own files; hidden ones and directories inside are left out), or an address
            that begins with http:// or https://.
        environment: holds the options of an address.

    Raises:
        ConfigurationError: there is nothing to read.
    """
    if _is_address(location):
        return (fetch(location, read_options(environment)),)
    if scheme := _SCHEME.match(location):
        # The rest of the address may have a password.
        raise ConfigurationError(
            f"the address of the configuration begins with {scheme[0]}, which s3lake does not read; give a file, a "
            "directory, or an address that begins with http:// or https://"
        )
    try:
        files = list_files(location)
    except OSError as error:
        raise ConfigurationError(f"{location}: cannot be read: {error.strerror}") from None
    if not files:
        raise ConfigurationError(
            f"{Path(location)}: there is no file in this directory; give a file, or a directory with some"
        )
    return tuple(map(_read, files))


def _is_address(location: str) -> bool:
    return location.lower().startswith(("http://", "https://"))


def list_files(location: str) -> list[Path]:
    """Return the file at `location`, which may be missing, or the files of the directory there, by name.

    An address has none: with its query it may even be too long for the name of a file.
    """
    if _is_address(location):
        return []
    path = Path(location)
    if not path.is_dir():
        return [path]
    # A link that leads nowhere is an error: without its file some sinks would not land.
    entries = (entry for entry in path.iterdir() if not entry.name.startswith("."))
    return sorted(entry for entry in entries if entry.is_file() or (entry.is_symlink() and not entry.is_dir()))


def _read(path: Path) -> ConfigText:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file or directory; correct the path, or set S3LAKE_CONFIG") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    return ConfigText(str(path), _decode(data, str(path)))


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        wrong = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise ConfigurationError(f"{name}:{line}:{column}: {wrong}; save it as UTF-8") from None


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
    return {**_read_dotenv(Path(path), variable), **environment}


def _read_dotenv(path: Path, variable: str) -> dict[str, str]:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = _decode(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigurationError(f"{variable}: {path} cannot be read: {error.strerror}; correct or unset it") from None
    for binding in parse_stream(io.StringIO(text)):  # dotenv_values skips what it cannot read
        if binding.error or (binding.key is not None and binding.value is None):
            line = binding.original.line
            raise ConfigurationError(f"{path}:{line}:1: this is not NAME=value; correct the line, or begin it with #")
    return {name: value or "" for name, value in dotenv_values(stream=io.StringIO(text)).items()}


# Options of an address


_Ascii = Annotated[str, StringConstraints(pattern=r"^[ -~]*$")]
_Seconds = Annotated[Duration, lasts_at_least(0.001)]
_Path = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1)], ...], BeforeValidator(lambda text: text.split("."))
]


class HttpOptions(ConfigModel):
    """The options of an address; durations are in seconds.

    Attributes:
        headers: sent with the request, and shown nowhere.
        timeout: the longest wait for the server's answer, and between two pieces of it, in seconds.
        retry_enabled: try again after connection errors, 429 and 5xx.
        retry_max_attempts: the first one included.
        response_data_path: where in a JSON answer the configuration is; empty: all of it.
        response_error_path: where a JSON answer reports an error.
    """

    headers: Json[dict[_Ascii, _Ascii]] = Field(default_factory=dict, repr=False)
    timeout: _Seconds = 10.0
    retry_enabled: bool = True
    retry_max_attempts: Annotated[int, at_least(1, 100)] = 3
    retry_initial_backoff: _Seconds = 1.0
    retry_max_backoff: _Seconds = 30.0
    retry_backoff_multiplier: Annotated[float, at_least(1, 100)] = 2.0
    response_data_path: _Path = ()
    response_error_path: _Path = ()


def read_options(environment: Mapping[str, str]) -> HttpOptions:
    """Return the options of an address that variables set, and the defaults of the others.

    Raises:
        ConfigurationError: a variable is invalid.
    """
    texts = {name.removeprefix(PREFIX): text.strip() for name, text in environment.items() if name.startswith(PREFIX)}
    allowed = [name.upper() for name in HttpOptions.model_fields]
    for name in texts:
        if name not in allowed:
            near = did_you_mean(name, allowed, f"{PREFIX}{{}}")
            raise ConfigurationError(
                f"{PREFIX}{name}: unknown name; {near}allowed after {PREFIX}: {', '.join(allowed)}"
            )
    try:
        return HttpOptions.model_validate({name.lower(): text for name, text in texts.items() if text})
    except ValidationError as refused:
        error = refused.errors(include_url=False, include_input=False)[0]
        why = error["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"{PREFIX}{str(error['loc'][0]).upper()}: {why}") from None


# One GET


class _TransientError(Exception):
    """Trying again may succeed; the message holds nothing secret."""


def fetch(url: str, settings: HttpOptions) -> ConfigText:
    """Return the text that the server at `url` answers; `settings` are its options.

    Raises:
        ConfigurationError: it does not answer, refuses, or answers no configuration.
    """
    try:
        parts = urlsplit(url)
        name, host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", parts.hostname
    except ValueError:
        host = None
    if not host:
        raise ConfigurationError("the address of the configuration has no host; write https://HOST/PATH")
    import tenacity  # with requests a fifth of what each command would import

    attempts = settings.retry_max_attempts if settings.retry_enabled else 1
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_TransientError),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_exponential(
            multiplier=settings.retry_initial_backoff,
            exp_base=settings.retry_backoff_multiplier,
            max=settings.retry_max_backoff,
        ),
        reraise=True,
    )
    try:
        text = _decode(retrying(_attempt, url, name, settings), name)
    except _TransientError as error:
        tried = f" in {attempts} attempts" if attempts > 1 else ""
        raise ConfigurationError(
            f"{name}: no configuration came{tried}: {error}; check the address and that the server is up"
        ) from None
    if settings.response_data_path or settings.response_error_path:
        text = _select(text, name, settings)
    return ConfigText(name, text)


def _attempt(url: str, name: str, settings: HttpOptions) -> bytes:
    import requests

    parts = urlsplit(url)
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    try:
        answer = requests.get(
            url,
            headers={"User-Agent": "s3lake", "Accept-Encoding": "gzip", **settings.headers},
            auth=login if any(login) else lambda request: request,  # not what ~/.netrc has
            timeout=settings.timeout,
            allow_redirects=False,  # another host would get the headers
        )
        _require_ok(answer, name)
        return answer.content
    # What requests writes into its errors quotes the address, query included: neither it nor its chain is passed on.
    except requests.exceptions.SSLError:
        message = "the server's certificate is not trusted; name its authority in REQUESTS_CA_BUNDLE"
        raise ConfigurationError(f"{name}: {message}") from None
    except requests.exceptions.Timeout:
        raise _TransientError(f"no answer within {settings.timeout:g} s") from None
    except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
        raise _TransientError("the connection failed") from None
    except requests.exceptions.RequestException as error:
        raise ConfigurationError(f"{name}: no request can be made: {type(error).__name__}") from None


def _require_ok(answer: requests.Response, name: str) -> None:
    status = f"the server answered {answer.status_code} {answer.reason}"
    if answer.status_code == 429 or answer.status_code >= 500:
        raise _TransientError(status)
    if answer.status_code != 200:
        remedy = _REMEDIES.get(answer.status_code, "the answer must be 200 with the configuration in it")
        raise ConfigurationError(f"{name}: {status}; {remedy}")


def _select(text: str, name: str, settings: HttpOptions) -> str:
    """Return what the data path leads to, or all of an answer.

    Raises:
        ConfigurationError: the answer reports an error, or has nothing at the path.
    """
    data_path, error_path = settings.response_data_path, settings.response_error_path
    try:
        answer = json.loads(text)
    except ValueError as error:
        message = f"is not JSON, which {PREFIX}RESPONSE_DATA_PATH and RESPONSE_ERROR_PATH need: {error}"
        raise ConfigurationError(f"{name}: the answer {message}") from None
    if error_path and _value_at(answer, error_path) is not None:  # its text may quote what was sent: it is not shown
        raise ConfigurationError(f"{name}: the server reports an error, at {'.'.join(error_path)} of its answer")
    data = _value_at(answer, data_path)
    if data is None:
        message = f"Data path '{'.'.join(data_path)}' not found in the answer"
        raise ConfigurationError(f"{name}: {message}; correct {PREFIX}RESPONSE_DATA_PATH")
    if not data_path:
        return text
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=2)


def _value_at(answer: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; a number is a position in a list. None if there is none, or null."""
    for step in path:
        if isinstance(answer, dict):
            answer = answer.get(step)
        elif isinstance(answer, list) and step.isascii() and step.isdigit() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            return None
    return answer
