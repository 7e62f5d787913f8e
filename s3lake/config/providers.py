"""Providers of secrets that a Kafka Connect worker names: `config.providers`, their classes and their options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from s3lake.config.setting import Setting

PREFIX = "config.providers"
_USUAL = {
    "env": "env",
    "strimzienv": "env",
    "file": "file",
    "dir": "directory",
    "directory": "directory",
    "secrets": "secrets",
    "secretsmanager": "secrets",
    "aws": "secrets",
    "vault": "vault",
}
"""What providers are usually called, where nobody says their class."""
_CLASSES = {
    "EnvVarConfigProvider": "env",
    "ENVSecretProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
    "SecretsManagerConfigProvider": "secrets",
    "AWSSecretProvider": "secrets",
    "VaultConfigProvider": "vault",
    "VaultSecretProvider": "vault",
}
"""Classes of Kafka, Strimzi, AWS, Lenses, Confluent's and the community's, by their simple names."""


@dataclass(frozen=True)
class Provider:
    """A provider by its name in references.

    Attributes:
        reads: what: env, file, directory, secrets or vault; empty where s3lake has nothing for its class.
        type: the class, as written; empty for the usual one of that name.
        options: `config.providers.NAME.param.*`.
    """

    reads: str
    type: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def usual(name: str) -> Provider:
    """The provider that is usually called so."""
    return Provider(_USUAL.get(name.lower(), ""))


def declared(settings: Iterable[Setting]) -> dict[str, Provider]:
    """Those of a worker's settings, by name."""
    values = {setting.key: setting.value for setting in settings if setting.key.startswith(PREFIX)}
    names = [name.strip() for name in values.get(PREFIX, "").split(",") if name.strip()]
    return {name: _provider(name, values) for name in names}


def _provider(name: str, values: Mapping[str, str]) -> Provider:
    start = f"{PREFIX}.{name}."
    type_name, params = values.get(f"{start}class", ""), f"{start}param."
    options = {key.removeprefix(params): value for key, value in values.items() if key.startswith(params)}
    simple = type_name.rpartition(".")[2]
    return Provider(_CLASSES.get(simple, "") if type_name else usual(name).reads, type_name, options)


def secret_options(settings: Sequence[Setting]) -> set[str]:
    """Values that providers are given, any of which may be a secret."""
    return {setting.value for setting in settings if setting.key.startswith(f"{PREFIX}.") and ".param." in setting.key}
