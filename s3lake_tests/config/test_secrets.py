"""Values from Vault, AWS Secrets Manager and elsewhere, by the names that a worker gives its providers.

Vault is a fake here: a few of its answers over HTTP, for both versions of its store, asked by the real client. Secrets
Manager is moto's server.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.demo.s3 import EmbeddedS3
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads
from s3lake_tests.kit.http import Request, Response, as_json, serve

TOKEN = "hvs.hush-hush-token"
SECRET = "wJalrXUtnFEMI-hush"
LENSES = "io.lenses.connect.secrets.providers.VaultSecretProvider"


class Vault:
    """`secret/` is of version 2, `kv/old/` of version 1; a token that may read."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.namespaces: set[str | None] = set()
        self.tells_mounts = True
        self.url = ""

    def answer(self, request: Request) -> Response:
        path = request.target.removeprefix("/v1/")
        self.asked.append(path)
        self.namespaces.add(request.headers.get("x-vault-namespace"))
        if request.headers.get("x-vault-token") != TOKEN:
            return as_json({"errors": ["permission denied"]}, 403)
        status, document = self.read(path)
        return as_json(document, status)

    def read(self, path: str) -> tuple[int, Any]:
        if path.startswith("sys/internal/ui/mounts/"):
            if not self.tells_mounts:
                return 403, {"errors": ["permission denied"]}
            of_two = path.removeprefix("sys/internal/ui/mounts/").startswith("secret/")
            mount = {"path": "secret/" if of_two else "kv/old/", "options": {"version": "2"} if of_two else None}
            return 200, {"data": mount}
        stored = {"key": "AKIAVAULT", "secret": SECRET}
        answers = {"secret/data/lake/s3": {"data": {"data": stored}}, "kv/old/lake": {"data": stored}}
        return (200, answers[path]) if path in answers else (404, {"errors": []})


@pytest.fixture
def vault() -> Iterator[Vault]:
    server = Vault()
    with serve(server.answer) as server.url:
        yield server


def loaded(key: str, secret: str, more: dict[str, str] | None = None, **environment: str) -> LoadedConfig:
    pair = {"aws.access.key.id": key, "aws.secret.access.key": secret, **(more or {})}
    return loads(bases.properties(bases.CONFLUENT, dict(pair)), "f", None, environment)


def keys_of(configuration: LoadedConfig) -> tuple[str, str]:
    credentials = configuration.config.s3.credentials
    assert not isinstance(credentials, str)
    assert SECRET not in repr(configuration) + "".join(map(str, configuration.notices))
    return credentials.access_key_id, credentials.secret_access_key.get_secret_value()


@pytest.mark.parametrize("path", ["secret/lake/s3", "secret/data/lake/s3", "kv/old/lake"])
def test_a_secret_of_either_version_of_vault_is_read_and_asked_for_once(vault: Vault, path: str) -> None:
    configuration = loaded(
        f"${{vault:{path}:key}}", f"${{vault:{path}:secret}}", VAULT_ADDR=vault.url, VAULT_TOKEN=TOKEN
    )
    assert keys_of(configuration) == ("AKIAVAULT", SECRET)
    assert len([one for one in vault.asked if not one.startswith("sys/")]) == 1


def test_a_vault_that_tells_no_mounts_is_taken_for_version_2(vault: Vault) -> None:
    vault.tells_mounts = False
    variables = {"VAULT_ADDR": vault.url, "VAULT_TOKEN": TOKEN, "VAULT_NAMESPACE": "data"}
    configuration = loaded("${vault:secret/lake/s3:key}", "${vault:secret/lake/s3:secret}", **variables)
    assert keys_of(configuration) == ("AKIAVAULT", SECRET)
    assert vault.namespaces == {"data"}


@pytest.mark.parametrize("where", ["file", "image", "connector"])
def test_a_workers_providers_count_with_their_classes_and_options(vault: Vault, where: str, tmp_path: Path) -> None:
    options = {"vault.addr": vault.url, "vault.token": "${env:TOKEN}", "vault.engine.version": "2"}
    worker = {"config.providers": "shop", "config.providers.shop.class": LENSES}
    worker |= {f"config.providers.shop.param.{name}": value for name, value in options.items()}
    more, environment = {}, {"TOKEN": TOKEN}
    if where == "file":
        (tmp_path / "worker.properties").write_text("".join(f"{name}={value}\n" for name, value in worker.items()))
        environment["S3LAKE_WORKER"] = str(tmp_path / "worker.properties")
    elif where == "image":
        environment |= {f"CONNECT_{name.upper().replace('.', '_')}": value for name, value in worker.items()}
    else:
        more = worker
    configuration = loaded("${shop:secret/lake/s3:key}", "${shop:secret/lake/s3:secret}", more, **environment)
    assert keys_of(configuration) == ("AKIAVAULT", SECRET)
    assert TOKEN not in repr(configuration)


@pytest.mark.parametrize(
    ("reference", "variables", "why"),
    [
        ("secret/lake/s3:other", {}, "Vault's secret/lake/s3 has no field 'other'; it has key, secret"),
        ("secret/none:key", {}, "Vault has no secret at secret/none; correct the path"),
        (
            "secret/lake/s3:key",
            {"VAULT_TOKEN": "hvs.stranger-token"},
            "Vault refuses to read secret/lake/s3; let this token",
        ),
        ("secret/lake/s3:key", {"VAULT_ADDR": ""}, "VAULT_ADDR is not set; set VAULT_ADDR"),
        ("secret/lake/s3:key", {"VAULT_ADDR": "http://127.0.0.1:1"}, "Vault does not answer: ConnectionError"),
        ("key", {}, "names no path or no field; write \\${vault:MOUNT/PATH:FIELD}"),
    ],
)
def test_an_error_of_vault_does_not_contain_its_token(
    vault: Vault, reference: str, variables: dict[str, str], why: str
) -> None:
    environment = {"VAULT_ADDR": vault.url, "VAULT_TOKEN": TOKEN, **variables}
    with pytest.raises(ConfigurationError, match=why) as refused:
        loaded(f"${{vault:{reference}}}", "x" * 9, **environment)
    assert environment["VAULT_TOKEN"] not in str(refused.value)


def test_a_provider_class_that_s3lake_lacks_is_refused_by_name() -> None:
    kubernetes = "io.strimzi.kafka.KubernetesSecretConfigProvider"
    worker = {"config.providers": "k8s", "config.providers.k8s.class": kubernetes}
    with pytest.raises(ConfigurationError, match=f"s3lake cannot run {kubernetes} of provider 'k8s'; write"):
        loaded("${k8s:lake/keys:key}", "x" * 9, worker)


@pytest.mark.parametrize(
    ("name", "class_name", "reference"),
    [
        ("e", "org.apache.kafka.common.config.provider.EnvVarConfigProvider", "${e:OURS}"),
        ("s", "io.strimzi.kafka.EnvVarConfigProvider", "${s:OURS}"),
        ("f", "org.apache.kafka.common.config.provider.FileConfigProvider", "${f:HERE/keys.properties:secret}"),
        ("d", "org.apache.kafka.common.config.provider.DirectoryConfigProvider", "${d:HERE:secret}"),
    ],
)
def test_kafkas_and_strimzis_own_providers_have_any_name(
    name: str, class_name: str, reference: str, tmp_path: Path
) -> None:
    (tmp_path / "keys.properties").write_text(f"secret={SECRET}\n")
    (tmp_path / "secret").write_text(SECRET)
    worker = {"config.providers": name, f"config.providers.{name}.class": class_name}
    configuration = loaded("AK", reference.replace("HERE", str(tmp_path)), worker, OURS=SECRET)
    assert keys_of(configuration) == ("AK", SECRET)


# AWS Secrets Manager


@pytest.fixture(scope="module")
def manager() -> Iterator[EmbeddedS3]:
    with EmbeddedS3.start() as server:
        client = boto3.client(
            "secretsmanager",
            endpoint_url=server.endpoint_url,
            region_name="eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        client.create_secret(Name="lake/s3", SecretString=json.dumps({"key": "AKIAMANAGER", "secret": SECRET}))
        yield server


@pytest.mark.slow("moto serves Secrets Manager")
@pytest.mark.s3
@pytest.mark.parametrize(
    "class_name",
    [
        "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider",
        "io.lenses.connect.secrets.providers.AWSSecretProvider",
    ],
)
def test_a_secret_of_secrets_manager_is_read_with_the_classes_options(manager: EmbeddedS3, class_name: str) -> None:
    options = {"aws.region": "eu-west-1", "aws.access.key": "a", "aws.secret.key": "b"}
    options["aws.endpoint.override"] = manager.endpoint_url
    worker = {"config.providers": "shop", "config.providers.shop.class": class_name}
    worker |= {f"config.providers.shop.param.{name}": value for name, value in options.items()}
    configuration = loaded("${shop:lake/s3:key}", "${shop:lake/s3:secret}", worker)
    assert keys_of(configuration) == ("AKIAMANAGER", SECRET)


@pytest.mark.slow("moto serves Secrets Manager")
@pytest.mark.s3
@pytest.mark.parametrize("name", ["secretsManager", "secretsmanager", "secrets", "aws"])
def test_it_is_read_by_its_usual_names_and_by_arn(
    manager: EmbeddedS3, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"AWS_ENDPOINT_URL_SECRETS_MANAGER": manager.endpoint_url, "AWS_DEFAULT_REGION": "eu-west-1"}
    for variable, value in {**variables, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(variable, value)
    arn = boto3.client("secretsmanager").describe_secret(SecretId="lake/s3")["ARN"]
    configuration = loaded(f"${{{name}:lake/s3:key}}", f"${{{name}:{arn}:secret}}")
    assert keys_of(configuration) == ("AKIAMANAGER", SECRET)
