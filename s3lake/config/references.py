"""Values that stand elsewhere: `${provider:…}`, as Kafka Connect has them, and `${NAME}`, as a shell fills them in.

`${env:NAME}` is a variable, `${file:path:key}` a key of a properties file, `${directory:path:name}` a file's text.
`${secrets:name}` is a secret of AWS Secrets Manager, `${secrets:name:key}` one field of a secret that is a JSON object,
`${vault:mount/path:key}` a field of a secret of Vault. A worker's `config.providers` may call them otherwise.

To Kafka Connect `${NAME}` is text, and so it is here (`${topic}` of a router, `${n}` of an expression) unless there is
such a variable, or a default, `${NAME:-default}`. In a transform only names in upper case are variables. A secret is
never `${NAME}` itself: there the variable has to be set. `$${` stands for a plain `${`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from s3lake.config.environment import filled, looked_up
from s3lake.config.providers import Provider, usual
from s3lake.config.read import properties
from s3lake.config.setting import Reference, Report, Setting
from s3lake.config.unresolved import Unresolved
from s3lake.config.vault import Vault
from s3lake.text.masking import is_secret, users

_FORMS = "${env:NAME}, ${file:path:key}, ${directory:path:name}, ${secrets:name:key} or ${vault:path:key}"
_ARN = 7  # parts of a secret's ARN, which has colons of its own
_ACCESS_KEY = re.compile(r"access[._-]?key", re.IGNORECASE)
_CHAINS = ("transforms.", "predicates.")


@dataclass(frozen=True)
class References:
    """What references are looked up in.

    Attributes:
        base: where relative paths of `${file:…}` begin.
        secret: the text of a secret of AWS Secrets Manager.
        providers: those that a worker calls by names of its own.
        ask_servers: whether secrets of servers are read; otherwise they stay references in settings of secrets.
    """

    environment: Mapping[str, str]
    base: Path
    secret: Callable[[str], str]
    providers: Mapping[str, Provider] = field(default_factory=dict)
    ask_servers: bool = True
    _opened: dict[str, Any] = field(default_factory=dict, repr=False)

    def resolve(self, settings: Sequence[Setting], report: Report) -> list[Setting]:
        """The settings with their references replaced; those that lead nowhere are noted, and their settings left."""
        report.secrets |= {setting.value for setting in settings if is_secret(setting.key)}
        report.secrets.update(*(users(setting.value) for setting in settings))
        return [self._resolved(setting, report) if "${" in setting.value else setting for setting in settings]

    def _resolved(self, setting: Setting, report: Report) -> Setting:
        def look_up(reference: str) -> tuple[str, str, bool]:
            text = f"${{{reference}}}"
            try:
                value, hidden = self._value(reference, setting, report)
            except Unresolved as error:
                raise Unresolved(f"{text}: {error}") from None
            if hidden:
                report.secrets.add(value)
            return value, f"${text}" if value == text else _native(reference), hidden

        try:
            part = filled(setting.value, look_up, setting.spots)
        except Unresolved as error:
            report.error(setting, str(error))
            report.unknown.add(setting.key)
            return setting
        if is_secret(setting.key):
            report.secrets.add(part.value)
        report.secrets |= users(part.value)
        reference = part.reference(setting.value, secret=is_secret(setting.key))
        if reference is None and part.secret:  # a secret that is not read
            reference = Reference("", part.value, alone=True, secret=True)
        return replace(setting, value=part.value, spots=part.spots, secret=part.secret, reference=reference)

    def _value(self, reference: str, setting: Setting, report: Report) -> tuple[str, bool]:
        provider, colon, rest = reference.partition(":")
        if not colon or rest.startswith("-"):
            return self._of_shell(reference, setting, report)
        source = self.providers.get(provider) or usual(provider)
        unread = source.reads in ("secrets", "vault") and not self.ask_servers
        if unread and (is_secret(setting.key) or _ACCESS_KEY.search(setting.key)):
            return f"${{{reference}}}", True
        match source.reads:
            case "env":
                return self._variable(rest.removeprefix(":"))
            case "file":
                path, _, key = rest.rpartition(":")
                return self._of_file(path, key), True
            case "directory":
                path, _, name = rest.rpartition(":")
                return self._of_directory(path, name), True
            case "secrets":
                parts = rest.split(":")
                parts = [":".join(parts[:_ARN]), *parts[_ARN:]] if parts[0] == "arn" else parts
                return self._of_secret(unquote(parts[0]), ":".join(parts[1:]), self._asked(provider, source)), True
            case "vault":
                path, _, key = rest.rpartition(":")
                return self._asked(provider, source)(path, key), True
        if source.type:
            raise Unresolved(f"s3lake has nothing for {source.type} of provider {provider!r}; write {_FORMS}")
        raise Unresolved(f"provider {provider!r} is not known; write {_FORMS}")

    def _asked(self, name: str, provider: Provider) -> Any:
        """What answers for a provider; each is opened once."""
        if provider.reads == "secrets" and not provider.options:
            return self.secret
        if name not in self._opened:
            options = provider.options
            of_vault = provider.reads == "vault"
            self._opened[name] = Vault(options, self.environment) if of_vault else SecretsManager(options)
        return self._opened[name]

    def _of_shell(self, reference: str, setting: Setting, report: Report) -> tuple[str, bool]:
        variable = looked_up(reference, self.environment)
        chained = setting.key.startswith(_CHAINS)
        if variable is None or (chained and variable[0] != variable[0].upper()):
            return f"${{{reference}}}", False
        name, value = variable
        if value is not None:
            return value, is_secret(name)
        if is_secret(setting.key):
            raise Unresolved(f"environment variable {name} is not set; set it")
        if not chained:
            report.unset[setting.key] = name
            report.notice(setting, f"${{{reference}}} is text: environment variable {name} is not set")
        return f"${{{reference}}}", False

    def _variable(self, reference: str) -> tuple[str, bool]:
        variable = looked_up(reference, self.environment)
        if variable is None:
            raise Unresolved(f"names nothing; write {_FORMS}")
        name, value = variable
        if value is None:
            raise Unresolved(f"environment variable {name} is not set; set it")
        return value, is_secret(name)

    def _of_directory(self, path: str, name: str) -> str:
        if not path or not name:
            raise Unresolved("names no directory or no file; write ${directory:path:name}")
        return self._text(Path(path) / name).strip()

    def _of_file(self, path: str, key: str) -> str:
        if not path or not key:
            raise Unresolved("names no file or no key; write ${file:path:key}")
        values = {setting.key: setting.value for setting in properties.read(self._text(path), Report(path))}
        if key not in values:
            raise Unresolved(f"file {path} has no key {key!r}; it has {', '.join(sorted(values)) or 'none'}")
        return values[key]

    def _text(self, path: str | Path) -> str:
        try:
            return (self.base / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise Unresolved(f"file {path} cannot be read: {why}") from None

    def _of_secret(self, name: str, key: str, ask: Callable[[str], str]) -> str:
        if not name:
            raise Unresolved("names no secret; write ${secrets:name}, or ${secrets:name:key} for a field of it")
        try:
            text = ask(name)
        except Unresolved as error:
            if "/" not in name or not key:
                raise
            hint = "where it is Strimzi's Kubernetes secret NAMESPACE/NAME, mount it and write ${directory:path:name}"
            raise Unresolved(f"{error}; {hint}, or give it as a variable, ${{env:NAME}}") from None
        if not key:
            return text
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise Unresolved(f"secret {name} is no JSON object, so it has no field {key!r}; write ${{secrets:{name}}}")
        if key not in fields:
            raise Unresolved(f"secret {name} has no field {key!r}; it has {', '.join(sorted(fields))}")
        return str(fields[key])


def _native(reference: str) -> str:
    """A reference as native YAML spells it, which knows variables alone; empty for others."""
    provider, colon, rest = reference.partition(":")
    if not colon or rest.startswith("-"):
        return f"${{{reference}}}"
    return f"${{{rest.removeprefix(':')}}}" if provider.lower() in ("env", "strimzienv") else ""


class SecretsManager:
    """AWS Secrets Manager, asked once for each secret, and only when a configuration names one."""

    def __init__(self, options: Mapping[str, str] = {}) -> None:
        """`options` are those of the Java classes that read it; without them boto3's own settings count."""
        self._options = options
        self._known: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """The text of the secret `name`.

        Raises:
            Unresolved: it cannot be had.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        if name not in self._known:
            try:
                self._known[name] = self._client.get_secret_value(SecretId=name)["SecretString"]
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "an error")
                raise Unresolved(f"AWS Secrets Manager answers {code} for secret {name}") from None
            except BotoCoreError as error:
                raise Unresolved(f"AWS Secrets Manager cannot be asked for secret {name}: {error}") from None
            except KeyError:
                raise Unresolved(f"secret {name} is binary; a secret that is text is needed") from None
        return self._known[name]

    @cached_property
    def _client(self):  # type: ignore[no-untyped-def]
        import boto3

        return boto3.client(
            "secretsmanager",
            region_name=self._option("aws.region", "region"),
            endpoint_url=self._option("aws.endpoint.override", "aws.endpoint", "endpoint"),
            aws_access_key_id=self._option("aws.access.key", "aws.access.key.id", "access.key"),
            aws_secret_access_key=self._option("aws.secret.key", "aws.secret.access.key", "secret.key"),
        )

    def _option(self, *names: str) -> str | None:
        return next((self._options[name] for name in names if self._options.get(name)), None)
