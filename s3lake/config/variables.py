"""Values from elsewhere: `${provider:…}`, as Kafka Connect has them, and `${NAME}`, as a shell replaces them.

`${env:NAME}` is a variable, `${file:path:key}` a key of a properties file, `${directory:path:name}` a file's text.
`${secrets:name}` is a secret of AWS Secrets Manager, `${secrets:name:key}` one field of a secret that is a JSON object,
`${vault:mount/path:key}` a field of a secret of Vault. A worker's `config.providers` may give them other names.

To Kafka Connect `${NAME}` is text, and so it is here (`${topic}` of a router, `${n}` of an expression) unless there is
such a variable, or a default, `${NAME:-default}`. In a transform only names in upper case are variables. A secret is
never `${NAME}` itself: there the variable has to be set. `$${` is a plain `${`. An empty variable counts as not set if
there is a default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from s3lake.config.report import Reference, Report, Setting
from s3lake.config.syntax import properties_file
from s3lake.text.masking import find_logins, is_secret, mask_secrets

PROVIDERS = "config.providers"
"""The beginning of a worker's keys that declare providers of values."""
_PATIENCE_S = 30
_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_FORMS = "${env:NAME}, ${file:path:key}, ${directory:path:name}, ${secrets:name:key} or ${vault:path:key}"
_ARN = 7  # parts of a secret's ARN, which has colons of its own
_CHAINS = ("transforms.", "predicates.")
_ACCESS_KEY = re.compile(r"access[._-]?key", re.IGNORECASE)
_SOURCES = {
    "env": ("env", "strimzienv", "EnvVarConfigProvider", "ENVSecretProvider"),
    "file": ("file", "FileConfigProvider"),
    "directory": ("dir", "directory", "DirectoryConfigProvider"),
    "secrets": ("secrets", "secretsmanager", "aws", "SecretsManagerConfigProvider", "AWSSecretProvider"),
    "vault": ("vault", "VaultConfigProvider", "VaultSecretProvider"),
}
"""The names and classes of providers by what they read: Kafka's, Strimzi's, AWS', Lenses' and Confluent's."""
_SOURCE_OF = {name.lower(): source for source, names in _SOURCES.items() for name in names}


class UnresolvedReferenceError(ValueError):
    """A reference leads nowhere; the message has the reason, and never quotes a value."""


class Substituted(NamedTuple):
    """A text whose references are replaced; `reference` is None if there were none."""

    value: str
    reference: Reference | None
    positions: Sequence[tuple[int, int]]


def substitute(
    text: str,
    look_up: Callable[[str], tuple[str, str, bool]],
    positions: Sequence[tuple[int, int]] = (),
    *,
    secret: bool = False,
) -> Substituted:
    """Replace the references of a text, of which `positions` are line and column of each character.

    `look_up` returns the value of what is between the braces, how native YAML writes it, and whether it is secret.
    """
    value, written, end = "", "", 0
    places: list[tuple[int, int]] = []
    named_secret, native = False, True
    for match in _REFERENCE.finditer(text):
        plain = text[end : match.start()]
        content, native_reference, hidden = ("${", "$${", False) if match[1] is None else look_up(match[1])
        value += plain + content
        written += plain.replace("${", "$${") + native_reference
        places += [*positions[end : match.start()], *list(positions[match.start() : match.start() + 1]) * len(content)]
        named_secret, native = named_secret or hidden, native and bool(native_reference)
        end = match.end()
    value, written = value + text[end:], written + text[end:].replace("${", "$${") if native else ""
    reference = None
    if named_secret or value != text.replace("$${", "${"):
        reference = Reference(written, value, _REFERENCE.fullmatch(text) is not None, named_secret or secret)
    return Substituted(value, reference, [*places, *positions[end:]])


def is_malformed(text: str) -> bool:
    """True if a `${` begins something that is not a reference."""
    return "${" in _REFERENCE.sub("", text)


def look_up_variable(reference: str, environment: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Return the variable's name and its value, None if it is not set; None if the text is not a reference."""
    match = _NAME.fullmatch(reference)
    if match is None:
        return None
    name, default = match.groups()
    value = environment.get(name) or default
    return name, None if value is None and name not in environment else value or ""


@dataclass(frozen=True)
class Provider:
    """A provider of values, with its class and its options as a worker's settings have them.

    `reads` is env, file, directory, secrets or vault, or empty if s3lake cannot do what its class does.
    """

    reads: str
    type: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def declared_providers(settings: Iterable[Setting]) -> dict[str, Provider]:
    """Return the providers that a worker's settings declare, by name."""
    values = {setting.key: setting.value for setting in settings if setting.key.startswith(PROVIDERS)}
    providers = {}
    for name in filter(None, map(str.strip, values.get(PROVIDERS, "").split(","))):
        start = f"{PROVIDERS}.{name}."
        class_name, params = values.get(f"{start}class", ""), f"{start}param."
        options = {key.removeprefix(params): value for key, value in values.items() if key.startswith(params)}
        source = _SOURCE_OF.get((class_name.rpartition(".")[2] or name).lower(), "")
        providers[name] = Provider(source, class_name, options)
    return providers


@dataclass(frozen=True)
class Variables:
    """The environment, files below `base` and servers in which references are looked up.

    Attributes:
        providers: ones that a worker calls by names of its own.
        region: the region of AWS Secrets Manager, if the file names one.
        ask_servers: whether secrets of servers are read; otherwise they stay references in settings of secrets.
    """

    environment: Mapping[str, str]
    base: Path
    providers: Mapping[str, Provider] = field(default_factory=dict)
    region: str = ""
    ask_servers: bool = True
    _servers: dict[str, Any] = field(default_factory=dict, repr=False)

    def resolve(self, settings: Sequence[Setting], report: Report) -> list[Setting]:
        """Return the settings with their references replaced. Report references that lead nowhere, and keep them."""
        report.secrets |= {setting.value for setting in settings if is_secret(setting.key)}
        report.secrets.update(*(find_logins(setting.value) for setting in settings))
        return [self._resolve(setting, report) if "${" in setting.value else setting for setting in settings]

    def _resolve(self, setting: Setting, report: Report) -> Setting:
        def look_up(reference: str) -> tuple[str, str, bool]:
            text = f"${{{reference}}}"
            try:
                value, hidden = self._look_up(reference, setting, report)
            except UnresolvedReferenceError as error:
                raise UnresolvedReferenceError(f"{text}: {error}") from None
            if hidden:
                report.secrets.add(value)
            return value, _native(reference) if value != text else "" if hidden else f"${text}", hidden

        try:
            part = substitute(setting.value, look_up, setting.positions, secret=is_secret(setting.key))
        except UnresolvedReferenceError as error:
            report.error(setting, str(error))
            report.unresolved_keys.add(setting.key)
            return setting
        if is_secret(setting.key):
            report.secrets.add(part.value)
        report.secrets |= find_logins(part.value)
        secret, reference = part.reference is not None and part.reference.secret, part.reference
        return replace(setting, value=part.value, positions=part.positions, secret=secret, reference=reference)

    def _look_up(self, reference: str, setting: Setting, report: Report) -> tuple[str, bool]:
        """Return the value of a reference, and whether it is secret."""
        name, colon, rest = reference.partition(":")
        if not colon or rest.startswith("-"):
            return self._of_shell(reference, setting, report)
        provider = self.providers.get(name) or Provider(_SOURCE_OF.get(name.lower(), ""))
        path, _, key = rest.rpartition(":")
        match provider.reads:
            case "env":
                variable = look_up_variable(rest.removeprefix(":"), self.environment)
                if variable is None:
                    raise UnresolvedReferenceError(f"names nothing; write {_FORMS}")
                if variable[1] is None:
                    raise UnresolvedReferenceError(f"environment variable {variable[0]} is not set; set it")
                return variable[1], is_secret(variable[0])
            case "file":
                return self._of_file(path, key), True
            case "directory":
                if not path or not key:
                    raise UnresolvedReferenceError("names no directory or no file; write ${directory:path:name}")
                return self._read(Path(path) / key).strip(), True
            case "secrets" | "vault" if not self.ask_servers and (
                is_secret(setting.key) or _ACCESS_KEY.search(setting.key)
            ):
                return f"${{{reference}}}", True
            case "secrets":
                return self._of_secret(rest, self._server(name, provider)), True
            case "vault":
                return self._server(name, provider).read(path, key), True
        if provider.type:
            raise UnresolvedReferenceError(f"s3lake cannot run {provider.type} of provider {name!r}; write {_FORMS}")
        raise UnresolvedReferenceError(f"provider {name!r} is not known; write {_FORMS}")

    def _server(self, name: str, provider: Provider) -> Any:
        """Return what answers for a provider; each is opened once."""
        if name not in self._servers and provider.reads == "vault":
            self._servers[name] = Vault(provider.options, self.environment)
        elif name not in self._servers:
            self._servers[name] = SecretsManager({"region": self.region, **provider.options})
        return self._servers[name]

    def _of_shell(self, reference: str, setting: Setting, report: Report) -> tuple[str, bool]:
        variable = look_up_variable(reference, self.environment)
        chained = setting.key.startswith(_CHAINS)
        if variable is None or (chained and variable[0] != variable[0].upper()):
            return f"${{{reference}}}", False
        name, value = variable
        if value is not None:
            return value, is_secret(name)
        if is_secret(setting.key):
            raise UnresolvedReferenceError(f"environment variable {name} is not set; set it")
        if not chained:
            report.unset_variables[setting.key] = name
            report.notice(setting, f"${{{reference}}} is text: environment variable {name} is not set")
        return f"${{{reference}}}", False

    def _of_file(self, path: str, key: str) -> str:
        if not path or not key:
            raise UnresolvedReferenceError("names no file or no key; write ${file:path:key}")
        values = {
            setting.key: setting.value for setting in properties_file.read_settings(self._read(path), Report(path))
        }
        if key not in values:
            names = ", ".join(sorted(values)) or "none"
            raise UnresolvedReferenceError(f"file {path} has no key {key!r}; it has {names}")
        return values[key]

    def _read(self, path: str | Path) -> str:
        try:
            return (self.base / path).read_text("utf-8")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "its name is not a path, or it is not UTF-8"
            raise UnresolvedReferenceError(f"file {path} cannot be read: {why}") from None

    def _of_secret(self, reference: str, server: SecretsManager) -> str:
        parts = reference.split(":")
        parts = [":".join(parts[:_ARN]), *parts[_ARN:]] if parts[0] == "arn" else parts
        name, key = unquote(parts[0]), ":".join(parts[1:])
        if not name:
            raise UnresolvedReferenceError(
                "names no secret; write ${secrets:name}, or ${secrets:name:key} for a field of it"
            )
        try:
            text = server.read(name)
        except UnresolvedReferenceError as error:
            if "/" not in name or not key:
                raise
            hint = "if it is Strimzi's Kubernetes secret NAMESPACE/NAME, mount it and write ${directory:path:name}"
            raise UnresolvedReferenceError(f"{error}; {hint}, or give it as a variable, ${{env:NAME}}") from None
        if not key:
            return text
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            message = f"secret {name} is not a JSON object, so it has no field {key!r}; write ${{secrets:{name}}}"
            raise UnresolvedReferenceError(message)
        if key not in fields:
            raise UnresolvedReferenceError(f"secret {name} has no field {key!r}; it has {', '.join(sorted(fields))}")
        return str(fields[key])


def _native(reference: str) -> str:
    """Return a reference as native YAML writes it, which knows variables alone; empty for others."""
    provider, colon, rest = reference.partition(":")
    if not colon or rest.startswith("-"):
        return f"${{{reference}}}"
    return f"${{{rest.removeprefix(':')}}}" if _SOURCE_OF.get(provider.lower()) == "env" else ""


# Secrets that servers keep: AWS Secrets Manager, and Vault or OpenBao, by a token


def _option(options: Mapping[str, str], *names: str) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)


class SecretsManager:
    """AWS Secrets Manager, asked once for each secret, and only if a configuration names one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Keep the options of the Java classes that read it; without them boto3's own settings count."""
        self.region = _option(options, "aws.region", "region")
        self._options = options
        self._texts: dict[str, str] = {}

    def read(self, name: str) -> str:
        """Return the text of a secret. Raises UnresolvedReferenceError."""
        from botocore.exceptions import BotoCoreError, ClientError

        if name not in self._texts:
            try:
                self._texts[name] = self.client.get_secret_value(SecretId=name)["SecretString"]
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "an error")
                raise UnresolvedReferenceError(f"AWS Secrets Manager answers {code} for secret {name}") from None
            except KeyError:
                raise UnresolvedReferenceError(f"secret {name} is binary; a secret that is text is needed") from None
            # Of files with tokens and programs that print credentials, too: variables and profiles of AWS name them.
            except (BotoCoreError, OSError, ValueError) as error:
                message = mask_secrets(
                    str(error), [text for option, text in self._options.items() if is_secret(option)]
                )
                raise UnresolvedReferenceError(
                    f"AWS Secrets Manager does not answer for secret {name}: {message}"
                ) from None
        return self._texts[name]

    @cached_property
    def client(self) -> Any:
        """The client that asks."""
        import boto3

        return boto3.client(
            "secretsmanager",
            region_name=self.region,
            endpoint_url=_option(self._options, "aws.endpoint.override", "aws.endpoint", "endpoint"),
            aws_access_key_id=_option(self._options, "aws.access.key", "aws.access.key.id", "access.key"),
            aws_secret_access_key=_option(self._options, "aws.secret.key", "aws.secret.access.key", "secret.key"),
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
        """Return a field of the secret at `path`, which begins with the mount. Raises UnresolvedReferenceError."""
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
        for name, value in (("VAULT_ADDR", self._address), ("VAULT_TOKEN", self._token)):
            if not value:
                raise UnresolvedReferenceError(f"{name} is not set; set VAULT_ADDR, and VAULT_TOKEN to one that reads")
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
                f"Vault does not answer: {type(error).__name__}; correct VAULT_ADDR"
            ) from None
