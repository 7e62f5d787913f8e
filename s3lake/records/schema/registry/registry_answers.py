"""What an answer of a Schema Registry means: a schema, or whose error it is; docs/schemas.md has the list."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.records.schema.registry.bounded_http import Answer

FORBIDDEN = 403
API_CODES = 40_000
"""The API's own codes of errors have five digits; HTTP's statuses are codes of its framework."""
SHOWN = 200
"""How many characters of a stranger's text an error shows."""
_AGAIN = frozenset({408, 429})  # and 5xx
_REFUSED = frozenset({401, FORBIDDEN})
UNREADABLE = (ValueError, RecursionError)
"""What reading a document of a stranger raises; msgspec's errors are ValueErrors."""


class UnknownSchema(LookupError):
    """The registry has no such schema, or none that can be used; the message names it.

    Attributes:
        code: the `error_code` of the registry's answer, 0 without one.
    """

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class UnavailableRegistryError(Exception):
    """Another address, or a later try, may answer."""


class SchemaReference(msgspec.Struct):
    name: str
    subject: str
    version: int


class Registered(msgspec.Struct, rename={"language": "schemaType"}):
    schema: str
    language: str | None = None
    references: list[SchemaReference] | None = None


class _Problem(msgspec.Struct):
    error_code: int
    message: object = ""


class RegistryRefusalError(ConfigurationError):
    """The registry gives this user no answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_decode_registered = msgspec.json.Decoder(Registered).decode
_decode_problem = msgspec.json.Decoder(_Problem).decode


def judge_answer(answer: Answer, url: str, *, is_registry: bool) -> Registered:
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
        raise UnavailableRegistryError(f"HTTP {status}")
    if status in _REFUSED:
        raise RegistryRefusalError(
            f"Schema Registry at {url} refuses: HTTP {status}; check user and password, token or cert_file of "
            f"converter.registry, and that this user may read schemas{_quote_problem(answer.body)}",
            status,
        )
    with suppress(*UNREADABLE):
        problem = _decode_problem(answer.body)
        if status == 404 or (status >= 400 and problem.error_code >= API_CODES):
            raise UnknownSchema(f"the registry reports {str(problem.message)[:SHOWN]!r}", problem.error_code)
    if is_registry and status >= 400:
        raise UnknownSchema(f"the registry answers HTTP {status} to its reference")
    to = f", which leads to {answer.location[:SHOWN]}" if answer.location else ""
    raise ConfigurationError(explain_no_registry(url, f"HTTP {status}{to}"))


def _quote_problem(body: bytes) -> str:
    """Return what the registry reports about a refusal, in its own form of errors; nothing of another server's page."""
    with suppress(*UNREADABLE):
        message = str(_decode_problem(body).message)[:SHOWN]
        return f". It reports {message!r}" if message else ""
    return ""


def _read_registered(body: bytes, url: str, *, is_registry: bool) -> Registered:
    try:
        return _decode_registered(body)
    except UNREADABLE as error:
        if is_registry or _has_schema(body):
            reason = f"{type(error).__name__}: {error}"[:SHOWN]
            raise UnknownSchema(f"the registry's answer is not as its API defines it: {reason}") from None
    raise ConfigurationError(explain_no_registry(url, "an answer without a schema")) from None


def _has_schema(body: bytes) -> bool:
    """Return whether it is an object with a `schema`, as only a registry answers to the id of one."""
    try:
        document = json.loads(body)  # which reads what msgspec does not, such as half a character
    except RecursionError:
        return True
    except ValueError:
        return False
    return isinstance(document, dict) and "schema" in document


def explain_no_registry(url: str, answer: str) -> str:
    return (
        f"converter.registry.url {url}: {answer}; that is not a Schema Registry: write the address that /schemas/ids/1 "
        "belongs after, for example http://HOST:8081 (Apicurio: http://HOST:8080/apis/ccompat/v7)"
    )
