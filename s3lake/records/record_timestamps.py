"""The timestamps that a source gives its records."""

from __future__ import annotations

import pyarrow as pa

NO_TIMESTAMP = -1
"""The timestamp of a record to which Kafka gives none."""


def to_epoch_ms(timestamps: pa.Array) -> pa.Int64Array:
    """Return records' timestamps in epoch milliseconds, `NO_TIMESTAMP` for none.

    Args:
        timestamps: Kafka's in milliseconds, Iggy's in microseconds, or numbers of milliseconds.
    """
    return timestamps.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
