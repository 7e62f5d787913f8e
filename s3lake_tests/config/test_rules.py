"""The three rules of docs/connectors.md: what is strict, what an override key silences, and who asks servers."""

from pathlib import Path

import pytest

from s3lake.config import load as configuration
from s3lake.config.draft import LoadedConfig
from s3lake.config.variables import SecretsManager
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads
from s3lake_tests.kit.tables import rows

KCQL = "INSERT INTO lake:raw SELECT * FROM demo"
UNKNOWN = ": unknown key: nothing reads it here"
FOREIGN = f"""
confluent: flush.sise=10 => flush.sise{UNKNOWN}; did you mean flush.size?
confluent: description=x => description{UNKNOWN}
confluent: security.protcol=SSL => security.protcol{UNKNOWN}
confluent: value.converter.schema.enable=true =>
    JsonConverter has no option 'schema.enable' and does not read it; did you mean schemas.enable?
confluent: transforms.t.type=x => transforms.t.type: is not among transforms
"""


def load(text: str, more: dict[str, str | None] | None = None) -> LoadedConfig:
    """The base of this name with changes."""
    name, _, changes = text.partition(":")
    base = bases.LENSES if name == "lenses" else bases.CONFLUENT
    return bases.load(base, {**bases.changes(changes), **(more or {})})


@pytest.mark.parametrize(("changes", "message"), rows(FOREIGN))
def test_a_key_that_another_program_may_read_is_a_notice(changes: str, message: str) -> None:
    assert any(message in str(notice) for notice in load(changes).notices)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ('key = "lake"\nversoin = 1', f"versoin{UNKNOWN}; did you mean version?"),
        ('key = "lake"\n[plugin_config.deep]\nx = 1\n[x]', f"plugin_config.deep.x{UNKNOWN}"),
    ],
)
def test_an_unknown_key_of_iggys_file_is_a_notice(new: str, message: str) -> None:
    assert any(message in str(notice) for notice in bases.iggy('key = "lake"', new).notices)


@pytest.mark.parametrize(
    "changes", [{"s3lake.flush.sise": "1"}, {"s3lake.flish.size": "1"}, {"flush.size": "many"}, {"flush.size": None}]
)
def test_a_wrong_key_of_s3lake_and_a_wrong_value_are_errors(
    changes: dict[str, str | None],
) -> None:
    with pytest.raises(ConfigurationError):
        bases.load(bases.CONFLUENT, changes)


def test_a_key_that_is_a_comment_has_no_effect_and_its_references_are_not_looked_up() -> None:
    text = bases.JSON.replace(
        '"flush.size"', '"_comment": "${file:/nowhere:x}", "#path.format": "x", "_o": {}, "flush.size"'
    )
    loaded = loads(text, "f", None, {})
    assert not any("comment" in str(notice) or "#" in str(notice) for notice in bases.remarks(loaded))


def test_the_last_value_of_a_repeated_key_counts_with_a_notice() -> None:
    loaded = loads(bases.properties(bases.CONFLUENT, {}) + "\nflush.size=2", "f", None, {})
    assert loaded.config.sinks[0].flush.count == 2
    assert "f:11:1: flush.size: is given again in line 12; that one counts, as in Java" in bases.remarks_text(loaded)


DEVIATIONS = f"""
confluent: s3.part.size=5242880 => s3lake.flush.size=80GB or 5MB
confluent: format.class=ParquetFormat => s3lake.layout.extension=.snappy.parquet or .parquet
lenses: => s3lake.layout.connector_names=true or false
lenses: connect.s3.kcql={KCQL} NOPARTITION =>
    s3lake.layout.template={{topic}}({{partition}}_{{last_offset:12}}) or {{topic}}({{partition}}_{{offset:12}})
lenses: connect.s3.kcql={KCQL} STOREAS CSV => s3lake.format.header=false or true
lenses: connect.s3.compression.codec=GZIP => s3lake.layout.extension=.gz or .json.gz
"""


@pytest.mark.parametrize(("changes", "override"), rows(DEVIATIONS))
def test_an_override_key_silences_the_notice_that_names_it_with_either_value(changes: str, override: str) -> None:
    override, _, documented = override.partition(" or ")
    key, _, value = override.partition("=")

    def find_notices(more: dict[str, str | None]) -> list[str]:
        notices = load(changes, more).notices
        return [notice.message for notice in notices if f"{override} for that" in notice.message]

    assert len(find_notices({})) == 1
    assert find_notices({key: value}) == []
    assert find_notices({key: documented}) == []


def test_older_keys_of_lenses_load_with_a_notice_each() -> None:
    changes: dict[str, str | None] = {
        "aws.region": "eu-west-1",
        "aws.access.key": "AK",
        "aws.secret.key": "hush-hush",
        "aws.auth.mode": "Credentials",
    }
    loaded = bases.load(bases.LENSES, changes)
    (sink,) = loaded.config.sinks
    assert loaded.config.s3_of(sink).region == "eu-west-1"
    messages = "\n".join(map(str, loaded.notices))
    assert "aws.access.key: is an old name: write connect.s3.aws.access.key" in messages
    assert "hush-hush" not in messages


SECRETS: dict[str, str | None] = {
    "aws.access.key.id": "${secrets:aws/access-key}",
    "aws.secret.access.key": "${vault:kv/aws:secret}",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schemas.enable": None,
    "value.converter.schema.registry.url": "http://registry:8081",
    "value.converter.basic.auth.credentials.source": "USER_INFO",
    "value.converter.basic.auth.user.info": "${secrets:registry:login}",
}


def test_loading_asks_no_server_for_a_secret_when_nothing_is_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> str:
        raise AssertionError("a server is asked")

    monkeypatch.setattr("s3lake.config.variables.SecretsManager.read", asked)
    monkeypatch.setattr("s3lake.config.variables.Vault.read", asked)
    path = tmp_path / "s3.properties"
    path.write_text(bases.properties(bases.CONFLUENT, SECRETS))
    loaded = configuration.load_configuration(str(path), environment={}, to_land=False)
    assert loaded.config.s3.credentials is not None
    assert loaded.references["s3", "credentials", "access_key_id"].secret
    with pytest.raises(AssertionError, match="a server is asked"):
        configuration.load_configuration(str(path), environment={})


def test_secrets_are_asked_for_in_the_files_own_region(monkeypatch: pytest.MonkeyPatch) -> None:
    regions: list[str | None] = []

    def ask(manager: SecretsManager, _: str) -> str:
        regions.append(manager.region)
        return "value"

    monkeypatch.setattr(SecretsManager, "read", ask)
    bases.load(bases.CONFLUENT, {"s3.region": "eu-central-1", "topics.dir": "${secrets:directory}"})
    assert regions == ["eu-central-1"]


def test_a_variable_of_iggy_sets_the_path_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "sink.toml"
    path.write_text(bases.IGGY)
    loaded = configuration.load_configuration(environment={"IGGY_CONNECTORS_CONFIG_PATH": str(path)})
    assert loaded.config.sinks[0].name == "lake"
    other = {"IGGY_CONNECTORS_CONFIG_PATH": str(path), "S3LAKE_CONFIG": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigurationError, match="nowhere"):
        configuration.load_configuration(environment=other)
