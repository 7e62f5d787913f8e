"""What `s3lake adopt` has to know of the connector whose configuration was read."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.config.draft import Connector
from s3lake_tests.config import bases


@pytest.mark.parametrize("base", [bases.CONFLUENT, bases.AIVEN])
def test_the_connector_is_known_by_its_own_name(base: dict[str, str]) -> None:
    assert bases.load(base, {"name": "to s3"}).connectors == {"to-s3": Connector("to s3")}


@pytest.mark.parametrize(
    ("settings", "indexes"),
    [
        ({}, ".indexes"),
        ({"connect.s3.indexes.name": "logs/indexes"}, "logs/indexes"),
        ({"connect.s3.indexes.name": "logs/indexes", "connect.s3.exactly.once.enable": "false"}, None),
        ({"s3lake.index.prefix": "ours"}, ".indexes"),
    ],
)
def test_lenses_keeps_an_index_for_exactly_once(settings: dict[str, str | None], indexes: str | None) -> None:
    assert bases.load(bases.LENSES, settings).connectors == {"demo": Connector("demo", True, indexes)}


def test_every_statement_is_of_the_same_connector() -> None:
    kcql = "INSERT INTO lake:a SELECT * FROM a; INSERT INTO lake:b SELECT * FROM b"
    found = bases.load(bases.LENSES, {"topics": "a,b", "connect.s3.kcql": kcql}).connectors
    assert found == dict.fromkeys(("demo-a", "demo-b"), Connector("demo", True, ".indexes"))


@pytest.mark.parametrize("base", [bases.LENSES, bases.CONFLUENT, bases.AIVEN])
def test_its_consumer_group_may_have_another_name(base: dict[str, str]) -> None:
    (connector,) = bases.load(base, {"consumer.override.group.id": "mine"}).connectors.values()
    assert connector.group == "mine"


def test_other_dialects_have_no_connector() -> None:
    assert bases.iggy().connectors == {}


def test_several_files_keep_their_connectors(tmp_path: Path) -> None:
    shared = {
        "s3lake.s3.retries.max_attempts": "3",
        "s3lake.s3.retries.backoff_ms": "1",
        "s3lake.s3.path_style": "true",
    }
    confluent = {"name": "other", "s3.region": "us-east-1"}
    lenses = {"name": "one", "connect.s3.kcql": "INSERT INTO pond SELECT * FROM demo"}
    (tmp_path / "a.properties").write_text(bases.properties(bases.LENSES, {**lenses, **shared}))
    (tmp_path / "b.properties").write_text(bases.properties(bases.CONFLUENT, {**confluent, **shared}))
    found = configuration.load_configuration(str(tmp_path), environment={}).connectors
    assert found == {"one": Connector("one", True, ".indexes"), "other": Connector("other")}
