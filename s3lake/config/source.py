"""The texts of a configuration: of a file, a directory of files or an address; and the environment's `.env` file.

What an address needs is set by variables `S3LAKE_CONFIG_HTTP_*`, with the names of Iggy's HTTP provider. Headers, user,
password and query go to the server alone: they are in no message.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from s3lake.errors import ConfigurationError
from s3lake.text import options
from s3lake.text.masking import mask_secrets
from s3lake.text.quantities import parse_duration

if TYPE_CHECKING:
    import requests

PREFIX = "S3LAKE_CONFIG_HTTP_"
_ENVIRONMENTS = ("S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH")
_LARGEST = 16 * 2**20
_ANSWER_SHOWN = 200
_SECRET = 4  # characters: shorter texts are in every word
_UNAUTHORIZED = f"give what it asks for in {PREFIX}HEADERS"
_REMEDIES = {401: _UNAUTHORIZED, 403: _UNAUTHORIZED, 404: "correct the address"}


@dataclass(frozen=True)
class Text:
    """A text of a configuration; `name` is a path, or an address without anything secret."""

    name: str
    text: str


def read_texts(location: str, environment: Mapping[str, str]) -> tuple[Text, ...]:
    """Return the texts at `location`, in the order of their names.

    Args:
        location: a file, a directory (its own files; hidden ones and directories inside are left out), or an address
            that begins with http:// or https://.
        environment: holds the options of an address.

    Raises:
        ConfigurationError: there is nothing to read.
    """
    if location.lower().startswith(("http://", "https://")):
        return (fetch(location, read_options(environment)),)
    files = list_files(location)
    if not files:
        raise ConfigurationError(
            f"{Path(location)}: there is no file in this directory; give a file, or a directory with some"
        )
    return tuple(map(_read, files))


def list_files(location: str) -> list[Path]:
    """Return the file at `location`, which may be missing, or the files of the directory there, by name."""
    path = Path(location)
    if not path.is_dir():
        return [path]
    return sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))


def _read(path: Path) -> Text:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file or directory; correct the path, or set S3LAKE_CONFIG") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    return Text(str(path), _decode(data, str(path)))


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


def _parse_headers(text: str) -> dict[str, str]:
    try:
        headers = json.loads(text)
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise ValueError('not a JSON object of texts; write {"Name": "value"}')
    if not all(f"{name}{value}".isascii() and f"{name}{value}".isprintable() for name, value in headers.items()):
        raise ValueError("a header has characters that HTTP does not carry: use plain ASCII")
    return headers


def _parse_seconds(text: str) -> float:
    seconds: float = parse_duration(text)
    if seconds <= 0:
        raise ValueError("is out of range: more than 0, for example 10s")
    return seconds


def _parse_factor(text: str) -> float:
    factor = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not 1 <= factor <= 100:
        raise ValueError("is not allowed: a number from 1 to 100")
    return factor


def _parse_path(text: str) -> list[str]:
    if not all(text.split(".")):
        raise ValueError("is not a path: names with dots between, for example data.items.0")
    return text.split(".")


_OPTIONS: Mapping[str, tuple[Any, Callable[[str], Any]]] = {
    "HEADERS": ({}, _parse_headers),  # sent with the request, and shown nowhere
    "TIMEOUT": (10.0, _parse_seconds),  # until the server answers, and between two pieces of its answer
    "RETRY_ENABLED": (True, options.parse_bool),  # try again after connection errors, 429 and 5xx
    "RETRY_MAX_ATTEMPTS": (3, partial(options.parse_whole_number, low=1, high=100)),  # the first one included
    "RETRY_INITIAL_BACKOFF": (1.0, _parse_seconds),
    "RETRY_MAX_BACKOFF": (30.0, _parse_seconds),
    "RETRY_BACKOFF_MULTIPLIER": (2.0, _parse_factor),
    "RESPONSE_DATA_PATH": ([], _parse_path),  # where in a JSON answer the configuration is; empty: all of it
    "RESPONSE_ERROR_PATH": ([], _parse_path),  # where a JSON answer reports an error
}
"""By the names that follow the prefix, the default and the parser of each option; durations are in seconds."""


def read_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an address that variables set, and the defaults of the others.

    Raises:
        ConfigurationError: a variable is invalid.
    """
    values = {name: default for name, (default, _) in _OPTIONS.items()}
    for variable, text in environment.items():
        name = variable.removeprefix(PREFIX)
        if name == variable or not text.strip():
            continue
        if name not in _OPTIONS:
            near = options.did_you_mean(name, _OPTIONS, f"{PREFIX}{{}}")
            raise ConfigurationError(f"{variable}: unknown name; {near}allowed after {PREFIX}: {', '.join(_OPTIONS)}")
        try:
            values[name] = _OPTIONS[name][1](text.strip())
        except ValueError as error:
            shown = "" if name == "HEADERS" or repr(text.strip()) in str(error) else f"{text.strip()!r} "
            raise ConfigurationError(f"{variable}: {shown}{error}") from None
    return values


# One GET


class _TransientError(Exception):
    """Trying again may succeed; the message holds nothing secret."""


def fetch(url: str, settings: Mapping[str, Any]) -> Text:
    """Return the text that the server at `url` answers; `settings` are those of `read_options`.

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

    attempts = settings["RETRY_MAX_ATTEMPTS"] if settings["RETRY_ENABLED"] else 1
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_TransientError),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_exponential(
            multiplier=settings["RETRY_INITIAL_BACKOFF"],
            exp_base=settings["RETRY_BACKOFF_MULTIPLIER"],
            max=settings["RETRY_MAX_BACKOFF"],
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
    if settings["RESPONSE_DATA_PATH"] or settings["RESPONSE_ERROR_PATH"]:
        text = _select(text, name, settings, _find_secrets(parts, settings))
    return Text(name, text)


def _attempt(url: str, name: str, settings: Mapping[str, Any]) -> bytes:
    import requests

    parts = urlsplit(url)
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    try:
        with requests.get(
            url,
            headers={"User-Agent": "s3lake", "Accept-Encoding": "gzip", **settings["HEADERS"]},
            auth=login if any(login) else lambda request: request,  # not what ~/.netrc has
            timeout=settings["TIMEOUT"],
            stream=True,
            allow_redirects=False,  # another host would get the headers
        ) as answer:
            _require_ok(answer, name)
            body = bytearray()
            for piece in answer.iter_content(2**16):
                body += piece
                if len(body) > _LARGEST:
                    raise ConfigurationError(f"{name}: the answer has more than {_LARGEST} bytes: too many")
            return bytes(body)
    # What requests writes into its errors quotes the address, query included: neither it nor its chain is passed on.
    except requests.exceptions.SSLError:
        message = "the server's certificate is not trusted; name its authority in REQUESTS_CA_BUNDLE"
        raise ConfigurationError(f"{name}: {message}") from None
    except requests.exceptions.Timeout:
        raise _TransientError(f"no answer within {settings['TIMEOUT']:g} s") from None
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


def _find_secrets(parts: SplitResult, settings: Mapping[str, Any]) -> list[str]:
    plain = [parts.password or "", *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    words = chain.from_iterable((value, *value.split()) for value in settings["HEADERS"].values())
    secrets = [text for text in (*plain, *words) if len(text) >= _SECRET]
    return [*secrets, *map(unquote, secrets)]


def _select(text: str, name: str, settings: Mapping[str, Any], secrets: list[str]) -> str:
    """Return what the data path leads to, or all of an answer.

    Raises:
        ConfigurationError: the answer reports an error, or has nothing at the path.
    """
    data_path, error_path = settings["RESPONSE_DATA_PATH"], settings["RESPONSE_ERROR_PATH"]
    try:
        answer = json.loads(text)
    except ValueError as error:
        message = f"is not JSON, which {PREFIX}RESPONSE_DATA_PATH and RESPONSE_ERROR_PATH need: {error}"
        raise ConfigurationError(f"{name}: the answer {message}") from None
    reported = _value_at(answer, error_path) if error_path else None
    if reported is not None:
        shown = mask_secrets(_to_text(reported), secrets)
        shown = shown if len(shown) <= _ANSWER_SHOWN else shown[:_ANSWER_SHOWN] + "…"
        raise ConfigurationError(f"{name}: the server reports at {'.'.join(error_path)}: {shown}")
    data = _value_at(answer, data_path)
    if data is None:
        message = f"Data path '{'.'.join(data_path)}' not found in the answer"
        raise ConfigurationError(f"{name}: {message}; correct {PREFIX}RESPONSE_DATA_PATH")
    return _to_text(data) if data_path else text


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _value_at(answer: Any, path: list[str]) -> Any:
    """Return the value at a path; a number is a position in a list. None if there is none, or null."""
    for step in path:
        if isinstance(answer, dict):
            answer = answer.get(step)
        elif isinstance(answer, list) and step.isascii() and step.isdigit() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            return None
    return answer
