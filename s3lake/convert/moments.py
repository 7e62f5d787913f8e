"""Timestamps as text, a whole batch at a time."""

import pyarrow as pa
import pyarrow.compute as pc

_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000


def instants(milliseconds: pa.Int64Array) -> pa.BinaryArray:
    """Epoch milliseconds as ISO 8601 instants, the fraction only where there is one: `1970-01-01T00:00:01.500Z`."""
    texts = pc.replace_substring_regex(_texts(milliseconds, "ms"), r"\.000$", "")
    return pc.binary_join_element_wise(texts, "Z", "").cast(pa.binary())


def seconds(milliseconds: pa.Int64Array) -> pa.BinaryArray:
    """Epoch milliseconds as RFC 3339, down to the second: `1970-01-01T00:00:01Z`."""
    whole = pc.floor(pc.divide(milliseconds.cast(pa.float64(), safe=False), 1000)).cast(pa.int64())
    return pc.binary_join_element_wise(_texts(whole, "s"), "Z", "").cast(pa.binary())


def _texts(ticks: pa.Int64Array, unit: str) -> pa.StringArray:
    ends = pc.min_max(ticks).as_py()
    in_a_second = 1000 if unit == "ms" else 1
    low, high = (end // 1000 * in_a_second for end in (_YEAR_1, _YEAR_10000))
    if ends["min"] is not None and not low <= ends["min"] <= ends["max"] < high:
        return _far_texts(ticks, unit)
    return pc.replace_substring(ticks.cast(pa.timestamp(unit)).cast(pa.string()), " ", "T")


def _far_texts(ticks: pa.Int64Array, unit: str) -> pa.StringArray:
    # Nobody's clock, but a producer may stamp a record with any number.
    import numpy as np

    texts = [None if tick is None else str(np.array(tick, f"datetime64[{unit}]")) for tick in ticks.to_pylist()]
    far = [text and (f"+{text}" if text.index("-", 1) > 4 and text[0] != "-" else text) for text in texts]
    return pa.array(far, pa.string())
