"""How do rows of a table that was read become values of Python?

A table of changes or of a snapshot is Arrow's; `to_pylist` of it gives values of Python for all columns but
`any`, whose lists, maps and mixtures Arrow has no type for. These are packed by msgpack, and their fields
say so.
"""

from __future__ import annotations

import pyarrow as pa

from differential.columns.column_types import ANY_METADATA
from differential.columns.symbols import unpack

__all__ = ["to_pylist"]


def to_pylist(table: pa.Table) -> list[dict[str, object]]:
    """The rows of a table, as `table.to_pylist()` gives them, with the values of `any` columns as they were.

    Lists come back as tuples, and so do those within them. Cost: about 1 µs a value.
    """
    rows: list[dict[str, object]] = table.to_pylist()
    for field in table.schema:
        if field.metadata is not None and ANY_METADATA.items() <= field.metadata.items():
            for row in rows:
                packed = row[field.name]
                row[field.name] = unpack(packed) if isinstance(packed, bytes) else None
    return rows
