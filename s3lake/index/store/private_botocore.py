"""Everything that s3lake uses of botocore and that botocore does not document, each with its reason.

botocore may change it with any version: `s3lake_tests/index/store/test_private_botocore.py` fails then.
"""

import functools
import os
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any


def speed_up(core: Any) -> None:
    """Let a session of botocore share the models of services, and parse dates fast.

    Each session would read the models again: 40 of the 50 ms of a client. boto3's parser of dates is a twelfth of the
    cost of a small request, and no code reads the dates.
    """
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_parse_timestamp)
    core.register_component("data_loader", _load_models(core.get_config_variable("data_path")))


def keep_credential_sources(core: Any, methods: tuple[str, ...]) -> None:
    """Let a session of botocore look for credentials with these methods only: its default is a chain of all."""
    resolver = core.get_component("credential_provider")
    resolver.providers = [provider for provider in resolver.providers if provider.METHOD in methods]


def assume_role(core: Any, load_token: Callable[[], str] | None, **settings: Any) -> None:
    """Let a session of botocore use the credentials of a role, and renew them before they expire.

    botocore assumes a role that a profile of its own file names, and no other.

    Args:
        core: the session.
        load_token: reads the token of a web identity; None to assume the role with the session's own credentials.
        settings: `client_creator`, `role_arn` and `extra_args` of botocore's fetchers.
    """
    from botocore.credentials import (
        AssumeRoleCredentialFetcher,
        AssumeRoleWithWebIdentityCredentialFetcher,
        DeferredRefreshableCredentials,
    )

    if load_token is not None:
        fetcher = AssumeRoleWithWebIdentityCredentialFetcher(web_identity_token_loader=load_token, **settings)
    else:
        fetcher = AssumeRoleCredentialFetcher(source_credentials=core.get_credentials(), **settings)
    core._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def find_certificates(core: Any, verify: bool | str | None) -> dict[str, Any]:
    """Return the settings of urllib3 by which a client of the session checks a server's certificate.

    A client and its connections are one in botocore. Connections with the same trust need its file of certificates.

    Args:
        core: the session.
        verify: the argument `verify` of the client.
    """
    from botocore.httpsession import get_cert_path

    for default in (core.get_config_variable("ca_bundle"), os.environ.get("REQUESTS_CA_BUNDLE"), True):
        verify = default if verify is None else verify
    return {"cert_reqs": "CERT_REQUIRED", "ca_certs": get_cert_path(verify)} if verify else {"cert_reqs": "CERT_NONE"}


@functools.cache
def _load_models(path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(path)


def _parse_timestamp(value: str) -> datetime:
    """Parse a date of HTTP, or any other that botocore knows."""
    from botocore.utils import parse_timestamp

    try:
        return parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return parse_timestamp(value)  # type: ignore[no-any-return]
