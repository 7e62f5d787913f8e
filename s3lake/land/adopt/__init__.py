"""Adopt: go on in a bucket where a connector stopped, with no gap and no duplicate.

`evidence` looks, and changes nothing; `decide` says where each topic-partition goes on; `adopt` finishes what the
connector left pending and writes the tile that begins there.
"""

from s3lake.land.adopt.adoption import Adopted, Adoption, adopt, evidence
from s3lake.land.adopt.claims import SOURCES, Claim, Evidence, Source, Start, decide, table
from s3lake.land.adopt.group import Group, Groups, KafkaGroups
from s3lake.land.adopt.names import LensesNames, Naming, TemplateNames, naming_of

__all__ = [
    "SOURCES",
    "Adopted",
    "Adoption",
    "Claim",
    "Evidence",
    "Group",
    "Groups",
    "KafkaGroups",
    "LensesNames",
    "Naming",
    "Source",
    "Start",
    "TemplateNames",
    "adopt",
    "decide",
    "evidence",
    "naming_of",
    "table",
]
