"""Which decimals pyarrow's reader of JSON may be trusted with.

It multiplies to the column's scale without looking at overflow: 44696973661389609 as decimal(38,30) silently becomes
another number, and the text "1e-41" becomes zero. So each decimal's text is looked at first; what is not plainly safe
is left to `spelling.py`, which computes exactly and spells it with the column's own digits.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from s3lake.convert import columns as kinds
from s3lake.convert.columns import Columns
from s3lake.convert.types import Type

_DIGITS = 38
_NULL = msgspec.Raw(b"null")

Leaves = Callable[[Any], Iterator[bool]]


def are_safe(values: pa.BinaryArray, columns: Columns) -> bool:
    """Whether every decimal in these JSON objects fits its column without an overflow, or is refused by the reader."""
    probed = _probe({"struct": columns})
    if probed is None:
        return True
    decode, leaves = msgspec.json.Decoder(probed[0]).decode, probed[1]
    try:
        return all(all(leaves(decode(value))) for value in values.to_pylist())
    except msgspec.DecodeError:
        return False


def _probe(kind: Type) -> tuple[Any, Leaves] | None:
    """A type that decodes only the decimals of `kind`, as texts, and what says of each whether it is safe."""
    if isinstance(kind, str):
        digits = kinds.digits_of(kind)
        return _leaf(*digits) if digits else None
    if "struct" not in kind:
        inner = _probe(kind["list"] if "list" in kind else kind["map"])
        if inner is None or "map" in kind:
            return inner and (dict[str, Any], lambda _: iter([False]))
        element, of_element = inner
        return list[element] | None, lambda found: (safe for one in found or () for safe in of_element(one))  # type: ignore[valid-type]
    found = [(name, inner) for name, one in kind["struct"].items() if (inner := _probe(one))]
    if not found:
        return None
    members = [
        (f"f{at}", decoded, _NULL if decoded is msgspec.Raw else None) for at, (_, (decoded, _)) in enumerate(found)
    ]
    probe = msgspec.defstruct("Probe", members, rename={f"f{at}": name for at, (name, _) in enumerate(found)})
    parts = [(f"f{at}", of_part) for at, (_, (_, of_part)) in enumerate(found)]

    def leaves(value: Any) -> Iterator[bool]:
        if value is not None:
            for attribute, of_part in parts:
                yield from of_part(getattr(value, attribute))

    return probe | None, leaves


def _leaf(precision: int, scale: int) -> tuple[Any, Leaves]:
    # No exponent, and room for the column's scale behind the digits that are there.
    whole = rf"\d{{1,{precision - scale}}}" if precision > scale else "0"
    plain = re.compile(rf'"?-?{whole}(?:\.\d{{1,{_DIGITS - 1}}})?"?|null'.encode()).fullmatch
    return msgspec.Raw, lambda raw: iter([plain(bytes(raw)) is not None])
