"""When a sink's files are closed, how long a record waits for one, and when an hour is expected to be complete."""

from typing import Annotated, Literal

from s3lake.sink.model import ConfigModel, Duration, Size, at_least
from s3lake.text.quantities import format_size

_LARGEST_FILE = 80 * 10**9  # 10,000 parts of 8 MiB


class Flush(ConfigModel):
    """When a file is closed (count, size, span), and when a quiet topic is landed nevertheless (interval).

    Sizes are bytes (MB is 10^6, as connectors mean it; MiB is 2^20), durations are seconds.

    Attributes:
        count: records a file; None for any number.
        size: of a file as it is stored.
        interval: the longest wait of a record in the current hour.
        span: the times of a file are less than that apart: of the records, or of the field that `layout.time` reads;
            None for any.
        merge: one commit replaces an hour's small ones, once all of the hour is landed.
    """

    count: Annotated[int, at_least(1)] | None = None
    size: Annotated[Size, at_least(1, _LARGEST_FILE, format_size)] = 2**27
    interval: Annotated[Duration, at_least(0)] = 300.0
    span: Annotated[Duration, at_least(0.001)] | None = None
    merge: bool = True


class Sealed(ConfigModel):
    """The expectations of an hour that is over.

    Attributes:
        within: how long after its end an hour should be sealed, in seconds; the check `sealed_in_time` reports it.
        marker: an object in the hour's directory once it is sealed: an empty `_SUCCESS`, or `_objects.json`, the list
            of the hour's objects.
    """

    within: Annotated[Duration, at_least(1)] = 900.0
    marker: Literal["none", "success", "objects"] = "none"
