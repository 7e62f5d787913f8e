"""Every metric: its name, what it is and which labels it has. No label holds more than names of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Family:
    """One metric, under the name that it has in Prometheus."""

    name: str
    type: Literal["gauge", "counter"]
    help: str
    labels: tuple[str, ...]


_ROUTE = ("sink", "topic")
_HOUR = (*_ROUTE, "hour")


def _families() -> Iterator[Family]:
    def gauge(name: str, help: str, labels: tuple[str, ...] = _ROUTE) -> Family:
        return Family(f"s3lake_{name}", "gauge", help, labels)

    yield gauge("up", "Whether Kafka or S3 (part) answered: 1, or 0", (*_ROUTE, "part"))
    yield gauge("lag_records", "Offsets that Kafka has beyond what is landed, markers included")
    yield gauge("lag_seconds", "Age of the oldest record that is not landed, at least, by its timestamp; 0: none waits")
    yield gauge("last_complete_hour_timestamp_seconds", "Start of the newest hour that is complete, since the epoch")
    yield gauge(
        "last_sealed_hour_timestamp_seconds",
        "Start of the last hour such that all up to it since the sink's start are sealed, since the epoch",
    )
    yield gauge("hours_incomplete", "Hours that are over, their grace as well, and not complete")
    yield gauge("hours_unread", "Hours in the index that this process has not looked at yet")
    yield gauge("last_commit_timestamp_seconds", "When the last commit was made, since the epoch")
    yield gauge("last_commit_seconds", "How long it took, from its plan to the tile that lists it")
    yield gauge("hour_rows", "Records landed in the newest hour, or the newest complete one", _HOUR)
    yield gauge("hour_bytes", "Bytes of all its objects, as stored", _HOUR)
    yield gauge("hour_files", "Its data files", _HOUR)
    yield gauge("hour_dead_letters", "Records refused in it", _HOUR)
    yield gauge("hour_expired", "Offsets of it that Kafka expired before they were landed", _HOUR)
    yield gauge("hour_late", "Records of it that are stamped before it", _HOUR)
    yield gauge("hour_freshness_seconds", "From record timestamp to commit in it, at most", (*_HOUR, "quantile"))
    yield gauge("topics", "Topics that the sink lands", ("sink",))
    yield gauge("scrape_seconds", "How long the last look at all of it took", ())
    yield Family("s3lake_errors_total", "counter", "Looks in which Kafka or S3 (part) failed", (*_ROUTE, "part"))
    yield Family("s3lake_requests_total", "counter", "Requests to S3 by this process", ("operation",))


FAMILIES = {family.name: family for family in _families()}
