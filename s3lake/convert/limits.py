"""What columns that are found in records may become."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from s3lake.encode.formats import Rule
from s3lake.schema.avro_names import illegal_name
from s3lake.schema.types import Columns, Decimal, Primitive
from s3lake.schema.unite import held, shown

HAS_LARGE = "it has integers beyond 2^53, which a column of doubles would round"
"""Why a column stays one of integers."""


@dataclass(frozen=True)
class Limits:
    """What columns may become.

    Attributes:
        rule: of the format.
        most: a record whose new fields would make more columns is refused.
        integral: path of a column that stays one of integers -> why.
    """

    rule: Rule = ""
    most: int = sys.maxsize
    integral: Mapping[str, str] = field(default_factory=dict)

    def keep_integers(self, paths: Iterable[str]) -> Limits:
        """Return limits within which these columns stay columns of integers, too."""
        return replace(self, integral={**dict.fromkeys(paths, HAS_LARGE), **self.integral})


NO_LIMITS = Limits()


def misfit(columns: Columns, rule: Rule) -> str | None:
    """Why a format cannot hold these columns, None where it can."""
    if rule == "flat":
        for name, type in columns.items():
            if not isinstance(type, Primitive | Decimal):
                return f"field {name!r} is {shown(type)}, which a row of CSV cannot hold: use another format"
    elif rule == "avro" and (path := illegal_name(held(columns))):
        return f"field {path!r} has a name that Avro forbids: letters, digits and '_', no digit first"
    return None
