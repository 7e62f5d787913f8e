"""What a real registry, Apicurio's, answers to ids and addresses that it does not have, and what is made of it."""

import json
from uuid import UUID

import pytest

from s3lake.errors import ConfigurationError
from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake.records.schema.registry import Client
from s3lake.records.schema.registry.registry_answers import UnknownSchema
from s3lake.records.schema.registry.registry_connection import Connection
from s3lake_tests.kit.avro_messages import record
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.apicurio import Apicurio
from s3lake_tests.records.schema.registry.server import framed


def test_ids_that_it_does_not_have_are_refused_records(apicurio: Apicurio) -> None:
    number = apicurio.register("answers", json.dumps(record(("id", "int"))))
    values = [framed(one, b"\2") for one in (number, 0, 2**31 - 1, 2**31, 2**32 - 1)]
    found = convert_batch(
        Conversion("string", "avro", "parquet", "skip", registry=Connection((apicurio.url,))), batch(*values), {}
    )
    assert [row for part in found.parts for row in part.streams["data"].to_pylist()] == [{"id": 1}]
    assert found.refused == {
        1: "schema id 0: the registry reports 'Schema 0 not found.': no registry gives this id; Apicurio's serializers "
        "write ids of eight bytes unless apicurio.registry.id-handler is …Legacy4ByteIdHandler",
        2: "schema id 2147483647: the registry reports 'Schema 2147483647 not found.'",
        3: "schema id 2147483648: a registry's ids are at most 2147483647",
        4: "schema id 4294967295: a registry's ids are at most 2147483647",
    }


def test_a_guid_is_a_refused_record_because_it_knows_none(apicurio: Apicurio) -> None:
    number = apicurio.register("guids", json.dumps(record(("id", "int"))))
    values = [framed(number, b"\2"), b"\1" + bytes(16) + b"\2"]
    by = Conversion("string", "avro", "parquet", "skip", registry=Connection((apicurio.url,)))
    found = convert_batch(by, batch(*values), {})
    assert [row for part in found.parts for row in part.streams["data"].to_pylist()] == [{"id": 1}]
    assert list(found.refused) == [1]
    assert found.refused[1].startswith(f"schema GUID {UUID(int=0)}: the registry ")


def test_a_subject_that_it_does_not_have_is_unknown(apicurio: Apicurio) -> None:
    with pytest.raises(UnknownSchema, match="the registry reports \"Subject 'unregistered' not found"):
        Client(Connection((apicurio.url,))).newest("unregistered")


def test_its_address_passes_the_check_and_others_of_its_server_fail(apicurio: Apicurio) -> None:
    Client(Connection((apicurio.url,))).check()
    for wrong in ("/apis/registry/v2", "/apis", ""):
        with pytest.raises(ConfigurationError, match="that is not a Schema Registry"):
            Client(Connection((apicurio.url.replace("/apis/ccompat/v7", wrong),))).check()
