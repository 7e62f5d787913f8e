"""Every key of every connector's own definition is honoured, told or refused; nearly all are honoured or harmless."""

import runpy
from typing import Any

import pytest

from s3lake_tests.config import test_documents as documents
from s3lake_tests.docs.test_links import ROOT

KEYS: dict[str, Any] = runpy.run_path(str(ROOT / "docs/keys.py"))
DEFINITIONS = KEYS["DEFINITIONS"]
LISTED = {
    "Kafka Connect": documents.FRAMEWORK_KEYS,
    "Confluent's S3 sink": documents.CONFLUENT_KEYS,
    "Aiven's S3 sink": documents.AIVEN_KEYS,
    "Lenses' S3 sink": " ".join(f"connect.s3.{key}" for key in documents.LENSES_KEYS.split()),
}
OF_S3LAKE = {"s3lake.start", "bootstrap.servers", "connector.class", "offset.flush.interval.ms", "connect.parquet.x"}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.title)
def test_of_a_connectors_keys_at_least_95_in_100_are_honoured_or_harmless(definition: Any) -> None:
    harmless, every = KEYS["counted"](definition)
    assert harmless / every >= 0.95


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.title)
def test_no_key_is_dropped_without_a_word(definition: Any) -> None:
    assert [one.key.name for one in KEYS["outcomes"](definition) if one.becomes == "silent"] == []


def test_no_property_of_kcql_is_dropped_without_a_word() -> None:
    outcomes = [one for definition in DEFINITIONS for one in KEYS["outcomes_of_properties"](definition)]
    assert outcomes != []
    assert [one.key.name for one in outcomes if one.becomes == "silent"] == []


@pytest.mark.parametrize("title", LISTED)
def test_the_keys_of_the_references_are_all_there(title: str) -> None:
    [definition] = [one for one in DEFINITIONS if one.title == title]
    assert set(LISTED[title].split()) - OF_S3LAKE <= {key.name for key in definition.keys}
