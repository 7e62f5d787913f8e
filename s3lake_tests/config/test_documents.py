"""What the four documents' configurations mean; `land/preview/test_connectors.py` has the keys that they state."""

import pytest

from s3lake_tests.config import bases
from s3lake_tests.config.documents import load
from s3lake_tests.config.examples import CONFIGURATIONS
from s3lake_tests.kit.tables import rows

MEANINGS = """
lenses: example =>
    bucket: lensesio, prefix: demo, topics: [demo], flush.size: 1000000, flush.interval: 30, flush.count: 5000
lenses: stored 0 => format.type: parquet, format.codec: none
lenses: stored 1 => format.type: parquet, format.codec: none
lenses: stored 2 => format.type: json, format.codec: none
lenses: stored 3 => format.type: avro, format.codec: none
lenses: stored 4 => format.type: avro, format.codec: none
lenses: credentials =>
    s3.credentials.access_key_id: AKIA, s3.credentials.secret_access_key: hush-hush, s3.region: eu-west-2
lenses: retries => errors.tolerance: all, errors.max_retries: 30, errors.retry_interval: 60, errors.log: place,
    errors.dead_letter_topic: {name: my-connector-dlq, context_headers: true, replication_factor: 3},
    s3.retries.max_attempts: 5
lenses: retries => remark: connect.s3.error.policy
lenses: retries => no remark: deadletterqueue
lenses: retries => no remark: connect.s3.max.retries
lenses: retries => no remark: retry.interval
lenses: index .indexes => index.prefix: .indexes
lenses: index custom-indexes => index.prefix: custom-indexes
lenses: index indexes/s3-connector-logs => index.prefix: indexes/s3-connector-logs
lenses: index logs/indexes => index.prefix: logs/indexes
confluent: basic => name: s3-sink, bucket: data-lake-bucket, flush.count: 10000, format.codec: snappy,
    spark.master: "local[3]"
confluent: parquet => format.type: parquet, format.codec: gzip
confluent: avro => format.type: avro, format.codec: snappy
confluent: json => format.type: json, format.codec: none
confluent: codec snappy => format.type: parquet, format.codec: snappy
confluent: codec zstd => format.type: parquet, format.codec: zstd
confluent: codec none => format.type: parquet, format.codec: none
confluent: credentials => s3.credentials.access_key_id: AKIA, s3.credentials.secret_access_key: hush-hush
confluent: role => s3.credentials: default
confluent: schedule => flush.interval: 3600
confluent: size => flush.size: 26214400
confluent: buffers => flush.size: 52428800, flush.count: 50000, flush.interval: 600, flush.span: null
confluent: schemaless => converter.key: string, converter.value: json
confluent: registry => converter.key: avro, converter.value: avro,
    converter.registry.url: "http://schema-registry:8081"
confluent: errors => errors.tolerance: all
confluent: parallelism => spark.master: "local[6]"
confluent: retries => s3.retries.max_attempts: 3, s3.retries.backoff_ms: 200
confluent: complete => topics: [events, transactions], flush.count: 50000, flush.interval: 600
aiven: console => s3.region: eu-west-1
aiven: rest => envelope.style: flat, envelope.fields: [value, key, timestamp], format.type: csv, format.codec: gzip,
    flush.interval: 60
"""


@pytest.mark.parametrize(("name", "meaning"), rows(MEANINGS))
def test_a_configuration_of_the_documents_has_the_settings_that_its_page_describes(name: str, meaning: str) -> None:
    bases.check(load(CONFIGURATIONS[name], AWS_ACCESS_KEY="AKIA", AWS_SECRET_KEY="hush-hush"), meaning)
