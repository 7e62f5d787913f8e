"""What s3lake uses of botocore and botocore does not document works in the version that is installed."""

from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest

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
