"""Values from elsewhere: `${provider:…}`, as Kafka Connect has them, and `${NAME}`, as a shell replaces them.

`${env:NAME}` is a variable, `${file:path:key}` a key of a properties file, `${directory:path:name}` a file's text.
`${secrets:name}` is a secret of AWS Secrets Manager, `${secrets:name:key}` one field of a secret that is a JSON object,
`${vault:mount/path:key}` a field of a secret of Vault. A worker's `config.providers` may give them other names.

To Kafka Connect `${NAME}` is text, and so it is here (`${topic}` of a router, `${n}` of an expression) unless there is
such a variable, or a default, `${NAME:-default}`. In a transform only names in upper case are variables. A secret is
never `${NAME}` itself: there the variable has to be set. `$${` is a plain `${`. An empty variable counts as not set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from s3lake.config.report import Reference, Report, Setting
from s3lake.config.secrets import SecretsManager, UnresolvedReferenceError, Vault
from s3lake.config.syntax import properties
from s3lake.text.masking import find_logins, is_secret

PROVIDERS = "config.providers"
"""The beginning of a worker's keys that declare providers of values."""
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


class Substituted(NamedTuple):
    """A text whose references are replaced.

    Attributes:
        value: the result.
        reference: where it came from; None if nothing was replaced.
        positions: line and column of each character.
    """

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
    """Replace the references of a text.

    Args:
        text: what a file has.
        look_up: from what is between the braces to its value, how native YAML writes it, and whether it is secret.
        positions: line and column of each character of the text.
        secret: the setting is one.
    """
    value, written, end = "", "", 0
    places: list[tuple[int, int]] = []
    named_secret, native = False, True
    for match in _REFERENCE.finditer(text):
        plain = text[end : match.start()]
        content, spelled, hidden = ("${", "$${", False) if match[1] is None else look_up(match[1])
        value += plain + content
        written += plain.replace("${", "$${") + spelled
        places += [*positions[end : match.start()], *list(positions[match.start() : match.start() + 1]) * len(content)]
        named_secret, native = named_secret or hidden, native and bool(spelled)
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
    """A provider of values.

    Attributes:
        reads: env, file, directory, secrets or vault; empty if s3lake cannot do what its class does.
        type: the class, as written; empty for the usual one of that name.
        options: `config.providers.NAME.param.*`.
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
    """The environment, files and servers in which references are looked up.

    Attributes:
        base: where relative paths of `${file:…}` begin.
        providers: those that a worker calls by names of its own.
        region: of AWS Secrets Manager, if the file names one.
        ask_servers: whether secrets of servers are read; otherwise they stay references in settings of secrets.
    """

    environment: Mapping[str, str]
    base: Path
    providers: Mapping[str, Provider] = field(default_factory=dict)
    region: str = ""
    ask_servers: bool = True
    _servers: dict[str, Any] = field(default_factory=dict, repr=False)

    def resolve(self, settings: Sequence[Setting], report: Report) -> list[Setting]:
        """Return the settings with their references replaced. Report those that lead nowhere, and keep them."""
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
                return self._of_environment(rest.removeprefix(":"))
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
            raise UnresolvedReferenceError(
                f"s3lake has nothing for {provider.type} of provider {name!r}; write {_FORMS}"
            )
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

    def _of_environment(self, reference: str) -> tuple[str, bool]:
        variable = look_up_variable(reference, self.environment)
        if variable is None:
            raise UnresolvedReferenceError(f"names nothing; write {_FORMS}")
        name, value = variable
        if value is None:
            raise UnresolvedReferenceError(f"environment variable {name} is not set; set it")
        return value, is_secret(name)

    def _of_file(self, path: str, key: str) -> str:
        if not path or not key:
            raise UnresolvedReferenceError("names no file or no key; write ${file:path:key}")
        values = {setting.key: setting.value for setting in properties.read(self._read(path), Report(path))}
        if key not in values:
            names = ", ".join(sorted(values)) or "none"
            raise UnresolvedReferenceError(f"file {path} has no key {key!r}; it has {names}")
        return values[key]

    def _read(self, path: str | Path) -> str:
        try:
            return (self.base / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
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
