"""Settings that a connector takes from its Kafka Connect worker if its own file has none: above all the converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from s3lake.config.read import properties
from s3lake.config.report import Report, Setting, by_key, variable
from s3lake.config.variables import PROVIDERS, Variables, declared_providers
from s3lake.errors import ConfigurationError

WORKER = "S3LAKE_WORKER"
"""Environment variable: the worker's .properties."""
_IMAGE = "CONNECT_"
_PROVIDERS = f"{_IMAGE}CONFIG_PROVIDERS"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_CLIENT = ("bootstrap.servers", "consumer.")


def with_providers(own: Sequence[Setting], report: Report, references: Variables) -> Variables:
    """Variables that know the worker's providers of secrets, be they in its file, its image or beside the connector.

    Raises:
        ConfigurationError: the worker's file cannot be read.
    """
    path = references.environment.get(WORKER)
    of_file = _settings(Path(path), report) if path else []
    of_image = [
        Setting(name.removeprefix(_IMAGE).replace("_", ".").lower(), value, variable(name))
        for name, value in references.environment.items()
        if name.startswith(_PROVIDERS)
    ]
    ours = [setting for setting in (*of_image, *of_file, *own) if setting.key.startswith(PROVIDERS)]
    settings = references.resolve(ours, report)
    report.secrets |= {setting.value for setting in settings if ".param." in setting.key}  # any may be a secret
    return replace(references, providers=declared_providers(settings))


def fill_from_worker(own: Sequence[Setting], report: Report, references: Variables) -> list[Setting]:
    """Return a connector's own settings, and its worker's for what they do not set.

    A converter comes with all its options, and only where the connector names none: Kafka Connect never mixes them.

    Raises:
        ConfigurationError: the worker's file cannot be read.
    """
    path = references.environment.get(WORKER)
    of_worker = _of_file(Path(path), report, references) if path else _of_image(references.environment)
    own_keys = {setting.key for setting in own if setting.value}
    settings = list(own)
    for converter in _CONVERTERS:
        if converter not in of_worker or converter in own_keys:
            continue
        report.notice(
            of_worker[converter].place,
            f"{of_worker[converter].masked_value} is taken: the connector names no {converter}",
        )
        for setting in [setting for setting in settings if setting.key.startswith(converter)]:
            report.notice(setting, f"Kafka Connect does not read it without {converter}: the worker's options hold")
            settings.remove(setting)
        settings += [
            setting for key, setting in of_worker.items() if key == converter or key.startswith(f"{converter}.")
        ]
    if path:
        settings += [setting for key, setting in of_worker.items() if key.startswith(_CLIENT) and key not in own_keys]
    return settings


def _settings(path: Path, report: Report) -> list[Setting]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"--worker {path}: cannot be read: {error.strerror}; name a worker's file") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--worker {path}: is not UTF-8; save it as UTF-8") from None
    of_worker = Report(str(path), secrets=report.secrets)
    return list(by_key(properties.read(text, of_worker), of_worker).values())


def _of_file(path: Path, report: Report, references: Variables) -> Mapping[str, Setting]:
    settings = [setting for setting in _settings(path, report) if not setting.key.startswith(PROVIDERS)]
    resolved = replace(references, base=path.parent).resolve(settings, report)
    return {setting.key: setting for setting in resolved}


def _of_image(environment: Mapping[str, str]) -> Mapping[str, Setting]:
    """Return the worker's settings as its usual images have them: `CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE`."""
    settings = {}
    for name, value in environment.items():
        key = name.removeprefix(_IMAGE).replace("_", ".").lower()
        if name.startswith(_IMAGE) and key.startswith(_CONVERTERS) and value:
            settings[key] = Setting(key, value, variable(name))
    return settings
