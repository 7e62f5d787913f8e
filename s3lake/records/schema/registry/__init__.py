"""Schemas by their ids, from a Schema Registry with Confluent's API.

Two requests are all that reading needs, so it is `requests`, which is there already, and not confluent-kafka's client,
which brings httpx2, authlib and cachetools into every worker.

Ids never change their meaning, so each is fetched once per process. Secrets are in no message.

A record decides which id is asked for, and a producer what is registered under it. So what the registry answers to an
id is the error of the records that have it, as far as the API defines the answer; it is an error of the configuration
only if the answer cannot be a registry's, and transient if another attempt may get another one. docs/schemas.md has
the list.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from s3lake.errors import ConfigurationError, TransientError
from s3lake.records.schema.registry.registry_connection import Connection

if TYPE_CHECKING:
    import requests

    from s3lake.records.schema.registry.bounded_http import Answer

_ROUNDS = 3
_OF_FOUR = "apicurio.registry.id-handler is …Legacy4ByteIdHandler"
PAUSE_S = 0.3
"""Seconds before a request is repeated first; each further pause is twice as long, as far as the connection allows."""
_UNKNOWN_S = 30.0  # how long an id counts as unknown: one that was registered meanwhile must be found
_MOST_UNKNOWN = 10_000  # ids that are remembered as unknown
_SHOWN = 200
MOST_ID = 2**31 - 1
"""Ids are Java's `int` in Confluent's API, and at least 0; its serializers write them as such."""
MOST_REFERENCES = 1_000
"""How many other schemas one may need."""
MOST_TEXT = 16 * 1024 * 1024
"""How many characters a schema may have, together with all that it refers to."""
_AGAIN = frozenset({408, 429})  # and 5xx
_FORBIDDEN = 403
_REFUSED = frozenset({401, _FORBIDDEN})
_MOST_SUBJECTS = 3
"""Subjects that an error names at most."""
_API_CODES = 40_000  # the API's own codes of errors have five digits; HTTP's statuses are codes of its framework


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema with all that it refers to.

    Attributes:
        language: AVRO, JSON or PROTOBUF.
        text: the text as it was registered.
        references: name -> text of what it refers to, each after the ones that it needs itself.
    """

    language: str
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


class UnknownSchema(LookupError):
    """The registry has no such schema, or none that can be used; the message names it.

    Attributes:
        code: the `error_code` of the registry's answer, 0 without one.
    """

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class _Unavailable(Exception):
    """Another address, or a later try, may answer."""


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Registered(msgspec.Struct, rename={"language": "schemaType"}):
    schema: str
    language: str | None = None
    references: list[_Reference] | None = None


class _Problem(msgspec.Struct):
    error_code: int
    message: object = ""


class _RefusedError(ConfigurationError):
    """The registry gives this user no answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_decode_registered = msgspec.json.Decoder(_Registered).decode
_decode_problem = msgspec.json.Decoder(_Problem).decode
_UNREADABLE = (ValueError, RecursionError)  # msgspec's errors are ValueErrors


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
            UnknownSchema: it does not exist or cannot be used, or a schema that it refers to is deleted.
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        if self._connection.avro:
            return RegisteredSchema("AVRO", self._connection.avro)
        registered = self._schemas.get(number)
        if registered is not None:
            return registered
        if number > MOST_ID:
            raise UnknownSchema(f"schema id {number}: a registry's ids are at most {MOST_ID}")
        until, reason = self._unknown.get(number, (0.0, ""))
        if time.monotonic() < until:
            raise UnknownSchema(reason)
        try:
            registered = self._resolve(self._get(f"schemas/ids/{number}"))
        except UnknownSchema as error:
            reason = f"schema id {number}: {error}"
            if number == 0:
                reason += (
                    ": no registry gives this id; Apicurio's serializers write ids of eight bytes unless " + _OF_FOUR
                )
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[number] = (time.monotonic() + _UNKNOWN_S, reason)
            raise UnknownSchema(reason, error.code) from None
        except _RefusedError as error:
            raise ConfigurationError(self._explain_refusal(number, error)) from None
        self._schemas[number] = registered
        return registered

    def _explain_refusal(self, number: int, error: _RefusedError) -> str:
        """Return which schema is refused, of which subjects, and what to do about it."""
        subjects = self._list_subjects_of(number) if error.status == _FORBIDDEN else []
        of = f" of subject {', '.join(map(repr, subjects))}" if subjects else ""
        others = ""
        if error.status == _FORBIDDEN and self._schemas:
            others = (
                ". It gives other schemas to this user: allow it to read this one's subject too, or leave out the "
                "topic whose records have this id"
            )
        return f"schema id {number}{of}: {error}{others}"

    def _list_subjects_of(self, number: int) -> list[str]:
        """Return the first subjects of a schema, none if the registry does not list them to this user."""
        from s3lake.records.schema.registry import bounded_http

        for url in self._connection.urls:
            with suppress(bounded_http.Unavailable, bounded_http.TooLarge, *_UNREADABLE):
                path = f"{url.rstrip('/')}/schemas/ids/{number}/subjects"
                answer = bounded_http.get(self._session, self._connection, url, path)
                if answer.status == 200:
                    return msgspec.json.decode(answer.body, type=list[str])[:_MOST_SUBJECTS]
        return []

    def newest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject; asked for each time.

        Raises:
            UnknownSchema: the subject does not exist, or a schema that it refers to is deleted.
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        try:
            return self._resolve(self._get(f"subjects/{quote(subject, safe='')}/versions/latest"))
        except _RefusedError as error:
            raise ConfigurationError(f"subject {subject!r}: {error}") from None

    def list_subjects(self) -> frozenset[str] | None:
        """Return the names of all subjects; None if the registry does not list them to this user."""
        from s3lake.records.schema.registry import bounded_http

        for url in self._connection.urls:
            with suppress(bounded_http.Unavailable, bounded_http.TooLarge, *_UNREADABLE):
                answer = bounded_http.get(self._session, self._connection, url, f"{url.rstrip('/')}/subjects")
                if answer.status == 200:
                    return frozenset(msgspec.json.decode(answer.body, type=list[str]))
        return None

    def check(self) -> None:
        """Raise an error unless a registry answers at the address.

        Raises:
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        try:
            self._get("schemas/ids/1")
        except UnknownSchema as error:
            if 0 < error.code < _API_CODES:  # to an id that it does not have, a registry answers 40403
                url = self._connection.urls[0]
                raise ConfigurationError(_no_registry(url, f"no /schemas/ids there, {error}")) from None

    def _resolve(self, registered: _Registered) -> RegisteredSchema:
        return RegisteredSchema(registered.language or "AVRO", registered.schema, self._collect(registered))

    def _collect(self, registered: _Registered) -> dict[str, str]:
        """Return what a schema refers to, by names, each after the ones that it needs itself."""
        collected: dict[str, str] = {}
        requested, length = 0, len(registered.schema)
        above = [("", registered, iter(registered.references or ()))]  # no recursion: a chain may be long
        while above:
            name, needs, left = above[-1]
            reference = next(left, None)
            if reference is None:
                above.pop()
                if above:
                    collected[name] = needs.schema
            elif reference.name not in collected:
                if reference.name in [one for one, _, _ in above[1:]]:
                    raise UnknownSchema(f"its reference {reference.name[:_SHOWN]!r} refers to itself")
                requested += 1
                if requested > MOST_REFERENCES:
                    raise UnknownSchema(f"it needs more than {MOST_REFERENCES} other schemas")
                referred = self._get_reference(reference)
                length += len(referred.schema)
                if length > MOST_TEXT:
                    raise UnknownSchema(f"it has, with its references, more than {MOST_TEXT} characters")
                above.append((reference.name, referred, iter(referred.references or ())))
        return collected

    def _get_reference(self, reference: _Reference) -> _Registered:
        try:
            subject = quote(reference.subject, safe="")
        except UnicodeEncodeError:
            raise UnknownSchema(f"the subject of its reference {reference.name[:_SHOWN]!r} is not a text") from None
        try:
            return self._get(f"subjects/{subject}/versions/{reference.version}?deleted=true", is_registry=True)
        except _RefusedError as error:
            place = f"its reference {reference.name[:_SHOWN]!r}, subject {reference.subject[:_SHOWN]!r}"
            raise _RefusedError(f"{place}: {error}", error.status) from None

    def _get(self, path: str, *, is_registry: bool = False) -> _Registered:
        import tenacity

        connection = self._connection
        until = math.inf if connection.patience_s is None else time.monotonic() + connection.patience_s

        def is_enough(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= _ROUNDS and time.monotonic() + state.upcoming_sleep > until

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Unavailable),
            wait=tenacity.wait_exponential(multiplier=PAUSE_S, max=connection.longest_pause_s or PAUSE_S),
            stop=is_enough,
            sleep=lambda seconds: time.sleep(seconds),
            reraise=True,
        )
        try:
            return retrying(self._request_of_each, path, is_registry=is_registry)
        except _Unavailable as error:
            attempts = retrying.statistics["attempt_number"]
            raise TransientError(
                f"Schema Registry at {', '.join(connection.urls)} did not answer in {attempts} attempts: {error}. "
                "Check that it is up and that converter.registry.url is right."
            ) from None

    def _request_of_each(self, path: str, *, is_registry: bool) -> _Registered:
        """Ask each server of the registry until one answers."""
        *others, last = self._connection.urls
        for url in others:
            with suppress(_Unavailable):
                return self._request(path, url, is_registry=is_registry)
        return self._request(path, last, is_registry=is_registry)

    def _request(self, path: str, url: str, *, is_registry: bool) -> _Registered:
        from s3lake.records.schema.registry import bounded_http

        try:
            answer = bounded_http.get(self._session, self._connection, url, f"{url.rstrip('/')}/{path}")
        except bounded_http.Unavailable as error:
            raise _Unavailable(str(error)) from None
        except bounded_http.TooLarge:
            raise UnknownSchema(f"the registry's answer has more than {bounded_http.MOST_BYTES} bytes") from None
        return _judge(answer, url, is_registry=is_registry)

    @functools.cached_property
    def _session(self) -> requests.Session:
        from s3lake.records.schema.registry import bounded_http

        return bounded_http.open_session(self._connection)


def _judge(answer: Answer, url: str, *, is_registry: bool) -> _Registered:
    """Return the schema of an answer, or raise what it means; see docs/schemas.md.

    Args:
        answer: the answer, with any status.
        url: what users configured, which errors name.
        is_registry: whether the server has answered with a schema before, the one that refers to this one.
    """
    status = answer.status
    if status == 200:
        return _read_registered(answer.body, url, is_registry=is_registry)
    if status in _AGAIN or status >= 500:
        raise _Unavailable(f"HTTP {status}")
    if status in _REFUSED:
        raise _RefusedError(
            f"Schema Registry at {url} refuses: HTTP {status}; check user and password, token or cert_file of "
            f"converter.registry, and that this user may read schemas{_quote_problem(answer.body)}",
            status,
        )
    with suppress(*_UNREADABLE):
        problem = _decode_problem(answer.body)
        if status == 404 or (status >= 400 and problem.error_code >= _API_CODES):
            raise UnknownSchema(f"the registry reports {str(problem.message)[:_SHOWN]!r}", problem.error_code)
    if is_registry and status >= 400:
        raise UnknownSchema(f"the registry answers HTTP {status} to its reference")
    to = f", which leads to {answer.location[:_SHOWN]}" if answer.location else ""
    raise ConfigurationError(_no_registry(url, f"HTTP {status}{to}"))


def _quote_problem(body: bytes) -> str:
    """Return what the registry reports about a refusal, in its own form of errors; nothing of another server's page."""
    with suppress(*_UNREADABLE):
        message = str(_decode_problem(body).message)[:_SHOWN]
        return f". It reports {message!r}" if message else ""
    return ""


def _read_registered(body: bytes, url: str, *, is_registry: bool) -> _Registered:
    try:
        return _decode_registered(body)
    except _UNREADABLE as error:
        if is_registry or _has_schema(body):
            reason = f"{type(error).__name__}: {error}"[:_SHOWN]
            raise UnknownSchema(f"the registry's answer is not as its API defines it: {reason}") from None
    raise ConfigurationError(_no_registry(url, "an answer without a schema")) from None


def _has_schema(body: bytes) -> bool:
    """Return whether it is an object with a `schema`, as only a registry answers to the id of one."""
    try:
        document = json.loads(body)  # which reads what msgspec does not, such as half a character
    except RecursionError:
        return True
    except ValueError:
        return False
    return isinstance(document, dict) and "schema" in document


def _no_registry(url: str, answer: str) -> str:
    return (
        f"converter.registry.url {url}: {answer}; that is not a Schema Registry: write the address that /schemas/ids/1 "
        "belongs after, for example http://HOST:8081 (Apicurio: http://HOST:8080/apis/ccompat/v7)"
    )
