"""Configurations in every dialect that is understood: native YAML, Lenses, Confluent, Aiven, Iggy."""

from s3lake.dialects.draft import Connector, Loaded
from s3lake.dialects.loading import load, loads
from s3lake.dialects.places import Notice, Place

__all__ = ["Connector", "Loaded", "Notice", "Place", "load", "loads"]
