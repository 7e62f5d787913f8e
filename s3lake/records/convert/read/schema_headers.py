"""Schemas that a header of the record names, as producers with Confluent's `HeaderSchemaIdSerializer` write them.

Such a header has the bytes that other producers write before the data. They are put there before anything else is done
to a record, so a transform that changes headers changes no schema, and there is one wire format.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SCHEMA_HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The headers that name the schemas of keys and of values."""


def prepend_schema_ids(batch: pa.RecordBatch, parts: Collection[str]) -> pa.RecordBatch:
    """Return the batch with the schema id of its header before each key or value, of these `parts`.

    Of several headers the last one counts, as in Kafka Connect. Like Confluent's `DualSchemaIdDeserializer`, which its
    converters use by default, this looks into the header first. Null stays null.
    """
    for part in SCHEMA_HEADERS.keys() & {*parts} & {*batch.schema.names}:
        schema_ids = _find_last_headers(batch.column("headers"), SCHEMA_HEADERS[part])
        if schema_ids is not None:
            framed = pc.binary_join_element_wise(schema_ids, batch.column(part), b"")
            batch = batch.set_column(batch.schema.get_field_index(part), batch.schema.field(part), framed)
    return batch


def _find_last_headers(headers: pa.ListArray, name: str) -> pa.BinaryArray | None:
    """Return each row's last header of a name, empty if it has none. Return None if no row has one."""
    pairs = pc.list_flatten(headers)
    places = pc.indices_nonzero(pc.equal(pc.struct_field(pairs, [0]), name))
    if not len(places):
        return None
    last = np.full(len(headers), -1)
    last[pc.list_parent_indices(headers).take(places).to_numpy()] = places.to_numpy()
    return pc.fill_null(pc.struct_field(pairs, [1]).take(pa.array(last, mask=last < 0)), b"")
