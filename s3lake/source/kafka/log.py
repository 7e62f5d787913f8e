"""What librdkafka says beside its answers: it would write to stderr, several lines a second while brokers are away."""

import logging
from collections.abc import Mapping

from confluent_kafka import KafkaError

from s3lake.source.kafka.properties import without_secrets

_log = logging.getLogger(__name__)


class Log:
    """Takes it, without secrets; `last` is the last error.

    Args:
        settings: of the client that speaks.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.last = ""
        self._settings = settings

    def log(self, _: int, message: str, *args: object) -> None:
        """What a `logging.Logger` is called with."""
        _log.debug("%s", without_secrets(message % args, self._settings))

    def error(self, error: KafkaError) -> None:
        """What an `error_cb` is called with."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # says nothing that the one before it did not
            self.last = without_secrets(error.str(), self._settings)
