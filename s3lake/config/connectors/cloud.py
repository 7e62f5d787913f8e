"""Confluent Cloud's `S3_SINK`: the keys of its managed connector, as those of the connector that it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from s3lake.config.keys import read_variable
from s3lake.config.report import Report, Setting
from s3lake.text.options import did_you_mean

CLASS = "S3_SINK"
REGISTRY = "S3LAKE_REGISTRY_URL"
"""Environment variable: the Schema Registry of Confluent Cloud."""
_CLASS = "io.confluent.connect.s3.S3SinkConnector"
_FORMAT = "io.confluent.connect.s3.format"
_WRITTEN = {
    "AVRO": f"{_FORMAT}.avro.AvroFormat",
    "JSON": f"{_FORMAT}.json.JsonFormat",
    "BYTES": f"{_FORMAT}.bytearray.ByteArrayFormat",
    "PARQUET": f"{_FORMAT}.parquet.ParquetFormat",
}
_READ = {
    "AVRO": "io.confluent.connect.avro.AvroConverter",
    "JSON": "org.apache.kafka.connect.json.JsonConverter",
    "JSON_SR": "io.confluent.connect.json.JsonSchemaConverter",
    "PROTOBUF": "io.confluent.connect.protobuf.ProtobufConverter",
    "STRING": "org.apache.kafka.connect.storage.StringConverter",
    "BYTES": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
_WITH_REGISTRY = ("AVRO", "JSON_SR", "PROTOBUF")
_INPUTS = {"input.data.format": "value", "input.key.format": "key"}
_WORDS = {
    "output.data.format": ("format.class", _WRITTEN),
    "output.keys.format": ("keys.format.class", _WRITTEN),
    "output.headers.format": ("headers.format.class", _WRITTEN),
    "input.data.format": ("value.converter", _READ),
    "input.key.format": ("key.converter", _READ),
    "time.interval": ("partitioner.class", {"HOURLY": "HourlyPartitioner", "DAILY": "DailyPartitioner"}),
}
"""Keys whose words are classes of the connector that runs."""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_NO_EFFECT = {
    "authentication.method": "keys are used if they are given here, else boto3's own chain",
    "kafka.auth.mode": "kafka.api.key and kafka.api.secret are used",
    "kafka.service.account.id": "is Confluent Cloud's; write kafka.api.key and kafka.api.secret of that account",
    "kafka.region": "kafka.endpoint says where Kafka is",
    "auto.restart.on.user.error": "Dagster tries a run again by its own retry policy",
    "csfle.enabled": "what is encrypted field by field is landed as it is",
    "value.subject.name.strategy": "a record names its schema by id",
    "key.subject.name.strategy": "a record names its schema by id",
    "max.poll.interval.ms": "no consumer group is used",
    "max.poll.records": "Spark reads ranges of offsets",
}
_DEFAULTS = {
    "locale": "en",
    "timezone": "UTC",
    "flush.size": "1000",
    "partitioner.class": "HourlyPartitioner",
    "behavior.on.null.values": "ignore",
    "errors.tolerance": "all",
}
"""Defaults that differ from those of the connector that runs."""


def translate_keys(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> list[Setting]:
    """Return the settings of `S3_SINK` as those of Confluent's connector; other connectors' as they are."""
    top = next((setting for setting in settings if setting.key == "connector.class"), None)
    if top is None or top.value != CLASS:
        return list(settings)
    settings = [new for setting in settings for new in _split_format(setting, report)]
    by_key = {setting.key: setting for setting in settings}
    changed: list[Setting] = list(_registry(by_key, report, environment))
    for setting in settings:
        changed += _translate(setting, by_key, report)
    present = {setting.key for setting in changed}
    missing = {key: value for key, value in _DEFAULTS.items() if key not in present}
    return [*changed, *(replace(top, key=key, value=value, positions=()) for key, value in missing.items())]


def _split_format(setting: Setting, report: Report) -> list[Setting]:
    """Return the settings of both formats for `data.format` of older versions; any other setting as it is."""
    if setting.key != "data.format":
        return [setting]
    report.notice(setting, "is an old name: write input.data.format and output.data.format")
    return [replace(setting, key=f"{side}.data.format") for side in ("input", "output")]


def _registry(by_key: Mapping[str, Setting], report: Report, environment: Mapping[str, str]) -> Iterator[Setting]:
    """Yield where the registry of Confluent Cloud is, which its own connector knows and its file does not say."""
    url = by_key.get("schema.registry.url")
    for name, part in _INPUTS.items():
        form, key = by_key.get(name), f"{part}.converter.schema.registry.url"
        if form is not None and url is not None:
            yield replace(url, key=key)
        elif form is not None and form.value.upper() in _WITH_REGISTRY:
            if environment.get(REGISTRY):
                yield read_variable(key, REGISTRY, environment)
            else:
                report.error(form, f"{form.value} needs the registry: set {REGISTRY}, or add schema.registry.url=URL")


def _translate(setting: Setting, by_key: Mapping[str, Setting], report: Report) -> list[Setting]:
    """Return a setting as settings of the connector that runs."""
    if setting.key in _WORDS:
        key, words = _WORDS[setting.key]
        name = words.get(setting.value.upper())
        if name is None:
            near = did_you_mean(setting.value.upper(), words)
            report.error(setting, f"{setting.masked_value} is not allowed; {near}use one of: {', '.join(words)}")
        settings = [replace(setting, key=key, value=name or next(iter(words.values())), positions=())]
        if setting.key in _INPUTS and setting.value.upper() == "JSON":
            settings.append(replace(setting, key=f"{key}.schemas.enable", value="false", positions=()))
        return settings
    match setting.key:
        case "connector.class":
            return [replace(setting, value=_CLASS)]
        case "schema.context.name":
            if setting.value not in ("", "default"):
                message = "is a context of the registry; name it in the registry's address, https://HOST/contexts/NAME"
                report.error(setting, message)
        case "schema.registry.url":
            pass
        case "kafka.endpoint":
            return [replace(setting, key="bootstrap.servers", value=setting.value.rpartition("://")[2], positions=())]
        case "kafka.api.key":
            return _login(setting, by_key)
        case "kafka.api.secret":
            report.secrets.add(setting.value)
        case "compression.codec":
            parquet = "parquet" in by_key.get("output.data.format", setting).value.lower()
            return [replace(setting, key="parquet.codec" if parquet else "avro.codec")]
        case "provider.integration.id":
            ours = "s3lake.s3.role.arn names ours, else boto3's own chain is used"
            report.notice(setting, f"is a role that Confluent Cloud assumes; {ours}")
        case key if key in _NO_EFFECT:
            report.no_effect(setting, _NO_EFFECT[key])
        case _:
            return [setting]
    return []


def _login(key: Setting, by_key: Mapping[str, Setting]) -> list[Setting]:
    secret = by_key.get("kafka.api.secret")
    text = f'{_LOGIN} required username="{key.value}" password="{secret.value if secret else ""}";'
    options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": text}
    return [replace(key, key=f"consumer.override.{name}", value=value, positions=()) for name, value in options.items()]
