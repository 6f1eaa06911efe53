"""The second judge: DuckDB, over what has accumulated in the tables.

It shares nothing with our operators: rows are given to it as whole tables, one for each epoch, and it is
asked again from the beginning. Results are multisets of Python values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import duckdb
import pyarrow as pa

from differential.columns.schema import Schema

__all__ = ["Judge", "Multiset", "alike"]

Multiset = Counter[tuple[object, ...]]


class Judge:
    """A database in memory. `tell` replaces a table; `answer` runs a query."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config={"threads": 1})

    def tell(self, name: str, schema: Schema, rows: Iterable[Sequence[object]]) -> None:
        """The table `name` has these rows from now on, and no others."""
        listed = list(rows)
        fields = schema.to_arrow()
        columns = [pa.array([row[place] for row in listed], field.type) for place, field in enumerate(fields)]
        self.tell_table(name, pa.Table.from_arrays(columns, schema=fields))

    def tell_table(self, name: str, table: pa.Table) -> None:
        """The same, of an Arrow table."""
        self._database.register("told", table)
        self._database.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM told')
        self._database.unregister("told")

    def answer(self, sql: str) -> Multiset:
        """The rows of `sql`, each as often as it is there."""
        return alike(Counter(self._database.execute(sql).fetchall()))

    def close(self) -> None:
        """No more questions."""
        self._database.close()


def alike(rows: Mapping[tuple[object, ...], int]) -> Multiset:
    """The same multiset where values that differ by a rounding are one: floats to nine digits."""
    found: Multiset = Counter()
    for row, count in rows.items():
        found[tuple(_plain(value) for value in row)] += count
    return Counter({row: count for row, count in found.items() if count})


def _plain(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.9g}") + 0.0
    return value if not isinstance(value, Decimal) else value.normalize()
