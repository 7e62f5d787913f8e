"""Metrics: how far every sink is, for Prometheus. Looks at offsets and at the newest tiles, never at messages."""

from s3lake.land.metrics.families import FAMILIES
from s3lake.land.metrics.scrape import Scrape

__all__ = ["FAMILIES", "Scrape"]
