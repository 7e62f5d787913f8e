"""Adopt: go on in a bucket where a connector stopped, with no gap and no duplicate.

`claims.decide` says where each topic-partition goes on; `adopt` looks, finishes what the connector left pending and
writes the tile that begins there; a dry run only looks.
"""

from s3lake.land.adopt.adoption import Adopted, Adoption, adopt, first_tile
from s3lake.land.adopt.claims import Start, table
from s3lake.land.adopt.group import Group, KafkaGroups
from s3lake.land.adopt.names import LensesNames, naming_of

__all__ = [
    "Adopted",
    "Adoption",
    "Group",
    "KafkaGroups",
    "LensesNames",
    "Start",
    "adopt",
    "first_tile",
    "naming_of",
    "table",
]
