"""Schemas by their ids, from a Schema Registry with Confluent's API.

Three requests are all that reading needs, so it is `requests`, which is there already, and not confluent-kafka's
client, which brings httpx2, authlib and cachetools into every worker.

Ids never change their meaning, so each is fetched once per process. Secrets are in no message.

A record decides which id is asked for, and a producer what is registered under it. So what the registry answers to an
id is the error of the records that have it, as far as the API defines the answer; it is an error of the configuration
only if the answer cannot be a registry's, and transient if another attempt may get another one. docs/schemas.md has
the list.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import UUID

import msgspec

from s3lake.errors import ConfigurationError, TransientError
from s3lake.records.schema.registry.registry_answers import (
    API_CODES,
    FORBIDDEN,
    SHOWN,
    UNREADABLE,
    Registered,
    RegistryRefusalError,
    SchemaReference,
    UnavailableRegistryError,
    UnknownSchema,
    explain_no_registry,
    judge_answer,
)
from s3lake.records.schema.registry.registry_connection import Connection

if TYPE_CHECKING:
    import requests

_ROUNDS = 3
_OF_FOUR = "apicurio.registry.id-handler is …Legacy4ByteIdHandler"
PAUSE_S = 0.3
"""Seconds before a request is repeated first; each further pause is twice as long, as far as the connection allows."""
_UNKNOWN_S = 30.0  # how long an id counts as unknown: one that was registered meanwhile must be found
_MOST_UNKNOWN = 10_000  # ids that are remembered as unknown
_NO_GUIDS = (
    "the registry gives no schema by its GUID (GET /schemas/guids), as Confluent's does since 8.0: use such a "
    "registry, or have the producer write the id before the value (value.schema.id.serializer)"
)
MOST_ID = 2**31 - 1
"""Ids are Java's `int` in Confluent's API, and at least 0; its serializers write them as such."""
MOST_REFERENCES = 1_000
"""How many other schemas one may need."""
MOST_TEXT = 16 * 1024 * 1024
"""How many characters a schema may have, together with all that it refers to."""
_MOST_SUBJECTS = 3
"""Subjects that an error names at most."""


SchemaId = int | UUID
"""What a record names its schema by: the registry's number, or the schema's GUID, which is the same in each registry.
Only Confluent's registry knows GUIDs, since its release 8.0."""


def name_schema(schema_id: SchemaId) -> str:
    """Return how messages call a schema."""
    return f"schema id {schema_id}" if isinstance(schema_id, int) else f"schema GUID {schema_id}"


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


@functools.lru_cache(maxsize=32)
def get_client(connection: Connection) -> Client:
    """The one client of this process for a registry."""
    return Client(connection)


class Client:
    """A registry's schemas, kept for as long as the process lives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._schemas: dict[SchemaId, RegisteredSchema] = {}
        self._unknown: dict[SchemaId, tuple[float, str]] = {}

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """The schema with an id.

        Raises:
            UnknownSchema: it does not exist or cannot be used, or a schema that it refers to is deleted.
            TransientError: no address answered.
            ConfigurationError: the registry refused, or another server is at the address.
        """
        if self._connection.avro:
            return RegisteredSchema("AVRO", self._connection.avro)
        registered = self._schemas.get(schema_id)
        if registered is not None:
            return registered
        if isinstance(schema_id, int) and schema_id > MOST_ID:
            raise UnknownSchema(f"{name_schema(schema_id)}: a registry's ids are at most {MOST_ID}")
        until, reason = self._unknown.get(schema_id, (0.0, ""))
        if time.monotonic() < until:
            raise UnknownSchema(reason)
        try:
            registered = self._resolve(self._get_schema(schema_id))
        except UnknownSchema as error:
            reason = f"{name_schema(schema_id)}: {error}"
            if schema_id == 0:
                reason += (
                    ": no registry gives this id; Apicurio's serializers write ids of eight bytes unless " + _OF_FOUR
                )
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[schema_id] = (time.monotonic() + _UNKNOWN_S, reason)
            raise UnknownSchema(reason, error.code) from None
        except RegistryRefusalError as error:
            raise ConfigurationError(self._explain_refusal(schema_id, error)) from None
        self._schemas[schema_id] = registered
        return registered

    def _get_schema(self, schema_id: SchemaId) -> Registered:
        if isinstance(schema_id, int):
            return self._get(f"schemas/ids/{schema_id}")
        try:
            return self._get(f"schemas/guids/{schema_id}")
        except RegistryRefusalError:
            raise
        except ConfigurationError:  # another server, or a registry that lacks this part of the API
            self.check()
            raise UnknownSchema(_NO_GUIDS) from None

    def _explain_refusal(self, schema_id: SchemaId, error: RegistryRefusalError) -> str:
        """Return which schema is refused, of which subjects, and what to do about it."""
        subjects = []
        if error.status == FORBIDDEN and isinstance(schema_id, int):
            subjects = self._list_subjects_of(schema_id)
        of = f" of subject {', '.join(map(repr, subjects))}" if subjects else ""
        others = ""
        if error.status == FORBIDDEN and self._schemas:
            others = (
                ". It gives other schemas to this user: allow it to read this one's subject too, or leave out the "
                "topic whose records have this id"
            )
        return f"{name_schema(schema_id)}{of}: {error}{others}"

    def _list_subjects_of(self, number: int) -> list[str]:
        """Return the first subjects of a schema, none if the registry does not list them to this user."""
        from s3lake.records.schema.registry import bounded_http

        for url in self._connection.urls:
            with suppress(bounded_http.Unavailable, bounded_http.TooLarge, *UNREADABLE):
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
        except RegistryRefusalError as error:
            raise ConfigurationError(f"subject {subject!r}: {error}") from None

    def list_subjects(self) -> frozenset[str] | None:
        """Return the names of all subjects; None if the registry does not list them to this user."""
        from s3lake.records.schema.registry import bounded_http

        for url in self._connection.urls:
            with suppress(bounded_http.Unavailable, bounded_http.TooLarge, *UNREADABLE):
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
            if 0 < error.code < API_CODES:  # to an id that it does not have, a registry answers 40403
                url = self._connection.urls[0]
                raise ConfigurationError(explain_no_registry(url, f"no /schemas/ids there, {error}")) from None

    def _resolve(self, registered: Registered) -> RegisteredSchema:
        return RegisteredSchema(registered.language or "AVRO", registered.schema, self._collect(registered))

    def _collect(self, registered: Registered) -> dict[str, str]:
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
                    raise UnknownSchema(f"its reference {reference.name[:SHOWN]!r} refers to itself")
                requested += 1
                if requested > MOST_REFERENCES:
                    raise UnknownSchema(f"it needs more than {MOST_REFERENCES} other schemas")
                referred = self._get_reference(reference)
                length += len(referred.schema)
                if length > MOST_TEXT:
                    raise UnknownSchema(f"it has, with its references, more than {MOST_TEXT} characters")
                above.append((reference.name, referred, iter(referred.references or ())))
        return collected

    def _get_reference(self, reference: SchemaReference) -> Registered:
        try:
            subject = quote(reference.subject, safe="")
        except UnicodeEncodeError:
            raise UnknownSchema(f"the subject of its reference {reference.name[:SHOWN]!r} is not a text") from None
        try:
            return self._get(f"subjects/{subject}/versions/{reference.version}?deleted=true", is_registry=True)
        except RegistryRefusalError as error:
            place = f"its reference {reference.name[:SHOWN]!r}, subject {reference.subject[:SHOWN]!r}"
            raise RegistryRefusalError(f"{place}: {error}", error.status) from None

    def _get(self, path: str, *, is_registry: bool = False) -> Registered:
        import tenacity

        connection = self._connection
        until = math.inf if connection.patience_s is None else time.monotonic() + connection.patience_s

        def is_enough(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= _ROUNDS and time.monotonic() + state.upcoming_sleep > until

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(UnavailableRegistryError),
            wait=tenacity.wait_exponential(multiplier=PAUSE_S, max=connection.longest_pause_s or PAUSE_S),
            stop=is_enough,
            sleep=lambda seconds: time.sleep(seconds),
            reraise=True,
        )
        try:
            return retrying(self._request_of_each, path, is_registry=is_registry)
        except UnavailableRegistryError as error:
            attempts = retrying.statistics["attempt_number"]
            raise TransientError(
                f"Schema Registry at {', '.join(connection.urls)} did not answer in {attempts} attempts: {error}. "
                "Check that it is up and that converter.registry.url is right."
            ) from None

    def _request_of_each(self, path: str, *, is_registry: bool) -> Registered:
        """Ask each server of the registry until one answers."""
        *others, last = self._connection.urls
        for url in others:
            with suppress(UnavailableRegistryError):
                return self._request(path, url, is_registry=is_registry)
        return self._request(path, last, is_registry=is_registry)

    def _request(self, path: str, url: str, *, is_registry: bool) -> Registered:
        from s3lake.records.schema.registry import bounded_http

        try:
            answer = bounded_http.get(self._session, self._connection, url, f"{url.rstrip('/')}/{path}")
        except bounded_http.Unavailable as error:
            raise UnavailableRegistryError(str(error)) from None
        except bounded_http.TooLarge:
            raise UnknownSchema(f"the registry's answer has more than {bounded_http.MOST_BYTES} bytes") from None
        return judge_answer(answer, url, is_registry=is_registry)

    @functools.cached_property
    def _session(self) -> requests.Session:
        from s3lake.records.schema.registry import bounded_http

        return bounded_http.open_session(self._connection)
