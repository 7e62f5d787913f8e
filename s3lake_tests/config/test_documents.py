"""What the four documents' configurations mean; `land/preview/test_connectors.py` has the keys that they state."""

from typing import Any

import pytest
from pydantic import SecretStr

from s3lake.sink.errors import DeadLetterTopic
from s3lake_tests.config import bases, documents
from s3lake_tests.config.documents import load
from s3lake_tests.config.examples import CONFIGURATIONS

KEYS = {"s3.credentials.access_key_id": "AKIA", "s3.credentials.secret_access_key": SecretStr("hush-hush")}
MEANINGS: dict[str, dict[str, Any]] = {
    "lenses: example": {
        **{"bucket": "lensesio", "prefix": "demo", "topics": ("demo",)},
        **{"flush.size": 1_000_000, "flush.interval": 30, "flush.count": 5_000},
    },
    **{
        f"lenses: stored {at}": {"format.type": form, "format.codec": "none"}
        for at, (_, _, form, _) in enumerate(documents.STORED)
    },
    "lenses: credentials": {**KEYS, "s3.region": "eu-west-2"},
    "lenses: retries": {
        **{"errors.tolerance": "all", "errors.max_retries": 30, "errors.retry_interval": 60.0, "errors.log": "place"},
        "errors.dead_letter_topic": DeadLetterTopic(
            name="my-connector-dlq", context_headers=True, replication_factor=3
        ),
        "s3.retries.max_attempts": 5,
    },
    **{f"lenses: index {name}": {"index.prefix": name} for name in documents.INDEXES},
    "confluent: basic": {
        **{"name": "s3-sink", "bucket": "data-lake-bucket", "flush.count": 10_000},
        **{"format.codec": "snappy", "spark.master": "local[3]"},
    },
    "confluent: parquet": {"format.type": "parquet", "format.codec": "gzip"},
    "confluent: avro": {"format.type": "avro", "format.codec": "snappy"},
    "confluent: json": {"format.type": "json", "format.codec": "none"},
    **{
        f"confluent: codec {codec}": {"format.type": "parquet", "format.codec": codec}
        for codec in ("snappy", "zstd", "none")
    },
    "confluent: credentials": KEYS,
    "confluent: role": {"s3.credentials": "default"},
    "confluent: schedule": {"flush.interval": 3600},
    "confluent: size": {"flush.size": 26_214_400},
    "confluent: buffers": {"flush.size": 52_428_800, "flush.count": 50_000, "flush.interval": 600, "flush.span": None},
    "confluent: schemaless": {"converter.key": "string", "converter.value": "json"},
    "confluent: registry": {
        **{"converter.key": "avro", "converter.value": "avro"},
        "converter.registry.url": "http://schema-registry:8081",
    },
    "confluent: errors": {"errors.tolerance": "all"},
    "confluent: parallelism": {"spark.master": "local[6]"},
    "confluent: retries": {"s3.retries.max_attempts": 3, "s3.retries.backoff_ms": 200},
    "confluent: complete": {"topics": ("events", "transactions"), "flush.count": 50_000, "flush.interval": 600},
    "aiven: console": {"s3.region": "eu-west-1"},
    "aiven: rest": {
        **{"envelope.style": "flat", "envelope.fields": ("value", "key", "timestamp")},
        **{"format.type": "csv", "format.codec": "gzip", "flush.interval": 60},
    },
}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_configuration_of_the_documents_has_the_settings_that_its_page_describes(name: str) -> None:
    loaded = load(CONFIGURATIONS[name], AWS_ACCESS_KEY="AKIA", AWS_SECRET_KEY="hush-hush")
    assert bases.values(loaded, *MEANINGS[name]) == MEANINGS[name]


def test_lenses_retries_are_applied_and_their_policy_is_explained() -> None:
    keys = {notice.place.key for notice in bases.remarks(load(documents.RETRIES))}
    assert "connect.s3.error.policy" in keys
    assert not {key for key in keys if "deadletterqueue" in key or "retr" in key}
