"""Catalogues of one sink, and resources under the keys that they have."""

from collections.abc import Mapping

from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Config, Kafka, Sink


def catalogue(sink: Sink, *topics: str) -> Catalogue:
    """Of a sink, with its own topics where no others are given."""
    config = Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=(sink,))
    return Catalogue(config, topics={sink.name: topics or sink.topics})


def parts(**resources: object) -> Mapping[str, object]:
    """Resources under our keys; those that are not given are never asked."""
    return {f"s3lake_{name}": resources.get(name, object()) for name in ("kafka", "s3", "spark")}
