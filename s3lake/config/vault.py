"""Secrets of a HashiCorp Vault, or of an OpenBao: of both versions of its key-value store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from s3lake.config.unresolved import Unresolved

_ADDRESS = ("vault.addr", "vault.address", "addr", "address", "uri")
_TOKEN = ("vault.token", "vault.auth.token", "token")
_NAMESPACE = ("vault.namespace", "namespace")
_METHOD = ("vault.auth.method", "vault.login.by", "auth.method")
_VERSION = ("vault.engine.version", "vault.secrets.version", "engine.version")
_ROLE = ("app.role.id", "vault.app.role.id", "vault.auth.role", "kubernetes.role")
_ROLE_SECRET = ("app.role.secret.id", "vault.app.role.secret.id", "vault.auth.secret")
_JWT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class Vault:
    """One server, asked once for each secret, and only when a configuration names one."""

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """`options` are those of the Java classes that read Vault; without them its own variables count."""
        self._options, self._environment = options, environment
        self._known: dict[str, Mapping[str, Any]] = {}

    def __call__(self, path: str, key: str) -> str:
        """The field `key` of the secret at `path`, which begins with the mount.

        Raises:
            Unresolved: it cannot be had.
        """
        if not path or not key:
            raise Unresolved("names no path or no field; write ${vault:MOUNT/PATH:FIELD}")
        if path not in self._known:
            self._known[path] = self._read(path)
        fields = self._known[path]
        if key not in fields:
            raise Unresolved(f"Vault's {path} has no field {key!r}; it has {', '.join(sorted(fields)) or 'none'}")
        return str(fields[key])

    def _read(self, path: str) -> Mapping[str, Any]:
        try:
            import hvac.exceptions
        except ImportError:
            raise Unresolved("Vault is asked through the package hvac; pip install 's3lake[vault]'") from None
        import requests

        try:
            client = self._client
            mount, version = self._mount(path)
            rest = path[len(mount) + 1 :]
            whole = f"{mount}/data/{rest}" if version == "2" and not rest.startswith("data/") else path
            answer = client.read(whole)
        except hvac.exceptions.Forbidden:
            raise Unresolved(f"Vault refuses to read {path}; let this token or role read it") from None
        except hvac.exceptions.VaultError as error:
            raise Unresolved(f"Vault answers {type(error).__name__} for {path}") from None
        except requests.RequestException as error:
            raise Unresolved(f"Vault cannot be asked: {type(error).__name__}; correct VAULT_ADDR") from None
        except OSError as error:
            raise Unresolved(f"the service account's file, for the login at Vault: {error.strerror}") from None
        if answer is None:
            raise Unresolved(f"Vault has no secret at {path}; correct the path, which begins with the mount")
        data: Mapping[str, Any] = answer["data"]["data"] if version == "2" else answer["data"]
        return data or {}

    def _mount(self, path: str) -> tuple[str, str]:
        """Where the store of that path is mounted, and its version: as is said, as Vault says, else the usual."""
        import hvac.exceptions

        first = path.partition("/")[0]
        version = self._option(_VERSION)
        if version:
            return first, version
        try:
            mounted = self._client.read(f"sys/internal/ui/mounts/{path}")
        except hvac.exceptions.VaultError:  # an old one, or a token that may not ask
            mounted = None
        if not mounted:
            return first, "2"
        options = mounted["data"].get("options") or {}
        return mounted["data"]["path"].rstrip("/"), str(options.get("version", "1"))

    @cached_property
    def _client(self) -> Any:
        import hvac

        address = self._option(_ADDRESS) or self._environment.get("VAULT_ADDR", "")
        if not address:
            raise Unresolved("nobody says where Vault is; set VAULT_ADDR")
        client = hvac.Client(
            address,
            namespace=self._option(_NAMESPACE) or self._environment.get("VAULT_NAMESPACE") or None,
            verify=self._environment.get("VAULT_CACERT") or True,
            token=self._option(_TOKEN) or self._environment.get("VAULT_TOKEN") or None,
        )
        self._log_in(client)
        return client

    def _log_in(self, client: Any) -> None:
        method = (self._option(_METHOD) or "token").lower().replace("_", "")
        match method:
            case "token":
                if not client.token:
                    raise Unresolved("nobody says who we are to Vault; set VAULT_TOKEN")
            case "approle":
                client.auth.approle.login(self._option(_ROLE), self._option(_ROLE_SECRET))
            case "kubernetes":
                client.auth.kubernetes.login(self._option(_ROLE), Path(_JWT).read_text("utf-8"))
            case _:
                raise Unresolved(f"Vault's login {method!r} is not supported; use token, approle or kubernetes")

    def _option(self, names: tuple[str, ...]) -> str:
        return next((self._options[name] for name in names if self._options.get(name)), "")
