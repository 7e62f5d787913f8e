"""What s3lake uses of botocore and botocore does not document works in the version that is installed."""

from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest
from botocore.httpsession import get_cert_path

from s3lake.index.store import private_botocore

CHANGE = f"botocore {botocore.__version__} is another one: change s3lake/index/store/private_botocore.py"


class Tokens:
    """The service that gives the credentials of a role."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def create_client(self, *_: object, **__: object) -> "Tokens":
        return self

    def assume_role_with_web_identity(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        keys = {"AccessKeyId": "key", "SecretAccessKey": "secret", "SessionToken": "token"}
        return {"Credentials": {**keys, "Expiration": "2126-01-01T00:00:00Z"}}


def test_sessions_share_the_models_of_a_data_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    loaders = []
    for _ in range(2):
        core = botocore.session.Session()
        private_botocore.speed_up(core)
        loaders.append(core.get_component("data_loader"))

    assert loaders[0] is loaders[1], CHANGE
    assert str(tmp_path) in loaders[0].search_paths, CHANGE


def test_only_the_given_sources_of_credentials_are_left() -> None:
    core = botocore.session.Session()
    private_botocore.keep_credential_sources(core, ("env", "iam-role"))

    assert [each.METHOD for each in core.get_component("credential_provider").providers] == ["env", "iam-role"], CHANGE


def test_a_session_uses_the_credentials_of_a_role() -> None:
    core, tokens = botocore.session.Session(), Tokens()
    settings = {"client_creator": tokens.create_client, "role_arn": "arn:aws:iam::1:role/r", "extra_args": {}}
    private_botocore.assume_role(core, lambda: "identity", **settings)

    keys = core.get_credentials().get_frozen_credentials()
    assert (keys.access_key, keys.secret_key, keys.token) == ("key", "secret", "token"), CHANGE
    assert [request["WebIdentityToken"] for request in tokens.requests] == ["identity"]


@pytest.mark.parametrize(
    ("verify", "variables", "file"),
    [
        ("own.pem", ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"), "own.pem"),
        (None, ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"), "AWS_CA_BUNDLE"),
        (None, ("REQUESTS_CA_BUNDLE",), "REQUESTS_CA_BUNDLE"),
        (True, ("AWS_CA_BUNDLE",), get_cert_path(True)),
        (None, (), get_cert_path(True)),
    ],
)
def test_certificates_are_looked_for_in_the_order_of_botocore(
    verify: str | bool | None, variables: tuple[str, ...], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    for variable in variables:
        monkeypatch.setenv(variable, variable)
    core = botocore.session.Session()
    client = core.create_client("s3", region_name="eu-north-1", verify=verify)

    assert private_botocore.find_certificates(core, verify) == {"cert_reqs": "CERT_REQUIRED", "ca_certs": file}
    assert get_cert_path(client._endpoint.http_session._verify) == file, CHANGE


def test_a_certificate_that_is_not_verified_needs_no_file() -> None:
    assert private_botocore.find_certificates(botocore.session.Session(), False) == {"cert_reqs": "CERT_NONE"}
