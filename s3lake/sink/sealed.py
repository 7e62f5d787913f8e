"""Sealed hours: by when an hour should be, and what says in the bucket that it is."""

from typing import Literal

from pydantic import field_serializer, field_validator

from s3lake.sink.part import Part, at_least
from s3lake.text.quantities import duration_text, seconds_of


class Sealed(Part):
    """What is expected of an hour that is over.

    Attributes:
        within: how long after its end an hour should be sealed, in seconds; the check `sealed_in_time` says so.
        marker: an object in the hour's directory once it is sealed: an empty `_SUCCESS`, or `_objects.json`, the list
            of the hour's objects.
    """

    within: float = 900.0
    marker: Literal["none", "success", "objects"] = "none"

    _seconds = field_validator("within", mode="before")(seconds_of)
    _forward = field_validator("within")(at_least(1))
    _shown = field_serializer("within")(duration_text)
