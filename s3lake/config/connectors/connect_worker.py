"""Settings that a connector takes from its Kafka Connect worker if its own file has none: above all the converters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from s3lake.config.report import Report, Setting, by_key, variable
from s3lake.config.syntax import properties_file
from s3lake.config.variable_names import WORKER
from s3lake.config.variables import PROVIDERS, Variables, declared_providers
from s3lake.errors import ConfigurationError

_IMAGE = "CONNECT_"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_CLIENT = ("bootstrap.servers", "consumer.")


def apply_worker(own: Sequence[Setting], report: Report, references: Variables) -> tuple[list[Setting], Variables]:
    """Return a connector's settings with its worker's for what they do not set, and variables with its providers.

    A worker is a file, or else the variables of its usual images. A converter comes with all its options, and only if
    the connector names none: Kafka Connect never mixes them. A file also has Kafka's address and client.

    Raises:
        ConfigurationError: the worker's file cannot be read.
    """
    path = references.environment.get(WORKER)
    of_file = _read(Path(path), report) if path else []
    of_image = [
        Setting(name.removeprefix(_IMAGE).replace("_", ".").lower(), value, variable(name))
        for name, value in references.environment.items()
        if name.startswith(_IMAGE) and value
    ]
    declared = [setting for setting in (*of_image, *of_file, *own) if setting.key.startswith(PROVIDERS)]
    declared = references.resolve(declared, report)
    report.secrets |= {setting.value for setting in declared if ".param." in setting.key}  # any may be a secret
    references = replace(references, providers=declared_providers(declared))
    settings = [setting for setting in own if not setting.key.startswith(PROVIDERS)]
    if path:
        plain = [setting for setting in of_file if not setting.key.startswith(PROVIDERS)]
        of_worker = replace(references, base=Path(path).parent).resolve(plain, report)
    else:
        of_worker = of_image
    own_keys = {setting.key for setting in settings if setting.value}
    for converter in _CONVERTERS:
        taken = [one for one in of_worker if one.key == converter or one.key.startswith(f"{converter}.")]
        named = next((setting for setting in taken if setting.key == converter), None)
        if named is None or converter in own_keys:
            continue
        report.notice(named.place, f"{named.masked_value} is taken: the connector names no {converter}")
        for setting in [setting for setting in settings if setting.key.startswith(converter)]:
            report.notice(setting, f"Kafka Connect does not read it without {converter}: the worker's options hold")
            settings.remove(setting)
        settings += taken
    if path:
        settings += [one for one in of_worker if one.key.startswith(_CLIENT) and one.key not in own_keys]
    return settings, references


def _read(path: Path, report: Report) -> list[Setting]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"--worker {path}: cannot be read: {error.strerror}; name a worker's file") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--worker {path}: is not UTF-8; save it as UTF-8") from None
    of_worker = Report(str(path), secrets=report.secrets)
    return list(by_key(properties_file.read_settings(text, of_worker), of_worker).values())
