"""When a sink's files are closed, and how long a record waits for one."""

from pydantic import field_serializer, field_validator

from s3lake.sink.part import Part, at_least
from s3lake.text.quantities import duration_text, seconds_of, size_of, size_text

_LARGEST_FILE = 80 * 10**9  # 10,000 parts of 8 MiB


class Flush(Part):
    """When a file is closed (count, size, span) and when a quiet topic is landed all the same (interval).

    Sizes are bytes (MB is 10^6, as connectors mean it; MiB is 2^20), durations are seconds.

    Attributes:
        count: records a file; None for any number.
        size: of a file as it is stored.
        interval: the longest wait of a record in the open hour.
        span: the times of a file lie less than that apart: of the records, or of the field that `layout.time` reads;
            None for any.
        merge: one commit takes the place of an hour's small ones, once all of it is landed.
    """

    count: int | None = None
    size: int = 2**27
    interval: float = 300.0
    span: float | None = None
    merge: bool = True

    _bytes = field_validator("size", mode="before")(size_of)
    _seconds = field_validator("interval", "span", mode="before")(seconds_of)
    _some = field_validator("count", "size")(at_least(1))
    _forward = field_validator("interval")(at_least(0))
    _some_time = field_validator("span")(at_least(0.001))
    _size_shown = field_serializer("size")(size_text)
    _interval_shown = field_serializer("interval", "span", when_used="unless-none")(duration_text)

    @field_validator("size")
    @classmethod
    def _uploadable(cls, value: int) -> int:
        if value > _LARGEST_FILE:
            raise ValueError(f"{size_text(value)} is out of range: a file can be at most {size_text(_LARGEST_FILE)}")
        return value
