"""The schemas that came with some rows, as numbers: batches have one or two, and rows many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3lake.convert.json_text import make_encoder
from s3lake.schema.connect import Schema

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schemas:
    """The schemas of some rows.

    Attributes:
        distinct: no two of them are equal.
        codes: which of them each row has; -1 where none came with it.
        arrays: for each schema, columns of its rows; empty if only texts are read.
        at: where in its schema's array each row is.
    """

    distinct: tuple[Schema, ...]
    codes: Numbers
    arrays: tuple[pa.Array, ...]
    at: Numbers

    def take(self, rows: pa.Int64Array) -> Schemas:
        """Those of some of the rows."""
        chosen = rows.to_numpy()
        return Schemas(self.distinct, self.codes[chosen], self.arrays, self.at[chosen])

    @property
    def only(self) -> Schema | None:
        """The schema of all rows, which have the same."""
        return self.distinct[self.codes[0]] if len(self.codes) and self.codes[0] >= 0 else None

    def names(self) -> str | pa.StringArray | None:
        """Return the one name of all rows' schemas (None if it has none), or the name of each row's if they differ."""
        names = [schema.name for schema in self.distinct]
        present = {names[code] if code >= 0 else None for code in np.unique(self.codes).tolist()}
        if len(present) == 1:
            return present.pop()
        return pa.array(names, pa.string()).take(pa.array(self.codes, mask=self.codes < 0))

    @property
    def array(self) -> pa.Array:
        """The columns of all rows, which have one schema."""
        array = self.arrays[self.codes[0]]
        return array if np.array_equal(self.at, np.arange(len(array))) else array.take(pa.array(self.at))

    def to_json(self) -> pa.BinaryArray:
        """Return the JSON of all rows, null for those without a schema; each schema has its columns."""
        texts = [make_encoder(of.type)(array) for of, array in zip(self.distinct, self.arrays, strict=True)]
        starts = np.cumsum([0, *map(len, texts)])
        at = starts[self.codes] + self.at
        joined = pa.concat_arrays(texts)
        return joined if np.array_equal(at, np.arange(len(joined))) else joined.take(pa.array(at, mask=self.codes < 0))


@dataclass
class Gathering:
    """Columns as they are found, schema by schema."""

    codes: Numbers
    at: Numbers
    distinct: list[Schema]
    arrays: list[list[pa.Array]]

    @classmethod
    def of(cls, total: int) -> Gathering:
        """For so many rows, none of which has a schema yet."""
        return cls(np.full(total, -1), np.zeros(total, np.int64), [], [])

    def add(self, schema: Schema, rows: Numbers, array: pa.Array | None, *, keep_nulls: bool = False) -> None:
        """Add rows of a schema with their columns, if these are read; unless nulls are kept, they have no schema."""
        if schema not in self.distinct:
            self.distinct.append(schema)
            self.arrays.append([])
        code = self.distinct.index(schema)
        if array is not None:
            self.at[rows] = sum(map(len, self.arrays[code])) + np.arange(len(rows))
            self.arrays[code].append(array)
            if array.null_count and not keep_nulls:
                rows = rows[array.is_valid().to_numpy(zero_copy_only=False)]
        self.codes[rows] = code

    def gathered(self) -> Schemas | None:
        """All of them; None where no row has a schema."""
        if not (self.codes >= 0).any():
            return None
        arrays = tuple(pa.concat_arrays(arrays) for arrays in self.arrays) if any(self.arrays) else ()
        return Schemas(tuple(self.distinct), self.codes, arrays, self.at)
