"""Values that stand elsewhere: `${provider:…}`, as Kafka Connect has them, and `${NAME}`, as a shell fills them in.

`${env:NAME}` is a variable, `${file:path:key}` a key of a properties file, `${directory:path:name}` a file's text.
`${secrets:name}` is a secret of AWS Secrets Manager, `${secrets:name:key}` one field of a secret that is a JSON object.

To Kafka Connect `${NAME}` is text, and so it is here (`${topic}` of a router, `${n}` of an expression) unless there is
such a variable, or a default, `${NAME:-default}`. In a transform only names in upper case are variables. A secret is
never `${NAME}` itself: there the variable has to be set. `$${` stands for a plain `${`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from s3lake.config.environment import filled, looked_up
from s3lake.config.read import properties
from s3lake.config.setting import Report, Setting
from s3lake.text.masking import is_secret, users

_FORMS = "${env:NAME}, ${file:path:key}, ${directory:path:name} or ${secrets:name:key}"
_CHAINS = ("transforms.", "predicates.")


class Unresolved(ValueError):
    """A reference leads nowhere; the message says why, and never quotes a value."""


@dataclass(frozen=True)
class References:
    """What references are looked up in.

    Attributes:
        base: where relative paths of `${file:…}` begin.
        secret: the text of a secret of AWS Secrets Manager.
    """

    environment: Mapping[str, str]
    base: Path
    secret: Callable[[str], str]

    def resolve(self, settings: Sequence[Setting], report: Report) -> list[Setting]:
        """The settings with their references replaced; those that lead nowhere are noted, and their settings left."""
        report.secrets |= {setting.value for setting in settings if is_secret(setting.key)}
        report.secrets |= {user for setting in settings for user in users(setting.value)}
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
        return replace(setting, value=part.value, spots=part.spots, secret=part.secret, reference=reference)

    def _value(self, reference: str, setting: Setting, report: Report) -> tuple[str, bool]:
        provider, colon, rest = reference.partition(":")
        if not colon or rest.startswith("-"):
            return self._of_shell(reference, setting, report)
        match provider.lower():
            case "env" | "strimzienv":
                return self._variable(rest.removeprefix(":"))
            case "file":
                path, _, key = rest.rpartition(":")
                return self._of_file(path, key), True
            case "dir" | "directory":
                path, _, name = rest.rpartition(":")
                return self._of_directory(path, name), True
            case "secrets" | "secretsmanager":
                name, _, key = rest.partition(":")
                return self._of_secret(name, key), True
            case "vault":
                raise Unresolved(f"Vault is not asked by s3lake; write {_FORMS}")
        raise Unresolved(f"provider {provider!r} is not known; write {_FORMS}")

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
        try:
            return (self.base / path / name).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise Unresolved(f"file {Path(path) / name} cannot be read: {why}") from None

    def _of_file(self, path: str, key: str) -> str:
        if not path or not key:
            raise Unresolved("names no file or no key; write ${file:path:key}")
        try:
            text = (self.base / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise Unresolved(f"file {path} cannot be read: {why}") from None
        values = {setting.key: setting.value for setting in properties.read(text, Report(path))}
        if key not in values:
            raise Unresolved(f"file {path} has no key {key!r}; it has {', '.join(sorted(values)) or 'none'}")
        return values[key]

    def _of_secret(self, name: str, key: str) -> str:
        if not name:
            raise Unresolved("names no secret; write ${secrets:name}, or ${secrets:name:key} for a field of it")
        try:
            text = self.secret(name)
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

    def __init__(self) -> None:
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

        return boto3.client("secretsmanager")
