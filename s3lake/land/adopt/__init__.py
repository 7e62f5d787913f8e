"""Adopt: continue in a bucket where a connector stopped, without a gap and without a duplicate.

One authority decides where each topic-partition continues: the lock of a Lenses connector, else the consumer group.
Everything else that was found can only contradict it; then the user decides.
"""

from s3lake.land.adopt.adoption import Adopted, Evidence, Start, adopt_topic, first_tile, format_evidence
from s3lake.land.adopt.group_offsets import GroupOffsets, KafkaGroups

__all__ = [
    "Adopted",
    "Evidence",
    "GroupOffsets",
    "KafkaGroups",
    "Start",
    "adopt_topic",
    "first_tile",
    "format_evidence",
]
