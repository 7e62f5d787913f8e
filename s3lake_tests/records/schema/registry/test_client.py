"""Schemas by their ids: what is asked, how often, and what each way to fail is called."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from s3lake.config.model import Registry
from s3lake.errors import ConfigurationError
from s3lake.records.schema import registry as module
from s3lake.records.schema.registry import Client, RegisteredSchema, get_client
from s3lake.records.schema.registry.registry_answers import UnknownSchema
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.records.schema.registry.server import SchemaRegistry, serving

GUID = UUID("6da336d8-f1d3-0f98-4c47-d03ee8a14a1e")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    with serving() as found:
        yield found


def test_a_schema_is_asked_for_once(registry: SchemaRegistry) -> None:
    number = registry.add("string")
    schemas = Client(registry.connection)
    assert len({id(schemas.schema(number)) for _ in range(3)}) == 1
    assert [path for path, _ in registry.asked] == [f"/schemas/ids/{number}"]


def test_a_process_has_one_client_for_a_registry(registry: SchemaRegistry) -> None:
    assert get_client(registry.connection) is get_client(Connection((registry.url,)))


def test_the_kind_of_a_schema_is_avro_by_default(registry: SchemaRegistry) -> None:
    schemas = Client(registry.connection)
    assert schemas.schema(registry.add('"string"')) == RegisteredSchema("AVRO", '"string"')
    assert schemas.schema(registry.add("{}", kind="JSON")) == RegisteredSchema("JSON", "{}")


def test_references_come_with_the_schema_those_that_others_need_first(registry: SchemaRegistry) -> None:
    registry.add('"low"', subject="low subject/1")
    registry.add('"middle"', subject="middle", refers=[("com.Low", "low subject/1")])
    number = registry.add('"top"', refers=[("com.Middle", "middle"), ("com.Low", "low subject/1")])
    found = Client(registry.connection).schema(number)
    assert list(found.references.items()) == [("com.Low", '"low"'), ("com.Middle", '"middle"')]


def test_an_id_that_is_not_registered_is_unknown(registry: SchemaRegistry) -> None:
    with pytest.raises(UnknownSchema, match=r"schema id 7: the registry reports 'Schema 7 not found'"):
        Client(registry.connection).schema(7)


def test_an_unknown_id_is_asked_for_again_only_after_a_while(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas, number = Client(registry.connection), registry.add('"string"') + 1
    for _ in range(3):
        with pytest.raises(UnknownSchema):
            schemas.schema(number)
    assert len(registry.asked) == 1
    monkeypatch.setattr("time.monotonic", lambda: 1e9)
    assert registry.add('"string"') == number
    assert schemas.schema(number).text == '"string"'


def test_a_schema_is_found_by_its_guid(registry: SchemaRegistry) -> None:
    guid = registry.add_with_guid('"string"')
    schemas = Client(registry.connection)
    assert [schemas.schema(guid).text for _ in range(2)] == ['"string"'] * 2
    assert [path for path, _ in registry.asked] == [f"/schemas/guids/{guid}"]


def test_a_registry_that_knows_no_guids_is_named_with_the_remedy(registry: SchemaRegistry) -> None:
    registry.answers = [(404, b"<html>"), (404, b'{"error_code":40403,"message":"Schema not found"}')]
    reason = f"schema GUID {GUID}: the registry gives no schema by its GUID .*value.schema.id.serializer"
    with pytest.raises(UnknownSchema, match=reason):
        Client(registry.connection).schema(GUID)


def test_a_server_that_is_no_registry_is_an_error_of_the_configuration_for_a_guid_too(registry: SchemaRegistry) -> None:
    registry.answers = [(404, b"<html>")] * 2
    with pytest.raises(ConfigurationError, match="that is not a Schema Registry"):
        Client(registry.connection).schema(GUID)


def test_a_guid_that_the_user_may_not_read_is_named(registry: SchemaRegistry) -> None:
    guid = registry.add_with_guid('"string"')
    registry.forbidden.add(registry.guids[guid])
    with pytest.raises(ConfigurationError, match=f"schema GUID {guid}: Schema Registry at .* refuses: HTTP 403"):
        Client(registry.connection).schema(guid)


def test_a_missing_reference_makes_the_schema_unknown(registry: SchemaRegistry) -> None:
    number = registry.add('"top"', refers=[("com.Low", "absent")])
    with pytest.raises(UnknownSchema, match=f"schema id {number}: the registry reports \"Subject 'absent' not found"):
        Client(registry.connection).schema(number)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_may_be_another_one_later_is_asked_for_again(registry: SchemaRegistry, status: int) -> None:
    number = registry.add('"string"')
    registry.answers = [(status, b"")] * 2
    assert Client(registry.connection).schema(number).text == '"string"'


def test_the_first_address_that_answers_is_used(registry: SchemaRegistry) -> None:
    with serving() as other:
        down = other.url
    number = registry.add('"string"')
    assert Client(Connection((down, registry.url))).schema(number).text == '"string"'


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_refuses_is_an_error_of_the_configuration(registry: SchemaRegistry, status: int) -> None:
    registry.answers = [(status, b"secret")]
    with pytest.raises(ConfigurationError, match=f"refuses: HTTP {status}; check user and password") as caught:
        Client(registry.connection).schema(1)
    assert "secret" not in str(caught.value)


def test_a_refused_id_is_named_with_its_subject_and_the_remedy_when_others_are_given(registry: SchemaRegistry) -> None:
    given, refused = registry.add('"string"'), registry.add('"int"', subject="secret-orders")
    registry.forbidden.add(refused)
    client = Client(registry.connection)
    client.schema(given)
    with pytest.raises(ConfigurationError) as caught:
        client.schema(refused)
    message = str(caught.value)
    assert message.startswith(
        f"schema id {refused} of subject 'secret-orders': Schema Registry at {registry.url} refuses"
    )
    assert "HTTP 403" in message
    assert "It reports 'User is denied operation Read'" in message
    assert "It gives other schemas to this user: allow it to read this one's subject too" in message
    assert client.schema(given).text == '"string"'


def test_a_refused_id_is_named_without_a_subject_when_the_registry_does_not_list_it(registry: SchemaRegistry) -> None:
    registry.answers = [(403, b"<html>"), (403, b"<html>")]
    with pytest.raises(ConfigurationError, match=r"^schema id 7: Schema Registry at") as caught:
        Client(registry.connection).schema(7)
    assert "It gives other schemas" not in str(caught.value)


def test_a_refused_reference_is_named_with_its_subject(registry: SchemaRegistry) -> None:
    low = registry.add('"low"', subject="low")
    number = registry.add('"top"', refers=[("com.Low", "low")])
    registry.answers = [(200, b'{"schema":"1","references":[{"name":"com.Low","subject":"low","version":1}]}')]
    registry.answers += [(403, b"")]
    with pytest.raises(
        ConfigurationError, match=f"schema id {number}.*: its reference 'com.Low', subject 'low': Schema"
    ):
        Client(registry.connection).schema(number)
    assert low != number


def test_a_refused_subject_is_named(registry: SchemaRegistry) -> None:
    registry.answers = [(403, b"")]
    with pytest.raises(ConfigurationError, match=r"^subject 'orders-value': Schema Registry at"):
        Client(registry.connection).newest("orders-value")


@pytest.mark.parametrize("answer", [(404, b"<html>"), (404, b""), (302, b""), (200, b"<html>"), (200, b"{}")])
def test_an_address_without_a_registry_is_an_error_of_the_configuration(
    registry: SchemaRegistry, answer: tuple[int, bytes]
) -> None:
    registry.answers = [answer]
    with pytest.raises(ConfigurationError, match="that is not a Schema Registry: write the address that"):
        Client(registry.connection).schema(1)


@pytest.mark.parametrize(
    ("settings", "sent"),
    [({}, None), ({"user": "u", "password": "p"}, "Basic dTpw"), ({"token": "t"}, "Bearer t")],
)
def test_a_request_carries_the_configured_authentication(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], sent: str | None
) -> None:
    monkeypatch.setenv("NETRC", "/dev/null")
    settings = {"url": registry.url, **settings}
    Client(Registry(**settings).connection).schema(registry.add('"string"'))
    assert registry.asked[0][1] == sent


def test_a_file_of_certificates_that_is_not_there_is_an_error_of_the_configuration() -> None:
    missing = Connection(("https://127.0.0.1:1",), ca_file="/nowhere/ca.pem")
    with pytest.raises(ConfigurationError, match=r"converter\.registry\.ca_file /nowhere/ca\.pem: no such file"):
        Client(missing).schema(1)
