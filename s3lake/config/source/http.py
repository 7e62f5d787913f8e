"""A configuration from an HTTP server, as Iggy's HTTP provider fetches it: headers, timeout, retries, a place inside
the answer.

Nothing secret leaves this module but towards the server: headers, user, password and query are in no message.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import requests
import tenacity
from urllib3.exceptions import HTTPError

from s3lake.config.source.text import Source, text_of
from s3lake.errors import ConfigurationError
from s3lake.text import options
from s3lake.text.masking import without
from s3lake.text.quantities import parse_duration

T = TypeVar("T")
PREFIX = "S3LAKE_CONFIG_HTTP_"
_LARGEST = 16 * 2**20
_REDIRECTS = 30
_ANSWER_SHOWN = 200
_SECRET = 4  # characters: what is shorter is no secret, and would be found in every word


@dataclass(frozen=True)
class Settings:
    """How to fetch: Iggy's names and defaults, each as `S3LAKE_CONFIG_HTTP_<NAME>`.

    Attributes:
        headers: sent with every request to that host, and shown nowhere.
        timeout: seconds for one attempt, the whole answer included.
        retry_enabled: whether connection errors, 429 and 5xx are tried again.
        retry_max_attempts: the first included.
        retry_initial_backoff: seconds before the second attempt.
        retry_max_backoff: the longest pause, in seconds.
        retry_backoff_multiplier: how much longer each pause is than the one before.
        response_data_path: where in a JSON answer the configuration is, for example `data.items.0`; empty: all of it.
        response_error_path: where a JSON answer says that it is none.
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
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """The settings that `environment` holds.

        Raises:
            ConfigurationError: a variable cannot be right.
        """
        options_given = {}
        for variable, text in environment.items():
            if not variable.startswith(PREFIX) or not text.strip():
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name not in _READ:
                allowed = [setting.upper() for setting in _READ]
                hint = options.suggestion(name, allowed, f"{PREFIX}{{}}")
                raise ConfigurationError(
                    f"{variable}: unknown name; {hint}allowed after {PREFIX}: {', '.join(allowed)}"
                )
            try:
                options_given[name] = _READ[name](text.strip())
            except ValueError as error:
                raise ConfigurationError(f"{variable}: {error}") from None
        return cls(**options_given)


def fetched(url: str, settings: Settings) -> Source:
    """What the server at `url` answers.

    Raises:
        ConfigurationError: it does not answer, refuses, or what it says is no configuration.
    """
    try:
        parts = urlsplit(url)
        name, host = _shown(parts), parts.hostname
    except ValueError:
        host = None
    if not host:
        raise ConfigurationError("the address of the configuration has no host; write https://HOST/PATH")
    attempts = settings.retry_max_attempts if settings.retry_enabled else 1
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_Again),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_exponential(
            multiplier=settings.retry_initial_backoff,
            exp_base=settings.retry_backoff_multiplier,
            max=settings.retry_max_backoff,
        ),
        reraise=True,
    )
    try:
        body = retrying(_attempt, url, name, settings)
    except _Again as error:
        tried = f" in {attempts} attempts" if attempts > 1 else ""
        raise ConfigurationError(
            f"{name}: no configuration came{tried}: {error}; check the address and that the server is up"
        ) from None
    text = text_of(body, name)
    if not settings.response_data_path and not settings.response_error_path:
        return Source(name, text)
    answer = _json(text, name)
    _no_error(answer, name, settings, _secrets(parts, settings))
    if not settings.response_data_path:
        return Source(name, text)
    configured = _at(answer, settings.response_data_path)
    if configured is None:
        raise ConfigurationError(
            f"{name}: Data path '{settings.response_data_path}' not found in the answer; correct "
            f"{PREFIX}RESPONSE_DATA_PATH"
        )
    whole = configured if isinstance(configured, str) else json.dumps(configured, ensure_ascii=False, indent=2)
    return Source(name, whole)


class _Again(Exception):
    """Trying again may help; the message holds nothing secret."""


class _Deadline(requests.adapters.HTTPAdapter):
    """Ends every connection at a moment, whatever is being waited for: requests' own timeout is that of one read."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._stop)
        self._timer.daemon = True
        self._timer.start()

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """A pool whose connections are watched."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        plain = pool.ConnectionCls

        def connected(connection: Any) -> socket.socket:
            connected_socket: socket.socket = plain._new_conn(connection)
            self._sockets.append(connected_socket.dup())  # TLS takes the socket itself away
            return connected_socket

        pool.ConnectionCls = type("Watched", (plain,), {"_new_conn": connected})
        return pool

    def close(self) -> None:
        """Forget the connections."""
        self._timer.cancel()
        super().close()
        while self._sockets:
            self._sockets.pop().close()

    def _stop(self) -> None:
        for open_socket in list(self._sockets):
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)


def _attempt(url: str, name: str, settings: Settings) -> bytes:
    deadline = _Deadline(settings.timeout)
    late = _Again(f"no answer within {settings.timeout:g} s")
    with requests.Session() as session:
        session.headers.clear()
        for scheme in ("http://", "https://"):
            session.mount(scheme, deadline)
        try:
            return _followed(session, url, name, settings, deadline)
        # What requests says of its errors quotes the address, query included: neither it nor its chain is passed on.
        except requests.exceptions.SSLError:
            if deadline.left <= 0:
                raise late from None
            raise ConfigurationError(
                f"{name}: the server's certificate is not trusted; name its authority in REQUESTS_CA_BUNDLE"
            ) from None
        except requests.exceptions.Timeout:
            raise late from None
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError, HTTPError, OSError):
            if deadline.left <= 0:
                raise late from None
            raise _Again("the connection failed") from None
        except requests.exceptions.RequestException as error:
            raise ConfigurationError(f"{name}: no request can be made: {type(error).__name__}") from None


def _followed(session: requests.Session, url: str, name: str, settings: Settings, deadline: _Deadline) -> bytes:
    """The answer at the end of all redirects, whose bodies nobody reads."""
    headers, authority = dict(settings.headers), _authority(urlsplit(url))
    for _ in range(_REDIRECTS):
        sent = {"User-Agent": "s3lake", "Accept": "*/*", **headers}
        request = session.prepare_request(requests.Request("GET", url, headers=sent, auth=authority))
        address = request.url or ""
        options: Any = session.merge_environment_settings(address, {}, True, None, None)
        left = deadline.left
        if left <= 0:
            raise requests.exceptions.Timeout
        # Not by the session's own get, which reads the whole body of a redirect.
        with session.get_adapter(address).send(request, timeout=left, **options) as answer:
            target = session.get_redirect_target(answer)
            if target is None:
                _accepted(answer, name)
                return _body(answer, name, deadline)
        following = urljoin(url, target)
        # Headers are for the host that they were given for, not for where it redirects to.
        if session.should_strip_auth(url, following):  # type: ignore[no-untyped-call]
            headers, authority = {}, _nobody
        url = following
    raise ConfigurationError(f"{name}: the server redirects in a circle; correct the address")


def _accepted(answer: requests.Response, name: str) -> None:
    status = answer.status_code
    if status == 429 or status >= 500:
        raise _Again(f"the server answered {status} {answer.reason}")
    if status in (401, 403):
        fix = f"give what it asks for in {PREFIX}HEADERS"
    elif status == 404:
        fix = "correct the address"
    else:
        fix = "the answer must be 200 with the configuration in it"
    if status != 200:
        raise ConfigurationError(f"{name}: the server answered {status} {answer.reason}; {fix}")


def _body(answer: requests.Response, name: str, deadline: _Deadline) -> bytes:
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise ConfigurationError(f"{name}: the answer is encoded as {encoding[:40]!r}; let the server send it plain")
    body = bytearray()
    inflate = zlib.decompressobj(wbits=47) if encoding != "identity" else None
    try:
        for piece in answer.raw.stream(2**14, decode_content=False):
            # One byte more than is allowed shows that there is more; a bomb goes no further.
            body += inflate.decompress(piece, _LARGEST + 1 - len(body)) if inflate else piece
            if len(body) > _LARGEST:
                raise ConfigurationError(f"{name}: the answer has more than {_LARGEST} bytes: that is no configuration")
            if deadline.left <= 0:
                raise requests.exceptions.Timeout
    except zlib.error:
        raise _Again("the answer is compressed wrongly") from None
    if inflate and not inflate.eof:
        raise _Again("the answer ends early")
    if deadline.left <= 0:  # a connection that was ended looks like an answer without a length
        raise requests.exceptions.Timeout
    return bytes(body)


def _authority(parts: SplitResult) -> Any:
    if parts.username is None and parts.password is None:
        return _nobody
    return unquote(parts.username or ""), unquote(parts.password or "")


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Left to itself, requests takes an Authorization header from what it finds in ~/.netrc."""
    return request


def _shown(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _secrets(parts: SplitResult, settings: Settings) -> list[str]:
    plain = [parts.password or "", *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    words = chain.from_iterable((value, *value.split()) for value in settings.headers.values())
    secrets = [text for text in (*plain, *words) if len(text) >= _SECRET]
    forms = {*secrets, *map(unquote, secrets)}
    return sorted(forms, key=len, reverse=True)


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        where = f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else "1:1"
        raise ConfigurationError(
            f"{name}:{where}: the answer is no JSON, which {PREFIX}RESPONSE_DATA_PATH and RESPONSE_ERROR_PATH need"
        ) from None


def _no_error(answer: Any, name: str, settings: Settings, secrets: list[str]) -> None:
    error = _at(answer, settings.response_error_path) if settings.response_error_path else None
    if error is None:
        return
    text = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    text = without(text, secrets)
    shown = text if len(text) <= _ANSWER_SHOWN else text[:_ANSWER_SHOWN] + "…"
    raise ConfigurationError(f"{name}: the server says at {settings.response_error_path}: {shown}")


def _at(answer: Any, path: str) -> Any:
    """What stands at a dotted path; a number is a place in a list. None where there is nothing, or null."""
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
            raise ValueError('this is no JSON object; write {"Name": "value"}, or one `Name: value` a line') from None
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
            raise ValueError(f"header {number} has no right name: letters, digits, '-' and '_'")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"the value of header {name} has characters that HTTP does not carry: use plain ASCII")
    return headers


def _seconds(text: str) -> float:
    seconds: float = parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"{text!r} is out of range: more than 0, for example 10s")
    return seconds


def _quoted(reader: Callable[[str], T]) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            return reader(text)
        except ValueError as error:
            raise ValueError(f"{text!r} {error}") from None

    return read


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0
    if not 1 <= factor <= 100:
        raise ValueError(f"{text!r} is not allowed: a number from 1 to 100")
    return factor


def _path(text: str) -> str:
    if not all(text.split(".")):
        raise ValueError(f"{text!r} is no path: names with dots between, for example data.items.0")
    return text


_READ: dict[str, Any] = {
    "headers": _headers,
    "timeout": _seconds,
    "retry_enabled": _quoted(options.flag),
    "retry_max_attempts": _quoted(partial(options.whole_number, low=1, high=100)),
    "retry_initial_backoff": _seconds,
    "retry_max_backoff": _seconds,
    "retry_backoff_multiplier": _factor,
    "response_data_path": _path,
    "response_error_path": _path,
}
