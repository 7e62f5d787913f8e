"""One GET of a configuration, with the options of Iggy's HTTP provider.

Headers, user, password and query go to the server alone: they are in no message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import requests
import tenacity

from s3lake.config.report import Text, decode
from s3lake.errors import ConfigurationError
from s3lake.text import options
from s3lake.text.masking import mask_secrets
from s3lake.text.quantities import parse_duration

PREFIX = "S3LAKE_CONFIG_HTTP_"
_LARGEST = 16 * 2**20
_ANSWER_SHOWN = 200
_SECRET = 4  # characters: shorter texts are in every word


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

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 10.0
    retry_enabled: bool = True
    retry_max_attempts: int = 3
    retry_initial_backoff: float = 1.0
    retry_max_backoff: float = 30.0
    retry_backoff_multiplier: float = 2.0
    response_data_path: str = ""
    response_error_path: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Return the settings that the variables set.

        Raises:
            ConfigurationError: a variable is invalid.
        """
        values = {}
        for variable, text in environment.items():
            if not variable.startswith(PREFIX) or not text.strip():
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name not in _READERS:
                allowed = [setting.upper() for setting in _READERS]
                hint = options.did_you_mean(name, allowed, f"{PREFIX}{{}}")
                raise ConfigurationError(
                    f"{variable}: unknown name; {hint}allowed after {PREFIX}: {', '.join(allowed)}"
                )
            try:
                values[name] = _READERS[name](text.strip())
            except ValueError as error:
                shown = "" if name == "headers" or repr(text.strip()) in str(error) else f"{text.strip()!r} "
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
    return Text(name, _select(text, name, settings, _secrets(parts, settings)))


def _attempt(url: str, name: str, settings: Settings) -> bytes:
    parts = urlsplit(url)
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    headers = {"User-Agent": "s3lake", "Accept-Encoding": "gzip", **settings.headers}
    try:
        with requests.get(
            url,
            headers=headers,
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
        raise ConfigurationError(
            f"{name}: the server's certificate is not trusted; name its authority in REQUESTS_CA_BUNDLE"
        ) from None
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
    remedies = {
        401: f"give what it asks for in {PREFIX}HEADERS",
        403: f"give what it asks for in {PREFIX}HEADERS",
        404: "correct the address",
    }
    if answer.status_code != 200:
        remedy = remedies.get(answer.status_code, "the answer must be 200 with the configuration in it")
        raise ConfigurationError(f"{name}: {status}; {remedy}")


def _secrets(parts: SplitResult, settings: Settings) -> list[str]:
    plain = [parts.password or "", *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    words = chain.from_iterable((value, *value.split()) for value in settings.headers.values())
    secrets = [text for text in (*plain, *words) if len(text) >= _SECRET]
    return sorted({*secrets, *map(unquote, secrets)}, key=len, reverse=True)


def _select(text: str, name: str, settings: Settings, secrets: list[str]) -> str:
    """Return what the data path leads to, or all of an answer.

    Raises:
        ConfigurationError: the answer reports an error, or has nothing at the path.
    """
    if not settings.response_data_path and not settings.response_error_path:
        return text
    try:
        answer = json.loads(text)
    except ValueError as error:
        where = f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else "1:1"
        message = f"is not JSON, which {PREFIX}RESPONSE_DATA_PATH and RESPONSE_ERROR_PATH need"
        raise ConfigurationError(f"{name}:{where}: the answer {message}") from None
    reported = _value_at(answer, settings.response_error_path)
    if reported is not None:
        shown = mask_secrets(
            reported if isinstance(reported, str) else json.dumps(reported, ensure_ascii=False), secrets
        )
        shown = shown if len(shown) <= _ANSWER_SHOWN else shown[:_ANSWER_SHOWN] + "…"
        raise ConfigurationError(f"{name}: the server reports at {settings.response_error_path}: {shown}")
    if not settings.response_data_path:
        return text
    data = _value_at(answer, settings.response_data_path)
    if data is None:
        message = f"Data path '{settings.response_data_path}' not found in the answer"
        raise ConfigurationError(f"{name}: {message}; correct {PREFIX}RESPONSE_DATA_PATH")
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=2)


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


def _headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    if text.startswith("{"):
        try:
            headers = json.loads(text)
        except ValueError:
            raise ValueError('not a JSON object; write {"Name": "value"}, or one `Name: value` a line') from None
        if not all(isinstance(value, str) for value in headers.values()):
            raise ValueError("every header is a text; put the values into quotes")
    else:
        for number, line in enumerate(filter(str.strip, text.splitlines()), 1):
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError(f"line {number} has no colon; write one `Name: value` a line")
            headers[name.strip()] = value.strip()
    for number, (name, value) in enumerate(headers.items(), 1):
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"header {number} has an invalid name: use letters, digits, '-' and '_'")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"the value of header {name} has characters that HTTP does not carry: use plain ASCII")
    return headers


def _seconds(text: str) -> float:
    seconds: float = parse_duration(text)
    if seconds <= 0:
        raise ValueError("is out of range: more than 0, for example 10s")
    return seconds


def _factor(text: str) -> float:
    factor = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not 1 <= factor <= 100:
        raise ValueError("is not allowed: a number from 1 to 100")
    return factor


def _path(text: str) -> str:
    if not all(text.split(".")):
        raise ValueError("is not a path: names with dots between, for example data.items.0")
    return text


_READERS: dict[str, Any] = {
    "headers": _headers,
    "timeout": _seconds,
    "retry_enabled": options.parse_bool,
    "retry_max_attempts": partial(options.parse_whole_number, low=1, high=100),
    "retry_initial_backoff": _seconds,
    "retry_max_backoff": _seconds,
    "retry_backoff_multiplier": _factor,
    "response_data_path": _path,
    "response_error_path": _path,
}
