"""Schemas by their ids, from a Schema Registry with Confluent's API.

Two requests are all that reading needs, so it is `requests`, which is there already, and not confluent-kafka's client,
which brings httpx2, authlib and cachetools into every worker.

Ids never change their meaning, so each is fetched once per process. Secrets are in no message.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from s3lake.errors import ConfigurationError, TransientError

if TYPE_CHECKING:
    import requests

_ROUNDS = 3
_PAUSE_S = 0.3
_UNKNOWN_S = 30.0  # how long an id counts as unknown: one that was registered meanwhile must be found
_SHOWN = 200
_NOT_FOUND = range(40400, 40500)
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Connection:
    """How to reach a registry, as plain values: they travel to the workers.

    Attributes:
        urls: of the same registry; the first that answers is taken.
        timeout: seconds that one request may take.
        patience_s: for how long a request is tried again that gets no answer; None without end. Three times at least.
        longest_pause_s: between two of them; each pause is about twice the one before.
        descriptors: a descriptor set of Protobuf instead of a registry, of which every value is the message `message`.
        avro: a schema instead of a registry: every value is a datum of it, with nothing before it.
        exact: whether times of Avro have columns of their own where Confluent's AvroData leaves numbers.
    """

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 10.0
    patience_s: float | None = 0.0
    longest_pause_s: float = 60.0
    descriptors: bytes = field(default=b"", repr=False)
    message: str = ""
    avro: str = ""
    exact: bool = False


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema with all that it refers to.

    Attributes:
        language: AVRO, JSON or PROTOBUF.
        text: as it was registered.
        references: name -> text of what it refers to, each after the ones that it needs itself.
    """

    language: str
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


class UnknownSchema(LookupError):
    """The registry has no such schema; the message says which."""


class _Unavailable(Exception):
    """Another address, or a later try, may answer."""


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Answer(msgspec.Struct, rename={"language": "schemaType"}):
    schema: str
    language: str | None = None
    references: list[_Reference] | None = None


class _Problem(msgspec.Struct):
    error_code: int = 0
    message: str = ""


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_problem = msgspec.json.Decoder(_Problem).decode


@functools.lru_cache(maxsize=32)
def get_client(connection: Connection) -> Client:
    """The one client of this process for a registry."""
    return Client(connection)


class Client:
    """A registry's schemas, kept for as long as the process lives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._schemas: dict[int, RegisteredSchema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """The schema with an id.

        Raises:
            UnknownSchema: it does not exist, or a schema that it refers to is deleted.
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        if self._connection.avro:
            return RegisteredSchema("AVRO", self._connection.avro)
        registered = self._schemas.get(number)
        if registered is not None:
            return registered
        until, reason = self._unknown.get(number, (0.0, ""))
        if time.monotonic() < until:
            raise UnknownSchema(reason)
        try:
            registered = self._resolve(self._get(f"schemas/ids/{number}"))
        except UnknownSchema as error:
            reason = f"schema id {number}: {error}"
            self._unknown[number] = (time.monotonic() + _UNKNOWN_S, reason)
            raise UnknownSchema(reason) from None
        self._schemas[number] = registered
        return registered

    def newest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject; asked for each time.

        Raises:
            UnknownSchema: the subject does not exist, or a schema that it refers to is deleted.
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        return self._resolve(self._get(f"subjects/{quote(subject, safe='')}/versions/latest"))

    def _resolve(self, answer: _Answer) -> RegisteredSchema:
        references: dict[str, str] = {}
        self._collect(answer, references)
        return RegisteredSchema(answer.language or "AVRO", answer.schema, references)

    def _collect(self, answer: _Answer, into: dict[str, str]) -> None:
        for reference in answer.references or ():
            if reference.name not in into:
                subject = quote(reference.subject, safe="")
                referred = self._get(f"subjects/{subject}/versions/{reference.version}?deleted=true")
                self._collect(referred, into)
                into[reference.name] = referred.schema

    def _get(self, path: str) -> _Answer:
        problem: Exception | None = None
        pause = 0.0
        patience = self._connection.patience_s
        until = math.inf if patience is None else time.monotonic() + patience
        for rounds in itertools.count(1):
            for url in self._connection.urls:
                try:
                    return self._request(f"{url.rstrip('/')}/{path}", url)
                except _Unavailable as error:
                    problem = error
            pause = min(2 * pause or _PAUSE_S, self._connection.longest_pause_s) or _PAUSE_S
            if rounds >= _ROUNDS and time.monotonic() + pause > until:
                break
            time.sleep(pause)
        raise TransientError(
            f"Schema Registry at {', '.join(self._connection.urls)} did not answer in {rounds} attempts: {problem}. "
            "Check that it is up and that converter.registry.url is right."
        )

    def _request(self, address: str, url: str) -> _Answer:
        import requests

        try:
            # `verify` of a session gives way to the environment's, that of a request does not.
            to = self._connection
            response = self._session.get(address, timeout=to.timeout, allow_redirects=False, verify=to.ca_file)
        except requests.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                raise _Unavailable(f"TLS: {error}") from None
            raise ConfigurationError(
                f"Schema Registry at {url}: its certificate is not trusted; set converter.registry.ca_file to the "
                "certificates of those who signed it"
            ) from None
        except requests.exceptions.RequestException as error:
            raise _Unavailable(_in_words(error, self._connection.timeout)) from None
        except OSError as error:  # of an invalid certificate
            raise ConfigurationError(f"converter.registry: {error}") from None
        return self._read(response.status_code, response.content, url)

    def _read(self, status: int, body: bytes, url: str) -> _Answer:
        if status == 200:
            try:
                return _decode_answer(body)
            except msgspec.DecodeError:
                raise ConfigurationError(_no_registry(url, "an answer without a schema")) from None
        if status in _AGAIN:
            raise _Unavailable(f"HTTP {status}")
        if status in (401, 403):
            raise ConfigurationError(
                f"Schema Registry at {url} refuses: HTTP {status}; check user and password, token or cert_file of "
                "converter.registry, and that this user may read schemas"
            )
        with suppress(msgspec.DecodeError):
            problem = _decode_problem(body)
            if problem.error_code in _NOT_FOUND:
                raise UnknownSchema(f"the registry says {problem.message[:_SHOWN]!r}")
        raise ConfigurationError(_no_registry(url, f"HTTP {status}"))

    @functools.cached_property
    def _session(self) -> requests.Session:
        import requests

        to, session = self._connection, requests.Session()
        for name in ("ca_file", "cert_file", "key_file"):
            path = getattr(to, name)
            if path is not None and not Path(path).exists():
                raise ConfigurationError(
                    f"converter.registry.{name} {path}: no such file where this runs; every worker needs it"
                )
        session.headers["Accept"] = "application/vnd.schemaregistry.v1+json, application/json"
        if to.token is not None:
            session.auth = functools.partial(_with_token, to.token)
        elif to.user is not None:
            session.auth = (to.user, to.password or "")
        if to.cert_file is not None:
            session.cert = (to.cert_file, to.key_file) if to.key_file else to.cert_file
        return session


def _with_token(token: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    # As `auth` and not as a header, which a .netrc file of the machine would replace.
    request.headers["Authorization"] = f"Bearer {token}"
    return request


def _no_registry(url: str, answer: str) -> str:
    return (
        f"converter.registry.url {url}: {answer}; that is not a Schema Registry: write the address that /schemas/ids/1 "
        "belongs after, for example http://HOST:8081 (Apicurio: http://HOST:8080/apis/ccompat/v7)"
    )


def _in_words(error: Exception, timeout: float) -> str:
    import requests

    if isinstance(error, requests.exceptions.Timeout):
        return f"no answer within {timeout:g} s"
    reason: Any = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)  # urllib3 keeps what happened below several wrappers
    return f"{type(error).__name__}: {str(reason)[:_SHOWN]}"
