"""The smallest sink and the smallest configuration, with what a test adds to them."""

from typing import Any

from s3lake.config.model import Config, Kafka, Sink


def make_sink(**settings: Any) -> Sink:
    """Build the sink `events` of topic `orders` in bucket `lake`; `settings` are added to these or replace them."""
    least = {"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-01-05T00"}
    return Sink.model_validate(least | settings)


def make_config(*sinks: Sink, **settings: Any) -> Config:
    """Build a configuration of these sinks, whose Kafka does not answer."""
    return Config(kafka=Kafka(bootstrap_servers="a:1"), sinks=sinks, **settings)
