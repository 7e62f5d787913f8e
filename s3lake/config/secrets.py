"""Secrets that servers keep: AWS Secrets Manager, and Vault or OpenBao, by a token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

_PATIENCE_S = 30


class UnresolvedReferenceError(ValueError):
    """A reference leads nowhere; the message says why, and never quotes a value."""


def _option(options: Mapping[str, str], *names: str) -> str:
    return next((options[name] for name in names if options.get(name)), "")


class SecretsManager:
    """AWS Secrets Manager, asked once for each secret, and only if a configuration names one."""

    def __init__(self, options: Mapping[str, str] = {}) -> None:
        """Keep the options of the Java classes that read it; without them boto3's own settings count."""
        self._options = options
        self._texts: dict[str, str] = {}

    def read(self, name: str) -> str:
        """Return the text of a secret.

        Raises:
            UnresolvedReferenceError: it cannot be read.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        if name not in self._texts:
            try:
                self._texts[name] = self._client.get_secret_value(SecretId=name)["SecretString"]
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "an error")
                raise UnresolvedReferenceError(f"AWS Secrets Manager answers {code} for secret {name}") from None
            except BotoCoreError as error:
                raise UnresolvedReferenceError(f"AWS Secrets Manager cannot be asked for {name}: {error}") from None
            except KeyError:
                raise UnresolvedReferenceError(f"secret {name} is binary; a secret that is text is needed") from None
        return self._texts[name]

    @property
    def region(self) -> str | None:
        """The region that the options name."""
        return _option(self._options, "aws.region", "region") or None

    @cached_property
    def _client(self) -> Any:
        import boto3

        endpoint = _option(self._options, "aws.endpoint.override", "aws.endpoint", "endpoint")
        access = _option(self._options, "aws.access.key", "aws.access.key.id", "access.key")
        secret = _option(self._options, "aws.secret.key", "aws.secret.access.key", "secret.key")
        return boto3.client(
            "secretsmanager",
            region_name=self.region,
            endpoint_url=endpoint or None,
            aws_access_key_id=access or None,
            aws_secret_access_key=secret or None,
        )


class Vault:
    """A key-value store of Vault, of version 1 or 2, asked once for each secret."""

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Keep the options of the Java classes that read Vault; without them its own variables count."""
        self._address = _option(options, "vault.addr", "vault.address", "addr", "address") or environment.get(
            "VAULT_ADDR"
        )
        self._namespace = _option(options, "vault.namespace", "namespace") or environment.get("VAULT_NAMESPACE")
        self._token = _option(options, "vault.token", "token") or environment.get("VAULT_TOKEN")
        self._authority = environment.get("VAULT_CACERT") or True
        self._secrets: dict[str, Mapping[str, Any]] = {}

    def read(self, path: str, key: str) -> str:
        """Return the field `key` of the secret at `path`, which begins with the mount.

        Raises:
            UnresolvedReferenceError: it cannot be read.
        """
        if not path or not key:
            raise UnresolvedReferenceError("names no path or no field; write ${vault:MOUNT/PATH:FIELD}")
        if path not in self._secrets:
            self._secrets[path] = self._fields(path)
        fields = self._secrets[path]
        if key not in fields:
            names = ", ".join(sorted(fields)) or "none"
            raise UnresolvedReferenceError(f"Vault's {path} has no field {key!r}; it has {names}")
        return str(fields[key])

    def _fields(self, path: str) -> Mapping[str, Any]:
        if not self._address:
            raise UnresolvedReferenceError("VAULT_ADDR is not set; set it to Vault's address")
        if not self._token:
            raise UnresolvedReferenceError("VAULT_TOKEN is not set; set it to a token that may read the secret")
        status, mount = self._get(f"sys/internal/ui/mounts/{path}")
        name, version = path.partition("/")[0], "2"  # of a token that may not ask for mounts
        if status == 200:
            name, version = mount["path"].rstrip("/"), str((mount.get("options") or {}).get("version", "1"))
        rest = path[len(name) + 1 :]
        status, data = self._get(f"{name}/data/{rest}" if version == "2" and not rest.startswith("data/") else path)
        if status == 403:
            raise UnresolvedReferenceError(f"Vault refuses to read {path}; let this token read it")
        if status == 404:
            raise UnresolvedReferenceError(
                f"Vault has no secret at {path}; correct the path, which begins with the mount"
            )
        if status != 200:
            raise UnresolvedReferenceError(f"Vault answers {status} for {path}")
        return (data["data"] if version == "2" else data) or {}

    def _get(self, path: str) -> tuple[int, Any]:
        import requests

        headers = {"X-Vault-Token": self._token, "X-Vault-Request": "true", "X-Vault-Namespace": self._namespace}
        try:
            answer = requests.get(
                f"{str(self._address).rstrip('/')}/v1/{path}",
                headers={name: value for name, value in headers.items() if value},
                timeout=_PATIENCE_S,
                verify=self._authority,
            )
            return answer.status_code, answer.json().get("data") if answer.status_code == 200 else None
        except (requests.RequestException, OSError, ValueError) as error:  # which may quote the address
            raise UnresolvedReferenceError(
                f"Vault cannot be asked: {type(error).__name__}; correct VAULT_ADDR"
            ) from None
