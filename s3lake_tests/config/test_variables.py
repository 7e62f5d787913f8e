"""Values from the environment, files, Vault and AWS Secrets Manager, and placeholders that are text.

Vault is a fake here: a few of its answers over HTTP, for both versions of its store, asked by the real client. Secrets
Manager is moto's server.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.config.variables import SecretsManager, UnresolvedReferenceError
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads
from s3lake_tests.kit.http import Request, Response, as_json, serve
from s3lake_tests.kit.tables import rows


def test_values_can_come_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("bucket = from-file\nsecret = hush-hush\n")
    changes: dict[str, str | None] = {
        "s3.bucket.name": "${file:secrets.properties:bucket}",
        "aws.access.key.id": "${env:KEY_ID}",
        "aws.secret.access.key": "${secrets:aws/lake:secret}",
        "topics": "${TOPICS:-demo},b",
        "s3.region": "${env:REGION}",
        "topics.dir": "a$${b}",
    }
    secrets = {"aws/lake": '{"secret": "hush-hush"}'}
    loaded = loads(
        bases.properties(bases.CONFLUENT, changes),
        "f",
        None,
        {"KEY_ID": "AKIA", "REGION": "eu-west-1"},
        tmp_path,
        secrets.__getitem__,
    )
    (sink,) = loaded.config.sinks
    assert (sink.bucket, sink.topics, sink.prefix) == ("from-file", ("demo", "b"), "a${b}")
    assert loaded.config.s3.region == "eu-west-1"
    assert loaded.config.s3.credentials != "default"
    assert loaded.config.s3.credentials.secret_access_key.get_secret_value() == "hush-hush"


def error_of(value: str, secret: str = "{}") -> str:
    with pytest.raises(ConfigurationError) as refused:
        loads(bases.properties(bases.CONFLUENT, {"topics": value}), "f", None, {}, Path(), lambda _: secret)
    return str(refused.value)


@pytest.mark.parametrize(
    ("value", "secret", "expected"),
    [
        (
            "${secrets:a:b}",
            "plain",
            "${secrets:a:b}: secret a is not a JSON object, so it has no field 'b'; write ${secrets:a}",
        ),
        ("${secrets:a:b}", '{"c": 1}', "${secrets:a:b}: secret a has no field 'b'; it has c"),
        (
            r"${file:\u0000:b}",
            "",
            r"${file:\x00:b}: file \x00 cannot be read: its name is not a path, or it is not UTF-8",
        ),
        (
            "${azure:a:b}",
            "",
            "${azure:a:b}: provider 'azure' is not known; "
            "write ${env:NAME}, ${file:path:key}, ${directory:path:name}, ${secrets:name:key} or ${vault:path:key}",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(value: str, secret: str, expected: str) -> None:
    assert error_of(value, secret) == f"f:3:1: topics: {expected}"


def test_an_invalid_secret_is_masked_in_its_message() -> None:
    assert "hush" not in error_of("${secrets:a}", "hush hush")
    assert "********" in error_of("${secrets:a}", "hush hush")


def test_secrets_come_from_aws_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.stub import Stubber

    for name, value in (
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    secrets = SecretsManager({})
    with Stubber(secrets.client) as stub:
        stub.add_response("get_secret_value", {"SecretString": "hush-hush"}, {"SecretId": "aws/lake"})
        assert [secrets.read("aws/lake"), secrets.read("aws/lake")] == ["hush-hush"] * 2
        stub.add_client_error("get_secret_value", "ResourceNotFoundException")
        with pytest.raises(UnresolvedReferenceError, match="answers ResourceNotFoundException for secret other"):
            secrets.read("other")


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"AWS_CONFIG_FILE": "{profile}"}, "No such file or directory: '/missing/program'"),
        (
            {"AWS_ROLE_ARN": "arn:aws:iam::1:role/a", "AWS_WEB_IDENTITY_TOKEN_FILE": "/missing/token"},
            "No such file or directory: '/missing/token'",
        ),
        ({"AWS_PROFILE": "other"}, r"The config profile \(other\) could not be found"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "x"}, "Invalid endpoint: x"),
        (
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "hush\n"},
            r"Invalid header value \*+$",
        ),
    ],
)
def test_wrong_variables_of_aws_are_reported_when_secrets_manager_is_asked(
    variables: dict[str, str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profile").write_text("[default]\ncredential_process = /missing/program\n")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(profile=tmp_path / "profile"))
    with pytest.raises(UnresolvedReferenceError, match=reason):
        SecretsManager({"endpoint": "http://127.0.0.1:1"} if "AWS_SESSION_TOKEN" in variables else {}).read("aws/lake")


# Placeholders of a shell, a router or an expression: STAGE is prod, topic is wrong, and nothing else is set

PLACEHOLDERS = """
transforms=r + transforms.r.type=org.apache.kafka.connect.transforms.TimestampRouter +
    transforms.r.topic.format=${topic}-${timestamp} => transforms.0.options: {topic.format: "${topic}-${timestamp}"}
transforms=r + transforms.r.type=org.apache.kafka.connect.transforms.RegexRouter + transforms.r.regex=(?<n>.*) +
    transforms.r.replacement=x-${n} => transforms.0.options: {regex: "(?<n>.*)", replacement: "x-${n}"}
topics.dir=${STAGE}/raw => prefix: prod/raw
topics.dir=${NOWHERE}/raw => prefix: "${NOWHERE}/raw"
topics.dir=${NOWHERE}/raw =>
    remark: topics.dir: ${NOWHERE} is text: environment variable NOWHERE is not set
"""


@pytest.mark.parametrize(("changes", "expected"), rows(PLACEHOLDERS))
def test_a_placeholder_that_no_variable_has_is_text(changes: str, expected: str) -> None:
    bases.check(bases.load(bases.CONFLUENT, bases.changes(changes), STAGE="prod", topic="wrong"), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("s3.bucket.name=${BUCKET}", r"environment variable BUCKET is not set, so .* is text"),
        # A secret is never a placeholder.
        (
            "aws.access.key.id=AK + aws.secret.access.key=${NOWHERE}",
            "environment variable NOWHERE is not set; set it",
        ),
    ],
)
def test_an_invalid_text_with_a_placeholder_names_the_variable(changes: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        bases.load(bases.CONFLUENT, bases.changes(changes))


def test_a_secret_that_may_be_strimzis_has_a_remedy() -> None:
    def nowhere(_: str) -> str:
        raise UnresolvedReferenceError("AWS answers AccessDenied")

    text = bases.properties(bases.CONFLUENT, {"s3.bucket.name": "${secrets:ns/lake:bucket}"})
    with pytest.raises(ConfigurationError, match=r"Strimzi's Kubernetes secret NAMESPACE/NAME, mount it"):
        loads(text, "f", None, {}, secret=nowhere)


# Vault, and the providers of a worker

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


def test_a_vault_that_lists_no_mounts_is_read_as_version_2(vault: Vault) -> None:
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
        ("directory", None, "${directory:HERE:secret}"),
        ("dir", None, "${dir:HERE:secret}"),
    ],
)
def test_kafkas_and_strimzis_own_providers_have_any_name(
    name: str, class_name: str | None, reference: str, tmp_path: Path
) -> None:
    (tmp_path / "keys.properties").write_text(f"secret={SECRET}\n")
    (tmp_path / "secret").write_text(SECRET)
    worker = {"config.providers": name, f"config.providers.{name}.class": class_name} if class_name else {}
    configuration = loaded("AK", reference.replace("HERE", str(tmp_path)), worker, OURS=SECRET)
    assert keys_of(configuration) == ("AK", SECRET)


# AWS Secrets Manager

STORED = json.dumps({"key": "AKIAMANAGER", "secret": SECRET})


@pytest.mark.slow("moto serves Secrets Manager")
@pytest.mark.parametrize(
    "class_name",
    [
        "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider",
        "io.lenses.connect.secrets.providers.AWSSecretProvider",
    ],
)
def test_a_secret_of_secrets_manager_is_read_with_the_classes_options(moto: EmbeddedS3, class_name: str) -> None:
    options = {"aws.region": "eu-west-1", "aws.access.key": "a", "aws.secret.key": "b"}
    options["aws.endpoint.override"] = moto.endpoint_url
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client("secretsmanager", endpoint_url=moto.endpoint_url, region_name="eu-west-1", **keys)
    client.create_secret(Name=class_name, SecretString=STORED)
    worker = {"config.providers": "shop", "config.providers.shop.class": class_name}
    worker |= {f"config.providers.shop.param.{name}": value for name, value in options.items()}
    configuration = loaded(f"${{shop:{class_name}:key}}", f"${{shop:{class_name}:secret}}", worker)
    assert keys_of(configuration) == ("AKIAMANAGER", SECRET)


@pytest.mark.parametrize("name", ["secretsManager", "secretsmanager", "secrets", "aws"])
def test_a_secret_is_read_by_its_usual_names_and_by_arn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake/s3-AbCdEf"
    monkeypatch.setattr(SecretsManager, "read", lambda _, secret: {"lake/s3": STORED, arn: STORED}[secret])
    configuration = loaded(f"${{{name}:lake/s3:key}}", f"${{{name}:{arn}:secret}}")
    assert keys_of(configuration) == ("AKIAMANAGER", SECRET)
