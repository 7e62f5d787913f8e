"""Confluent Cloud's `S3_SINK`: the keys of its managed connector, as keys of the connector that it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from s3lake.config.connector_keys import read_variable
from s3lake.config.report import Report, Setting
from s3lake.text.option_values import suggest

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
_FORMER = "data.format"
"""The key of older releases for `input.data.format` and `output.data.format`."""
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
_DURATION_MS = {"HOURLY": "3600000", "DAILY": "86400000"}
_CODECS = {
    "AVRO": "avro.codec",
    "PARQUET": "parquet.codec",
    "JSON": "s3.compression.type",
    "BYTES": "s3.compression.type",
}
"""By the format that is written, the key of the connector that runs for `compression.codec`."""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_NO_EFFECT = {
    "authentication.method": "keys are used if they are given here, else boto3's own chain",
    "kafka.auth.mode": "kafka.api.key and kafka.api.secret are used",
    "kafka.service.account.id": "is Confluent Cloud's; write kafka.api.key and kafka.api.secret of that account",
    "kafka.region": "kafka.endpoint is the address of Kafka",
    "auto.restart.on.user.error": "Dagster tries a run again by its own retry policy",
    "csfle.enabled": "what is encrypted field by field is landed as it is",
    "value.subject.name.strategy": "a record names its schema by id",
    "key.subject.name.strategy": "a record names its schema by id",
    "max.poll.interval.ms": "no consumer group is used",
    "max.poll.records": "Spark reads ranges of offsets",
}
_ID = "${connector}"
_DEFAULTS = {
    "key.converter": _READ["BYTES"],
    "locale": "en",
    "timezone": "UTC",
    "flush.size": "1000",
    "partitioner.class": "HourlyPartitioner",
    "behavior.on.null.values": "ignore",
    "errors.tolerance": "all",
}
"""Defaults that differ from the defaults of the connector that runs."""


def translate_keys(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> list[Setting]:
    """Return the settings of `S3_SINK` as settings of Confluent's connector; other connectors' as they are."""
    top = next((setting for setting in settings if setting.key == "connector.class"), None)
    if top is None or top.value != CLASS:
        return list(settings)
    plain = {setting.key: setting for setting in settings}
    plain["connector.class"] = replace(top, value=_CLASS)
    _split_format(plain, top, report)
    changed = [*_put_registry(plain, report, environment), *_put_login(plain), *_put_time(plain, top, report)]
    for key, setting in plain.items():
        changed += _translate(key, setting, plain, report)
    present = {setting.key for setting in changed}
    missing = {key: value for key, value in _DEFAULTS.items() if key not in present}
    return [*changed, *(replace(top, key=key, value=value, positions=()) for key, value in missing.items())]


def _split_format(plain: dict[str, Setting], top: Setting, report: Report) -> None:
    """Put the one format of older releases as what is read and what is written; require one."""
    former = plain.get(_FORMER)
    present = [key for key in ("input.data.format", "output.data.format") if key in plain]
    if former is not None and present:
        report.error(former, f"is the old name of {present[0]}, which is given too; take it out")
    elif former is not None:
        report.notice(former, "is an old name: write input.data.format and output.data.format")
        plain |= {key: replace(former, key=key) for key in ("input.data.format", "output.data.format")}
    elif "output.data.format" not in plain:
        report.error(top, "output.data.format is missing; add it, for example output.data.format=JSON")
        plain["output.data.format"] = replace(top, key="output.data.format", value="JSON", positions=())
    plain.pop(_FORMER, None)


def _put_registry(plain: dict[str, Setting], report: Report, environment: Mapping[str, str]) -> Iterator[Setting]:
    """Yield where the registry of Confluent Cloud is, which its own connector knows and its file does not contain."""
    url = plain.pop("schema.registry.url", None)
    for name, part in _INPUTS.items():
        form, key = plain.get(name), f"{part}.converter.schema.registry.url"
        if form is not None and url is not None:
            yield replace(url, key=key)
        elif form is not None and form.value.upper() in _WITH_REGISTRY:
            if environment.get(REGISTRY):
                yield read_variable(key, REGISTRY, environment)
            else:
                report.error(form, f"{form.value} needs the registry: set {REGISTRY}, or add schema.registry.url=URL")


def _put_time(plain: dict[str, Setting], top: Setting, report: Report) -> Iterator[Setting]:
    """Yield the settings for directories by a pattern, and by a field of the value; others ask for it by name.

    Source: Confluent Cloud's page of the connector, by which a directory is `topics.dir/topic/path.format`.
    """
    if plain.get("timestamp.field", top).value not in ("", CLASS) and "timestamp.extractor" not in plain:
        yield replace(plain["timestamp.field"], key="timestamp.extractor", value="RecordField", positions=())
    if "path.format" in plain and "partitioner.class" not in plain:
        interval = plain.pop("time.interval", replace(top, key="time.interval", value="HOURLY", positions=()))
        duration = _DURATION_MS.get(interval.value.upper())
        if duration is None:
            report.error(
                interval, f"{interval.masked_value} is not allowed; {suggest(interval.value.upper(), _DURATION_MS)}"
            )
        yield replace(plain["path.format"], key="partitioner.class", value="TimeBasedPartitioner", positions=())
        yield replace(interval, key="partition.duration.ms", value=duration or _DURATION_MS["HOURLY"], positions=())


def _translate_codec(setting: Setting, written: Setting, report: Report) -> Setting:
    """Return `compression.codec`, such as `JSON - gzip`, as the key that sets the codec of what is written."""
    form, _, codec = setting.value.rpartition(" - ")
    if form.strip() and form.strip().upper() != written.value.upper():
        message = (
            f"is of another format than output.data.format={written.value}; write {written.value} - {codec.strip()}"
        )
        report.error(setting, f"{setting.masked_value} {message}")
    key = _CODECS.get(written.value.upper(), "avro.codec")
    return replace(setting, key=key, value=codec.strip().lower(), positions=())


def _put_login(plain: dict[str, Setting]) -> Iterator[Setting]:
    """Yield the address of Kafka, and how its clients log in."""
    key, secret = plain.pop("kafka.api.key", None), plain.pop("kafka.api.secret", None)
    if (address := plain.pop("kafka.endpoint", None)) is not None:
        yield replace(address, key="bootstrap.servers", value=address.value.rpartition("://")[2], positions=())
    if key is not None:
        text = f'{_LOGIN} required username="{key.value}" password="{secret.value if secret else ""}";'
        options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": text}
        for name, value in options.items():
            yield replace(key, key=f"consumer.override.{name}", value=value, positions=())


def _translate(key: str, setting: Setting, plain: Mapping[str, Setting], report: Report) -> Iterator[Setting]:
    """Yield a setting as settings of the connector that runs."""
    if key in _WORDS:
        new, words = _WORDS[key]
        name = words.get(setting.value.upper())
        if name is None:
            report.error(setting, f"{setting.masked_value} is not allowed; {suggest(setting.value.upper(), words)}")
        yield replace(setting, key=new, value=name or next(iter(words.values())), positions=())
        if key in _INPUTS and setting.value.upper() == "JSON":
            yield replace(setting, key=f"{new}.schemas.enable", value="false", positions=())
    elif key == "schema.context.name":
        if setting.value not in ("", "default"):
            message = "is a context of the registry; name it in the registry's address, https://HOST/contexts/NAME"
            report.error(setting, message)
    elif key == "compression.codec":
        if setting.value:
            yield _translate_codec(setting, plain["output.data.format"], report)
    elif key == "provider.integration.id":
        ours = "s3lake.s3.role.arn names ours, else boto3's own chain is used"
        report.notice(setting, f"is a role that Confluent Cloud assumes; {ours}")
    elif key == "errors.deadletterqueue.topic.name" and _ID in setting.value:
        reason = f"{_ID} is the connector's id, which only Confluent Cloud knows"
        report.error(setting, f"{setting.masked_value}: {reason}; write the topic's name, for example dlq-lcc-abc123")
    elif key in _NO_EFFECT:
        report.no_effect(setting, _NO_EFFECT[key])
    else:
        yield setting
