"""One GET of a configuration, with the options of Iggy's HTTP provider.

Headers, user, password and query go to the server alone: they are in no message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from s3lake.config.report import Text, decode
from s3lake.errors import ConfigurationError
from s3lake.text import options
from s3lake.text.masking import mask_secrets
from s3lake.text.quantities import parse_duration

if TYPE_CHECKING:
    import requests

PREFIX = "S3LAKE_CONFIG_HTTP_"
_LARGEST = 16 * 2**20
_ANSWER_SHOWN = 200
_SECRET = 4  # characters: shorter texts are in every word
_REMEDIES = {
    401: f"give what it asks for in {PREFIX}HEADERS",
    403: f"give what it asks for in {PREFIX}HEADERS",
    404: "correct the address",
}


def _parse_headers(text: str) -> dict[str, str]:
    try:
        headers = json.loads(text)
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise ValueError('not a JSON object of texts; write {"Name": "value"}')
    for name, value in headers.items():
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError("a header has an invalid name: use letters, digits, '-' and '_'")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"the value of header {name} has characters that HTTP does not carry: use plain ASCII")
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


def _parse_path(text: str) -> str:
    if not all(text.split(".")):
        raise ValueError("is not a path: names with dots between, for example data.items.0")
    return text


def _option(default: Any, read: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True)
class Settings:
    """How to fetch: Iggy's names and defaults, each as `S3LAKE_CONFIG_HTTP_<NAME>`. Durations are in seconds.

    Attributes:
        headers: sent with the request, and shown nowhere.
        timeout: until the server answers, and between two pieces of its answer.
        retry_enabled: whether connection errors, 429 and 5xx are tried again.
        retry_max_attempts: the first included.
        retry_initial_backoff: the pause before the second attempt.
        retry_max_backoff: the longest pause.
        retry_backoff_multiplier: how much longer each pause is than the one before.
        response_data_path: where in a JSON answer the configuration is, for example `data.items.0`; empty: all of it.
        response_error_path: where a JSON answer reports an error.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False, metadata={"read": _parse_headers})
    timeout: float = _option(10.0, _parse_seconds)
    retry_enabled: bool = _option(True, options.parse_bool)
    retry_max_attempts: int = _option(3, partial(options.parse_whole_number, low=1, high=100))
    retry_initial_backoff: float = _option(1.0, _parse_seconds)
    retry_max_backoff: float = _option(30.0, _parse_seconds)
    retry_backoff_multiplier: float = _option(2.0, _parse_factor)
    response_data_path: str = _option("", _parse_path)
    response_error_path: str = _option("", _parse_path)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Return the settings that the variables set.

        Raises:
            ConfigurationError: a variable is invalid.
        """
        readers, values = {option.name.upper(): option.metadata["read"] for option in fields(cls)}, {}
        for variable, text in environment.items():
            name = variable.removeprefix(PREFIX)
            if name == variable or not text.strip():
                continue
            if name not in readers:
                near = options.did_you_mean(name, readers, f"{PREFIX}{{}}")
                allowed = ", ".join(readers)
                raise ConfigurationError(f"{variable}: unknown name; {near}allowed after {PREFIX}: {allowed}")
            try:
                values[name.lower()] = readers[name](text.strip())
            except ValueError as error:
                shown = "" if name == "HEADERS" or repr(text.strip()) in str(error) else f"{text.strip()!r} "
                raise ConfigurationError(f"{variable}: {shown}{error}") from None
        return cls(**values)


class _TransientError(Exception):
    """Trying again may succeed; the message holds nothing secret."""


def fetch(url: str, settings: Settings) -> Text:
    """Return the text that the server at `url` answers.

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
        text = decode(retrying(_attempt, url, name, settings), name)
    except _TransientError as error:
        tried = f" in {attempts} attempts" if attempts > 1 else ""
        raise ConfigurationError(
            f"{name}: no configuration came{tried}: {error}; check the address and that the server is up"
        ) from None
    if settings.response_data_path or settings.response_error_path:
        text = _select(text, name, settings, _find_secrets(parts, settings))
    return Text(name, text)


def _attempt(url: str, name: str, settings: Settings) -> bytes:
    import requests

    parts = urlsplit(url)
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    try:
        with requests.get(
            url,
            headers={"User-Agent": "s3lake", "Accept-Encoding": "gzip", **settings.headers},
            auth=login if any(login) else lambda request: request,  # not what ~/.netrc has
            timeout=settings.timeout,
            stream=True,
            allow_redirects=False,
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
        raise _TransientError(f"no answer within {settings.timeout:g} s") from None
    except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
        raise _TransientError("the connection failed") from None
    except requests.exceptions.RequestException as error:
        raise ConfigurationError(f"{name}: no request can be made: {type(error).__name__}") from None


def _require_ok(answer: requests.Response, name: str) -> None:
    status = f"the server answered {answer.status_code} {answer.reason}"
    if answer.status_code == 429 or answer.status_code >= 500:
        raise _TransientError(status)
    if answer.is_redirect:
        target = urlsplit(answer.headers["location"])
        where = f"{target.scheme or 'http'}://{target.netloc.rpartition('@')[2]}" if target.netloc else ""
        raise ConfigurationError(f"{name}: {status}; give the address that it redirects to, {where}{target.path}")
    if answer.status_code != 200:
        remedy = _REMEDIES.get(answer.status_code, "the answer must be 200 with the configuration in it")
        raise ConfigurationError(f"{name}: {status}; {remedy}")


def _find_secrets(parts: SplitResult, settings: Settings) -> list[str]:
    plain = [parts.password or "", *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    words = chain.from_iterable((value, *value.split()) for value in settings.headers.values())
    secrets = [text for text in (*plain, *words) if len(text) >= _SECRET]
    return [*secrets, *map(unquote, secrets)]


def _select(text: str, name: str, settings: Settings, secrets: list[str]) -> str:
    """Return what the data path leads to, or all of an answer.

    Raises:
        ConfigurationError: the answer reports an error, or has nothing at the path.
    """
    try:
        answer = json.loads(text)
    except ValueError as error:
        where = f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else "1:1"
        message = f"is not JSON, which {PREFIX}RESPONSE_DATA_PATH and RESPONSE_ERROR_PATH need"
        raise ConfigurationError(f"{name}:{where}: the answer {message}") from None
    reported = _value_at(answer, settings.response_error_path)
    if reported is not None:
        shown = mask_secrets(_to_text(reported), secrets)
        shown = shown if len(shown) <= _ANSWER_SHOWN else shown[:_ANSWER_SHOWN] + "…"
        raise ConfigurationError(f"{name}: the server reports at {settings.response_error_path}: {shown}")
    if not settings.response_data_path:
        return text
    data = _value_at(answer, settings.response_data_path)
    if data is None:
        message = f"Data path '{settings.response_data_path}' not found in the answer"
        raise ConfigurationError(f"{name}: {message}; correct {PREFIX}RESPONSE_DATA_PATH")
    return _to_text(data)


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _value_at(answer: Any, path: str) -> Any:
    """Return the value at a dotted path; a number is a position in a list. None if there is none, or null."""
    for step in path.split("."):
        if isinstance(answer, dict):
            answer = answer.get(step)
        elif isinstance(answer, list) and step.isascii() and step.isdigit() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            return None
    return answer
