"""Topics that are named after a schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from s3lake.records.transform.step.record import require_topic
from s3lake.records.transform.step.record_values import Side, TransformError
from s3lake.records.transform.step.schema_group import Changed, Group


def name_by_schema(side: Side, find_topic: Callable[[str], str], group: Group) -> Changed:
    """Name the topic of all records after their schema, or as the transform sets it."""
    name = group.side(side).schema.name
    try:
        if name is None:
            raise TransformError(f"the schema of the {side} has no name")
        topic = require_topic(find_topic(name))
    except TransformError as refusal:
        return [], dict.fromkeys(group.rows.tolist(), str(refusal))
    return [replace(group, topics=[topic] * len(group))], {}
