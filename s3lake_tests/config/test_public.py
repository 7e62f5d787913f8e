"""The shapes of published configurations of connectors, with how many of 158 have each: most load as they are."""

from pathlib import Path

import pytest

from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.config.bases import load_file

FILES = Path(__file__).parent / "public"
ENVIRONMENT = {
    "S3LAKE_START": "2026-11-20T00",
    "S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092",
    "BUCKET": "acme-lake",
    "AWS_KEY": "AK",
    "AWS_SECRET": "SK",
}
LOADS = {
    "quickstart.properties": (6, "schema.generator.class: it makes schemas for Hive"),
    "quickstart-bare.json": (8, "name is missing; 'quickstart-bare', the name of the file"),
    "bare.json": (4, "s3.part.size: closes a file at that size"),
    "bare-time.json": (3, "name is missing; 'bare-time', the name of the file"),
    "bare-worker-converters.json": (
        4,
        "value.converter is missing; JsonConverter with schemas.enable=false is guessed",
    ),
    "msk-parquet.json": (2, "AvroConverter has no option 'schemas.enable'"),
    "posted.json": (4, ""),
    "posted-avro.json": (3, ""),
    "answered.json": (1, "tasks: is what Connect's REST API answers"),
    "strimzi.yaml": (2, "value.converter is missing"),
    "terraform-plan.json": (2, ""),
    "schemas-of-string.json": (4, "StringConverter has no option 'schemas.enable'"),
    "registry-of-json.json": (2, "JsonConverter has no option 'schema.registry.url'"),
    "licence.json": (2, "confluent.license: unknown key: nothing reads it here"),
    "reporter.json": (2, "reporter.bootstrap.servers: unknown key: nothing reads it here"),
    "plugin-version.json": (1, "connector.plugin.version: s3lake has no plugins"),
    "producer-override.json": (1, "producer.override.compression.type: only dead letters"),
    "foreign-keys.json": (3, "hive.integration: unknown key: nothing reads it here"),
    "producers-key.json": (3, "compression.type: unknown key: nothing reads it here"),
    "twice.properties": (1, "flush.size: is given again in line 14; that one counts"),
    "path-without-time.json": (4, "path.format: is read by nothing without partitioner.class=TimeBasedPartitioner"),
    "router.json": (1, ""),
    "tombstone-handler.json": (1, ""),
    "insert-field.json": (2, ""),
    "shell-variables.json": (6, ""),
    "minio.json": (4, ""),
    "proxy.json": (4, "s3.proxy.url: requests to S3 go through it"),
    "proxy-as-endpoint.json": (5, "if it is S3's own address, write it as the endpoint instead"),
    "provider-keys.json": (3, ""),
    "provider-role.json": (3, "s3.credentials.provider.class: is not run: boto3 takes its options"),
    "provider-chain.json": (3, "boto3's own chain is used"),
    "encrypted.json": (2, ""),
    "tagged.json": (1, ""),
    "dlq-without-tolerance.json": (2, "nothing goes there without errors.tolerance=all"),
    "protobuf.json": (1, "s3.part.size: closes a file at that size"),
    "dlq.json": (2, ""),
    "unclosed-quote.json": (1, "path.format: a quote is not closed"),
    "rotate.json": (1, ""),
    "regex-field.json": (2, ""),
    "bytes.json": (1, ""),
    "cloud.json": (7, "authentication.method: keys are used"),
    "aiven.json": (2, "aws.s3.prefix: is an old way to name files"),
    "aiven-leading-slash.json": (6, "file.name.template: is rendered as it is"),
    "aiven-role.json": (2, "StringConverter has no option 'schemas.enable'"),
    "lenses-old.properties": (3, "WITH_FLUSH_COUNT is a clause of Lenses 4 and 5"),
    "fields-and-time.json": (2, "partitioner.class: is taken for the community's"),
    "lenses.properties": (2, "schema.enable: unknown key: nothing reads it here"),
    "typo-endpoint.json": (3, "s3.endpoint: unknown key: nothing reads it here; did you mean store.url?"),
    "typo-storage-url.json": (2, "did you mean store.url?"),
    "typo-key.json": (1, "did you mean rotate.schedule.interval.ms?"),
}
REFUSED = {
    "no-bucket.json": (4, "s3.bucket.name is missing"),
    "placeholder-bucket.json": (4, "'<your-bucket>' is not allowed"),
    "joda.json": (3, "m is the minute, and there is no hour; write M for the month"),
    "codec-typo.json": (1, "'anappy' is not allowed; did you mean snappy?"),
    "string-format.json": (2, "StringFormat' is not known"),
    "no-flush-size.json": (1, "flush.size is missing"),
    "field-of-bytes.json": (2, "needs a field of the value, which converter.value bytes does not give"),
    "provider-own-class.json": (2, "is a Java class, which cannot run here"),
    "own-transform.json": (1, "is not a transform of s3lake"),
    "glue.json": (1, "AWSKafka"),
}


def test_every_shape_is_in_one_of_the_tables() -> None:
    assert {path.name for path in FILES.iterdir()} == LOADS.keys() | REFUSED.keys()
    assert len(LOADS) + len(REFUSED) >= 40


@pytest.mark.parametrize("name", LOADS)
def test_a_public_configuration_loads_with_the_expected_notice(name: str) -> None:
    loaded = load_file(FILES / name, ENVIRONMENT)
    assert LOADS[name][1] in bases.remarks_text(loaded)
    assert [sink.bucket for sink in loaded.config.sinks] == ["acme-lake"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_public_configuration_is_refused_for_this_reason_alone(name: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_file(FILES / name, ENVIRONMENT)
    (line,) = str(error.value).split("\n")
    assert REFUSED[name][1] in line


def test_at_least_129_published_configurations_load_unchanged() -> None:
    loads, refused = (sum(share for share, _ in table.values()) for table in (LOADS, REFUSED))
    assert loads + refused == 158
    assert loads >= 129
