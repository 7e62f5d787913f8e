"""Elements of `partition_by`: what an output partition's directory is named after (Lenses' words and outcomes).

An element is a field of the value (`a.b.c` or `_value.a`), `_key`, `_key.a`, `_header.h`, `_topic`, `_partition` or
`_date.<pattern>`. A value field that is null or missing is `[missing]`; a missing key or header, and anything that is
no primitive, is a record error. Source: the Lenses document, PARTITIONBY, and compatibility.md, Object keys.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Literal

import msgspec

from s3lake.layout import dates

MISSING = "[missing]"
Source = Literal["value", "key", "header", "topic", "partition", "date"]


class Unplaceable(ValueError):
    """A record has no output partition; the message says why."""


@dataclass(frozen=True)
class Element:
    """One element of `partition_by`.

    Attributes:
        text: as it was configured.
        source: where its value comes from.
        path: field names, outermost first; for a header its name and then fields; for a date its pattern.
        name: what stands before `=` in the directory.
    """

    text: str
    source: Source
    path: tuple[str, ...]
    name: str


def parse(text: str) -> Element:
    """Read one element.

    Raises:
        ValueError: it is none; the message says what is allowed.
    """
    head, _, rest = text.partition(".")
    path = tuple(rest.split(".")) if rest else ()
    if not text.isprintable():
        raise ValueError(f"partition_by {text!r}: a control character cannot stand in a key")
    if head != "_date" and (not all(text.split(".")) or "/" in text or "\\" in text):
        raise ValueError(f"partition_by {text!r}: a field name is empty or holds a slash")
    match head:
        case "_topic" | "_partition":
            if path:
                raise ValueError(f"partition_by {text!r}: {head} takes no path")
            return Element(text, "topic" if head == "_topic" else "partition", (), head[1:])
        case "_date":
            if not rest:
                raise ValueError("partition_by '_date': a pattern is needed, for example _date.yyyy-MM-dd")
            if {".", ".."} & set(dates.formatter(rest)(0).split("/")):
                raise ValueError(f"partition_by {text!r}: a path step cannot stand in a key")
            return Element(text, "date", (rest,), "date")
        case "_key":
            return Element(text, "key", path, rest or "key")
        case "_header" | "_headers":
            if not path:
                raise ValueError(f"partition_by {text!r}: name the header, for example _header.region")
            return Element(text, "header", path, rest)
        case "_value":
            if not path:
                raise ValueError("partition_by '_value': name a field, for example _value.type")
            return Element(text, "value", path, rest)
        case "_offset" | "_timestamp":
            raise ValueError(
                f"partition_by {text!r}: {head} is no element; use _key, _value, _header.<name>, _topic, _partition, "
                "_date.<pattern> or a field"
            )
        case _:
            return Element(text, "value", (head, *path), text)


def text_of(value: Any, what: str) -> str:
    """A primitive as directories spell it.

    Raises:
        Unplaceable: `value` is no primitive.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value.replace("\n", "\\n")
        case int():
            return str(value)
        case float():
            return _double(value)
        case _:
            kind = "null" if value is None else "an object" if isinstance(value, dict) else "a list"
            raise Unplaceable(f"{what} is {kind}, not a primitive")


def field(value: Any, path: tuple[str, ...], what: str) -> str:
    """The field at `path` of a decoded value as text, `[missing]` where there is none."""
    found = reduce(_step, path, value)
    return MISSING if found is None else text_of(found, what)


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def _double(value: float) -> str:
    """Java's Double.toString: plain from 10^-3 to 10^7, else with E."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"


def decoded(data: bytes, what: str) -> Any:
    """JSON decoded.

    Raises:
        Unplaceable: it is no JSON, or holds a number that nothing can hold.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unplaceable(f"{what} is no JSON: {error}") from None
